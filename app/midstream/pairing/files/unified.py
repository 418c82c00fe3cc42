"""A unified diff that is written while the rewrite is still streaming.

A group of changes is written as soon as no later change can join it, so the output is a valid patch
at every moment.  Line terminators are those that the file has and will have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from midstream.edits.documents import LineEdit, SourceText

CONTEXT = 3
"""Unchanged lines around a change."""


class UnifiedDiff:
    """Turns edits of a base text, in order of position, into the lines of a patch.

    Args:
        path: The file's name in the patch.
        base: The text before.
    """

    def __init__(self, path: str, base: SourceText) -> None:
        self._path = path
        self._base = base
        self._group: list[LineEdit] = []
        self._shift = 0
        self._begun = False

    def add(self, edit: LineEdit) -> Iterator[str]:
        """Add an edit; yields the lines of a group that is complete."""
        if self._group and edit.start - self._group[-1].stop > 2 * CONTEXT:
            yield from self._flush()
        self._group.append(edit)

    def passed(self, line: int) -> Iterator[str]:
        """Base lines before ``line`` are final; yields the lines of a group that is complete."""
        if self._group and line - self._group[-1].stop > 2 * CONTEXT:
            yield from self._flush()

    def finish(self) -> Iterator[str]:
        """There are no more edits; yields the rest."""
        if self._group:
            yield from self._flush()

    def _flush(self) -> Iterator[str]:
        base, group = self._base, self._group
        self._group = []
        start = max(0, group[0].start - CONTEXT)
        stop = min(len(base.lines), group[-1].stop + CONTEXT)
        after = base.replace(group)
        grown = sum(len(edit.lines) - (edit.stop - edit.start) for edit in group)
        body = list(self._body(group, start, stop, after))
        if not self._begun:
            self._begun = True
            yield f"--- a/{self._path}\n"
            yield f"+++ b/{self._path}\n"
        old = _range(start, stop - start)
        new = _range(start + self._shift, stop - start + grown)
        self._shift += grown
        yield f"@@ -{old} +{new} @@\n"
        yield from body

    def _body(
        self, group: Iterable[LineEdit], start: int, stop: int, after: SourceText
    ) -> Iterator[str]:
        base = self._base
        at, new = start, start
        for edit in group:
            for offset in range(edit.start - at):
                yield from _kept(base, at + offset, after, new + offset)
            new += edit.start - at
            for number in range(edit.start, edit.stop):
                yield from _line("-", base, number)
            for number in range(new, new + len(edit.lines)):
                yield from _line("+", after, number)
            new += len(edit.lines)
            at = edit.stop
        for offset in range(stop - at):
            yield from _kept(base, at + offset, after, new + offset)


def _kept(base: SourceText, old: int, after: SourceText, new: int) -> Iterator[str]:
    if base.ends[old] == after.ends[new]:
        yield from _line(" ", base, old)
    else:  # The last line of a file, which gets or loses its newline.
        yield from _line("-", base, old)
        yield from _line("+", after, new)


def _line(sign: str, text: SourceText, number: int) -> Iterator[str]:
    end = text.ends[number]
    yield f"{sign}{text.lines[number]}{end or chr(10)}"
    if not end:
        yield "\\ No newline at end of file\n"


def _range(start: int, count: int) -> str:
    """A range of a unified diff; an empty one names the line before it."""
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
