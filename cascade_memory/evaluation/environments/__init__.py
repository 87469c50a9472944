"""Worlds that agents act in: what tasks they give, and how they are played."""
