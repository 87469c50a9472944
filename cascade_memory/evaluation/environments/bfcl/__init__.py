"""BFCL v4 multi-turn: a user asks for several things in turn, and each is done by calling functions of simulated systems."""
