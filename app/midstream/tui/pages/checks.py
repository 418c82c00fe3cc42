"""The checks page: the project's own test command, its output, and the places that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rich.text import Text

from midstream.actions import Place
from midstream.counting import counted
from midstream.pairing.checks.findings import FailedPlace
from midstream.pairing.checks.run import (
    CheckCommand,
    CheckState,
    NoCommandError,
    ProjectCheck,
    UnconfirmedCommandError,
)
from midstream.tui.keymap import page_bindings
from midstream.tui.pages.page import PageScreen
from midstream.tui.pages.settings import SettingsScreen
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow

LOOK_S: Final = 0.15
"""Seconds between two looks at what a running command has printed."""
TAIL: Final = 200
"""Last lines of the output that are shown beside its row."""
_OUTPUT: Final = "output"
_ON_DISK: Final = (
    "The project's test command runs on the files as they are on disk, which include only accepted "
    "hunks. With proposed hunks, it runs in a copy that includes the undecided hunks as well."
)
_ON_REVIEW: Final = (
    "The project's test command runs on the files as they are on disk. They include the undecided "
    "hunks that other programs have written. With proposed hunks, it runs in a copy that includes "
    "the undecided hunks of the model as well."
)
_ROLES: Final = {
    CheckState.PASSED: "success",
    CheckState.FAILED: "error",
    CheckState.BROKEN: "error",
    CheckState.STOPPED: "warning",
}


@dataclass(frozen=True, slots=True)
class ToPlace:
    """Leave the page for a place.

    Attributes:
        finding: What failed there.
        mend: Whether the model is to be asked to mend it.
    """

    finding: FailedPlace
    mend: bool = False


class ChecksScreen(PageScreen):
    """The command's last run; dismissed with a ``ToPlace`` or nothing."""

    PAGE = Place.CHECKS
    TITLE_WORDS = "Checks"
    CHOOSE = "checks.open"
    BINDINGS: ClassVar = page_bindings(Place.CHECKS)

    def __init__(self, services: AppServices, check: ProjectCheck) -> None:
        super().__init__(services)
        self.check = check
        self._seen: object = None
        self._suggested: CheckCommand | None = None
        self._unknown = False
        """Whether the command was not named yet."""

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(LOOK_S, self._look)
        if self.check.state is CheckState.NEVER:
            self.action_run()

    def _look(self) -> None:
        """Show what has changed since the last look."""
        check = self.check
        seen = (check.state, check.dropped + len(check.output), int(check.seconds))
        if seen != self._seen:
            self._seen = seen
            self.show_all()

    @property
    def finding(self) -> FailedPlace | None:
        """The place under the cursor; None on the output."""
        value = self.list.value
        if value is None or value == _OUTPUT:
            return None
        findings, index = self.check.findings, int(value)
        return findings[index] if index < len(findings) else None

    # showing

    def show_all(self) -> None:
        if not self.is_mounted:
            return
        check = self.check
        command = check.command or self._suggested
        role = _ROLES.get(check.state, "muted")
        self.title_row.show(
            (check.summary, role),
            *(((check.on_top, "foreground"),) if check.on_top else ()),
            (command.text if command else "", "foreground"),
        )
        rows = [ListRow(_OUTPUT, ((" output", "foreground"),), ((self._printed(), "muted"),))]
        rows += [
            ListRow(
                str(number),
                ((f" {visible(each.place)}", "foreground"), (f"  {visible(each.message)}", role)),
            )
            for number, each in enumerate(check.findings)
        ]
        self.list.show(rows)
        self.show_detail()
        self.show_keys()

    def _printed(self) -> str:
        lines = self.check.dropped + len(self.check.output)
        return f"  {counted(lines, 'line')}" if lines else ""

    def show_detail(self) -> None:
        text = Text(no_wrap=False, overflow="fold")
        finding, check = self.finding, self.check
        plain, muted = self.palette.style("foreground"), self.palette.style("muted")
        if finding is not None:
            text.append(f"{visible(finding.message)}\n", plain)
            if finding.test:
                text.append(f"in {visible(finding.test)}\n", muted)
            text.append("\n")
            lines = check.around(finding)
        elif check.state is CheckState.NEVER:
            text.append(_ON_REVIEW if check.tests_undecided else _ON_DISK, muted)
            lines = []
        else:
            lines = list(check.output)[-TAIL:]
            before = check.dropped + len(check.output) - len(lines)
            if before:
                text.append(f"{counted(before, 'earlier line')}\n", muted)
        for line in lines:
            text.append(f"{visible(line)}\n", plain)
        self.detail.show(text, finding.place if finding else "output")
        if finding is None and check.running:
            self.detail.scroll_end(animate=False)

    def hidden_hints(self) -> frozenset[str]:
        hidden = {"checks.open", "checks.mend"} if self.finding is None else set[str]()
        if self._unknown:
            hidden = {"checks.mend", "checks.run", "checks.proposed", "checks.command"}
        copied = self.check.running and self.check.on_top
        return frozenset(hidden | ({"checks.proposed"} if copied else set()))

    def hint_words(self) -> dict[str, str]:
        words = {"checks.run": "stop" if self.check.running else "run again"}
        return words | ({"checks.open": "name the command"} if self._unknown else {})

    def action_command(self) -> None:
        """Change the command in the settings, and run the new one."""
        former = self.check.configured

        def changed(_: object) -> None:
            if self.check.configured != former and not self.check.running:
                self.action_run()

        self.services.open_screen(
            SettingsScreen(self.services, "check_command", only=True), changed
        )

    # doing

    def action_run(self) -> None:
        """Run the command, or stop it."""
        self._begin()

    def action_run_proposed(self) -> None:
        """Run the command in a copy that has the undecided hunks, or stop it there."""
        self._begin(proposed=True)

    def _begin(self, *, confirmed: bool = False, proposed: bool = False) -> None:
        async def work() -> None:
            if self.check.running:
                instead = proposed and not self.check.on_top
                await self.check.stop_command()
                if not instead:
                    return
                await self.check.finished()
            self.check.columns = self.detail.columns - 1  # beside a scroll bar
            try:
                await self.check.start_command(confirmed=confirmed, proposed=proposed)
                self._unknown = False
                self.notices.clear()  # Its text was about an earlier try.
            except NoCommandError as error:
                self._unknown = True
                key = self.services.key_for(self.CHOOSE)
                self.notices.say("warning", f"{error.problem}; {key} names the one you use.")
            except UnconfirmedCommandError as error:
                self._suggested = error.command
                self.notices.ask(
                    f"{error.problem}. Run it in this folder, now and whenever you ask?",
                    ("run it", lambda: self._begin(confirmed=True, proposed=proposed)),
                    ("not now", self.notices.clear),
                )
            self.show_all()

        self.work.run(work)

    def action_open(self) -> None:
        if (finding := self.finding) is not None:
            self.dismiss(ToPlace(finding))
        elif self._unknown:
            self.action_command()

    def action_mend(self) -> None:
        if (finding := self.finding) is None:
            return
        if self.services.running:
            key = self.services.key_for("model.stop")
            self.notices.say("warning", f"The model is writing; stop it first: esc, then {key}.")
            return
        self.dismiss(ToPlace(finding, mend=True))
