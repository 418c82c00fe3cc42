"""Files, git and the journal: the only part that writes user files or talks to git.

Entry points: ``Workspace`` (read, write, undo),
``Watcher`` (changes by other programs),
``workspace.repo``, ``workspace.staging`` and
``Journal``.

Promises: nothing outside the root or of git's own is touched; a file is complete at every moment;
another program's save is never overwritten; every batch can be undone byte for byte.
"""
