"""Conversations with the session's model: questions, plans, and read-only tools."""
