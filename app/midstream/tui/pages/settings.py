"""The settings page: every setting and endpoint, where its value comes from, and changing it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, cast

from rich.text import Text
from textual import on

from midstream.actions import BY_ID, Place
from midstream.counting import counted
from midstream.errors import UserError
from midstream.resources import config_path, tilde
from midstream.responses.dialect import DIALECTS
from midstream.responses.profiles import BUILT_IN, Profile
from midstream.settings import (
    SETTINGS,
    Kind,
    ResolvedSetting,
    Setting,
    Source,
    change_file,
    check_setting,
    file_text,
    folder_table,
    load_settings,
    resolve_settings,
    write_file,
)
from midstream.settings.endpoints import ENDPOINT_FIELDS, FIELD_BY_KEY, EndpointField
from midstream.tui.fuzzy import has_words
from midstream.tui.keymap import (
    clashes,
    keys_of,
    left_without,
    own_keys,
    page_bindings,
    preset_in_words,
)
from midstream.tui.pages.page import PageScreen, fitted
from midstream.tui.pages.picker import PickerScreen
from midstream.tui.pages.theme_picker import theme_picker
from midstream.tui.services import AppServices
from midstream.tui.visible import visible
from midstream.tui.widgets.fields import EntryRow
from midstream.tui.widgets.key_bar import KeyHint
from midstream.tui.widgets.row_list import ListRow, Piece

KEY_CELLS: Final = 4 + max(len(one.label) for one in SETTINGS)
"""Width of the column with the names, which are behind two cells and before two."""
NEW_ENDPOINT: Final = "+endpoint"
"""Value of the row that adds an endpoint."""
NO_VALUE: Final = "\0none"
"""Value of the choice that removes a setting from the file."""
Taker = Callable[[str], None]
Changes = Mapping[tuple[str, ...], object]


class SettingsScreen(PageScreen):
    """Every setting.

    Attributes:
        resolved: The settings by name; without sources while the file is broken.
        endpoints: The configured endpoints by name.
        trouble: Why the file cannot be read, ``""`` if it can.
        wanted: The letters that are searched for.
    """

    PAGE = Place.SETTINGS
    TITLE_WORDS = "Settings"
    CHOOSE = "settings.change"
    BINDINGS: ClassVar = page_bindings(Place.SETTINGS)

    def __init__(
        self, services: AppServices, select: str | None = None, *, only: bool = False
    ) -> None:
        """Open the page.

        Args:
            services: The application.
            select: The setting with the cursor.
            only: Whether the page is there to change this one, for this folder: it begins with
                that, and closes.
        """
        super().__init__(services)
        self._select = select
        self._only = only
        self.resolved: dict[str, ResolvedSetting] = {}
        self.endpoints: dict[str, Profile] = {}
        self.trouble = ""
        self.wanted = ""
        self._taker: Taker | None = None
        self._endpoint_editor = EndpointEditor(self)

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self._first_read)

    def _first_read(self) -> None:
        self._read()
        self.show_all()
        if self._only:
            self.action_change()

    def _read(self) -> None:
        services = self.services
        self.trouble = ""
        try:
            self.resolved = resolve_settings(services.root, flags=services.flags)
        except UserError as error:
            # The program still runs with what was read before the file was broken.
            self.trouble = str(error)
            self.resolved = {
                one.name: ResolvedSetting(
                    one, ((Source.DEFAULT, "", getattr(services.settings, one.name)),)
                )
                for one in SETTINGS
            }
            self.notices.say("error", self.trouble)
        self.endpoints = {profile.name: profile for profile in services.settings.endpoints}

    # the list

    def show_all(self) -> None:
        if not self.is_mounted or not self.resolved:
            return
        path = config_path()
        own = sum(one.source is not Source.DEFAULT for one in self.resolved.values())
        changed = (
            f"{own} changed" if own else "",
            counted(len(self.endpoints), "endpoint") if self.endpoints else "",
        )
        self.title_row.show(
            (tilde(path), "foreground"),
            ("" if path.exists() else "not created yet", "muted"),
            (", ".join(filter(None, changed)) or ("as shipped" if path.exists() else ""), "muted"),
        )
        groups: dict[str, list[ListRow]] = {}
        for setting in SETTINGS:
            if self._matches(setting.key, setting.help, setting.section, setting.also):
                row = self._setting_row(self.resolved[setting.name])
                groups.setdefault(setting.section, []).append(row)
        endpoints = [
            self._endpoint_row(profile)
            for profile in self.endpoints.values()
            if self._matches(f"endpoints.{profile.name}", profile.model, profile.kind)
        ]
        if endpoints or self._matches("endpoints", "new endpoint", "api key provider login"):
            new = ListRow(NEW_ENDPOINT, (("  new endpoint", "muted"),))
            groups["Endpoints"] = [*endpoints, new]
        # Blank lines between the groups where there is room.
        airy = self.list.size.height > len(SETTINGS) + len(self.endpoints) + 12
        rows: list[ListRow] = []
        for heading, found in groups.items():
            if rows and airy:
                rows.append(ListRow(None, ()))
            rows += [ListRow(None, ((f" {heading}", "muted!"),)), *found]
        self.list.show(rows, select=self._select)
        self._select = None
        if not rows and self.wanted:
            self.notice.show("info", f'No setting contains "{self.wanted}"; Esc shows all.')
        self.show_detail()
        self.show_keys()

    def _matches(self, *texts: str) -> bool:
        found = any(self.wanted in text.lower() for text in texts)
        return found or has_words(self.wanted, *texts)

    def _setting_row(self, one: ResolvedSetting) -> ListRow:
        shipped = one.source is Source.DEFAULT
        left: tuple[Piece, ...] = (
            (fitted(f"  {one.setting.label}", KEY_CELLS, self.glyphs), "foreground"),
            (visible(one.setting.format(one.value)), "muted" if shipped else "accent"),
        )
        return ListRow(one.setting.name, left, ((f"  {'' if shipped else one.source}", "muted"),))

    def _endpoint_row(self, profile: Profile) -> ListRow:
        key = fitted(f"  {profile.name}", KEY_CELLS, self.glyphs)
        model = visible(profile.model or "its own model")
        used = self.services.settings.endpoint == profile.name
        return ListRow(
            f"endpoints.{profile.name}",
            ((key, "foreground"), (model, "accent" if used else "foreground")),
            ((f"  {'in use' if used else profile.kind}", "muted"),),
        )

    @property
    def _setting(self) -> ResolvedSetting | None:
        """The setting under the cursor."""
        return self.resolved.get(self.list.value or "")

    @property
    def _endpoint(self) -> Profile | None:
        """The endpoint under the cursor."""
        return self.endpoints.get((self.list.value or "").removeprefix("endpoints."))

    def hidden_hints(self) -> frozenset[str]:
        if self.list.value is None:
            return frozenset({"settings.change", "settings.reset"})
        setting = self._setting
        own = self._endpoint is not None if setting is None else setting.in_user_file
        return frozenset() if own else frozenset({"settings.reset"})

    def hint_words(self) -> dict[str, str]:
        words = {"settings.find": "all"} if self.wanted else {}
        if self._setting is not None:
            verbs = {Kind.BOOLEAN: "switch", Kind.CHOICE: "choose"}
            words["settings.change"] = verbs.get(self._setting.setting.type.kind, "type")
        elif self.list.value == NEW_ENDPOINT:
            words["settings.change"] = "add one"
        return words

    # details

    def show_detail(self) -> None:
        text, title = Text(no_wrap=False, overflow="fold"), ""
        if self._setting is not None:
            title = self._setting.setting.label
            self._describe_setting(text, self._setting)
        elif self._endpoint is not None:
            title = f"endpoints.{self._endpoint.name}"
            self._describe_endpoint(text, self._endpoint)
        elif self.list.value == NEW_ENDPOINT:
            title = "A new endpoint"
            text.append(
                f"A model server: {', '.join(DIALECTS)}. It gets a name and a table in your "
                "file. Keys stay in the environment or in the system's keyring.",
                self.palette.style("foreground"),
            )
        self.detail.show(text, title)

    def _describe_setting(self, text: Text, one: ResolvedSetting) -> None:
        palette, setting = self.palette, one.setting
        muted, plain = palette.style("muted"), palette.style("foreground")
        text.append(f"{setting.help}\n\n", plain)
        if setting.type.kind is Kind.TABLE and one.value:
            for name, words in cast("tuple[tuple[str, str], ...]", one.value):
                text.append(f"  {visible(name)} = {visible(words)}\n", plain)
            text.append("\n")
        for step in () if self.trouble else one.steps:
            source, where, value = step
            last = step is one.steps[-1]
            # The path of the user's file is in the title row already.
            path = str(config_path())
            place = where.replace(f"{path}: ", "").replace(path, "").strip()
            text.append(f"{self.glyphs.cursor} " if last else "  ", palette.style("accent"))
            text.append(visible(setting.format(value)), plain if last else muted)
            text.append(f"  {visible(', '.join(filter(None, (source, place))))}\n", muted)
        if setting.type.choices:
            text.append("\nOne of ", muted)
            text.append(f"{', '.join(setting.type.choices)}\n", plain)
        text.append("\n")
        facts = (
            ("in the file", setting.toml(one.value)),
            ("environment", setting.variable),
            ("takes effect", "at once" if setting.at_once else "at the next start"),
        )
        self.tell_facts(text, (fact for fact in facts if fact[1]), 12)

    def _describe_endpoint(self, text: Text, profile: Profile) -> None:
        price = profile.price
        key = "none needed"
        if profile.key_env is not None:
            key = f"{profile.key_env}, {'set' if os.environ.get(profile.key_env) else 'not set'}"
        elif profile.keyring is not None:
            key = f"keyring {profile.keyring}"
        facts = {
            "kind": profile.kind,
            "url": profile.url,
            "model": profile.model or "not named",
            "key": key,
            "edit format": profile.edit_format or "the server's",
            "context": f"{profile.context:,} tokens" if profile.context else "unknown",
            "price": f"${price.input:g} in, ${price.output:g} out per million tokens"
            if price
            else "unknown",
            "effort": ", ".join(profile.efforts) or "unknown",
        }
        self.tell_facts(text, facts.items(), 12)

    # the text field

    def ask_text(
        self, label: str, text: str, placeholder: str, taker: Taker, *, enter: str = "save"
    ) -> None:
        """Ask for a text.

        Args:
            label: What is asked for.
            text: What the field begins with.
            placeholder: What an empty field shows.
            taker: Called with the text on Enter; calls ``close_entry`` once it accepts it.
            enter: What Enter does, for the key bar.
        """
        self._taker = taker
        hints = (KeyHint("enter", enter),)
        self.entry.open(text, label=label, placeholder=placeholder, hints=hints)
        self.show_keys()

    def close_entry(self) -> None:
        """Close the text field: its text was accepted."""
        self._taker = None
        self.entry.shut()
        self.set_focus(self.list)

    def leave_entry(self) -> None:
        """Close the text field; a search ends, a value stays as it was."""
        if self._taker is None:
            self._find("")
        self._taker = None
        super().leave_entry()
        if self._only:
            self.dismiss(None)

    @on(EntryRow.Given)
    def _entered(self, event: EntryRow.Given) -> None:
        event.stop()
        if self._taker is not None:
            self._taker(event.text)
        else:
            self.close_entry()
            self.show_keys()

    @on(EntryRow.Typed)
    def _typed(self, event: EntryRow.Typed) -> None:
        event.stop()
        if self._taker is None:
            self._find(event.text)

    def action_find(self) -> None:
        """Search, or with a search on, show everything again."""
        if self.wanted:
            self._find("")
            return
        self._taker = None
        hint = "part of a name or description; Esc ends the search"
        hints = (KeyHint("enter", "keep the matches"),)
        self.entry.open("", label="Find", placeholder=hint, hints=hints)
        self.show_keys()

    def _find(self, text: str) -> None:
        self.wanted = text.strip().lower()
        self.notices.clear()
        self.show_all()

    def action_close(self) -> None:
        """Close the innermost thing that is open; a search is one."""
        if self.wanted and not self.entry.is_open:
            self._find("")
        else:
            super().action_close()

    # changing a setting

    def action_change(self) -> None:
        if self.trouble:
            self.notices.say("error", self.trouble)
        elif self._setting is not None:
            self._change(self._setting)
        elif self._endpoint is not None:
            self._endpoint_editor.change(self._endpoint)
        elif self.list.value == NEW_ENDPOINT:
            self._endpoint_editor.add()

    def action_file(self) -> None:
        """Edit the whole file in the user's own editor."""
        path = config_path()

        async def work() -> None:
            text = await asyncio.to_thread(file_text, path)
            edited = await self.services.edit_outside(text, path.name)
            if edited != text:
                await asyncio.to_thread(write_file, path, edited)
                await self._reload()
                self.notices.say("info", f"{tilde(path)} is saved and read again.")

        self.work.run(work)

    def action_reset(self) -> None:
        if self.trouble:
            self.notices.say("error", self.trouble)
        elif self._setting is not None:
            self._reset(self._setting)
        elif self._endpoint is not None:
            self._endpoint_editor.remove(self._endpoint)

    def _change(self, one: ResolvedSetting) -> None:
        setting = one.setting
        if setting.type.kind is Kind.BOOLEAN:
            self._save(setting, not one.value)
        elif setting.type.kind is Kind.CHOICE:
            self._choose(one)
        elif setting.name == "key_binds":
            self._choose_action()
        elif setting.name == "guard_levels":
            hint = "S608 = warn; a rule without a level is removed"
            self.ask_text("Rule and level", "", hint, self._take_rule)
        else:
            text = "" if one.value in (None, "") else setting.format(one.value)
            hint = "" if setting.none == "none" else f"{setting.none}; "
            self.ask_text(
                f"{setting.key} for this folder" if self._only else setting.key,
                text,
                f"{hint}empty removes it from your file",
                lambda typed: self._take_value(setting, typed),
            )

    def _take_value(self, setting: Setting, typed: str) -> None:
        value = setting.type.parse(typed) if typed.strip() else None
        try:
            if value is not None:
                check_setting(setting.name, value, setting.key)
        except UserError as error:
            self.notices.say("error", str(error))
            return
        self.close_entry()
        self._save(setting, value)

    def _choose(self, one: ResolvedSetting) -> None:
        setting, services = one.setting, self.services
        is_theme = setting.name == "theme"
        if setting.name == "endpoint":
            choices = {p.name: (p.name, f"{p.model} {p.kind}") for p in self.endpoints.values()}
            if not choices:
                self.notices.say("info", "No endpoint yet; the last row of this page adds one.")
                return
        else:
            are_presets = setting.name == "keys"
            choices = {
                name: (name, preset_in_words(name) if are_presets else "")
                for name in setting.type.choices
            }
        rows = [
            ListRow(name, ((label, "foreground"),), ((f"  {about}", "muted"),) if about else ())
            for name, (label, about) in choices.items()
        ]
        none = (ListRow(NO_VALUE, ((setting.none, "muted"),)),) if setting.default is None else ()
        before = services.palette.name

        def chosen(value: str | None) -> None:
            if is_theme and value in (None, NO_VALUE):
                services.use_theme(before)
            if value == NO_VALUE:
                self._reset(one)
            elif value is not None:
                self._save(setting, value)

        if is_theme:
            picker = theme_picker(services, setting.key, first=none)
        else:
            current = str(one.value) if one.value else None
            picker = PickerScreen(services, setting.key, (*none, *rows), select=current)
        services.open_screen(picker, chosen)

    def _choose_action(self) -> None:
        services = self.services
        own = dict(services.settings.key_binds)
        rows = [
            ListRow(
                action.id,
                (
                    (f"{action.id}  ", "accent" if action.id in own else "foreground"),
                    (action.help.split(";")[0], "muted"),
                ),
                ((f"  {services.all_keys_for(action.id)}", "foreground"),),
            )
            for action in BY_ID.values()
        ]

        def chosen(action_id: str | None) -> None:
            if action_id is not None:
                self.ask_text(
                    f"Keys for {action_id}",
                    own.get(action_id, services.all_keys_for(action_id).replace(" ", ",")),
                    "such as a,ctrl+y; empty goes back to the preset's keys",
                    lambda typed: self._bind(action_id, typed.strip()),
                )

        picker = PickerScreen(self.services, "Keys for which action", rows)
        services.open_screen(picker, chosen)

    def _bind(self, action_id: str, text: str) -> None:
        keys, wrong = own_keys([(action_id, text)])
        if wrong:
            self.notices.say("error", " ".join(wrong))
            return
        self.close_entry()
        path = ("keys", "bind", action_id)
        if not text:
            self.write({path: None}, f"{action_id} has the preset's keys again.")
            return
        former, _ = own_keys(self.services.settings.key_binds)
        preset, now = self.services.settings.keys, {**former, **keys}
        trouble = [
            sentence
            for sentence in (*left_without(preset, now), *clashes(keys_of(preset, now)))
            if f'"{action_id}"' in sentence
        ]
        self.write({path: text}, f"{action_id} is now {text}.", warning=" ".join(trouble))

    def _take_rule(self, typed: str) -> None:
        rule, _, level = (part.strip() for part in typed.partition("="))
        try:
            if not rule:
                raise UserError("Type a rule and its level, such as S608 = warn.")
            check_setting("guard_levels", {rule: level or "warn"}, "guard")
        except UserError as error:
            self.notices.say("error", str(error))
            return
        self.close_entry()
        words = level or "as shipped"
        self.write({("guard", rule): level or None}, f"{rule} is {words} from the next start.")

    def _reset(self, one: ResolvedSetting) -> None:
        if not one.in_user_file:
            self.notices.say("info", f"{one.setting.key} is not in your file.")
        elif one.setting.type.kind is Kind.TABLE:
            self.notices.say("info", "Enter edits an entry; an empty text removes it.")
        else:
            self._save(one.setting, None)

    def _save(self, setting: Setting, value: object) -> None:
        """Write a setting, or remove it with ``None``."""
        when = "now" if setting.at_once else "from the next start"
        if value is None:
            words = f"{setting.key} is removed from your file; the earlier value applies {when}."
        else:
            words = f"{setting.key} is {setting.format(value)} {when}."
        path = setting.path
        if self._only:
            path = *folder_table(config_path(), self.services.root), *path
        self.write({path: value}, words, setting)

    async def _reload(self) -> None:
        """Read the file again, and apply what can take effect at once."""
        settings = await asyncio.to_thread(load_settings, self.services.root)
        self.services.apply(settings)
        self._read()
        self.show_all()

    def write(
        self,
        changes: Changes,
        sentence: str,
        setting: Setting | None = None,
        *,
        warning: str = "",
    ) -> None:
        """Change the user's file and apply what can take effect at once.

        Args:
            changes: See ``change_file``.
            sentence: The notice once it is done.
            setting: The setting; another place that wins over the file is said instead.
            warning: What to say instead, as a warning.
        """

        async def run() -> None:
            await asyncio.to_thread(change_file, config_path(), changes)
            await self._reload()
            overruled = ""
            if setting is not None:
                one = self.resolved[setting.name]
                overruled = "" if self._only and one.source is Source.FOLDER else one.overruled
            said = warning or (f"Written, but {overruled}." if overruled else "")
            if self._only and not said:
                self.dismiss(None)
            else:
                self.notices.say("warning" if said else "info", said or sentence)

        self.work.run(run)


class EndpointEditor:
    """Adds, changes and removes endpoints on the settings page."""

    def __init__(self, page: SettingsScreen) -> None:
        self._page = page

    def change(self, profile: Profile) -> None:
        """Choose a field of an endpoint and change it."""
        page = self._page
        rows = [
            ListRow(
                field.key,
                ((f"{field.key:<14}", "foreground"), (field.help, "muted")),
                ((f"  {field.format(profile)}", "accent"),),
            )
            for field in ENDPOINT_FIELDS
        ]

        def chosen(key: str | None) -> None:
            if key is not None:
                self._change_field(profile, FIELD_BY_KEY[key])

        picker = PickerScreen(page.services, f"endpoints.{profile.name}", rows)
        page.services.open_screen(picker, chosen)

    def _change_field(self, profile: Profile, field: EndpointField) -> None:
        page = self._page
        path = ("endpoints", profile.name, field.key)
        label, now = ".".join(path), field.format(profile)
        if field.type.kind is Kind.CHOICE:
            rows = [ListRow(value, ((f" {value}", "foreground"),)) for value in field.type.choices]

            def chosen(value: str | None) -> None:
                if value is not None:
                    page.write({path: value}, f"{label} is now {value}.")

            picker = PickerScreen(page.services, label, rows, select=now or None)
            page.services.open_screen(picker, chosen)
            return

        def take(typed: str) -> None:
            text = typed.strip()
            page.close_entry()
            words = f"is now {text}" if text else "is removed"
            page.write({path: field.type.parse(text) if text else None}, f"{label} {words}.")

        page.ask_text(label, now, f"{field.help}; empty removes it", take)

    def add(self) -> None:
        """Ask for name, kind, address and model of a new endpoint, then write it."""
        page = self._page
        given: dict[str, str] = {}

        def take_name(text: str) -> None:
            name = text.strip()
            if not name or "://" in name or name == BUILT_IN or name in page.endpoints:
                page.notices.say("error", "Give it a unique name, such as work or openai.")
                return
            given["name"] = name
            page.close_entry()
            rows = [
                ListRow(kind, ((f" {kind:<11}", "foreground"), (facts.url or "any URL", "muted")))
                for kind, facts in DIALECTS.items()
            ]
            picker = PickerScreen(page.services, "What kind of endpoint", rows)
            page.services.open_screen(picker, take_kind)

        def take_kind(kind: str | None) -> None:
            if kind is not None:
                given["kind"] = kind
                url = next(facts.url for name, facts in DIALECTS.items() if name == kind)
                hint = "up to and including the version" if url else "https://HOST/v1"
                page.ask_text("Address", url, hint, take_url, enter="next")

        def take_url(text: str) -> None:
            given["url"] = text.strip()
            try:
                check_setting("endpoint_url", given["url"], "url")
            except UserError as error:
                page.notices.say("error", str(error))
                return
            hint = "the model to request; empty leaves it to the server"
            page.ask_text("Model", "", hint, take_model, enter="add it")

        def take_model(text: str) -> None:
            page.close_entry()
            name = given.pop("name")
            table = {**given, "model": text.strip() or None}
            # All at once: an endpoint without an address would be refused.
            changes = {("endpoints", name, key): value for key, value in table.items()}
            page.write(changes, f"Endpoint {name} is added; M uses it.")

        page.ask_text(
            "Name of the endpoint", "", "such as work, openai, desk", take_name, enter="next"
        )

    def remove(self, profile: Profile) -> None:
        """Remove an endpoint from the file, after a question."""
        page, name = self._page, profile.name
        if page.services.settings.endpoint == name:
            page.notices.say("warning", f"The endpoint {name} is in use; choose another one first.")
            return
        page.notices.ask(
            f"Remove the endpoint {name} from your file?",
            (
                "remove it",
                lambda: page.write({("endpoints", name): None}, f"Endpoint {name} is removed."),
            ),
            ("keep it", page.notices.clear),
        )
