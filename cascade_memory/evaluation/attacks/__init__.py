"""Attacks on a memory by some of its actors: what they do, and how much of it gets through. All actors are SIMULATED."""
