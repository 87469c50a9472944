"""Who says whether a task was solved: the label, or what a query returns. Never the model."""
