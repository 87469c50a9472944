"""Streams of real tasks: where they come from, how they are asked, and how they are judged."""
