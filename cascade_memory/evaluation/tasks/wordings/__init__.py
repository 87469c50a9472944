"""What a model is told about each of the paper's tasks without an environment: in our words, with the paper's content."""
