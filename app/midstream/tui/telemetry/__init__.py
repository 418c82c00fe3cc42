"""Rates measured here, beside those of a simulated wafer."""
