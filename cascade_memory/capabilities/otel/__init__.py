"""Spans and metrics for OpenTelemetry, of what a memory does."""
