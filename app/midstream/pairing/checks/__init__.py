"""The project's own checks: running them, and reading the places that failed."""
