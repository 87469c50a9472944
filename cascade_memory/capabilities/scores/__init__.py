"""Scores that people, models and programs gave on other platforms, and what they teach."""
