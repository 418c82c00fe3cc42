"""Carry out one instruction: print the result as a patch or as JSON events, or write the file."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.commands.common import (
    add_model_options,
    colours,
    print_json,
    printable,
    with_options,
)
from midstream.errors import UsageError
from midstream.project import opened_by
from midstream.workspace.paths import shown

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import Hunk
    from midstream.pairing.files.unified import UnifiedDiff
    from midstream.pairing.headless import Outcome, Sink
    from midstream.pairing.request.question import Question
    from midstream.pairing.status import PromptReading, Turn
    from midstream.settings import Settings

_LINES = re.compile(r"^(?P<file>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?$")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "file",
        metavar="FILE[:A-B]",
        help="the file, and lines in it; a folder finds the file by the symbol that the "
        "instruction names",
    )
    parser.add_argument("-m", "--message", required=True, metavar="TEXT", help="what should change")
    parser.add_argument("--apply", action="store_true", help="write the result")
    parser.add_argument(
        "--unsure",
        action="store_true",
        help="an answer that is flagged or leaves names undefined is no failure; --apply writes it",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="with --apply, also write a file that no longer parses",
    )
    parser.add_argument(
        "--everywhere",
        action="store_true",
        help="repeat the change wherever else it is needed, such as all uses of a renamed name",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--diff", action="store_true", help="print a unified diff (the default)")
    form.add_argument("--json", action="store_true", help="print one JSON event per line")
    add_model_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the instruction; 1 if the result is doubtful, or was to be written and was not.

    Raises:
        UserError: What went wrong; nothing was written.
    """
    from midstream.settings import load_settings

    root, question = read_question(options.file, options.message)
    settings = with_options(load_settings(root), options)
    sink = JsonSink() if options.json else DiffSink()
    outcome = asyncio.run(_carry_out(root, question, options, settings, sink))
    sink.ended(outcome)
    doubtful = bool(outcome.unsure or outcome.left) and not options.unsure
    return 1 if outcome.refused or doubtful else 0


async def _carry_out(
    root: Path, question: Question, options: argparse.Namespace, settings: Settings, sink: Sink
) -> Outcome:
    from midstream.pairing.models.server import ServerLink

    server = ServerLink(settings, replay=options.replay)
    try:
        await server.launch()  # Its model loads while the rest is imported.
        await asyncio.to_thread(import_module, "midstream.pairing.headless")
        from midstream.pairing.headless import Job, run_job

        job = Job(
            root,
            question,
            apply=options.apply,
            unsure=options.unsure,
            anyway=options.anyway,
            everywhere=options.everywhere,
        )
        return await run_job(job, sink, settings=settings, server=server)
    finally:
        await server.close()


def read_question(file: str, instruction: str) -> tuple[Path, Question]:
    """The folder and the instruction that a command line names.

    Raises:
        UsageError: The file does not exist, or the lines are not a range.
    """
    from midstream.pairing.request.question import Question

    path, first, last = Path(file), None, None
    match = None if path.exists() else _LINES.match(file)
    if match is not None:
        path = Path(match["file"])
        first, last = int(match["first"]), int(match["last"]) if match["last"] else None
        if first < 1 or (last is not None and last < first):
            raise UsageError(f"{file} has no valid lines; write FILE:FIRST-LAST, counted from 1.")
    if path.is_dir():
        return path, Question(instruction)
    if not path.exists():
        raise UsageError(f"There is no file {path}; name one that exists.")
    root, rel = opened_by(path.resolve())
    cursor = first - 1 if first is not None and last is None else None
    selection = (first - 1, last) if first is not None and last is not None else None
    return root, Question(instruction, rel, cursor, selection)


class DiffSink:
    """Prints a unified diff as it becomes certain."""

    def __init__(self) -> None:
        self._diff: UnifiedDiff | None = None
        self._path = ""
        self._reads = False
        """Whether the terminal's last line says how much has been read."""
        self._terminal = sys.stdout.isatty()
        self._colours = colours()

    def started(self, turn: Turn, base: SourceText, model: str) -> None:
        """The request was sent."""
        from midstream.pairing.files.unified import UnifiedDiff

        self._path = turn.path
        self._diff = UnifiedDiff(turn.path, base)

    def waiting(self, sentence: str) -> None:
        """Say so on standard error."""
        self.reading(None)
        print(printable(sentence), file=sys.stderr, flush=True)

    def reading(self, progress: PromptReading | None) -> None:
        """Show it in one line of the terminal, which the next output replaces."""
        if sys.stderr.isatty() and (self._reads or progress is not None):
            self._reads = progress is not None
            words = f"reading {progress}" if self._reads else ""
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)

    def disclosed(self, sentence: str) -> None:
        """Say so on standard error."""
        self.reading(None)
        print(printable(sentence), file=sys.stderr, flush=True)

    def text(self, text: str) -> None:
        """Text is printed only once it has settled."""

    def file(self, path: str, base: SourceText) -> None:
        """The following hunks are in this file."""
        from midstream.pairing.files.unified import UnifiedDiff

        if path != self._path:
            if self._diff is not None:
                self._print(self._diff.finish())
            self._path, self._diff = path, UnifiedDiff(path, base)

    def hunk(self, hunk: Hunk) -> None:
        """A hunk has settled."""
        from midstream.edits.documents import LineEdit

        if self._diff is not None:
            self._print(self._diff.add(LineEdit(hunk.start, hunk.stop, hunk.new)))

    def passed(self, line: int) -> None:
        """Base lines before ``line`` are settled."""
        if self._diff is not None:
            self._print(self._diff.passed(line))

    def ended(self, outcome: Outcome) -> None:
        """Print the rest, and a summary on standard error."""
        if self._diff is not None:
            self._print(self._diff.finish())
        pace = f" at {outcome.rate}" if outcome.rate else ""
        doubts = [said for said in (outcome.left, outcome.unsure) if said]
        if outcome.written:
            verb = "written"
        elif outcome.refused:
            verb = f"not written: {outcome.refused}"
        else:
            verb = "not written" if doubts else "not written; --apply writes it"
        print(
            f"{shown(self._path)}: {outcome.hunks} hunk{'s' * (outcome.hunks != 1)}, "
            f"+{outcome.added} -{outcome.deleted}, {outcome.size}{pace}; {verb}.",
            file=sys.stderr,
        )
        for said in [*doubts, outcome.later]:
            if said:
                print(printable(said), file=sys.stderr)

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._line(line)
        sys.stdout.flush()

    def _line(self, line: str) -> None:
        self.reading(None)
        if not self._terminal:
            sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape"))
            return
        text = printable(line.rstrip("\r\n"))
        colour = _COLOURS.get(line[:1], "") if self._colours else ""
        print(f"{colour}{text}{_RESET if colour else ''}")


_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_RESET = "\x1b[0m"


class JsonSink:
    """Prints one JSON object per event; lines are counted from 1, ``last_line`` included."""

    def started(self, turn: Turn, base: SourceText, model: str) -> None:
        """The request was sent."""
        print_json(
            {
                "event": "started",
                "path": turn.path,
                "first_line": turn.start + 1,
                "last_line": turn.stop,
                "symbol": turn.symbol,
                "why": turn.why,
                "model": model,
            }
        )

    def waiting(self, sentence: str) -> None:
        """Nothing has come for a while."""
        print_json({"event": "waiting", "text": sentence})

    def reading(self, progress: PromptReading | None) -> None:
        """How much of a long prompt the server has read."""
        if progress is not None:
            print_json({"event": "reading", "tokens": progress.tokens, "of": progress.total})

    def disclosed(self, sentence: str) -> None:
        """What the endpoint will be sent."""
        print_json({"event": "disclosed", "text": sentence})

    def text(self, text: str) -> None:
        """More text of the region has arrived."""
        print_json({"event": "text", "text": text})

    def file(self, path: str, base: SourceText) -> None:
        """Nothing: hunks name their file."""

    def hunk(self, hunk: Hunk) -> None:
        """A hunk has settled; an insertion has a ``last_line`` before its ``first_line``."""
        print_json(
            {
                "event": "hunk",
                "id": hunk.id,
                "path": hunk.path,
                "first_line": hunk.start + 1,
                "last_line": hunk.stop,
                "old": hunk.old,
                "new": hunk.new,
            }
        )

    def passed(self, line: int) -> None:
        """Nothing: hunks come in order."""

    def ended(self, outcome: Outcome) -> None:
        """The last event."""
        rate = outcome.tokens_per_second
        print_json(
            {
                "event": "finished",
                "hunks": outcome.hunks,
                "added": outcome.added,
                "deleted": outcome.deleted,
                "tokens": outcome.tokens,
                "tokens_estimated": outcome.estimated,
                "tokens_per_second": None if rate is None else round(rate, 1),
                "rate_estimated": outcome.rate_estimated,
                "written": outcome.written,
                "confidence": outcome.confidence,
                "unsure": outcome.unsure or None,
                "refused": outcome.refused or None,
                "left": outcome.left or None,
                "later": outcome.later or None,
            }
        )
