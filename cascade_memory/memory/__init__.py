"""Wires the six steps together. No maths, no adapters: those are handed in."""
