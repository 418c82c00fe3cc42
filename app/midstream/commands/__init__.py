"""The commands of the command line, one module each: ``add_arguments`` and ``run``.

A module imports little; heavy modules are imported when the command runs.
"""
