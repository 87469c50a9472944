"""Deep search: questions that need several searches, the passages, and the tools that search them or the web."""
