"""The settings page: every setting, its value, where that comes from, and what it does.

Changing them is ``settings_edit``'s part; both read and write through ``configuring`` and
``config_file``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on

from midstream.configuring import SPECS, Spec, Traced, as_toml, spelled, trace
from midstream.errors import UserError
from midstream.resources import tilde
from midstream.responses.dialect import DIALECTS
from midstream.responses.profiles import Profile
from midstream.settings import Source, config_path
from midstream.tui.glyphs import Glyphs
from midstream.tui.page_keys import Page, page_bindings
from midstream.tui.screens.page import EntryBar, fitted
from midstream.tui.screens.settings_edit import NEW_ENDPOINT, SettingsEdit
from midstream.tui.themes import Palette
from midstream.tui.visible import visible
from midstream.tui.widgets.row_list import ListRow, Piece

KEY_CELLS = 22
"""Width of the column with the names."""
_FIELDS = ("kind", "url", "model", "key", "edit format", "context", "price", "effort")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the list: a setting, an endpoint, or making a new endpoint."""

    spec: Spec | None = None
    endpoint: str = ""


class SettingsScreen(SettingsEdit):
    """Every setting."""

    PAGE = Page.SETTINGS
    TITLE_WORDS = "Settings"
    BINDINGS: ClassVar = page_bindings(Page.SETTINGS)

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, glyphs)
        self.endpoints: dict[str, Profile] = {}
        self.trouble = ""

    def on_mount(self) -> None:
        """Read the files."""
        super().on_mount()
        self.call_after_refresh(self._first_read)

    def _first_read(self) -> None:
        self.read()
        self.show_all()

    def read(self) -> None:
        """Read every place again."""
        program = self.program
        try:
            traced = trace(program.root, flags=program.flags)
        except UserError as error:
            # What holds was read before somebody broke the file.
            self.trouble = str(error)
            traced = [
                Traced(spec, getattr(program.settings, spec.name), Source.DEFAULT, "", ())
                for spec in SPECS
            ]
            self.say("error", self.trouble)
        else:
            self.trouble = ""
        self.traced = {item.spec.name: item for item in traced}
        self.endpoints = {profile.name: profile for profile in program.settings.endpoints}

    # showing

    def show_all(self) -> None:
        """The list and the setting under the cursor."""
        if not self.is_mounted or not self.traced:
            return
        path = tilde(config_path())
        own = sum(item.source is not Source.DEFAULT for item in self.traced.values())
        there = "" if config_path().exists() else "not there yet"
        self.title_row.show(
            (path, "foreground"),
            (there, "muted"),
            (f"{own} changed" if own else "as shipped", "muted"),
        )
        rows: list[ListRow] = []
        # Where there is room, the groups stand apart.
        airy = self.list.size.height > len(SPECS) + len(self.endpoints) + 12
        for group in dict.fromkeys(spec.group for spec in SPECS):
            found = [
                self._row(self.traced[spec.name])
                for spec in SPECS
                if spec.group == group and self.fits(spec.key, spec.help, group)
            ]
            if found and rows and airy:
                rows.append(ListRow(None, ()))
            if found:
                rows.append(ListRow(None, ((f" {group}", "muted"),)))
            rows += found
        endpoints = [
            self._endpoint_row(profile)
            for profile in self.endpoints.values()
            if self.fits(f"endpoints.{profile.name}", profile.model, profile.kind)
        ]
        if endpoints or self.fits("endpoints", "new endpoint", ""):
            if rows and airy:
                rows.append(ListRow(None, ()))
            rows.append(ListRow(None, ((" Endpoints", "muted"),)))
            rows += endpoints
            rows.append(ListRow(NEW_ENDPOINT, (("  new endpoint", "muted"),)))
        self.list.show(rows)
        if not rows and self.wanted:
            self.notice.show("info", f'No setting has "{self.wanted}" in it; esc shows all.')
        self.show_detail()
        self.show_keys()

    def _row(self, item: Traced) -> ListRow:
        spec = item.spec
        own = item.source is not Source.DEFAULT
        key = fitted(f"  {spec.key}{'.*' if spec.kind == 'table' else ''}", KEY_CELLS, self.glyphs)
        value = visible(spelled(spec, item.value))
        left: tuple[Piece, ...] = (
            (key, "foreground"),
            (value, "accent" if own else "muted"),
        )
        source = "" if item.source is Source.DEFAULT else str(item.source)
        return ListRow(spec.name, left, ((f"  {source}", "muted"),))

    def _endpoint_row(self, profile: Profile) -> ListRow:
        key = fitted(f"  {profile.name}", KEY_CELLS, self.glyphs)
        model = visible(profile.model or "its own model")
        used = self.program.settings.endpoint == profile.name
        return ListRow(
            f"endpoints.{profile.name}",
            ((key, "foreground"), (model, "accent" if used else "foreground")),
            ((f"  {'in use' if used else profile.kind}", "muted"),),
        )

    @property
    def row(self) -> Row | None:
        """What is under the cursor."""
        value = self.list.value
        if value is None:
            return None
        if value.startswith("endpoints.") or value == NEW_ENDPOINT:
            return Row(endpoint=value.removeprefix("endpoints."))
        return Row(spec=self.traced[value].spec)

    def show_detail(self) -> None:
        """What the row under the cursor is about."""
        row = self.row
        text = Text(no_wrap=False, overflow="fold")
        if row is None:
            pass
        elif row.spec is not None:
            self._tell_setting(text, self.traced[row.spec.name])
        elif row.endpoint in self.endpoints:
            self._tell_endpoint(text, self.endpoints[row.endpoint])
        else:
            text.append("A new endpoint\n", self.palette.style("accent", bold=True))
            text.append(
                "\nA server that speaks the Responses API: "
                f"{', '.join(DIALECTS)}. It gets a name, and a table of its own in your file. Keys "
                "stay in the environment or in the system's keyring.",
                self.palette.style("foreground"),
            )
        self.detail.show(text)

    def _tell_setting(self, text: Text, item: Traced) -> None:
        palette, spec = self.palette, item.spec
        muted, plain = palette.style("muted"), palette.style("foreground")
        text.append(f"{spec.key}\n", palette.style("accent", bold=True))
        text.append(f"{spec.help}\n\n", plain)
        if spec.kind == "table":
            pairs: tuple[tuple[str, str], ...] = item.value  # type: ignore[assignment]
            for name, words in pairs:
                text.append(f"  {visible(name)} = {visible(words)}\n", plain)
            if pairs:
                text.append("\n")
        for number, (source, where, value) in enumerate(item.steps):
            last = number == len(item.steps) - 1
            words = visible(spelled(spec, value))
            place = ", ".join(filter(None, (str(source), _short(where))))
            text.append("  " if not last else f"{self.glyphs.cursor} ", palette.style("accent"))
            text.append(words, plain if last else muted)
            text.append(f"  {visible(place)}\n", muted)
        if spec.choices:
            text.append("\nOne of ", muted)
            text.append(", ".join(spec.choices), plain)
            text.append("\n")
        if spec.name == "key_binds":
            example = '[keys.bind] "hunk.accept" = "a,y"'
        elif spec.name == "guard_levels":
            example = '[guard] S608 = "warn"'
        else:
            value = item.value if item.value not in (None, "") else _example(spec)
            example = as_toml(spec, value)
        text.append("\n")
        holds = "at once" if spec.at_once else "from the next start"
        facts = (("in the file", example), ("environment", spec.variable), ("holds", holds))
        self.tell_facts(text, (fact for fact in facts if fact[1]), 12)

    def _tell_endpoint(self, text: Text, profile: Profile) -> None:
        palette = self.palette
        text.append(f"endpoints.{visible(profile.name)}\n\n", palette.style("accent", bold=True))
        price = profile.price
        values = (
            profile.kind,
            profile.url,
            profile.model or "not named",
            _key_words(profile),
            profile.edit_format or "the server's",
            f"{profile.context:,} tokens" if profile.context else "unknown",
            f"${price.input:g} in, ${price.output:g} out per million" if price else "unknown",
            ", ".join(profile.efforts) or "unknown",
        )
        self.tell_facts(text, zip(_FIELDS, values, strict=True), 12)

    def hidden_hints(self) -> frozenset[str]:
        """Only what is in the person's file can be taken out of it."""
        row = self.row
        if row is None:
            return frozenset({"settings.change", "settings.reset"})
        own = row.endpoint in self.endpoints
        if row.spec is not None:
            own = any(source is Source.USER for source, _, _ in self.traced[row.spec.name].steps)
        return frozenset() if own else frozenset({"settings.reset"})

    def hint_words(self) -> dict[str, str]:
        """What changing means for this row."""
        row = self.row
        words = {"settings.find": "all"} if self.wanted else {}
        if row is not None and row.spec is not None:
            kind = str(row.spec.kind)
            words["settings.change"] = {"boolean": "switch", "choice": "choose"}.get(kind, "type")
        elif row is not None and row.endpoint not in self.endpoints:
            words["settings.change"] = "make one"
        return words

    @on(EntryBar.Given)
    def _given(self, event: EntryBar.Given) -> None:
        event.stop()
        self.take(event.text)

    @on(EntryBar.Typed)
    def _typed(self, event: EntryBar.Typed) -> None:
        event.stop()
        self.typed(event.text)

    def action_change(self) -> None:
        """Change what is under the cursor."""
        row = self.row
        if self.trouble:
            self.say("error", self.trouble)
        elif row is None:
            return
        elif row.spec is not None:
            self.change(self.traced[row.spec.name])
        elif row.endpoint in self.endpoints:
            self.change_endpoint(self.endpoints[row.endpoint])
        else:
            self.new_endpoint()

    def action_reset(self) -> None:
        """Take what is under the cursor out of the person's file."""
        row = self.row
        if self.trouble:
            self.say("error", self.trouble)
        elif row is None:
            return
        elif row.spec is not None:
            self.reset(self.traced[row.spec.name])
        elif row.endpoint in self.endpoints:
            self.drop_endpoint(self.endpoints[row.endpoint])


def _key_words(profile: Profile) -> str:
    if profile.key_env is not None:
        there = "set" if os.environ.get(profile.key_env) else "not set"
        return f"{profile.key_env}, {there}"
    return f"keyring {profile.keyring}" if profile.keyring is not None else "none needed"


def _example(spec: Spec) -> object:
    given: dict[str, object] = {
        "threads": 4,
        "pace": 40,
        "pacing": "gpu",
        "theme": "paper",
        "model": "~/models/mine",
        "endpoint_url": "wss://api.openai.com/v1",
    }
    return given.get(spec.name, "NAME")


def _short(where: str) -> str:
    """A place without the path that stands in the title already."""
    return where.replace(f"{config_path()}: ", "").replace(str(config_path()), "").strip()
