"""The services of the application for screens and widgets.

Screens depend on this protocol, and the application depends on the screens: never the other way
round.  ``tui.app.MidstreamApp`` implements it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from midstream.errors import UserError

if TYPE_CHECKING:
    from textual.screen import Screen, ScreenResultCallbackType

    from midstream.demo import DemoInfo
    from midstream.pairing.session import PairingSession
    from midstream.settings import Settings
    from midstream.tui.glyphs import Glyphs
    from midstream.tui.themes import Palette
    from midstream.tui.widgets.welcome import TourWords

Result = TypeVar("Result")


class NotNowError(UserError):
    """An action does not apply at the moment; whatever calls actions says so, as a fact."""


class StillOpeningError(NotNowError):
    """There is no session yet; the first paint comes before it is open."""

    def __init__(self) -> None:
        super().__init__("The session is still opening", "try again in a moment")


@runtime_checkable
class Themed(Protocol):
    """A screen that paints with a theme's colours itself."""

    def set_palette(self, palette: Palette) -> None:
        """Draw with other colours."""


class AppServices(Protocol):
    """The application as its screens see it."""

    root: Path
    settings: Settings
    flags: Mapping[str, object]
    """Settings given on the command line, by field."""
    demo: DemoInfo | None
    begins_review: bool
    """Whether it was started to review what other programs write."""
    keys: dict[str, str]
    """Keys by action id."""
    glyphs: Glyphs
    palette: Palette
    palettes: dict[str, Palette]
    session: PairingSession | None
    commit_message: str
    """The commit message so far; it outlives the commit page."""

    @property
    def users_folder(self) -> Path:
        """The root, or in a range of commits, whose files are a copy, the user's folder."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether the application has started and not ended."""
        ...

    @property
    def given_endpoint(self) -> str:
        """Host of the server given on the command line in place of a configured one, or ``""``."""
        ...

    @property
    def shows_wafer(self) -> bool:
        """Whether a simulated wafer is beside the code."""
        ...

    @property
    def running(self) -> bool:
        """Whether the model is answering."""
        ...

    @property
    def shown_path(self) -> str:
        """The file on the review screen, or ``""``."""
        ...

    @property
    def tour_of_commit(self) -> TourWords:
        """What the tour of the demo says on the commit page, if that is its step."""
        ...

    @property
    def has_terminal_focus(self) -> bool:
        """Whether the terminal window has the focus, as far as it tells."""
        ...

    def key_for(self, action_id: str) -> str:
        """The first key of an action, as shown to the user."""
        ...

    def all_keys_for(self, action_id: str) -> str:
        """All keys of an action, as shown to the user."""
        ...

    def open_screen(
        self,
        screen: Screen[Result],
        closed: ScreenResultCallbackType[Result] | None = None,
    ) -> None:
        """Push a screen; ``closed`` gets its result."""

    def say(self, level: str, text: str) -> None:
        """Show a sentence on the review screen."""

    def screen_ready(self) -> None:
        """The review screen is mounted: keys typed before act now."""

    def show_wafer(self, model: str | None) -> None:
        """Show the simulated wafer beside the code, or remove it with ``None``."""

    def stop_model(self) -> None:
        """Stop the model."""

    def use_pace(self, pace: float | None) -> None:
        """Limit the built-in model to some tokens per second from the next answer on."""

    def use_theme(self, name: str) -> None:
        """Switch to another theme."""

    def apply(self, settings: Settings) -> None:
        """Apply settings that were just read from the files."""

    def use_model(self, settings: Settings) -> None:
        """Switch to the model these settings name, from the next instruction on."""

    async def take_up(self, journal: Path) -> None:
        """Replace the current session by an earlier one."""

    def report_defect(self, error: Exception) -> str:
        """Write a report of an internal error; returns the sentence to show."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Copy text to the system clipboard."""

    def repaint(self) -> None:
        """Repaint the whole terminal."""

    async def edit_outside(self, text: str, name: str) -> str:
        """A text as the user's own editor leaves it; an answer that is being written goes on.

        Args:
            text: The text to start with.
            name: Name of the temporary file; editors choose the language by it.

        Raises:
            UserError: There is no editor, or it failed.
        """
        ...

    def suspend_to_shell(self) -> None:
        """Suspend the process; ``fg`` resumes it."""

    def quit(self, *, sure: bool = False) -> None:
        """End the program; ``sure`` if the user has pressed a key twice for that."""

    def quit_if_repeated(self, key: str, before: str = "") -> None:
        """Say what a second press of ``key`` does, after the words ``before``, or do it.

        Where changes are flagged, the first press asks the question that names them.
        """
