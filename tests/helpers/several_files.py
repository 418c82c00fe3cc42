"""A folder before and after an answer that edits, adds, deletes and moves files."""

from __future__ import annotations

from pathlib import Path

from midstream.pairing.session import PairingSession

FILES = {
    "run.py": "import old\n\nstep = 1\nlast = 2\n",
    "util.js": "export const a = 1\n\nexport const b = 2\n",
    "gone.txt": "one\ntwo\n",
    "old.py": "def helper():\n    return 1\n",
}
AFTER = {
    "run.py": "import new\n\nstep = 1\nlast = 2\n",
    "util.js": "export const a = 1\n\nexport const b = 3\n",
    "pkg/fresh.go": "package pkg\n\nfunc Fresh() int { return 1 }\n",
    "new.py": FILES["old.py"],
}
"""The folder after the whole answer: two edits, a new file, a deletion and a move."""


def on_disk(root: Path) -> dict[str, str]:
    """Paths and texts of all files but git's."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


async def accept_all_and_undo(session: PairingSession, root: Path) -> None:
    """Check that nothing is written yet, accept everything, and undo it again."""
    assert on_disk(root) == FILES
    steps = 0
    for path in list(session.files):
        steps += await session.decisions.accept_rest(path) > 0
    assert on_disk(root) == AFTER
    for _ in range(steps):
        assert await session.decisions.undo()
    assert on_disk(root) == FILES
