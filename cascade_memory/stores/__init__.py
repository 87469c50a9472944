"""Where vectors are found again: an exact scan in memory, and Chroma on disk."""
