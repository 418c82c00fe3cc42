"""The tour of the demo, as data: what each step says, the key that does it, and when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final


class Done(Enum):
    """What the session shows when a step is done."""

    PROPOSED = auto()
    """A hunk waits that did not wait before."""
    ACCEPTED = auto()
    REDIRECTED = auto()
    """Another answer has begun."""
    DECIDED = auto()
    """The model has ended, and nothing waits."""
    UNDONE = auto()
    """Fewer hunks are accepted than before."""
    WRITTEN = auto()
    """A change of another program waits."""
    PUT_BACK = auto()
    COMMITTED = auto()
    READ = auto()
    """Nothing has to be done."""


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step.

    Attributes:
        text: What to do and what comes of it; ``{key}`` stands for the key of the action.
        action: The action that the step is about; its own key and Enter both carry it out.
        done: When the next step follows.
        says: The instruction that is sent, where the action sends one.
    """

    text: str
    action: str
    done: Done
    says: str = ""


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A change that a script makes while the tour reviews other programs."""

    path: str
    old: str
    new: str

    def write(self, root: Path) -> None:
        """Change the file, past the session (blocking)."""
        file = root / self.path
        file.write_text(file.read_text("utf-8").replace(self.old, self.new), "utf-8")


WRITER: Final = OtherProgram("tally/money.py", 'CURRENCY = "EUR"', 'CURRENCY = "USD"')
PATH: Final = "tally/report.py"
"""The file that the instructions of the tour are about."""
OFFER: Final = "New here? Enter in the empty line begins a tour of three minutes."

STEPS: Final = (
    TourStep(
        'Say what should change: "rename `rows` to `totals` in month_report". {key} sends it.',
        "composer.send",
        Done.PROPOSED,
        says="rename `rows` to `totals` in month_report",
    ),
    TourStep(
        "The first hunk is complete, and the model goes on. {key} accepts it; it is on disk at "
        "once.",
        "hunk.accept",
        Done.ACCEPTED,
    ),
    TourStep(
        'Another name would be better, so say "no, call it sums", even while it writes. What is '
        "there is renamed, too.",
        "composer.send",
        Done.REDIRECTED,
        says="no, call it sums",
    ),
    TourStep(
        "{key} accepts what you have seen so far, and a second time the rest. The tour goes on "
        "when the model has ended and nothing waits.",
        "hunk.accept_rest",
        Done.DECIDED,
    ),
    TourStep("{key} undoes the last decision, on disk as well.", "decision.undo", Done.UNDONE),
    TourStep("{key} brings it back.", "decision.redo", Done.ACCEPTED),
    TourStep(
        "{key} reviews what other programs write. A script then changes a file.",
        "review.external",
        Done.WRITTEN,
    ),
    TourStep(
        "That change is on disk already, as an agent's would be. {key} puts it back once nothing "
        "writes there any more.",
        "hunk.reject",
        Done.PUT_BACK,
    ),
    TourStep(
        "{key} opens the commit page. Its message says what you asked for; Ctrl+S there commits.",
        "commit",
        Done.COMMITTED,
    ),
    TourStep(
        "That is all you need. {key} writes your own instruction, Ctrl+R runs the tests, and M "
        "sets up a larger model.",
        "compose",
        Done.READ,
    ),
)
