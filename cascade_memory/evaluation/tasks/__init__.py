"""Streams of real tasks: their sources, prompts and judges."""
