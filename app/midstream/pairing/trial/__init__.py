"""A set of editing requests with checks, to measure what a model makes of them here."""
