"""The conversation beside the code."""
