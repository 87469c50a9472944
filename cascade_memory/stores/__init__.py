"""Searches for the nearest vectors: an exact scan in RAM, and Chroma on disk or on a server."""
