"""Deployment-time learning, measured: streams x methods x seeds, test before train, every row kept."""
