"""Files, git and the journal: the only room that writes user files or talks to git.

Entry points: :class:`~midstream.workspace.files.Workspace` (read, write, undo, restore),
:class:`~midstream.workspace.watch.Watcher` (what somebody else changed),
:func:`~midstream.workspace.repo.repo_status`, :mod:`~midstream.workspace.staging`,
:mod:`~midstream.workspace.history` and :class:`~midstream.workspace.journal.Journal`.

Promises: nothing outside the root or of git's own is touched; a file is whole at every moment; a
save by somebody else is never overwritten; every batch can be taken back byte for byte.
"""
