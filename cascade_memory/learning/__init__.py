"""Everything that learns from the log: the ranker of a namespace, the shadow, and the head that namespaces share."""
