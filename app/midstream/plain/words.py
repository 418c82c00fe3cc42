"""The meaning of a line: a command with its arguments, or an instruction for the model.

A line is a command only if its first word is one and the rest fits it, so that "show the total at
the end" is an instruction and "show 3" is not.  Commands on hunks come from the table of actions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from midstream.actions import ACTIONS, Action, HunkCommand, Reason

INSTRUCT: Final = "do"
"""The command a line without a command word stands for."""


@dataclass(frozen=True, slots=True)
class Word:
    """A command.

    Attributes:
        name: Its word.
        form: Examples of how to type it.
        help: What it does.
        fits: Regular expression that the rest of the line has to match.
        now: Whether it acts on a running answer, and therefore never waits for its end.
        call: The method of ``PlainCommands`` or of a part of it that carries it out, such as
            ``hunks.undo``; gets the rest of the line. Empty: the loop that reads lines does.
        on_hunks: The method of the session that carries it out instead, hunk by hunk.
    """

    name: str
    form: str
    help: str
    call: str
    fits: str = ""
    now: bool = False
    on_hunks: HunkCommand | None = None


_LINES: Final = r"\d+:\d+(?:-\d+)?"
_NUMBERS: Final = r"\d+(?:-\d+)?(?:[ ,]+\d+(?:-\d+)?)*"
_PLACE: Final = r"\S+"
_IN_REVIEW: Final = re.compile(r"\s*(?:(?P<keep>keep)|put\s+back)\s+(?=\d|all\b)", re.IGNORECASE)
"""The words of a review for accepting and rejecting."""


def _hunk_word(action: Action, command: HunkCommand) -> Word:
    """The command for an action on hunks."""
    reason = " WHY" if command.reason is not Reason.NONE else ""
    lines = f"{_LINES}|" if command.lines else ""
    fits = {
        Reason.NONE: rf"(?:all|{lines}{_NUMBERS})?",
        Reason.OPTIONAL: rf"(?:all|(?:{lines}\d+)( .*)?)?",
        Reason.REQUIRED: r"\d+(?: .+)?",
    }[command.reason]
    form = command.form or f"{action.word} 3{reason}"
    call, own = f"hunks.{action.word}", command if command.method else None
    return Word(action.word, form, command.help or action.help, call, fits, on_hunks=own)


WORDS: Final = (
    *(_hunk_word(action, action.hunk) for action in ACTIONS if action.hunk is not None),
    Word("hunks", "hunks", "list the undecided hunks", "hunks.hunks"),
    Word(
        "show",
        "show 3, show FILE, show FILE:10-20",
        "read a hunk or lines again",
        "hunks.show",
        _PLACE + "|",
    ),
    Word("diff", "diff", "print the undecided hunks as a patch", "hunks.diff"),
    Word("undo", "undo", "undo the last decision, on disk as well", "hunks.undo"),
    Word("redo", "redo", "redo the decision that was undone", "hunks.redo"),
    Word(
        "commit",
        'commit, commit "MESSAGE"',
        "commit what was accepted; the default message is made from your instructions",
        "commit",
        '(?:".+")?',
    ),
    Word("stop", "stop", "stop the model; complete hunks are kept", "stop", "", True),
    Word(
        "redirect",
        "redirect TEXT",
        "stop, keep complete hunks, and go on as TEXT says",
        "redirect",
        ".+",
        True,
    ),
    Word("queue", "queue TEXT", "send when the answer ends", "queue", ".+", True),
    Word(
        "open",
        "open FILE, open FILE:10-20",
        "choose what the next instruction applies to",
        "open",
        _PLACE,
    ),
    Word("files", "files", "list the files of this folder", "files"),
    Word("allow", "allow", "send the files you were asked about", "allow"),
    Word(
        "model",
        "model, model NAME",
        "list the models, or switch to one",
        "model.model",
        r"\S*[^\s.,]|",
    ),
    Word(
        "effort",
        "effort, effort high",
        "show or set how much work goes into an answer",
        "model.effort",
        "(?:auto|low|medium|high|xhigh)?",
    ),
    Word(
        "sent",
        "sent, sent text",
        "show the pieces of the last request and what was cut, or every word of it",
        "model.sent",
        "(?:text)?",
    ),
    Word(
        "failures",
        "failures",
        "show the edits that did not match the file, and why",
        "model.failures",
    ),
    Word(
        "guard",
        "guard FILE",
        "switch the guard off for a file until you quit, or on again",
        "model.guard",
        r"\S*[^\s.,]",
    ),
    Word(
        "continuous",
        "continuous on",
        "suggest follow-on edits whenever you save, or stop (off)",
        "model.continuous",
        "(?:on|off)?",
    ),
    Word(
        "review",
        "review on",
        "review what other programs write, or stop (off)",
        "model.review",
        "(?:on|off)?",
    ),
    Word(
        "putback",
        "putback",
        "put back now, without waiting for the other program",
        "model.put_back",
    ),
    Word("tell", "tell", "tell the agent what was put back, and why", "model.tell"),
    Word(
        "check",
        "check, check proposed, check stop",
        "run the project's tests; proposed: in a copy that includes the undecided hunks",
        "checks.check",
        "(?:(?:proposed )?yes|proposed|stop)?",
        True,
    ),
    Word(
        "places",
        "places, places 2",
        "list the places that failed, or show one with its output",
        "checks.places",
        r"\d*",
    ),
    Word("mend", "mend 2", "ask the model to fix what failed at a place", "mend", r"\d+"),
    Word("take", "take, take 2", "turn code in the last answer into hunks", "take", r"\d*"),
    Word(
        "plan",
        "plan, plan TEXT, plan edit, plan 1. A 2. B",
        "show the plan, ask for one, edit it in $EDITOR, or write it yourself",
        "plan",
        ".*",
    ),
    Word("next", "next", "carry out the next step of the plan", "next"),
    Word(
        "look",
        "look yes, look no",
        "allow the model to look at files, or to read the one that it asks for, or not",
        "conversing.look",
        "yes|no",
        True,
    ),
    Word(
        "new",
        "new",
        "start a new conversation; earlier messages are no longer sent",
        "conversing.renew",
    ),
    Word("do", "do TEXT", "send an instruction that starts with a command's name", "do", ".+"),
    Word("help", "help", "show this list", "help"),
    Word("quit", "quit", "leave; undecided hunks are kept", ""),
)
BY_NAME: Final = {word.name: word for word in WORDS}


@dataclass(frozen=True, slots=True)
class Said:
    """A line that was understood: the word and the rest."""

    word: Word
    rest: str


def understand(line: str, is_file: Callable[[str], bool]) -> Said:
    """The command of a line; a single character is a key of the full screen, so it shows the help.

    Args:
        line: The line; not empty.
        is_file: Whether a name is a file's; ``open it again`` is an instruction.
    """
    if len(line.strip()) == 1 and not line.strip().isdigit():
        return Said(BY_NAME["help"], "")
    decision = _IN_REVIEW.match(line)
    if decision is not None:
        line = f"{'accept' if decision['keep'] else 'reject'} {line[decision.end() :]}"
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
        f"{'? TEXT':<{width}}  ask the model a question; no file is changed",
        f"{'accept 3:2-5, reject 3:2':<{width}}  only these lines; show 3 numbers them",
        f"{'keep 3, put back 3':<{width}}  the same in a review of what other programs write",
    ]
