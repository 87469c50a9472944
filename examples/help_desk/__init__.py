"""A help desk for agents: a small world with state, a scripted model that knows little, and four kinds of agent."""
