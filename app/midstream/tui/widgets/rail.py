"""The file rail: open files and what is decided in them, then every file of the folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow, Piece, RowList

LONGEST_LIST = 2_000
"""Files listed; the rest is found with the file picker."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """An open file; ``added`` and ``deleted`` count lines, the others hunks."""

    path: str
    added: int = 0
    deleted: int = 0
    undecided: int = 0
    decided: int = 0
    writing: bool = False
    current: bool = False


class Rail(RowList):
    """The rows of the rail."""

    _shown: tuple[tuple[FileEntry, ...], Sequence[str]] | None = None
    _listed: tuple[Sequence[str], str, list[ListRow]] | None = None
    """All files, which of them is open, and their rows."""

    @property
    def show_cursor(self) -> bool:
        """Only where the keys go."""
        return self.has_focus

    def show_files(self, opened: Sequence[FileEntry], files: Sequence[str]) -> None:
        """Show the open files and all files; does nothing when both are as before."""
        state, known = tuple(opened), self._shown
        if known is not None and known[0] == state and known[1] is files:
            return
        self._shown = state, files
        rows: list[ListRow] = []
        if opened:
            rows.append(ListRow(None, (("OPEN", "muted!"),)))
            rows += [_open_row(entry) for entry in opened]
            rows.append(ListRow(None, ()))
        rows.append(ListRow(None, (("FILES", "muted!"),), ((f"{len(files):,}", "muted"),)))
        current = next((entry.path for entry in opened if entry.current), "")
        self.show([*rows, *self._list(files, current)])

    def _list(self, files: Sequence[str], current: str) -> list[ListRow]:
        """The rows of all files; the same while neither these nor the open one change."""
        known = self._listed
        if known is not None and known[0] is files and known[1] == current:
            return known[2]
        rows: list[ListRow] = []
        folder = ""
        # By folder: in plain order, a folder's files stand before and after those of its folders.
        for path in sorted(files, key=_by_folder)[:LONGEST_LIST]:
            head, slash, name = visible(path).rpartition("/")
            if head != folder:
                folder = head
                rows.append(ListRow(None, ((head + slash, "muted"),)))
            indent = "  " if head else ""
            role = "accent" if path == current else "foreground"
            rows.append(ListRow(path, ((indent + name, role),)))
        if len(files) > LONGEST_LIST:
            rows.append(ListRow(None, ((f"and {len(files) - LONGEST_LIST:,} more", "muted"),)))
        self._listed = files, current, rows
        return rows


def _by_folder(path: str) -> tuple[bool, str, str]:
    """Folders such as ``.github`` come last: what is worked on is seldom there."""
    folder, _, name = path.rpartition("/")
    return folder.startswith("."), folder, name


def _open_row(entry: FileEntry) -> ListRow:
    name = visible(entry.path).rpartition("/")[2]
    right: list[Piece] = []
    if entry.added or entry.deleted:
        right += [(f" +{entry.added}", "success"), (f" -{entry.deleted}", "error")]
    if entry.writing:
        right.append((" writing", "accent"))
    elif entry.undecided:
        right.append((f"  {entry.undecided} open", "accent"))
    elif entry.decided:
        right.append(("  done", "muted"))
    role = "foreground!" if entry.current else "foreground"
    return ListRow(entry.path, ((name, role),), tuple(right))
