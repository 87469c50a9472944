"""What warnings about failures are worth: before the action, at the start, or as raw examples. All agents are SIMULATED."""
