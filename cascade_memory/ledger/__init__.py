"""The truth: one SQLite file that holds everything that was acknowledged."""
