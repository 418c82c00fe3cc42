"""Review of what other programs write: external changes, agents and their gate."""
