"""Coding agents as child processes: the Agent Client Protocol, and the agents that speak it."""
