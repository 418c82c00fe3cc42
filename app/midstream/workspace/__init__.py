"""Files, git and the journal: the only part that writes user files or talks to git.

Entry points: :class:`~midstream.workspace.files.Workspace` (read, write, undo, restore),
:class:`~midstream.workspace.watch.Watcher` (changes by other programs),
:mod:`~midstream.workspace.repo`, :mod:`~midstream.workspace.staging` and
:class:`~midstream.workspace.journal.Journal`.

Promises: nothing outside the root or of git's own is touched; a file is complete at every moment;
another program's save is never overwritten; every batch can be undone byte for byte.
"""
