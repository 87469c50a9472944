"""The report of a benchmark as one page: what was run, and where memory helps or not, with intervals and charts."""
