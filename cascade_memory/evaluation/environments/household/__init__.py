"""Household games of ALFWorld's engine: generated, played, and solved by hand-made plans."""
