"""The engine: one open folder, the state of its namespaces, the decision of each recall, the feeding of the mirror."""
