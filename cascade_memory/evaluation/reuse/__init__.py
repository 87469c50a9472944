"""Agents without a language model that really adapt a recalled case to the task at hand."""
