"""What is shown and how: files, folds, marks, search, copying, themes, help, the palette."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from midstream.edits.hunks import HunkState
from midstream.errors import UserError
from midstream.resources import config_path, tilde
from midstream.settings import change_file, resolve_settings
from midstream.tui.diff.rows import FOLDS, Look
from midstream.tui.keymap import ACTIONS, BY_ID, Place
from midstream.tui.screens.guarding import GuardActions
from midstream.tui.screens.help import HelpScreen
from midstream.tui.screens.picker import PickerScreen
from midstream.tui.screens.search import MatchFinder, SearchBar
from midstream.tui.widgets.row_list import ListRow

if TYPE_CHECKING:
    from midstream.tui.diff.intraline import Range

QUIT_WITHIN_S: Final = 2.0
"""How soon the second press must come that quits."""


class ViewActions(GuardActions):
    """Actions of the groups "View" and "Program"."""

    finder: MatchFinder | None = None
    _quit_asked_at = -QUIT_WITHIN_S

    def action_select(self) -> None:
        """Begin to mark lines at the cursor, or forget the marks."""
        pane = self.pane
        if pane.view is None:
            return
        pane.mark = pane.cursor if pane.mark is None else None
        pane.go_to(pane.cursor)

    def action_fold(self) -> None:
        """Fold what was refused under the cursor to one row; elsewhere, the unchanged lines."""
        view, pane = self.view, self.pane
        if view is None:
            return
        hunk = pane.hunk
        row = view.row(pane.cursor)
        line = view.line_at(pane.cursor)
        if hunk is not None and hunk.state is HunkState.REJECTED and hunk.new:
            view.toggle_refused(hunk.id)
        elif not view.segments:
            self.say("info", "There is nothing to fold before the first change.")
            return
        else:
            view.folded = not view.folded
        view.refresh()
        target = None if hunk is None else view.rows_of(hunk.id)
        pane.sync()
        pane.fit_size()
        if target is not None:
            pane.go_to(target[0], detach=False)
        elif row is None or row.look is not Look.FOLDED_CONTEXT:
            pane.go_to(view.row_of_line(line), centre=True, detach=False)
        pane.scroll_to_place((pane.top, pane.skip))  # no room is left empty that rows could take
        pane.refresh()

    def action_layout(self) -> None:
        """Next layout; from the automatic one, the one that looks different."""
        pane = self.pane
        seen = pane.automatic_layout
        order = ("auto", "unified" if seen == "split" else "split", seen)
        pane.set_layout(order[(order.index(pane.layout_choice) + 1) % len(order)])
        words = {
            "auto": "automatic (side by side where there is room)",
            "unified": "unified",
            "split": "side by side",
        }
        self.say("info", f"Layout: {words[pane.layout_choice]}.")
        self.refresh_facts()

    def action_wrap(self) -> None:
        """Let long lines go on below, or scroll them sideways."""
        pane = self.pane
        pane.set_wrap(not pane.wrap)
        if self.session is not None and self.session.drafts is not None:
            self.session.drafts.wrap = pane.wrap
        key = self.program.key_for("row.right")
        words = "Long lines wrap" if pane.wrap else f"Long lines are cut; {key} shows their rest"
        self.say("info", f"{words}.")
        self.refresh_facts()

    def action_copy(self) -> None:
        """Copy the marked lines, or the hunk, or the line, without the gutter."""
        view, pane = self.view, self.pane
        if view is None:
            return
        rows = pane.selection_rows
        hunk = pane.hunk
        if rows is not None:
            shown = [view.row(y) for y in range(*rows)]
            lines = [r.text for r in shown if r is not None and r.look not in FOLDS]
        elif hunk is not None:
            lines = list(hunk.new or hunk.old)
        else:
            row = view.row(pane.cursor)
            lines = [] if row is None else [row.text]
        self.program.copy_to_clipboard("\n".join(lines) + "\n")
        pane.mark = None
        pane.go_to(pane.cursor, detach=False)
        self.say("info", f"Copied {len(lines)} line{'s' * (len(lines) != 1)}.")

    # search

    def action_search(self) -> None:
        """Search in this file."""
        if self.view is not None:
            bar = self.query_one("#search", SearchBar)
            bar.open("" if self.finder is None else self.finder.text)

    def on_search_bar_changed(self, event: SearchBar.Changed) -> None:
        """Mark the matches while they are typed, and show the first one after the cursor."""
        self._find(event.text)
        if self.finder is not None:
            row = self.finder.next(self.pane.cursor - 1, forward=True)
            if row is not None:
                self.pane.go_to(row, centre=True)

    def on_search_bar_closed(self, event: SearchBar.Closed) -> None:
        """Keep the matches after Enter, forget them after Escape."""
        if not event.keep:
            self._find("")
        self.set_focus(self.pane)
        self.refresh_facts()

    def action_search_next(self) -> None:
        """Next match."""
        self._to_match(forward=True)

    def action_search_previous(self) -> None:
        """Match above."""
        self._to_match(forward=False)

    def _to_match(self, *, forward: bool) -> None:
        if self.finder is None:
            self.action_search()
            return
        finder = self._find(self.finder.text)
        row = None if finder is None else finder.next(self.pane.cursor, forward=forward)
        if row is not None:
            self.pane.go_to(row, centre=True)

    def _find(self, text: str) -> MatchFinder | None:
        view = self.view
        matches: dict[int, tuple[Range, ...]] = {}
        self.finder = None
        if text and view is not None:
            self.finder = MatchFinder(view, text)
            matches = self.finder.matches
        self.pane.found = matches
        self.pane.repaint()
        self.refresh_facts()
        return self.finder

    # choosing

    def action_open_file(self) -> None:
        """Open a file by name."""
        if not self.files:
            words = "This folder holds no files yet; create one, it appears here by itself."
            self.say("info", words if self.listed else "The folder is still being read.")
            return
        root, listed = self.program.root, frozenset(self.files)

        def typed(text: str) -> ListRow | None:
            """The row of a path that exists and is not listed."""
            try:
                path = Path(os.path.relpath(root / text, root)).as_posix()
                there = (root / path).is_file()
            except (OSError, ValueError):
                return None
            known = path in listed or path.startswith("../")
            return _file_row(path, "not listed") if there and not known else None

        rows = [_file_row(path) for path in self.files]
        self.program.push_screen(self._picker("Open a file", rows, typed=typed), self._open_picked)

    def _open_picked(self, path: str | None) -> None:
        if path is not None:
            self.show_path(path)

    def action_theme(self) -> None:
        """Choose a theme; moving through the list shows each at once."""
        program = self.program
        before = program.palette.name
        rows = [
            ListRow(
                palette.name, ((palette.label, "foreground"),), ((f"  {palette.about}", "muted"),)
            )
            for palette in program.palettes.values()
        ]

        def chosen(name: str | None) -> None:
            program.use_theme(name or before)
            if name is not None:
                self.in_order(lambda: self._keep_theme(name))

        picker = self._picker("Theme", rows, preview=program.use_theme, select=before)
        program.push_screen(picker, chosen)

    async def _keep_theme(self, name: str) -> None:
        """Write the theme to the person's file; where that is of no use, say why."""
        program = self.program
        label, path = program.palettes[name].label, config_path()
        if self.demo is not None:  # nothing of it outlives the demo
            command = f"midstream config theme {name}"
            self.say("info", f"Theme {label} for this demo; {command} keeps it.")
            return
        try:
            await asyncio.to_thread(change_file, path, {("theme",): name})
            resolved = await asyncio.to_thread(resolve_settings, program.root, flags=program.flags)
        except UserError as error:
            self.say("warning", f"Theme {label} until you quit: {error}")
            return
        if why := resolved["theme"].overruled:
            self.say("warning", f"Theme {label} until you quit: it is written, but {why}.")
        else:
            program.settings = replace(program.settings, theme=name)
            self.say("info", f"Theme {label}, kept in {tilde(path)}.")

    def action_telemetry(self) -> None:
        """Rates measured here, beside what a simulated wafer would do."""
        from midstream.tui.screens.telemetry import open_telemetry

        open_telemetry(self.program)

    def action_palette(self) -> None:
        """Every action, by name."""
        keys = self.program.keys
        rows: list[ListRow] = []
        for action in ACTIONS:
            if (
                action.place is Place.COMPOSER
                or action.id.endswith(".anywhere")
                or action.id in ("palette", "choose")
            ):
                continue
            shown = self.program.all_keys_for(action.id)
            words = action.help.split(";")[0]
            if keys[action.id]:
                rows.append(
                    ListRow(action.id, ((words, "foreground"),), ((f"  {shown}", "muted"),))
                )
        self.program.push_screen(self._picker("What should happen", rows), self._run_picked)

    async def _run_picked(self, action_id: str | None) -> None:
        if action_id is None:
            return
        if BY_ID[action_id].place is Place.REVIEW and self.view is not None:
            self.set_focus(self.pane)
        await self.perform(action_id)

    def _picker(
        self,
        title: str,
        rows: list[ListRow],
        *,
        preview: Callable[[str], None] | None = None,
        typed: Callable[[str], ListRow | None] | None = None,
        select: str | None = None,
    ) -> PickerScreen:
        program = self.program
        return PickerScreen(
            program.palette,
            program.glyphs,
            title,
            rows,
            preview=preview,
            typed=typed,
            select=select,
        )

    # panes and program

    def action_rail(self) -> None:
        """Show or hide the file list."""
        shown = self.rail.display and self.rail.has_focus
        wide = self.has_class("-wide")
        if shown or (self.rail.display and not wide):
            self.rail.display = wide and not shown
            self.set_class(False, "-rail-open")
            self.set_focus(self.pane)
            if wide:
                self.rail.display = False
        else:
            self.set_class(not wide, "-rail-open")
            self.rail.display = True
            self.refresh_facts()
            self.rail.show(self.rail.rows, select=self.path)
            self.set_focus(self.rail)
        self.refresh_facts()

    def action_next_pane(self) -> None:
        """Next pane; in a list of mentions, take one."""
        if not self.composer.complete():
            self._cycle(1)

    def action_previous_pane(self) -> None:
        """Pane before."""
        self._cycle(-1)

    def _cycle(self, step: int) -> None:
        stops: list[Widget] = [self.composer.field]
        if self.query_one("#code").display:
            stops.insert(0, self.pane)
        if self.rail.display:
            stops.append(self.rail)
        here = next((i for i, stop in enumerate(stops) if stop.has_focus), 0)
        self.set_focus(stops[(here + step) % len(stops)])

    def action_help(self) -> None:
        """The keys of this place."""
        program = self.program
        composing = self.composer.has_focus_within
        self.program.push_screen(HelpScreen(program.palette, program.keys, composing=composing))

    def action_close(self) -> None:
        """Close what is open, the innermost first; never stops or sends anything."""
        pane = self.pane
        if self.notice.is_shown:
            self.hush()
        elif pane.mark is not None:
            pane.mark = None
            pane.go_to(pane.cursor, detach=False)
        elif self.finder is not None:
            self._find("")
        elif self.has_class("-rail-open"):
            self.action_rail()
        elif self.rail.has_focus:
            self.set_focus(self.pane)
        self.refresh_facts()

    def action_repaint(self) -> None:
        """Paint the whole screen again."""
        self.program.refresh(layout=True)

    def action_quit(self) -> None:
        """Quit."""
        self.program.exit()

    def action_quit_twice(self) -> None:
        """Quit at the second press: a stray letter must not end anything."""
        now = time.monotonic()
        if now - self._quit_asked_at < QUIT_WITHIN_S:
            self.program.exit()
            return
        self._quit_asked_at = now
        self.say(
            "info",
            f"{self.program.key_for('quit.twice')} again quits; accepted hunks are on disk.",
        )

    def action_suspend(self) -> None:
        """Go to the background, as programs in a terminal do."""
        if not hasattr(signal, "SIGTSTP"):
            self.say("info", "Windows cannot put a program into the background.")
            return
        self.program.action_suspend_process()


def _file_row(path: str, note: str = "") -> ListRow:
    from midstream.tui.visible import visible

    folder, slash, name = visible(path).rpartition("/")
    return ListRow(path, ((folder + slash, "muted"), (name, "foreground")), ((note, "muted"),))
