"""What people decide about episodes, the audit log of it, and undo: the verbs, the command and the pages."""
