"""Environments in which agents act: their tasks, and the interface to play them."""
