"""The context sent with an instruction: its parts, cut to a token budget.

Tokens are estimated; the server's own count comes with its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from midstream.counting import counted
from midstream.edits.hunks import HunkState
from midstream.pairing.status import shown_tokens

if TYPE_CHECKING:
    from midstream.edits.hunks import Hunk

CHARACTERS_PER_TOKEN: Final = 3.6
"""Of code, with the vocabularies of hosted models; a careful estimate, to stay below a limit."""
DEFAULT_LIMIT: Final = 24_000
"""Tokens of context for a model of unknown context length."""
FIRST_WORDS_S: Final = 2.0
"""Seconds within which a model should begin to answer, unless the request itself takes longer."""
QUESTION_S: Final = 30.0
"""Seconds in which a model should have read the parts that go along with a question unasked."""
ANSWER_SHARE: Final = 0.5
"""Share of a model's context that is left for its answer and for follow-ups."""

MAX_NAMED: Final = 3
"""Parts that are left out and named in one line."""


def estimate(text: str) -> int:
    """About how many tokens a text takes."""
    return -int(-len(text) // CHARACTERS_PER_TOKEN) if text else 0


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of context.

    Attributes:
        name: Its name on screen: a path, ``diff``, ``decisions``.
        kind: ``file``, ``selection``, ``change``, ``folder``, ``instructions``, ``diff``,
            ``error``, ``conversation``, ``decisions``, ``definitions`` or ``uses``.
        text: What is sent.
        most: Tokens that it may take at most, ``None`` for what is left.
        keep: 0-based line of ``text`` that stays if it has to be cut.
        cut: What is missing, in words; ``""`` if it is whole.
        first: 1-based number of its first line in the file.
        why: Why it goes along, in words; ``""`` where that is plain.
        unasked: Whether it goes along without having been named.
    """

    name: str
    kind: str
    text: str
    most: int | None = None
    keep: int = 0
    cut: str = ""
    first: int = 1
    why: str = ""
    unasked: bool = False

    @property
    def words(self) -> str:
        """What is missing, and why it goes along: ``cut to lines 1-9 of 40: named``."""
        cut = f"cut to {self.cut}" if self.cut else ""
        return ": ".join(filter(None, (cut, self.why)))

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return estimate(self.text)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not sent.

    Attributes:
        name: Its name on screen.
        why: Why not, in words.
    """

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class Context:
    """The context sent with one instruction.

    Attributes:
        parts: In the order in which they are sent.
        limit: Tokens that they may take together.
        left_out: Parts for which there was no room, and what may not or cannot go out.
    """

    parts: tuple[Part, ...] = ()
    limit: int = DEFAULT_LIMIT
    left_out: tuple[LeftOut, ...] = ()

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return sum(part.tokens for part in self.parts)

    @property
    def summary(self) -> str:
        """One line, such as ``~3.1k tokens: app.py, AGENTS.md, diff``."""
        names = ", ".join(part.name + (" (cut)" if part.cut else "") for part in self.parts)
        return (
            f"~{shown_tokens(self.tokens)} tokens: {names}" if names else "only the code to change"
        )

    @property
    def budget(self) -> str:
        """The summary, and what is left out: ``~3.1k tokens: app.py; left out: diff``."""
        names = list(dict.fromkeys(each.name for each in self.left_out))
        shown = ", ".join(names[:MAX_NAMED])
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return f"{self.summary}; left out: {shown}{more}" if names else self.summary

    @property
    def missing(self) -> str:
        """How much is not sent: ``1 cut, 2 left out``, ``""`` if nothing is missing."""
        cut = sum(bool(part.cut) for part in self.parts)
        said = [f"{cut} cut"] if cut else []
        said += [f"{len(self.left_out)} left out"] if self.left_out else []
        return ", ".join(said)


def limit_of(context_length: int | None) -> int:
    """Tokens of context for a model that reads and writes ``context_length`` together."""
    if context_length is None:
        return DEFAULT_LIMIT
    return max(256, min(DEFAULT_LIMIT, int(context_length * ANSWER_SHARE)))


def fit(
    parts: Sequence[Part],
    limit: int,
    left_out: Sequence[LeftOut] = (),
    quick: int | None = None,
    seconds: float = FIRST_WORDS_S,
) -> Context:
    """Parts within a budget, the earlier ones first; what is too long is cut around its place.

    Args:
        parts: In the order of importance.
        limit: Tokens for all.
        left_out: What is missing already.
        quick: Tokens for parts that go along unasked, since the user should not wait long for them.
        seconds: How long the model takes to read these.
    """
    kept: list[Part] = []
    missing = list(left_out)
    room, quick = limit, limit if quick is None else quick
    for part in parts:
        if not part.text:
            continue
        there = min(room, quick) if part.unasked else room
        fitted = _cut(part, there if part.most is None else min(there, part.most))
        if fitted is None:
            why = f"there is no room left in {limit:,} tokens"
            if there < room:
                why = f"reading it would take longer than {seconds:g} seconds"
            missing.append(LeftOut(part.name, why))
            continue
        kept.append(fitted)
        room -= fitted.tokens
        quick = max(0, quick - fitted.tokens)
    return Context(tuple(kept), limit, tuple(missing))


def _cut(part: Part, allowed: int) -> Part | None:
    """A part with whole lines around ``keep`` only, ``None`` if there is no room for any."""
    if part.tokens <= allowed:
        return part
    lines = part.text.splitlines(keepends=True)
    start = stop = min(part.keep, len(lines) - 1)
    room = int(allowed * CHARACTERS_PER_TOKEN)
    while True:
        grown = False
        # Two lines below for each one above: what follows a place says more than what precedes it.
        for step in (1, 1, -1):
            number = stop if step > 0 else start - 1
            if 0 <= number < len(lines) and len(lines[number]) <= room:
                room -= len(lines[number])
                start, stop = (start, stop + 1) if step > 0 else (start - 1, stop)
                grown = True
        if not grown:
            break
    if start == stop:
        return None
    shown = f"lines {part.first + start}-{part.first + stop - 1} of {part.first + len(lines) - 1}"
    return replace(
        part,
        text="".join(lines[start:stop]),
        cut=shown,
        first=part.first + start,
        keep=part.keep - start,
    )


MAX_HUNK_LINES: Final = 24
"""Lines of a hunk in a prompt."""
MAX_HUNKS: Final = 8
"""The latest decisions that are sent along."""


def decisions(hunks: Sequence[Hunk]) -> Part:
    """The user's decisions and their reasons."""
    told: list[str] = []
    decided = [hunk for hunk in hunks if hunk.decided]
    for hunk in decided[-MAX_HUNKS:]:
        place = f"{hunk.path}:{hunk.start + 1}"
        if hunk.state is HunkState.ACCEPTED:
            told.append(f"* kept at {place} (-{hunk.deleted} +{hunk.added})")
            continue
        reason = " ".join(hunk.note.split())
        told.append(f"* turned down at {place}" + (f" because: {reason}" if reason else ""))
        told += hunk_lines(hunk)
    return Part("decisions", "decisions", "".join(f"{t}\n" for t in told), most=1_200, unasked=True)


def hunk_lines(hunk: Hunk) -> list[str]:
    """The lines of a hunk for a prompt: indented, credentials masked, both sides cut alike."""
    half = MAX_HUNK_LINES // 2
    # Lines that one side does not need go to the other.
    most_old = max(half, MAX_HUNK_LINES - len(hunk.new))
    most_new = max(half, MAX_HUNK_LINES - len(hunk.old))
    return [*_side("-", hunk.old, most_old), *_side("+", hunk.new, most_new)]


def _side(sign: str, lines: Sequence[str], most: int) -> Iterator[str]:
    from midstream.guard.secrets import mask_lines

    # Masking takes long: only what is shown is masked.
    yield from (f"    {sign} {line}" for line in mask_lines(lines[:most]))
    if (more := len(lines) - most) > 0:
        yield f"    {sign} ({counted(more, 'more line')})"
