"""What the tests of the pairing room share: folders with code, a served scripted model, waiting."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from midstream.edits.request import parse_follow_up, parse_request
from midstream.engine.types import FinishReason, GenerateRequest, Piece, Usage
from midstream.pairing.events import SessionEvent
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.serving.app import create_app
from midstream.serving.running import serve

TIMEOUT_S = 20.0


def numbered(lines: int = 40) -> str:
    """A function whose lines all differ, so that every place in it can be told."""
    body = "".join(f"    step_{n:02d} = work({n})\n" for n in range(1, lines - 1))
    return f"def run():\n{body}    return step_01\n"


def git(root: Path, *arguments: str) -> str:
    """Run git in ``root``, unaffected by the user's configuration."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(root)]
    return subprocess.run(
        [*command, *arguments], check=True, capture_output=True, text=True, timeout=20
    ).stdout


def make_repo(root: Path, files: dict[str, str]) -> Path:
    """A git repository with one commit that holds ``files``."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "start")
    return root


class SteppedModel:
    """A model whose text comes exactly when a test lets it: ``give`` puts text on the wire.

    It is a real ``TextModel`` behind the real server; only the pace is the test's.  What is only to
    be read ahead is in ``ahead``.
    """

    name = "stepped"

    def __init__(self, facts: dict[str, str] | None = None) -> None:
        self.facts = {"prompt": "edit-codec", "languages": "python", **(facts or {})}
        self.requests: list[GenerateRequest] = []
        self.ahead: list[GenerateRequest] = []
        self.stopped = 0
        self._condition = threading.Condition()
        self._texts: list[str | None] = []

    def give(self, text: str) -> None:
        """Let the running (or next) generation write ``text``."""
        with self._condition:
            self._texts.append(text)
            self._condition.notify_all()

    def end(self) -> None:
        """Let the running (or next) generation end."""
        with self._condition:
            self._texts.append(None)
            self._condition.notify_all()

    @property
    def request(self) -> GenerateRequest:
        """The last request."""
        return self.requests[-1]

    @property
    def region(self) -> str:
        """The region of the last region request."""
        regions = [r for m in self.request.messages if (r := parse_request(m.text))]
        return regions[-1].region

    @property
    def asked(self) -> str:
        """The instruction that the running or last generation answers, ``""`` before the first."""
        if not self.requests:
            return ""
        last = self.request.messages[-1].text
        region = parse_request(last)
        return region.instruction if region else parse_follow_up(last) or ""

    def start(self, request: GenerateRequest) -> SteppedGeneration:
        """A generation that takes what ``give`` offers."""
        (self.requests if request.generate else self.ahead).append(request)
        return SteppedGeneration(self, request)

    def close(self) -> None:
        """Nothing is held."""

    def take(self, generation: SteppedGeneration) -> str | None:
        with self._condition:
            self._condition.wait_for(lambda: generation.stopping or bool(self._texts), TIMEOUT_S)
            if generation.stopping or not self._texts:
                return None
            return self._texts.pop(0)

    def wake(self) -> None:
        with self._condition:
            self.stopped += 1
            self._condition.notify_all()

    def drop(self) -> None:
        """Forget what was given and not taken."""
        with self._condition:
            self._texts.clear()


class SteppedGeneration:
    """One generation of a ``SteppedModel``."""

    def __init__(self, model: SteppedModel, request: GenerateRequest) -> None:
        self.usage = Usage(input_tokens=10)
        self.finish_reason: FinishReason | None = None
        self.stopping = False
        self._model = model
        self._reads = not request.generate

    def __iter__(self) -> Iterator[Piece]:
        while not self._reads and (text := self._model.take(self)) is not None:
            self.usage.output_tokens += 1
            yield Piece(text, 1)
        self.finish_reason = FinishReason.STOPPED if self.stopping else FinishReason.STOP

    def stop(self) -> None:
        self.stopping = True
        self._model.wake()


def follow_ups(request: GenerateRequest) -> list[str]:
    """Redirects in a request, oldest first."""
    return [text for m in request.messages if (text := parse_follow_up(m.text))]


@contextlib.asynccontextmanager
async def served(model: SteppedModel) -> AsyncIterator[Endpoint]:
    """The real server with ``model`` on a loopback port of this process."""
    app = create_app({model.name: model}, token="secret")
    async with serve(app) as server:
        yield Endpoint(f"ws://127.0.0.1:{server.port}/v1", "secret", model.name, "local")


class Witness:
    """Keeps a session's events and waits for what they announce."""

    def __init__(self, session: PairingSession) -> None:
        self.session = session
        self.events: list[SessionEvent] = []
        self._news = asyncio.Event()
        session.subscribe(self._hear)

    def _hear(self, event: SessionEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait until ``reached`` holds; looks at every event, and in between as a screen does."""
        async with asyncio.timeout(TIMEOUT_S):
            while not reached():
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.005)

    async def seen(self, kind: type[SessionEvent], count: int = 1) -> None:
        """Wait until ``count`` events of a kind have come since the session began."""
        await self.until(lambda: sum(isinstance(e, kind) for e in self.events) >= count)

    async def decidable(self, count: int) -> list[int]:
        """Wait until so many hunks can be decided; their ids by position in the store."""
        hunks = self.session.hunks
        await self.until(lambda: sum(h.decidable for h in hunks) >= count)
        return [h.id for h in hunks if h.decidable]

    def count(self, kind: type[SessionEvent]) -> int:
        """How many events of a kind have come."""
        return sum(isinstance(event, kind) for event in self.events)

    @property
    def notice(self) -> str:
        """Text of the last notice."""
        return self.session.notices[-1].text if self.session.notices else ""
