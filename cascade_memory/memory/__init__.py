"""The public verbs of a memory: they check what the caller passes and hand it to the engine."""
