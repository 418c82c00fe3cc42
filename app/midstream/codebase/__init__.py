"""Code intelligence across a project, in child processes: uses of names, related code, syntax."""
