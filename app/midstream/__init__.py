"""Midstream: a terminal pair programmer whose hunks you decide while they stream."""

__version__ = "0.1.0"
