"""The commands of the command line, one module each: ``add_arguments`` and ``run``.

A module imports lightly; what is heavy is imported when the command runs.
"""
