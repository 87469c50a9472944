"""Questions about patients, which are answered by code over a database of health records: the paper's, or one of our own."""
