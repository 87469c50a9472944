"""Runs a model's Python: a small part of the language, interpreted in a process of its own, behind the system's limits."""
