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
    """Fewer hunks are decided than before."""
    REDONE = auto()
    """More hunks are decided than before."""
    WRITTEN = auto()
    """A change of another program waits."""
    PUT_BACK = auto()
    COMMITTED = auto()
    READ = auto()
    """Nothing has to be done."""


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step.

    In every sentence, the id of an action in braces stands for its key.

    Attributes:
        text: What to do and what comes of it.
        action: The action that the step is about; its own key and Enter both carry it out.
        done: When the next step follows.
        says: The instruction that is sent, where the action sends one.
        ended: In place of ``text`` once the model has ended.
        flagged: In place of it where every hunk that waits is flagged.
        under_way: In place of it while the step has to wait for the model or another program.
        pointless: In place of it where there is nothing to do; Enter then leads on.
    """

    text: str
    action: str
    done: Done
    says: str = ""
    ended: str = ""
    flagged: str = ""
    under_way: str = ""
    pointless: str = ""


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A change that a script makes while the tour reviews other programs."""

    path: str
    old: str
    new: str

    def write(self, root: Path) -> bool:
        """Change the file, past the session (blocking); whether there was anything to change."""
        file = root / self.path
        try:
            text = file.read_text("utf-8")
            if self.old not in text:
                return False
            file.write_text(text.replace(self.old, self.new), "utf-8")
        except (OSError, UnicodeError):
            return False
        return True


WRITER: Final = OtherProgram("tally/money.py", 'CURRENCY = "EUR"', 'CURRENCY = "USD"')
PATH: Final = "tally/report.py"
"""The file that the instructions of the tour are about."""
OFFER: Final = "New here? Press {composer.send} in the empty line for a tour of three minutes."
OFFER_OUTSIDE: Final = "New here? Press {tour} for a tour of three minutes."
"""The offer while the line below is not in use."""

STEPS: Final = (
    TourStep(
        'Say what should change: "rename `rows` to `totals` in month_report". '
        "{composer.send} sends it.",
        "composer.send",
        Done.PROPOSED,
        says="rename `rows` to `totals` in month_report",
        under_way="It is sent. The model reads the function and writes it anew; the tour goes on "
        "with the first complete hunk.",
        pointless="The model has changed nothing. {choose} goes on.",
    ),
    TourStep(
        "The first hunk is complete, and the model goes on. {hunk.accept} accepts it; it is on "
        "disk at once.",
        "hunk.accept",
        Done.ACCEPTED,
        ended="The model is done. {hunk.accept} accepts the hunk under the cursor; it is on disk "
        "at once.",
        under_way="The model is still writing; its next complete hunk is yours to accept.",
        pointless="No hunk is left to accept. {choose} goes on.",
    ),
    TourStep(
        'Another name would be better, so say "no, call it sums", even while it writes. '
        "{composer.send} sends it; what is there is renamed, too.",
        "composer.send",
        Done.REDIRECTED,
        says="no, call it sums",
        ended='Another name would be better, so say "no, call it sums"; it could have been said '
        "while the model wrote. {composer.send} sends it, and what is there is renamed, too.",
        under_way="It is sent; the model takes it up.",
    ),
    TourStep(
        "{hunk.accept_rest} accepts what you have seen so far. The tour goes on when the model "
        "has ended and nothing waits.",
        "hunk.accept_rest",
        Done.DECIDED,
        ended="The model is done. {hunk.accept_rest} accepts what you have seen, and a second "
        "time the rest.",
        flagged="The model is done, and what waits is flagged, so each hunk is decided by itself: "
        "{hunk.accept} accepts one, {failures} says why. {choose} accepts one after the other.",
        under_way="The model writes it again with the new name. Each complete hunk is yours to "
        "accept.",
    ),
    TourStep(
        "{decision.undo} undoes the last decision, on disk as well.",
        "decision.undo",
        Done.UNDONE,
        pointless="{decision.undo} undoes the last decision; there is none to undo. {choose} "
        "goes on.",
    ),
    TourStep(
        "{decision.redo} brings it back.",
        "decision.redo",
        Done.REDONE,
        pointless="{decision.redo} brings back what was undone; nothing is. {choose} goes on.",
    ),
    TourStep(
        "{review.external} reviews what other programs write. A script then changes a file.",
        "review.external",
        Done.WRITTEN,
        under_way="The review is on. A script changes tally/money.py now; its change appears here.",
        pointless="The review is on, and the script has nothing left to change. {choose} goes on.",
    ),
    TourStep(
        "That change is on disk already, as an agent's would be. {hunk.reject} puts it back once "
        "nothing writes there any more.",
        "hunk.reject",
        Done.PUT_BACK,
        under_way="It is put back as soon as nothing has written there for a moment.",
        pointless="The change of the script is decided, and stays. {choose} goes on.",
    ),
    TourStep(
        "{commit} opens the commit page, with a message that says what you asked for.",
        "commit",
        Done.COMMITTED,
        pointless="{commit} commits what you have accepted, which is nothing so far. {choose} "
        "goes on.",
    ),
    TourStep(
        "That is all you need. {compose} writes your own instruction, {checks} runs the tests, "
        "and {models} sets up a larger model.",
        "compose",
        Done.READ,
    ),
)
COMMIT_PAGE: Final = (
    "This is what you accepted, and a message that says what you asked for. {choose} or "
    "{commit.commit.anywhere} commits it; {page.close} leads to the files."
)
"""The sentence of the step about the commit, on its page."""
