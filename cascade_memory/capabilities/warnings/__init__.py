"""Warnings of known failures: the verbs and the command."""
