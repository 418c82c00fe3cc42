"""Rates measured here, next to what a simulated wafer would do."""
