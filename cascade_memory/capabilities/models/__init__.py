"""Which model made a case: its name is stamped on the episode when a run ends, and the report counts by model."""
