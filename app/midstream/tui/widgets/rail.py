"""The file rail: open files with their hunks, changed files, and the folder as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from rich.cells import cell_len

from midstream.edits.hunk_store import HunkCounts
from midstream.tui.glyphs import Glyphs
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow, Piece, RowList

MAX_LISTED: Final = 2_000
"""Limit on the rows of the tree; further files are found by name."""
UNFOLDED_FILES: Final = 100
"""Files up to which a folder is shown unfolded."""
MAX_CHANGED: Final = 12
"""Changed files that are listed above the tree; the others have their marks in it."""
MARKS: Final[Mapping[str, str]] = {
    "M": "warning", "R": "warning", "A": "success", "?": "success", "D": "error", "!": "error",
}  # fmt: skip
"""Letters of ``workspace.repo.RepoStatus.marks`` and the palette role of each."""
_INDENT: Final = 2
"""Cells for each folder that a file lies in."""
_STATE: Final = len("1 waits")
"""Cells of the column that says how far a file is."""
_WIDTH: Final = 30
"""Cells until the layout is known."""


class FileEntry(NamedTuple):
    """An open file and its hunks."""

    path: str
    hunks: HunkCounts
    writing: bool = False
    current: bool = False


class FileTree:
    """Files by the folder they are in; the path of a folder ends with a slash.

    A folder is sorted when it is shown, since most of a large repository never is.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files: dict[str, list[str]] = {"": []}
        self._folders: dict[str, list[str]] = {"": []}
        known = self._files
        for path in files:
            folder = path[: path.rfind("/") + 1]
            if folder not in known:
                self._add(folder)
            known[folder].append(path)

    def _add(self, folder: str) -> None:
        self._files[folder], self._folders[folder] = [], []
        above = parent(folder)
        if above not in self._files:
            self._add(above)
        self._folders[above].append(folder)

    def walk(self, unfolded: Callable[[str], bool], folder: str = "") -> Iterator[str]:
        """The visible entries, top down: files first, folders such as ``.github`` last."""
        yield from sorted(self._files[folder])
        for inner in sorted(self._folders[folder], key=lambda path: (is_hidden(path), path)):
            yield inner
            if unfolded(inner):
                yield from self.walk(unfolded, inner)


def parent(path: str) -> str:
    """The folder that a file or folder is in, ``""`` for the root."""
    return path[: path.rstrip("/").rfind("/") + 1]


def _folders_above(path: str) -> Iterator[str]:
    while path := parent(path):
        yield path


def is_hidden(folder: str) -> bool:
    """Whether a folder is hidden, like ``.github``; people seldom work on files there."""
    return folder[len(parent(folder)) :].startswith(".")


class Rail(RowList):
    """The rows of the rail."""

    def __init__(self, palette: Palette, glyphs: Glyphs, *, widget_id: str | None = None) -> None:
        super().__init__(palette, glyphs, widget_id=widget_id)
        self._opened: tuple[FileEntry, ...] = ()
        self._files: Sequence[str] = ()
        self._tree = FileTree(())
        self._current = ""
        self._marks: Mapping[str, str] = {}
        self._above: frozenset[str] = frozenset()
        """Folders in which something has a mark."""
        self._changed: Sequence[str] = ()
        self._unfolded: dict[str, bool] = {}
        """Folders that were folded or unfolded, by the user or to show the open file."""
        self._open_rows: dict[str, tuple[FileEntry, ListRow]] = {}
        self._listed: list[ListRow] = []
        self._listed_width = 0
        self._tree_rows: dict[tuple[str, bool, bool, tuple[Piece, ...]], ListRow] = {}
        """Rows of the tree as they have been, of these files in this width."""

    @property
    def show_cursor(self) -> bool:
        """Only where the keys go."""
        return self.has_focus

    @property
    def edged(self) -> bool:
        """Where it lies over the code."""
        return self.is_attached and self.screen.has_class("-rail-open")

    def show_files(
        self,
        opened: Sequence[FileEntry],
        files: Sequence[str],
        marks: Mapping[str, str] | None = None,
    ) -> None:
        """Show the open files and all files; does nothing when all is as before.

        Args:
            opened: Open files.
            files: All files.
            marks: What differs from the last commit, see ``workspace.repo.RepoStatus.marks``.
        """
        state, marks = tuple(opened), marks or {}
        same = self._files is files and (marks is self._marks or marks == self._marks)
        if self.rows and self._opened == state and same:
            return
        self._opened = state
        if not same:
            self._marks, self._listed, self._open_rows = marks, [], {}
            self._above = frozenset(above for path in marks for above in _folders_above(path))
            new = tuple(path for path in marks if path.endswith("/"))
            inside = [path for path in files if new and path.startswith(new)]
            self._changed = sorted([*(path for path in marks if path and path not in new), *inside])
        current = next((entry.path for entry in opened if entry.current), "")
        if self._files is not files:
            self._files, self._tree, self._listed = files, FileTree(files), []
            self._tree_rows = {}
        if self._current != current:
            self._current, self._listed = current, []
            folder = parent(current)
            while folder:
                self._unfolded[folder] = True
                folder = parent(folder)
        self._show_rows()

    def _show_rows(self, select: str | None = None) -> None:
        width = self.columns or _WIDTH
        if not self._listed or width != self._listed_width:
            if width != self._listed_width:
                self._open_rows, self._tree_rows = {}, {}
            self._listed, self._listed_width = self._list(width), width
        rows: list[ListRow] = []
        known, self._open_rows = self._open_rows, {}
        if self._opened:
            rows.append(ListRow(None, (("OPEN", "muted!"),)))
            for entry in self._opened:
                row = known.get(entry.path)
                if row is None or row[0] != entry:
                    row = entry, self._open_row(entry, width)
                self._open_rows[entry.path] = row
                rows.append(row[1])
            rows.append(ListRow(None, ()))
        changed = [path for path in self._changed if path not in self._open_rows]
        if changed:
            rows.append(ListRow(None, (("CHANGED", "muted!"),), ((f"{len(changed):,}", "muted"),)))
            rows += [self._changed_row(path, width) for path in changed[:MAX_CHANGED]]
            rows.append(ListRow(None, ()))
        rows.append(ListRow(None, (("FILES", "muted!"),), ((f"{len(self._files):,}", "muted"),)))
        self.show([*rows, *self._listed], select=select)

    def on_resize(self) -> None:
        super().on_resize()
        self._show_rows()

    def _list(self, width: int) -> list[ListRow]:
        """The rows of the tree; they stay while neither files, folds nor width change."""
        seen = list(islice(self._tree.walk(self.is_unfolded), MAX_LISTED + 1))
        rows = [self._tree_row(path, width) for path in seen[:MAX_LISTED]]
        if len(seen) > MAX_LISTED:
            rows.append(ListRow(None, (("more: fold, or open by name", "muted"),)))
        return rows

    def _tree_row(self, path: str, width: int) -> ListRow:
        current, git = path == self._current, self._mark(path)
        unfolded = path.endswith("/") and self.is_unfolded(path)
        key = path, current, unfolded, git
        if (known := self._tree_rows.get(key)) is not None:
            return known
        above = parent(path)
        lead = " " * (_INDENT * above.count("/"))
        name, role = path[len(above) :], "accent" if current else "foreground"
        if path.endswith("/"):
            mark = self._glyphs.unfolded if unfolded else self._glyphs.folded
            lead, role = f"{lead}{mark} ", "muted"
        room = width - len(lead) - len(git) * 2
        row = ListRow(path, ((lead, "muted"), (self._cut(name, room), role)), git)
        return self._tree_rows.setdefault(key, row)

    def _mark(self, path: str) -> tuple[Piece, ...]:
        """What git says about a file or folder, as pieces at the right."""
        mark = self._marks.get(path, "")
        if not mark and path in self._above:
            return ((f" {self._glyphs.separator}", "warning"),)
        while not mark and path:  # a new folder has one mark for all of its files
            path = parent(path)
            mark = "?" if self._marks.get(path) == "?" else ""
        return ((f" {mark}", MARKS[mark]),) if mark else ()

    def _changed_row(self, path: str, width: int) -> ListRow:
        above = parent(path)
        name, git = path[len(above) :], self._mark(path)
        room = max(0, width - cell_len(name) - 5)
        where = above.rstrip("/")
        if len(where) > room:
            where = self._glyphs.ellipsis + where[len(where) - room + 1 :] if room > 3 else ""
        left = ((self._cut(name, width - 2), "foreground"), (f" {visible(where)}", "muted"))
        # A deleted file cannot be opened.
        return ListRow(None if self._marks.get(path) == "D" else path, left, git)

    def _open_row(self, entry: FileEntry, width: int) -> ListRow:
        right: list[Piece] = [*self._mark(entry.path)]
        hunks, state = entry.hunks, ("", "muted")
        has_counts = hunks.added or hunks.deleted
        if has_counts:
            right += [(f" +{hunks.added}", "success"), (f" -{hunks.deleted}", "error")]
        if entry.writing:
            state = "writing", "accent"
        elif hunks.conflicts:
            many = "s" * (hunks.conflicts != 1)
            state = f"{hunks.conflicts} conflict{many}", "warning"
        elif hunks.held:
            state = f"{hunks.held} held back", "warning"
        elif hunks.undecided:
            waits = "waits" if hunks.undecided == 1 else "wait"
            state = f"{hunks.undecided} {waits}", "accent"
        elif hunks.accepted or hunks.rejected:
            state = "done", "muted"
        if has_counts or state[0]:
            right.append((f"  {state[0]:>{_STATE}}", state[1]))
        role = "foreground!" if entry.current else "foreground"
        room = width - sum(len(text) for text, _ in right)
        name = self._cut(entry.path.rpartition("/")[2], max(room, width // 3))
        return ListRow(entry.path, ((name, role),), tuple(right))

    def _cut(self, name: str, width: int) -> str:
        """A name in the room that a row of ``width`` cells has: names differ at their ends."""
        name, room = visible(name), max(8, width - 2)
        if cell_len(name) <= room:
            return name
        tail = (room - 1) * 2 // 3
        return name[: room - 1 - tail] + self._glyphs.ellipsis + name[-tail:]

    # folding

    def is_unfolded(self, folder: str) -> bool:
        usual = len(self._files) <= UNFOLDED_FILES and not is_hidden(folder)
        return self._unfolded.get(folder, usual)

    @property
    def folder(self) -> str:
        """The folder under the cursor, ``""`` if there is a file."""
        value = self.value or ""
        return value if value.endswith("/") else ""

    def choose(self) -> None:
        """Open the file under the cursor; fold or unfold a folder."""
        if self.folder:
            self.set_unfolded(self.folder, not self.is_unfolded(self.folder))
        else:
            super().choose()

    def inwards(self) -> None:
        """Unfold the folder under the cursor; in one that is unfolded, go to its first row."""
        if self.folder and not self.is_unfolded(self.folder):
            self.set_unfolded(self.folder, True)
        elif self.folder:
            self.move(1)

    def outwards(self) -> None:
        """Fold the folder under the cursor; elsewhere, go to the folder above."""
        if self.folder and self.is_unfolded(self.folder):
            self.set_unfolded(self.folder, False)
        elif self.value is not None and (above := parent(self.value)):
            self._show_rows(select=above)

    def set_unfolded(self, folder: str, unfolded: bool) -> None:
        """Fold or unfold a folder; the cursor goes to it."""
        self._unfolded[folder] = unfolded
        self._listed = []
        self._show_rows(select=folder)
        self.post_message(self.Highlighted(self, folder))
