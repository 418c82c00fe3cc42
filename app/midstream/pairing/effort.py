"""Effort: what a session does to get a better answer out of a model of its own.

``low`` is one greedy pass.  ``medium`` looks at the answer (does the file still parse, did ruff's
F and E9 find anything that was not there before) and has it corrected once.  ``high`` and ``xhigh``
have several candidates written, rank them by those checks and by the person's own quick test
command, and stream the best.  A hosted endpoint is told the effort and does with it what it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from midstream.edits.syntax import parse_python
from midstream.errors import UsageError, UserError
from midstream.settings import SESSION_EFFORTS

if TYPE_CHECKING:
    from midstream.pairing.answer import Answer
    from midstream.pairing.answering import Answering
    from midstream.pairing.board import Board
    from midstream.pairing.link import Link
    from midstream.workspace.files import Workspace

EFFORTS: Final = SESSION_EFFORTS
"""Values of the setting; ``auto`` is low here and leaves a hosted endpoint to its own choice."""
CANDIDATES: Final = {"high": 4, "xhigh": 8}
"""Answers that are written, the greedy one included."""
TEMPERATURE: Final = 0.7
RUFF_S: Final = 10.0
TESTS_S: Final = 60.0
"""How long the person's test command may take for one candidate."""
MOST_FILES: Final = 2_000
MOST_BYTES: Final = 50_000_000
"""A folder with more than that is not copied for a test command."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say about one version of a file.

    Attributes:
        broken: Where it does not parse, ``""`` if it does (or is not Python).
        introduced: What ruff finds that it did not find before.
        tests: Whether the test command succeeded, ``None`` where it did not run.
        changed: Lines that differ from before.
    """

    broken: str = ""
    introduced: tuple[str, ...] = ()
    tests: bool | None = None
    changed: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.broken and not self.introduced and self.tests is not False

    @property
    def rank(self) -> tuple[bool, bool, int, bool]:
        """Sort key, the best first; of equals the one that was written first wins."""
        return (bool(self.broken), self.tests is False, len(self.introduced), self.changed == 0)

    @property
    def words(self) -> str:
        """The verdict as a person reads it."""
        if self.broken:
            return f"does not parse ({self.broken})"
        parts: list[str] = []
        if self.introduced:
            parts.append("; ".join(self.introduced[:3]))
        if self.tests is not None:
            parts.append("tests pass" if self.tests else "tests fail")
        if not self.changed:
            parts.append("changes nothing")
        return ", ".join(parts) or "no findings"


class Effort:
    """The effort of a session, and what it takes.

    Attributes:
        level: One of ``EFFORTS``.
        trying: Candidate that is being written and how many there will be, ``None`` otherwise.
    """

    def __init__(
        self, level: str, *, workspace: Workspace, board: Board, check_command: str | None
    ) -> None:
        self._level = level
        self.trying: tuple[int, int] | None = None
        self._workspace = workspace
        self._board = board
        self._command = check_command

    @property
    def level(self) -> str:
        """One of ``EFFORTS``."""
        return self._level

    @level.setter
    def level(self, level: str) -> None:
        if level not in EFFORTS:
            raise UsageError(f"There is no effort {level!r}; choose one of {', '.join(EFFORTS)}.")
        self._level = level
        self._board.touch()

    def passed_on(self, *, own: bool) -> str | None:
        """``reasoning.effort`` of a request; a server of our own leaves effort to the session."""
        return None if own or self._level == "auto" else self._level

    def chooses(self, link: Link, answer: Answer) -> bool:
        """Whether candidates are written first."""
        return link.own and self._level in CANDIDATES and answer.region is not None

    def checks(self, link: Link) -> bool:
        """Whether a finished answer is looked at and corrected."""
        return link.own and self._level == "medium"

    # Candidates

    async def choose(self, link: Link, answering: Answering, answer: Answer) -> None:
        """Have candidates written, out of sight, and stream the best as the answer."""
        from midstream.responses.events import Delta

        count = CANDIDATES[self._level]
        found: list[tuple[str, Verdict]] = []
        try:
            with self._trial() as trial:
                for number in range(count):
                    self.trying = (number + 1, count)
                    self._board.touch()
                    text = await self._candidate(link, answering, answer, number)
                    if text is None or not answer.live:
                        break
                    if text in [known for known, _ in found]:
                        continue
                    verdict = await self._judge(answer, text, trial)
                    found.append((text, verdict))
        finally:
            self.trying = None
            self._board.touch()
        if not answer.live:
            return
        if not found:
            raise UserError("No candidate was written; ask again, or use a lower effort.")
        best = min(range(len(found)), key=lambda i: found[i][1].rank)
        text, verdict = found[best]
        answer.turn.tried = _told(count, found, best)
        self._board.inform(f"{answer.turn.tried[:1].upper()}{answer.turn.tried[1:]}.")
        for line in text.splitlines(keepends=True):
            if not answer.live:
                return
            await answering.show(answer, Delta(line, 0))
            await asyncio.sleep(0)

    async def _candidate(
        self, link: Link, answering: Answering, answer: Answer, number: int
    ) -> str | None:
        """One answer, the first greedy and the others sampled; ``None`` if it was cut off."""
        from midstream.responses.events import Delta, Failed, Finished, Started

        client = await link.ready()
        stream = await client.create(
            messages=answer.conversation.messages,
            instructions=answer.conversation.system,
            temperature=TEMPERATURE if number else None,
            seed=number if number else None,
        )
        answer.stream = stream
        if not answer.live:
            await stream.interrupt()
        text: list[str] = []
        async for event in stream:
            match event:
                case Started():
                    link.learn(event.metadata)
                    answering.taken()
                case Delta():
                    text.append(event.text)
                    answering.counted(answer, event)
                case Finished():
                    answering.count(answer, event)
                    if event.status != "completed":
                        return None
                case Failed():
                    if answer.live:
                        raise UserError(event.message)
                    return None
        return "".join(text)

    async def _judge(self, answer: Answer, text: str, trial: Trial | None) -> Verdict:
        region = answer.region
        assert region is not None
        before = list(answer.proposal.base.lines)
        lines = await asyncio.to_thread(_region_lines, text, before[region.start : region.stop])
        after = [*before[: region.start], *lines, *before[region.stop :]]
        verdict = await self.look(answer.proposal.path, before, after)
        if trial is None or verdict.broken:
            return verdict
        passed = await asyncio.to_thread(trial.passes, answer.proposal.path, after)
        return Verdict(verdict.broken, verdict.introduced, passed, verdict.changed)

    @contextlib.contextmanager
    def _trial(self) -> Generator[Trial | None]:
        if self._command is None:
            yield None
            return
        trial = Trial(self._workspace, self._command)
        try:
            yield trial if trial.ready else None
            if not trial.ready:
                self._board.warn(f"The test command did not run: {trial.trouble}.")
        finally:
            trial.close()

    # Checks

    async def look(self, path: str, before: Sequence[str], after: Sequence[str]) -> Verdict:
        """What the checks say about a new version of a file."""
        changed = sum(a != b for a, b in zip(before, after, strict=False))
        changed += abs(len(before) - len(after))
        if not path.endswith((".py", ".pyi")):
            return Verdict(changed=changed)
        old, new = "".join(f"{x}\n" for x in before), "".join(f"{x}\n" for x in after)
        if broken := _syntax_error(new):
            return Verdict("" if _syntax_error(old) else broken, changed=changed)
        found = await asyncio.to_thread(_introduced, path, old, new)
        return Verdict(introduced=found, changed=changed)

    def correction(self, verdict: Verdict) -> str:
        """What the model is told about an answer that is not clean."""
        what = verdict.broken or "; ".join(verdict.introduced[:3])
        return f"The result must not have this error: {what}."


class Trial:
    """A throw-away copy of the folder in which the person's test command runs.

    Attributes:
        trouble: Why it cannot, ``""`` if it can.
    """

    def __init__(self, workspace: Workspace, command: str) -> None:
        self.trouble = ""
        self._command = shlex.split(command)
        self._folder: Path | None = None
        paths = workspace.files()
        size = 0
        if len(paths) > MOST_FILES:
            self.trouble = f"the folder has more than {MOST_FILES:,} files"
            return
        folder = Path(tempfile.mkdtemp(prefix="midstream-trial-"))
        self._folder = folder
        for path in paths:
            source, target = workspace.root / path, folder / path
            with contextlib.suppress(OSError):
                size += source.stat().st_size
                if size > MOST_BYTES:
                    self.trouble = f"the folder has more than {MOST_BYTES // 1_000_000} MB"
                    return
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    @property
    def ready(self) -> bool:
        """Whether the command can run."""
        return not self.trouble and bool(self._command)

    def passes(self, path: str, lines: Sequence[str]) -> bool | None:
        """Whether the command succeeds with this version of a file; ``None`` if it cannot run."""
        if self._folder is None:
            return None
        (self._folder / path).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                self._command,
                cwd=self._folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TESTS_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        except OSError as error:
            self.trouble = f"{self._command[0]} cannot be started ({error.strerror})"
            return None
        return done.returncode == 0

    def close(self) -> None:
        """Remove the copy."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _told(count: int, found: Sequence[tuple[str, Verdict]], best: int) -> str:
    """What was tried and why one won."""
    verdict = found[best][1]
    clean = sum(v.clean for _, v in found)
    same = f", {len(found)} different" if len(found) < count else ""
    why = verdict.words
    if clean > 1:
        why += f", the first of {clean} without findings"
    return f"{count} candidates{same}: number {best + 1} won ({why})"


def _region_lines(text: str, old: Sequence[str]) -> list[str]:
    from midstream.edits.formats.events import NewText
    from midstream.edits.formats.region import RegionParser

    parser = RegionParser(old, bare="<region" not in text and "```" not in text)
    events = [*parser.feed(text), *parser.finish()]
    new = "".join(event.text for event in events if isinstance(event, NewText))
    return new.removesuffix("\n").split("\n") if new else []


def _syntax_error(text: str) -> str:
    try:
        parse_python(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        return "it cannot be read as Python"
    return ""


def _introduced(path: str, before: str, after: str) -> tuple[str, ...]:
    """F and E9 findings of ruff in the text after that were not in the one before (blocking)."""
    old = [message for _, message in _ruff(path, before)]
    new: list[str] = []
    for line, message in _ruff(path, after):
        if message in old:
            old.remove(message)
        else:
            new.append(f"line {line}: {message}")
    return tuple(new)


def _ruff(path: str, text: str) -> list[tuple[int, str]]:
    from midstream.guard.ruff import find_ruff

    program = find_ruff()
    if program is None:
        return []
    arguments = ["check", "--isolated", "--select", "F,E9", "--output-format", "json"]
    try:
        done = subprocess.run(
            [program, *arguments, "--stdin-filename", Path(path).name, "-"],
            input=text.encode(),
            capture_output=True,
            timeout=RUFF_S,
            check=False,
        )
        found = cast("list[dict[str, Any]]", json.loads(done.stdout or b"[]"))
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return []
    return [(f["location"]["row"], f"{f['code']} {f['message']}") for f in found]
