"""Warnings about failures: what they are worth at the action, at the start, or as raw examples. All agents are SIMULATED."""
