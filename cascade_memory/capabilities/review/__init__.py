"""What people decide about episodes, the audit log of their decisions, and undo: the methods, the command and the pages."""
