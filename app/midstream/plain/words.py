"""What a line means: a command with what belongs to it, or an instruction for the model.

A line is a command only if its first word is one and the rest fits it, so that "show the total at
the end" is an instruction and "show 3" is not.  Knows the words, does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

INSTRUCT: Final = "do"
"""The command that a line without a command word is."""


@dataclass(frozen=True, slots=True)
class Word:
    """A command.

    Attributes:
        name: Its word.
        form: How it is written.
        help: What it does.
        fits: An expression that the rest of the line has to match.
        now: Whether it is for a running answer, and therefore never waits for its end.
    """

    name: str
    form: str
    help: str
    fits: str = ""
    now: bool = False


_LINES: Final = r"\d+:\d+(?:-\d+)?"
_NUMBERS: Final = rf"(?:all|{_LINES}|\d+(?:-\d+)?(?:[ ,]+\d+(?:-\d+)?)*)?"
_PLACE: Final = r"\S+"

WORDS: Final = (
    Word("accept", "accept 3, accept 1-4, accept all", "write these hunks to the file", _NUMBERS),
    Word(
        "reject",
        "reject 3 WHY",
        "leave a hunk out; the model hears why",
        rf"(?:all|(?:{_LINES}|\d+)( .*)?)?",
    ),
    Word("edit", "edit 3", "change its new lines, in your $EDITOR or line by line", r"\d+"),
    Word("hunks", "hunks", "list the hunks that wait for a decision"),
    Word("show", "show 3, show FILE, show FILE:10-20", "read a hunk or lines again", _PLACE + "|"),
    Word("diff", "diff", "what waits, as a patch"),
    Word("undo", "undo", "take the last decision back, on disk as well"),
    Word("redo", "redo", "make it again"),
    Word("release", "release 3 WHY", "let a hunk that the guard holds be decided", r"\d+ .+"),
    Word("stop", "stop", "stop the model; what has settled stays", "", True),
    Word("redirect", "redirect TEXT", "stop, keep what has settled, go on differently", ".+", True),
    Word("queue", "queue TEXT", "send when the answer has ended", ".+", True),
    Word("open", "open FILE, open FILE:10-20", "what the next instruction is about", _PLACE),
    Word("files", "files", "the files of this folder"),
    Word("allow", "allow", "send the files that were asked about"),
    Word("do", "do TEXT", "an instruction that begins with a command's word", ".+"),
    Word("help", "help", "these words"),
    Word("quit", "quit", "leave; what is undecided is kept"),
)
BY_NAME: Final = {word.name: word for word in WORDS}


@dataclass(frozen=True, slots=True)
class Said:
    """A line that was understood: the word and the rest."""

    word: Word
    rest: str


def understand(line: str, is_file: Callable[[str], bool]) -> Said:
    """What a line means; a single letter or sign is a key of the other screen, not an instruction.

    Args:
        line: The line; not empty.
        is_file: Whether a name is a file's; ``open it again`` is an instruction.
    """
    if len(line.strip()) == 1 and not line.strip().isdigit():
        return Said(BY_NAME["help"], "")
    first, _, rest = line.strip().partition(" ")
    word, rest = BY_NAME.get(first.lower().rstrip(":")), rest.strip()
    if word is None or re.fullmatch(word.fits, rest) is None:
        return Said(BY_NAME[INSTRUCT], line.strip())
    names_place = word.name in ("open", "show") and rest and not rest.isdigit()
    if names_place and not is_file(place_of(rest)[0]) and not re.search(r"[./\\:]", rest):
        return Said(BY_NAME[INSTRUCT], line.strip())
    return Said(word, rest)


def place_of(text: str) -> tuple[str, tuple[int, int] | None]:
    """The file of ``FILE``, ``FILE:10`` or ``FILE:10-20``, and its 0-based half-open lines."""
    match = re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?", text)
    if match is None:
        return text, None
    first = max(1, int(match[2]))
    return match[1], (first - 1, max(first, int(match[3] or first)))


def lines_of(text: str) -> tuple[int, int, int] | None:
    """Hunk, first line and last line of ``3:2-5`` or ``3:2``, as they are counted by ``show 3``."""
    match = re.fullmatch(r"(\d+):(\d+)(?:-(\d+))?", text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or match[2]))


def numbers_of(text: str) -> list[int]:
    """The numbers of ``3``, ``1 2``, ``1, 4-6``, in order."""
    found: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(found))


def help_lines() -> list[str]:
    """One line for every word."""
    width = max(len(word.form) for word in WORDS)
    return [
        *(f"{word.form:<{width}}  {word.help}" for word in WORDS),
        f"{'accept 3:2-5, reject 3:2':<{width}}  only these lines of a hunk; show 3 numbers them",
    ]
