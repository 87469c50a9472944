"""The six steps after the query: recall, select, reuse, reward, learn, retain. No step imports another."""
