"""What is shown and how: folds, layout, marks, panes, themes, pages, the palette, quitting."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from textual.widget import Widget

from midstream.actions import ACTIONS, BY_ID, WRITING, Place
from midstream.counting import counted
from midstream.edits.hunks import HunkState
from midstream.edits.structure import has_structure
from midstream.errors import UserError
from midstream.resources import config_path, tilde
from midstream.settings import SETTINGS, change_file, resolve_settings
from midstream.tui.diff.view import FOLDS, Look
from midstream.tui.pages.help import HelpScreen, review_topics, settings_topic
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.review.controller import Controller, Shared
from midstream.tui.review.navigate import Navigate
from midstream.tui.services import NotNowError
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow
from midstream.words import in_review


class Show(Controller):
    """Actions of the groups "View" and "Program"; ``perform`` carries out one of any group."""

    def __init__(
        self, shared: Shared, navigate: Navigate, perform: Callable[[str], Awaitable[None]]
    ) -> None:
        super().__init__(shared)
        self._navigate = navigate
        self._perform = perform

    # the code

    def select(self) -> None:
        pane = self._pane
        if not self._state.path:
            return
        pane.mark = pane.cursor if pane.mark is None else None
        pane.go_to(pane.cursor)

    def fold(self) -> None:
        """Fold the rejected hunk under the cursor to one row; elsewhere, the unchanged lines."""
        view, pane = self._state.view, self._pane
        hunk = pane.hunk
        row = view.row(pane.cursor)
        line = view.line_at(pane.cursor)
        if hunk is not None and hunk.state is HunkState.REJECTED and hunk.new:
            view.toggle_rejected(hunk.id)
        elif not view.segments:
            raise NotNowError("Nothing to fold before the first change.")
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
        pane.scroll_to_place((pane.top, pane.skip))  # leaves no blank lines that rows could fill
        pane.refresh()

    def layout(self) -> None:
        """Next layout; from the automatic one, the one that looks different."""
        pane = self._pane
        seen = pane.automatic_layout
        order = ("auto", "unified" if seen == "split" else "split", seen)
        pane.set_layout(order[(order.index(pane.layout_choice) + 1) % len(order)])
        words = {
            "auto": "automatic (side by side where there is room)",
            "unified": "unified",
            "split": "side by side",
        }
        one = pane.layout_choice == "split" and pane.view.one_sided
        why = "; this file has one side only" if one and self._state.path else ""
        self._notices.say("info", f"Layout: {words[pane.layout_choice]}, until you quit{why}.")
        self._state.refresh()

    def wrap(self) -> None:
        pane, session = self._pane, self._state.opened
        pane.set_wrap(not pane.wrap)
        if session is not None and session.drafts is not None:
            session.drafts.wrap = pane.wrap
        key = self._services.key_for("row.right")
        words = "Long lines wrap" if pane.wrap else f"Long lines are cut; {key} scrolls to the rest"
        self._notices.say("info", f"{words}.")
        self._state.refresh()

    def marks(self) -> None:
        """Mark changed tokens, wherever their lines break, or the changed words of each line."""
        pane, path = self._pane, self._state.path
        by_tokens = not pane.strips.by_tokens
        pane.set_by_tokens(by_tokens)
        words = "Marks show the words that differ, line by line"
        if by_tokens:
            words = "Marks show the tokens that differ, not how lines break or what was wrapped"
            if path and not has_structure(path):
                words += "; this language is compared line by line"
        self._notices.say("info", f"{words}.")

    def copy(self) -> None:
        """Copy the marked lines, or the hunk, or the line, without the gutter."""
        view, pane = self._state.view, self._pane
        if not self._state.path:
            return
        rows, hunk = pane.selection_rows, pane.hunk
        if rows is not None:
            shown = [view.row(y) for y in range(*rows)]
            lines = [r.text for r in shown if r is not None and r.look not in FOLDS]
        elif hunk is not None:
            lines = list(hunk.new or hunk.old)
        else:
            row = view.row(pane.cursor)
            lines = [] if row is None else [row.text]
        self._services.copy_to_clipboard("\n".join(lines) + "\n")
        pane.unmark()
        self._notices.say("info", f"Copied {counted(len(lines), 'line')}.")

    # choosing from a list

    def open_file(self) -> None:
        state = self._state
        if not state.files:
            words = "This folder has no files yet; new ones appear here by themselves."
            raise NotNowError(words if state.listed else "Still reading the folder.")
        root, listed = self._services.root, frozenset(state.files)

        def typed(text: str) -> ListRow | None:
            """The row of a path that exists and is not listed."""
            try:
                path = Path(os.path.relpath(root / text, root)).as_posix()
                there = (root / path).is_file()
            except (OSError, ValueError):
                return None
            known = path in listed or path.startswith("../")
            return _file_row(path, "not listed") if there and not known else None

        def chosen(path: str | None) -> None:
            if path is not None:
                self._navigate.show_path(path)

        rows = [_file_row(path) for path in state.files]
        picker = PickerScreen(self._services, "Open a file", rows, typed=typed)
        self._services.open_screen(picker, chosen)

    def theme(self) -> None:
        """Choose a theme; moving through the list shows each at once."""
        services = self._services
        before = services.palette.name

        def chosen(name: str | None) -> None:
            services.use_theme(name or before)
            if name is not None:
                self._work.run(lambda: self._save_theme(name))

        from midstream.tui.pages.theme_picker import theme_picker

        services.open_screen(theme_picker(services, "Theme"), chosen)

    async def _save_theme(self, name: str) -> None:
        """Write the theme to the user's settings; where that has no effect, say why."""
        services = self._services
        label, path = services.palettes[name].label, config_path()
        if services.demo is not None:  # nothing of it outlives the demo
            command = f"midstream config theme {name}"
            self._notices.say("info", f"Theme {label} for this demo; {command} keeps it.")
            return
        try:
            await asyncio.to_thread(change_file, path, {("theme",): name})
            resolved = await asyncio.to_thread(
                resolve_settings, services.root, flags=services.flags
            )
        except UserError as error:
            self._notices.say("warning", f"Theme {label} until you quit: {error}")
            return
        if why := resolved["theme"].overruled:
            self._notices.say("warning", f"Theme {label} until you quit: it is saved, but {why}.")
        else:
            services.settings = replace(services.settings, theme=name)
            self._notices.say("info", f"Theme {label}, saved in {tilde(path)}.")

    def palette(self) -> None:
        services, reviewing = self._services, self._state.reviewing
        rows: list[ListRow] = []
        for action in ACTIONS:
            doubled = action.id.endswith(".anywhere") or action.id in ("palette", "choose")
            refused = self._state.read_only and action.id in WRITING
            if action.place is Place.COMPOSER or doubled or refused or not services.keys[action.id]:
                continue
            keys = services.all_keys_for(action.id)
            words = action.help.split(";")[0]
            also = f"{words} {action.also}"
            shown = in_review(words) if reviewing else words
            right = ((f"  {keys}", "muted"),)
            rows.append(ListRow(action.id, ((shown, "foreground"),), right, also=also))
        for one in SETTINGS:
            name = (f"Setting {one.label}", "foreground")
            value = f"setting {one.name}"
            right = (("  settings", "muted"),)
            rows.append(ListRow(value, (name,), right, also=one.also, later=True))

        async def chosen(action_id: str | None) -> None:
            if action_id is None:
                return
            if action_id.startswith("setting "):
                self.settings(action_id.removeprefix("setting "))
                return
            if BY_ID[action_id].place is Place.REVIEW and self._state.path:
                self._panes.focus(self._pane)
            await self._perform(action_id)

        services.open_screen(PickerScreen(services, "Run an action", rows), chosen)

    # pages

    def commit(self) -> None:
        from midstream.tui.pages.commit import CommitScreen

        def committed(sentence: str | None) -> None:
            if sentence:
                self._notices.say("info", sentence)
            self._state.refresh()

        self._services.open_screen(CommitScreen(self._services, self._state.session), committed)

    def sessions(self) -> None:
        from midstream.tui.pages.sessions import SessionsScreen

        state = self._state
        self._services.open_screen(SessionsScreen(self._services, state.session, state.forget))

    def settings(self, select: str | None = None) -> None:
        """Open the settings, on one of them."""
        from midstream.tui.pages.settings import SettingsScreen

        self._services.open_screen(SettingsScreen(self._services, select))

    def models(self) -> None:
        from midstream.tui.pages.models import ModelsScreen

        page = ModelsScreen(self._services, self._state.session)
        self._introduced()
        self._services.open_screen(page)

    def _introduced(self) -> None:
        """What the built-in model is for was read."""
        if (session := self._state.opened) is not None:
            self._work.run(session.introduction.done)

    def telemetry(self) -> None:
        from midstream.tui.telemetry.page import TelemetryScreen, first_model

        model = first_model(self._services.settings)
        self._services.open_screen(TelemetryScreen(self._services, self._state.session, model))

    def help(self) -> None:
        services = self._services
        topics = review_topics(
            services.keys,
            composing=self._panes.composing,
            reviewing=self._state.reviewing,
            read_only=self._state.read_only,
        )
        found = (settings_topic(services.key_for("settings")),)
        services.open_screen(HelpScreen(services.palette, services.glyphs, topics, found))

    # panes

    def pace(self) -> None:
        """Switch between a pace to read along and full speed, from the next answer on."""
        from midstream.demo import READING_PACE

        services, session = self._services, self._state.session
        if services.settings.profile is not None or services.given_endpoint:
            raise NotNowError("Only the built-in model can be slowed down.")
        pace = None if services.settings.pace else READING_PACE
        services.use_pace(pace)
        speed = "at full speed" if pace is None else "slowly enough to read along"
        key = services.key_for("pace")
        self._notices.say("info", f"The next answer comes {speed}; {key} switches back.")
        if not self._state.running:
            self._work.run(session.server.ready)

    def suggestions(self) -> None:
        if self._services.demo is None and not self._state.suggested:
            raise NotNowError("Nothing to suggest here; midstream demo has examples.")
        self._state.examples_hidden = not self._state.examples_hidden
        self._state.refresh()

    def rail(self) -> None:
        panes, rail = self._panes, self._panes.rail
        wide = panes.screen.has_class("-wide")
        if rail.display and (rail.has_focus or not wide):
            rail.display = False
            panes.screen.remove_class("-rail-open")
            panes.focus(self._pane)
        else:
            panes.screen.set_class(not wide, "-rail-open")
            rail.display = True
            self._state.refresh()
            rail.show(rail.rows, select=self._state.path)
            panes.focus(rail)
        self._state.refresh()

    def next_pane(self) -> None:
        """Next pane; in a list of mentions, take one."""
        if not self._panes.composer.complete():
            self._cycle(1)

    def previous_pane(self) -> None:
        self._cycle(-1)

    def _cycle(self, step: int) -> None:
        panes = self._panes
        stops: list[Widget] = [panes.composer.field]
        if panes.code.display:
            stops.insert(0, self._pane)
        if panes.rail.display:
            stops.append(panes.rail)
        if panes.conversation is not None:
            stops.append(panes.conversation)
        here = next((i for i, stop in enumerate(stops) if stop.has_focus), 0)
        panes.focus(stops[(here + step) % len(stops)])

    def close(self) -> None:
        """Close what is open, the innermost first; never stops or sends anything."""
        panes = self._panes
        if panes.notice.is_shown:
            self._notices.clear()
        elif self._pane.mark is not None:
            self._pane.unmark()
        elif self._state.finder is not None:
            self._navigate.find("")
        elif panes.rail_over_code:
            self.rail()
        elif panes.rail.has_focus or panes.conversing:
            panes.focus(self._pane)
        else:
            self._introduced()
        self._state.refresh()

    # the program

    def repaint(self) -> None:
        self._services.repaint()

    def quit(self) -> None:
        self._services.quit()

    def quit_twice(self) -> None:
        """Quit at the second press: a stray letter must not end anything."""
        self._services.quit_if_repeated(self._services.key_for("quit.twice"))

    def suspend(self) -> None:
        if hasattr(signal, "SIGTSTP"):
            self._services.suspend_to_shell()
        else:
            self._notices.say("info", "Windows cannot suspend a program.")


def _file_row(path: str, note: str = "") -> ListRow:
    folder, slash, name = visible(path).rpartition("/")
    return ListRow(path, ((folder + slash, "muted"), (name, "foreground")), ((note, "muted"),))
