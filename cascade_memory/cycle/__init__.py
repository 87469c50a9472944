"""The six steps after the query: recall, select, reuse, reward, learn, retain. They never import each other."""
