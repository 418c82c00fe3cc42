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
        enter: What Enter does, for the key bar.
        done: When the next step follows.
        says: The instruction that is sent, where the action sends one.
        ended: In place of ``text`` once the model has ended.
        flagged: In place of it where every hunk that waits is flagged.
        under_way: In place of it while the step has to wait for the model or another program.
        pointless: In place of it where there is nothing to do; Enter then leads on.
    """

    text: str
    action: str
    enter: str
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
        "send it",
        Done.PROPOSED,
        says="rename `rows` to `totals` in month_report",
        under_way="It is sent: the model writes the function anew. Each block of changed lines is "
        "a hunk; the tour goes on when the first one is complete.",
        pointless="The model has changed nothing. {choose} goes on.",
    ),
    TourStep(
        "The first hunk is complete, and the model writes on. {hunk.accept} accepts the hunk and "
        "saves it to the file at once.",
        "hunk.accept",
        "accept",
        Done.ACCEPTED,
        ended="The model is done. {hunk.accept} accepts the hunk under the cursor and saves it to "
        "the file at once.",
        under_way="The model is still writing; its next complete hunk is yours to accept.",
        pointless="No hunk is left to accept. {choose} goes on.",
    ),
    TourStep(
        'Another name would be better? Say so while the model writes: "no, call it results". '
        "{composer.send} sends it; what is there is renamed, too.",
        "composer.send",
        "send it",
        Done.REDIRECTED,
        says="no, call it results",
        ended='Another name would be better? "no, call it results" changes it everywhere; you '
        "can say so while the model writes, too. {composer.send} sends it.",
        under_way="It is sent; the model takes it up.",
    ),
    TourStep(
        "{hunk.accept_rest} accepts every hunk that you have seen. The tour goes on when the "
        "model is done and every hunk is decided.",
        "hunk.accept_rest",
        "accept",
        Done.DECIDED,
        ended="The model is done. {hunk.accept_rest} accepts every hunk that you have seen; "
        "pressed twice, the others as well.",
        flagged="The model is done. The hunks are flagged: look at each one. {hunk.accept} "
        "accepts it, {failures} says why it is flagged, and {choose} accepts them all here.",
        under_way="The model writes it again with the new name. Each complete hunk is yours to "
        "accept.",
    ),
    TourStep(
        "{decision.undo} undoes the last decision, in the file as well.",
        "decision.undo",
        "undo",
        Done.UNDONE,
        pointless="{decision.undo} undoes the last decision; there is none to undo. {choose} "
        "goes on.",
    ),
    TourStep(
        "{decision.redo} brings it back.",
        "decision.redo",
        "redo",
        Done.REDONE,
        pointless="{decision.redo} brings back what was undone; nothing is. {choose} goes on.",
    ),
    TourStep(
        "Coding agents, formatters and other programs change files, too. {review.external} turns "
        "their changes into hunks. Here a script changes a file.",
        "review.external",
        "start",
        Done.WRITTEN,
        under_way="The review is on. A script changes tally/money.py now; its change appears here.",
        pointless="The review is on, and the script has nothing left to change. {choose} goes on.",
    ),
    TourStep(
        "The script has changed the currency; that is in the file already. {hunk.reject} puts the "
        "old line back, {hunk.accept} keeps the new one.",
        "hunk.reject",
        "put back",
        Done.PUT_BACK,
        under_way="The old line comes back once the script has been quiet for a few seconds: two "
        "programs should not write at once. {hunk.put_back_now} does not wait.",
        pointless="The change of the script is decided, and stays. {choose} goes on.",
    ),
    TourStep(
        "{commit} opens the commit page, with what you accepted and a message made from your "
        "instructions.",
        "commit",
        "open it",
        Done.COMMITTED,
        pointless="{commit} commits what you have accepted, which is nothing so far. {choose} "
        "goes on.",
    ),
    TourStep(
        "That is all you need. {compose} writes an instruction of your own, {checks} runs the "
        "tests, {models} sets up a larger model, and {help} shows every key.",
        "compose",
        "end the tour",
        Done.READ,
    ),
)
COMMIT_PAGE: Final = (
    "The file that you changed, how it changed, and a message made from your instructions. "
    "{choose} commits it; {page.close} goes to the list of files."
)
"""The sentence of the step about the commit, on its page."""
