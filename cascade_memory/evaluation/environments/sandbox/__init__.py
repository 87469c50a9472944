"""Runs a model's Python code: in an interpreter of a small part of Python, in a process of its own, behind the system's limits."""
