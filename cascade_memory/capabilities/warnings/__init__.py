"""Warnings of known failures: the verbs, the command and the pages."""
