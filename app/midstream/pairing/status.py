"""What a session reports about itself: state, turns, notices, events, rates and costs.

Listeners (the screen, a test, a headless command) learn from coarse events, never one per token,
that something worth a reaction has happened; what they then show, they read from the session.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from midstream.counting import counted
from midstream.responses.model_info import METADATA_PREFIX

if TYPE_CHECKING:
    import asyncio

    from midstream.responses.events import Finished, TokenUsage
    from midstream.responses.profiles import Price

UNSURE: Final = "model unsure"
"""Reason to review a hunk by itself: the model is unsure of its answer."""
CUT: Final = "answer cut short"
"""The same for a hunk of an answer that is not complete."""
MIN_INTERVAL_S = 0.004
"""Shortest duration, in seconds, with a meaningful rate."""
WINDOW_S = 2.0
"""Window of ``Meter.tokens_per_second``, in seconds."""
WRITTEN_PER_TOKEN: Final = 4
"""Characters of an answer for each token where the server does not count them: hosted vocabularies
have some 3.6 in code and 4.3 in prose."""
LARGER_MODEL: Final = "models"
"""The screen's action where a larger model is chosen."""
SAMPLE_S = 0.25
"""Seconds of one entry of ``Meter.history``."""
HISTORY = 120
"""Entries of ``Meter.history``."""


# Turns


class SessionState(StrEnum):
    """What the session is doing, as the state light shows it."""

    STARTING = "starting"
    """The model server is being started or reached; instructions wait for it."""
    READY = "ready"
    WAITING = "waiting"
    """An instruction was sent; no token has arrived yet."""
    THINKING = "thinking"
    """The model reasons; the text of that is not shown."""
    STREAMING = "streaming"
    STOPPING = "stopping"
    """The view is frozen; the server has not confirmed the stop yet."""
    OFFLINE = "offline"
    """No model server; the next instruction tries to reach it again."""


RUNNING: Final = frozenset({SessionState.WAITING, SessionState.THINKING, SessionState.STREAMING})
"""States in which a new instruction redirects and a stop ends an answer."""


class TurnStatus(StrEnum):
    """How far a turn has come."""

    STREAMING = "streaming"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class FollowUpKind(StrEnum):
    """Why a turn goes on from another one."""

    REDIRECT = "redirect"
    """The user gave another instruction."""
    RENAME = "rename"
    """The user wants another name for what the rewrite brings in."""
    GUARD = "guard"
    """The guard stopped a line."""
    MISPLACED = "misplaced"
    """Edits did not match the file."""
    CHECKS = "checks"
    """The checks found an error."""
    UNCHANGED = "unchanged"
    """The answer left the code as it was."""


_CORRECTIVE: Final = (
    FollowUpKind.GUARD,
    FollowUpKind.MISPLACED,
    FollowUpKind.CHECKS,
    FollowUpKind.UNCHANGED,
)


class Confidence(Struct, frozen=True):
    """How sure a model was of an answer.

    Attributes:
        probability: Calibrated probability that it is right.
        threshold: Below it the answer should be reviewed closely.
    """

    probability: float
    threshold: float

    @property
    def unsure(self) -> bool:
        """Whether the user should be warned."""
        return self.probability < self.threshold

    @classmethod
    def read(cls, metadata: Mapping[str, str]) -> Confidence | None:
        """Read the metadata of a finished response; ``None`` if it has none."""
        try:
            return cls(
                float(metadata["midstream.confidence"]),
                float(metadata["midstream.confidence_threshold"]),
            )
        except (KeyError, ValueError):
            return None


class Turn(Struct):
    """One instruction and what became of it.

    Attributes:
        id: The generation id; text of an older generation is dropped.
        instruction: What was asked for.
        path: The file, relative to the root.
        start: First line of the region, 0-based, in the base text the turn began with.
        stop: End of the region, exclusive.
        symbol: Dotted name of the function or class the region is, or ``""``.
        why: How the region was found, for display.
        status: How far it has come.
        tokens: Tokens received so far; what the server counted, once it has said so.
        estimated: Whether ``tokens`` is estimated from the length of the text.
        ttft_s: Seconds from sending to the first text, or ``None`` before it.
        error: The message to show when the status is ``failed``.
        again: What the next instruction does about that, such as "connects again"; ``""`` where it
            does nothing.
        redirected_from: The id of the turn this one goes on from, or ``None``.
        follows: Why it continues that turn.
        background: Whether the session asked by itself; the screen does not follow it.
        implied: Whether the session derived the instruction from a change that was saved.
        edit_format: How the model was asked to write; ``region`` is a rewrite of the lines above,
            in any other it names the places itself.
        failures: Why edits of the answer did not match the file: a sentence each, and below it
            what was quoted and what the file has.
        confidence: Calibrated probability that the answer is right, ``None`` if unknown.
        unsure: The warning to show where that is too low; ``""`` elsewhere.
        doubted: The hunks of such an answer.
        hunks: The hunks of the answer, once it has ended.
        tried: What effort was spent and why this answer won, for display; ``""`` for one pass.
        left_out: What of the instruction was not asked for, in its words; ``""`` for nothing.
        next: The instruction for that, ``""`` until it can be worded.
    """

    id: int
    instruction: str
    path: str
    start: int
    stop: int
    symbol: str = ""
    why: str = ""
    status: TurnStatus = TurnStatus.STREAMING
    tokens: int = 0
    estimated: bool = False
    ttft_s: float | None = None
    error: str = ""
    again: str = ""
    redirected_from: int | None = None
    follows: FollowUpKind | None = None
    background: bool = False
    implied: bool = False
    edit_format: str = "region"
    failures: tuple[str, ...] = ()
    tried: str = ""
    confidence: float | None = None
    unsure: str = ""
    doubted: tuple[int, ...] = ()
    hunks: tuple[int, ...] = ()
    left_out: str = ""
    next: str = ""

    @property
    def later(self) -> str:
        """What of the instruction was left for another one, as a sentence; ``""`` for nothing."""
        if not self.left_out:
            return ""
        how = "Send that as an instruction of its own, with the name of what is to be tested."
        if self.next:
            how = f'Ask for it next: "{self.next}".'
        return f"Not asked for yet: {self.left_out}. {how}"

    @property
    def written(self) -> str:
        """How much has come, for display: ``78 tokens``, ``~78 tokens`` where that is estimated."""
        return marked(counted(self.tokens, "token"), estimated=self.estimated)

    @property
    def place(self) -> str:
        """The region, for display."""
        if self.symbol:
            return f"`{self.symbol}`"
        if self.start == self.stop:
            return f"the place before line {self.start + 1}"
        if self.stop - self.start == 1:
            return f"line {self.stop}"
        return f"lines {self.start + 1}-{self.stop}"

    @property
    def correction(self) -> bool:
        """Whether the session went on by itself, to have an answer corrected."""
        return self.follows in _CORRECTIVE

    @property
    def running(self) -> bool:
        """Whether text may still come."""
        return self.status is TurnStatus.STREAMING


# Notices and events


class NoticeLevel(StrEnum):
    """Severity of a notice."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Notice(Struct, frozen=True):
    """A message for the user.

    Attributes:
        level: Its severity.
        text: The event and the remedy, in a sentence.
        action: Name of the screen's action that does so, ``""`` for none.
        passing: Whether it only holds until the session's state changes.
        discloses: Whether it says what leaves this machine; every front end shows it.
    """

    level: NoticeLevel
    text: str
    action: str = ""
    passing: bool = False
    discloses: bool = False


class _FileEvent(Struct, frozen=True):
    path: str


class _HunkEvent(Struct, frozen=True):
    path: str
    hunk_id: int


class _TurnEvent(Struct, frozen=True):
    turn: Turn


class StateChanged(Struct, frozen=True):
    """The session's state is now ``state``."""

    state: SessionState


class FileOpened(_FileEvent, frozen=True):
    """A file was opened."""


class FileWritten(_FileEvent, frozen=True):
    """The session wrote a file."""


class FileChangedOnDisk(_FileEvent, frozen=True):
    """Another program changed a file; the proposal has been moved onto the new text."""


class FileFolded(_FileEvent, frozen=True):
    """What was accepted in a file has become part of its base: its rows have other places."""


class ExternalHunksAdded(Struct, frozen=True):
    """Another program changed a file, or asks whether it may: these hunks wait for decisions."""

    path: str
    hunk_ids: tuple[int, ...]


class FilesTouched(Struct, frozen=True):
    """Another program created, changed or deleted files of the folder, open or not."""

    paths: frozenset[str]


class AgentWaits(Struct, frozen=True):
    """An agent waits for the decision about an edit, or no longer waits."""


class ReviewSwitched(Struct, frozen=True):
    """The review of other programs' changes was turned on or off."""

    on: bool


class TurnStarted(_TurnEvent, frozen=True):
    """An instruction was sent to the model."""


class TurnFinished(_TurnEvent, frozen=True):
    """A turn ended: see its ``status`` and ``error``."""


class HunkSettled(_HunkEvent, frozen=True):
    """A hunk of an answer is complete and can be decided."""


class HunkDecided(_HunkEvent, frozen=True):
    """A hunk's decision changed: accepted, rejected, undone, redone, or lost to a conflict."""


class NoticePosted(Struct, frozen=True):
    """A notice was posted; it is also the last of ``SessionStatus.notices``."""

    notice: Notice


class RepoChanged(Struct, frozen=True):
    """The state of the repository has changed."""


class WatchingChanged(Struct, frozen=True):
    """Changes by other programs are noticed from now on, or in another way, or no more."""


class ConversationHeard(Struct, frozen=True):
    """Something was said, done or asked in a conversation, or one has begun or ended."""


class QuestionAnswered(Struct, frozen=True):
    """The model has answered a question, or will not."""


class StopRequested(Struct, frozen=True):
    """The user stops the model; background tasks end as well."""


class BackgroundDone(Struct, frozen=True):
    """No background task is left."""


SessionEvent = (
    StateChanged
    | FileOpened
    | TurnStarted
    | HunkSettled
    | HunkDecided
    | FileWritten
    | FileChangedOnDisk
    | FileFolded
    | ExternalHunksAdded
    | FilesTouched
    | AgentWaits
    | ReviewSwitched
    | TurnFinished
    | NoticePosted
    | RepoChanged
    | WatchingChanged
    | ConversationHeard
    | QuestionAnswered
    | StopRequested
    | BackgroundDone
)

Listener = Callable[[SessionEvent], None]
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Runs something in the background until it ends or the session is closed."""


class ActivityClock:
    """Tells for how long a session has done what it does."""

    def __init__(self) -> None:
        self._activity: str | None = None
        self._since = 0.0

    def seconds(self, activity: str) -> float:
        """Seconds since this was first asked for, without another one in between."""
        now = time.monotonic()
        if activity != self._activity:
            self._activity, self._since = activity, now
        return now - self._since


class SessionStatus:
    """State and notices of a session, and the bus that delivers its events.

    Events are delivered in order, on the event loop.

    Attributes:
        state: What the session is doing.
        notices: Every notice so far, oldest first.
        version: Grows with every event and every ``touch``.
        meter: Rates and token counts.
        clock: For how long the session has done what it does.
    """

    def __init__(self) -> None:
        self.state = SessionState.STARTING
        self.clock = ActivityClock()
        self.notices: list[Notice] = []
        self.version = 0
        self.meter = Meter()
        self._listeners: list[Listener] = []
        self._warned: set[str] = set()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Deliver every event from now on to ``listener``; returns a function that stops it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def touch(self) -> None:
        """Note that something on screen may have changed."""
        self.version += 1

    def emit(self, event: SessionEvent) -> None:
        """Deliver an event."""
        self.touch()
        for listener in tuple(self._listeners):
            listener(event)

    def enter(self, state: SessionState) -> None:
        """Change the state."""
        if state is not self.state:
            self.state = state
            self.emit(StateChanged(state))

    def inform(self, sentence: str, action: str = "", *, passing: bool = False) -> None:
        """Post a notice that needs no action."""
        self._notice(Notice(NoticeLevel.INFO, sentence, action, passing))

    def disclose(self, sentence: str) -> None:
        """Post a notice of what will leave this machine; none if there is nothing to say."""
        if sentence:
            self._notice(Notice(NoticeLevel.INFO, sentence, discloses=True))

    def warn(self, sentence: str, action: str = "") -> None:
        """Post a notice about something that did not go as asked."""
        self._notice(Notice(NoticeLevel.WARNING, sentence, action))

    def warn_once(self, sentence: str) -> None:
        """As ``warn``, unless this session has had the same notice."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            self.warn(sentence)

    def fail(self, sentence: str, action: str = "") -> None:
        """Post a notice about a failure, with the name of the screen's action that ends it."""
        self._notice(Notice(NoticeLevel.ERROR, sentence, action))

    def _notice(self, notice: Notice) -> None:
        self.notices.append(notice)
        self.emit(NoticePosted(notice))


# Rates and costs


def shown_tokens(tokens: int) -> str:
    """A count for display: ``840``, ``3.1k``, ``24k``."""
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 10_000 else f"{tokens / 1000:.0f}k"


def marked(figure: str, *, estimated: bool) -> str:
    """A figure for display, such as ``~38`` where it is an estimate."""
    return f"~{figure}" if estimated else figure


class PromptReading(Struct, frozen=True):
    """How far the server is with reading a prompt.

    Attributes:
        tokens: Tokens that it has read.
        total: Tokens of the prompt.
        left_s: Seconds until it is read, ``None`` while that cannot be told.
    """

    tokens: int
    total: int
    left_s: float | None = None

    def __str__(self) -> str:
        """Such as ``1.9k of 3.0k tokens, 6 s left``."""
        left = "" if self.left_s is None else f", {max(1, round(self.left_s))} s left"
        return f"{shown_tokens(self.tokens)} of {shown_tokens(self.total)} tokens{left}"


class Cost(Struct, frozen=True):
    """Counts and times of one answer or a sum of answers, as reported by the server.

    For telemetry, never for decisions.  Only Midstream's own server reports more than token counts;
    the rest is ``None``.

    Attributes:
        input_tokens: Tokens of the prompt.
        cached_tokens: How many of them the server had in its cache.
        output_tokens: Generated tokens.
        prefill_s: Seconds the server read the prompt.
        decode_s: Seconds the server generated.
        forwards: Passes of the model that produced output.
        drafted: Tokens proposed from the source text.
        accepted: Proposed tokens that the model would have written itself.
        due_s: Simulated seconds it takes on a machine whose speed is imitated.
        passed_s: Seconds it took here, beside ``due_s``.
        dollars: What it costs at the prices of the endpoint's profile; ``None`` without prices.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefill_s: float | None = None
    decode_s: float | None = None
    forwards: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    dollars: float | None = None
    due_s: float | None = None
    passed_s: float | None = None

    @classmethod
    def of(cls, usage: TokenUsage, metadata: Mapping[str, str], price: Price | None = None) -> Cost:
        """Read the end of a response that was made at a price."""
        return cls(
            usage.input_tokens,
            usage.cached_tokens,
            usage.output_tokens,
            _seconds(metadata, "prefill_ms"),
            _seconds(metadata, "decode_ms"),
            _count(metadata, "forwards"),
            _count(metadata, "drafted_tokens"),
            _count(metadata, "accepted_tokens"),
            None
            if price is None
            else price.of(
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cached_tokens,
                output_tokens=usage.output_tokens,
            ),
            _seconds(metadata, "due_ms"),
            _seconds(metadata, "passed_ms"),
        )

    def __add__(self, other: Cost) -> Cost:
        """The sum; a value that only one side has is kept."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Cost(*(b if a is None else a if b is None else a + b for a, b in pairs))

    @property
    def cached_share(self) -> float | None:
        """Share of the prompt that was cached, ``None`` without a prompt."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None

    @property
    def accepted_share(self) -> float | None:
        """Share of the drafted tokens that were accepted, ``None`` where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def tokens_per_forward(self) -> float | None:
        """Output tokens for each pass of the model, ``None`` where passes are not counted."""
        return self.output_tokens / self.forwards if self.forwards else None


def shown_dollars(dollars: float | None) -> str:
    """A formatted amount: ``$0.0123``, ``$2.40``, ``-`` if unknown."""
    return "-" if dollars is None else f"${dollars:,.{2 if dollars >= 1 else 4}f}"


def shown_seconds(seconds: float) -> str:
    """A formatted time: ``21 ms``, ``13.0 s``."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _seconds(metadata: Mapping[str, str], name: str) -> float | None:
    milliseconds = _number(metadata, name)
    return None if milliseconds is None else milliseconds / 1000


def _number(metadata: Mapping[str, str], name: str) -> float | None:
    try:
        return float(metadata[METADATA_PREFIX + name])
    except (KeyError, ValueError):
        return None


def _count(metadata: Mapping[str, str], name: str) -> int | None:
    number = _number(metadata, name)
    return None if number is None else int(number)


class Meter:
    """Token counts and rates, for the status line and its sparkline.

    Attributes:
        turn_tokens: Tokens of the current or last turn.
        estimated: Whether the server does not count the tokens that it sends, so that
            ``turn_tokens`` and the rates are estimated from the length of the text.
        limit: Tokens per second that the server was told to write at most, ``None`` for no limit.
        history: Tokens per second of past quarter seconds, oldest first, for a sparkline.
        ttft_s: Seconds to the first text of the last turn, or ``None`` before it.
        input_tokens: Prompt tokens of all finished turns, as the server counted them.
        output_tokens: Generated tokens of all turns.
        cached_tokens: Prompt tokens that the server found in its cache.
        request_s: Seconds until the server had taken the last request, or ``None`` before it.
        reading: How far the server is with the prompt, ``None`` before and after that.
        cost: What the server counted for the last answer that has ended.
        total: The same for all answers together.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        self.turn_tokens = 0
        self.estimated = False
        self.limit: float | None = None
        self._estimated_before = False
        self._characters = 0
        self._first_tokens = 0
        self._sent_at: float | None = None
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._bucket_start: float | None = None
        self._bucket = 0
        self.history: deque[float] = deque(maxlen=HISTORY)
        self.ttft_s: float | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_tokens = 0
        self.request_s: float | None = None
        self.reading: PromptReading | None = None
        self._read_first: tuple[float, int] | None = None
        self.cost = Cost()
        self.total = Cost()

    def start_turn(self, limit: float | None = None) -> None:
        """A request goes out now; ``limit`` is the pace that it is answered at."""
        self._estimated_before = self.output_estimated
        self._recent.clear()
        self.turn_tokens = self._characters = 0
        self.estimated, self.limit = False, limit
        self._sent_at = time.monotonic()
        self._first_at = self._last_at = None
        self._bucket_start, self._bucket = None, 0
        self.ttft_s = self.request_s = None
        self.reading = self._read_first = None
        self.cost = Cost()

    def taken(self) -> None:
        """The server has taken the request."""
        if self._sent_at is not None and self.request_s is None:
            self.request_s = time.monotonic() - self._sent_at

    def note_reading(self, tokens: int, total: int) -> None:
        """Note how many tokens of the prompt the server has read."""
        now = time.monotonic()
        if self._read_first is None:
            self._read_first = now, tokens
        since, before = self._read_first
        left = (total - tokens) * (now - since) / (tokens - before) if tokens > before else None
        self.reading = PromptReading(tokens, total, left)

    def add(self, text: str, tokens: int) -> int:
        """Text has just arrived.

        Args:
            text: A piece of the answer.
            tokens: Tokens of it as the server counted them; 0 where it does not.

        Returns:
            Tokens of it, estimated where the server counts none in this turn.
        """
        now = time.monotonic()
        self.reading = None
        if not tokens and (self.estimated or not self.turn_tokens):
            self.estimated = True
            before = -(-self._characters // WRITTEN_PER_TOKEN)
            self._characters += len(text)
            tokens = -(-self._characters // WRITTEN_PER_TOKEN) - before
        if self._first_at is None:
            self._first_at = self._bucket_start = now
            self._first_tokens = tokens
            if self._sent_at is not None:
                self.ttft_s = now - self._sent_at
        else:
            self._recent.append((now, tokens))
        self._last_at = now
        self.turn_tokens += tokens
        self.output_tokens += tokens
        self._sample(now)
        self._bucket += tokens
        return tokens

    def finish_turn(self) -> None:
        """The turn's text has ended."""
        self.reading = None
        if self._bucket_start is not None and self._bucket:
            elapsed = max(time.monotonic() - self._bucket_start, 1e-3)
            self.history.append(self._bucket / max(elapsed, SAMPLE_S))
        self._bucket_start, self._bucket = None, 0

    def count(
        self, finished: Finished, price: Price | None, *, current: bool, heard: int = 0
    ) -> int:
        """Add what the server counted for a response that has ended.

        Args:
            finished: Its end.
            price: Prices of the endpoint.
            current: Whether it belongs to the current turn.
            heard: Tokens of it that were passed to ``add``.

        Returns:
            How many more the server has counted (may be negative); 0 where it counts none.
        """
        usage = finished.usage
        missed = usage.output_tokens - heard if usage.output_tokens else 0
        self.add_usage(
            input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, missed=missed
        )
        cost = Cost.of(usage, finished.metadata, price)
        self.total += cost
        if current:
            self.cost = cost
        return missed

    def add_usage(self, *, input_tokens: int, cached_tokens: int, missed: int) -> None:
        """Add what the server counted for a turn, which may have ended some time ago.

        Args:
            input_tokens: Tokens of the prompt.
            cached_tokens: How many of them it had in its cache.
            missed: Generated tokens beyond those that were passed to ``add`` (may be negative).
        """
        self.input_tokens += input_tokens
        self.cached_tokens += cached_tokens
        self.output_tokens += missed

    @property
    def output_estimated(self) -> bool:
        """Whether ``output_tokens`` has estimates in it."""
        return self._estimated_before or (self.estimated and not self.cost.output_tokens)

    @property
    def turn_rate(self) -> float | None:
        """Mean tokens per second of the current or last turn, from first text to last.

        Tokens of the first text were generated before it and do not count.  ``None`` below
        ``MIN_INTERVAL_S``.
        """
        if self._first_at is None or self._last_at is None:
            return None
        lasted = self._last_at - self._first_at
        if lasted < MIN_INTERVAL_S:
            return None
        return (self.turn_tokens - self._first_tokens) / lasted

    @property
    def tokens_per_second(self) -> float:
        """Rate over ``WINDOW_S``, or since the first text where that is shorter.

        Tokens of the first text do not count, as in ``turn_rate``.
        """
        now = time.monotonic()
        while self._recent and now - self._recent[0][0] > WINDOW_S:
            self._recent.popleft()
        if not self._recent or self._first_at is None:
            return 0.0
        span = min(WINDOW_S, max(now - self._first_at, 0.05))
        return sum(tokens for _, tokens in self._recent) / span

    @property
    def samples(self) -> tuple[float, ...]:
        """``history`` up to now: an answer that pauses adds quarter seconds without tokens."""
        passed = 0
        if self._bucket_start is not None:
            passed = int((time.monotonic() - self._bucket_start) / SAMPLE_S)
        if passed < 1:
            return tuple(self.history)
        paused = (0.0,) * min(passed - 1, HISTORY)
        return (*self.history, self._bucket / SAMPLE_S, *paused)[-HISTORY:]

    def _sample(self, now: float) -> None:
        start = self._bucket_start
        if start is None:
            return
        passed = int((now - start) / SAMPLE_S)
        if passed < 1:
            return
        self.history.append(self._bucket / SAMPLE_S)
        self.history.extend(0.0 for _ in range(min(passed - 1, HISTORY)))
        self._bucket_start, self._bucket = start + passed * SAMPLE_S, 0
