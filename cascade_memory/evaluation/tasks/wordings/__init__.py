"""What a model is told about each of the paper's tasks that are asked and answered: in our words, with the paper's content."""
