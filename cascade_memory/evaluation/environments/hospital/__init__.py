"""Questions about patients, answered by code over a database of health records: the paper's, or our invented one."""
