"""The benchmark of learning during deployment: it plays streams with methods and seeds, and stores a row for each run."""
