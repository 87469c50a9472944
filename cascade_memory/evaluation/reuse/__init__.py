"""Reuse agents: they have no language model, but really adapt a recalled case to the present task."""
