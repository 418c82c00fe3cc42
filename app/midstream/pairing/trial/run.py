"""Runs a trial: each request goes to a model as ``midstream edit`` would send it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from midstream.codebase.syntax_check import breaks
from midstream.errors import UserError
from midstream.pairing.headless import Job, NothingToChangeError, Sink, run_job
from midstream.pairing.request.question import Question
from midstream.scratch import scratch_folder

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import Hunk
    from midstream.pairing.status import Turn
    from midstream.pairing.trial.requests import TrialRequest
    from midstream.responses.endpoint import Endpoint
    from midstream.settings import Settings

VERDICTS: Final = ("right", "unchanged", "refused", "wrong and flagged", "wrong and unflagged")


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What became of one request.

    Attributes:
        id: The request.
        kind: Its kind.
        language: Its language.
        verdict: One of ``VERDICTS``.
        edit_format: How the model was asked to write, ``""`` if it was not asked.
        why: What is wrong, or why it was refused.
        first_s: Seconds to the first text, ``None`` without any.
        seconds: Seconds to the end.
    """

    id: str
    kind: str
    language: str
    verdict: str
    edit_format: str
    why: str
    first_s: float | None
    seconds: float


class _TrialWatch(Sink):
    """Notes how a model is asked, and when its first text comes."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.first: float | None = None
        self.edit_format = ""

    def started(self, turn: Turn, base: SourceText, model: str) -> None:
        """The request is on its way."""
        self.edit_format = turn.edit_format

    def text(self, text: str) -> None:
        """Text has come."""
        if self.first is None:
            self.first = time.monotonic() - self.began

    def hunk(self, hunk: Hunk) -> None:
        """A hunk has come."""
        self.text("")


async def run_trial(
    requests: Sequence[TrialRequest], settings: Settings, endpoint: Endpoint | None
) -> AsyncIterator[TrialResult]:
    """The results of some requests, one after the other.

    Args:
        requests: The requests.
        settings: The user's settings.
        endpoint: The server of the model; ``None`` for the one that the settings name.

    Raises:
        ScratchError: No temporary folder can be made.
    """
    for request in requests:
        with scratch_folder() as folder:
            yield await _one(request, folder, settings, endpoint)


async def _one(
    request: TrialRequest, root: Path, settings: Settings, endpoint: Endpoint | None
) -> TrialResult:
    for name, text in request.project.items():
        (root / name).write_text(text, "utf-8")
    watch, verdict, why, doubt = _TrialWatch(), "", "", ""
    # Written in any case, to see whether it is right.
    question = Question(request.ask, request.file or None, request.cursor)
    job = Job(root, question, apply=True, unsure=True, anyway=True)
    try:
        outcome = await run_job(job, watch, settings=settings, endpoint=endpoint)
        doubt = outcome.unsure or outcome.left
    except NothingToChangeError as error:
        verdict, why = "unchanged", str(error)
    except UserError as error:
        verdict, why = "refused", str(error)
    seconds = time.monotonic() - watch.began
    if not verdict:
        texts = await asyncio.to_thread(_texts, root)
        changed = [name for name, text in request.project.items() if texts.get(name) != text]
        new = texts.get(request.expects, "")
        broken = await breaks(request.expects, request.project[request.expects], new)
        elsewhere = next((f"changes {name}" for name in changed if name != request.expects), "")
        why = elsewhere or await request.fault(new)
        verdict = f"wrong and {'flagged' if doubt or broken else 'unflagged'}" if why else "right"
    first = None if watch.first is None else round(watch.first, 2)
    kind, language, asked = request.kind, request.language, watch.edit_format
    return TrialResult(request.id, kind, language, verdict, asked, why, first, round(seconds, 2))


def _texts(root: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in root.iterdir() if path.is_file()}
