"""Measures what warnings about failures are worth.

All agents are SIMULATED. The warnings come before the action or at the start of a task; or the failures are shown as raw
examples among the cases.
"""
