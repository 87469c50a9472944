"""Judges that decide whether a task was solved: by its label, by the result of a query, or by another model."""
