"""The engine: one open folder, the state of its namespaces, the decision of a recall, the feeding of the mirror."""
