"""Apply a model's reply, read from standard input, to files."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.code.syntax import has_syntax
from midstream.commands.common import print_json, printable
from midstream.edits.formats import names
from midstream.errors import UsageError

if TYPE_CHECKING:
    from midstream.edits.outcome import ApplyResult
    from midstream.workspace.files import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--format",
        default="auto",
        choices=("auto", *names()),
        help="how the reply writes its edits (auto: recognised by its first lines)",
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder that paths are relative to (.)",
    )
    parser.add_argument("--file", metavar="FILE", help="the file for a reply that names none")
    parser.add_argument(
        "--partial", action="store_true", help="apply what matches even if something does not"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="write files even if they no longer parse"
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Apply the reply; 1 if something in it did not match, or a file would not parse any more.

    Raises:
        UserError: A path leaves the root, or a file cannot be read or written.
    """
    from midstream.edits.apply import apply_reply
    from midstream.workspace.files import Workspace

    if sys.stdin.isatty():
        raise UsageError("The reply is read from standard input; pipe it in.")
    reply = sys.stdin.buffer.read().decode("utf-8", "replace")
    workspace = Workspace(options.root)
    for sentence in workspace.recovery:
        print(f"midstream: {printable(sentence)}", file=sys.stderr)
    read = Reader(workspace)
    result = apply_reply(
        reply, read, options.format, options.file, options.partial, find=read.ending_in
    )
    result = read.conformed(result)
    changes = bool(result.changes or result.executable)
    broken = {} if options.anyway else asyncio.run(read.broken_by(result))
    left = asyncio.run(read.left_by(result))
    writes = changes and not broken and not options.dry_run
    if writes:
        write(workspace, result, read)
    if options.json:
        print_json({**result.to_json(), "written": writes, "broken": broken, "left": left or None})
    else:
        fits = result.ok and (options.dry_run or bool(broken))
        print(printable("All edits would apply." if fits else result.message()))
        for line in read.story(result, "" if writes else "would be "):
            print(printable(line))
        if left:
            print(printable(left))
        for path, why in broken.items():
            said = f"{path} would no longer parse ({why}); nothing was written. Fix the reply"
            print(printable(f"{said}, or write it with --anyway."))
    return 0 if result.ok and not broken else 1


class Reader:
    """Reads files for ``apply_reply`` and remembers their digests for the compare before the write.

    Attributes:
        digests: Digests by path; ``None`` for a file that does not exist.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.digests: dict[str, str | None] = {}
        self._texts: dict[str, bytes] = {}
        self._workspace = workspace
        self._files: list[str] | None = None

    def ending_in(self, path: str) -> list[str]:
        """The workspace's files whose last parts are those of ``path``."""
        return [file for file in self._listed() if file.endswith(f"/{path}")]

    def conformed(self, result: ApplyResult) -> ApplyResult:
        """A result whose new files have the line ends and the mark of the files beside them.

        Raises:
            UserError: One of them cannot be made.
        """
        from midstream.workspace.conventions import new_file_form

        moved = {file.new_path for file in result.files}
        gone = {path for path, data in result.changes.items() if data is None}
        changes = dict(result.changes)
        for path, data in result.changes.items():
            if data is None or self._known(path) is not None:
                continue
            self._workspace.check_room(path, gone)
            if data and path not in moved:
                name = self._workspace.relative(path)
                form = new_file_form(self._workspace.root, name, self._listed())
                changes[path] = form.of(data)
        return replace(result, changes=changes)

    def story(self, result: ApplyResult, mood: str) -> Iterator[str]:
        """A line for each file that changes, or would change."""
        for path in sorted({*result.changes, *result.executable}):
            done: list[str] = []
            if path in result.changes:
                done.append("deleted" if result.changes[path] is None else "written")
            if result.executable.get(path):
                done.append("made executable")
            elif path in result.executable and self._known(path) is not None:
                done.append("made not executable")
            yield f"{path}: {mood}{' and '.join(done)}"

    def _listed(self) -> list[str]:
        """The workspace's files, listed once."""
        if self._files is None:
            self._files = self._workspace.files()
        return self._files

    def _known(self, path: str) -> str | None:
        """The former digest of a file; ``None`` if there was no file."""
        if path not in self.digests:
            self(path)
        return self.digests[path]

    def __call__(self, path: str) -> bytes | None:
        """The bytes of a file; ``None`` if it does not exist."""
        from midstream.workspace.errors import MissingFileError
        from midstream.workspace.files import content_digest

        try:
            data = self._workspace.read(path)
        except MissingFileError:
            self.digests[path] = None
            return None
        self.digests[path] = content_digest(data)
        self._texts[path] = data
        return data

    async def broken_by(self, result: ApplyResult) -> dict[str, str]:
        """Where files stop parsing with a result, by path; see ``checks.breaks``."""
        from midstream.codebase.syntax_check import breaks
        from midstream.edits.documents import join_lines

        found: dict[str, str] = {}
        for path, (before, after) in self._versions(result).items():
            written = result.changes[path] is not None
            if written and (why := await breaks(path, join_lines(before), join_lines(after))):
                found[path] = why
        return found

    async def left_by(self, result: ApplyResult) -> str:
        """Where names are still used that a result renames or deletes, as a sentence or ``""``."""
        from midstream.codebase.references import told_uses_left

        if not any(map(has_syntax, result.changes)):
            return ""
        moved = {
            name for file in result.files if file.new_path for name in (file.path, file.new_path)
        }
        versions = {p: pair for p, pair in self._versions(result).items() if p not in moved}
        before = {path: pair[0] for path, pair in versions.items() if path in self._texts}
        after = {path: versions[path][1] for path in before}
        workspace = self._workspace
        return await told_uses_left(
            workspace.root,
            workspace.files(),
            before,
            after,
            outside=workspace.files_outside,
        )

    def _versions(self, result: ApplyResult) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        """The lines of files before and after a result, by path; without those that are no text."""
        from midstream.edits.documents import NotTextError, SourceText

        came_from = {file.new_path: file.path for file in result.files if file.new_path is not None}
        found: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
        for path, data in result.changes.items():
            try:
                before = SourceText.from_bytes(self._texts.get(came_from.get(path, path), b""))
                after = SourceText.from_bytes(data or b"")
            except NotTextError:
                continue
            found[path] = before.lines, after.lines
        return found


def write(workspace: Workspace, result: ApplyResult, read: Reader) -> None:
    """Write all files of a result, or none.

    Raises:
        UserError: One of them has changed since it was read, or cannot be written.
    """
    for path in result.changes:
        if path not in read.digests:
            read(path)
    moves = {file.new_path: file.path for file in result.files if file.new_path is not None}
    workspace.write_all(
        result.changes,
        {path: read.digests[path] for path in result.changes},
        f"apply a reply to {len(result.changes)} file(s)",
        modes_from={new: old for new, old in moves.items() if new in result.changes},
    )
    for path, executable in result.executable.items():
        workspace.set_executable(path, executable)
