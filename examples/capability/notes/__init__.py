"""Notes that people pin to cases."""
