"""Puts a memory together from its parts: the only package that chooses implementations of the ports."""
