"""Rows of a benchmark as one page: what was run, where memory helps and where it does not, with intervals and pictures."""
