"""The only place that picks adapters."""
