"""Makes the file of a task from the files that the makers of its data publish."""
