"""Changing settings: switching, choosing, typing; what is typed is checked before it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from midstream.config_file import remove_value, set_value
from midstream.configuring import Kind, Spec, Traced, overruled, spelled
from midstream.endpoint_tables import EDIT_FORMATS
from midstream.errors import UserError
from midstream.responses.dialect import DIALECTS
from midstream.responses.profiles import Profile
from midstream.settings import Source, checked, config_path, load_settings
from midstream.tui.glyphs import Glyphs
from midstream.tui.keymap import ACTIONS, clashes, keys_of, left_without
from midstream.tui.own_keys import own_keys
from midstream.tui.page_keys import PAGE_ACTIONS
from midstream.tui.screens.page import PageScreen
from midstream.tui.screens.picker import PickerScreen
from midstream.tui.themes import Palette
from midstream.tui.widgets.row_list import ListRow

NEW_ENDPOINT: Final = "+endpoint"
"""Value of the row that makes a new endpoint."""
NO_VALUE: Final = "\0none"
"""Value of the choice that takes a setting out of the file."""
ENDPOINT_FIELDS: Final = {
    "kind": "whose endpoint it is",
    "url": "address up to and including the version",
    "model": "model to ask for",
    "key_env": "environment variable that holds the key",
    "keyring": "service under which the system's keyring holds the key",
    "edit_format": "how the model is asked to write edits",
    "context": "tokens that the model reads and writes at most",
    "price_in": "dollars per million input tokens",
    "price_out": "dollars per million output tokens",
    "price_cached": "dollars per million cached input tokens",
    "effort": "efforts to offer, such as low, high",
    "transport": "how it is spoken to",
}
_CHOICES: Final = {
    "kind": tuple(DIALECTS),
    "edit_format": EDIT_FORMATS,
    "transport": ("auto", "websocket", "sse"),
}
_NUMBERS: Final = ("context", "price_in", "price_out", "price_cached")
Taker = Callable[[str], None]


class SettingsEdit(PageScreen):
    """The editing half of the settings page."""

    def __init__(self, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, glyphs)
        self.wanted = ""
        self.traced: dict[str, Traced] = {}
        self._taker: Taker | None = None

    def read(self) -> None:
        """Read every place again; the page overrides it."""
        raise NotImplementedError

    def fits(self, *texts: str) -> bool:
        """Whether something in a row has the letters that are searched for."""
        return not self.wanted or any(self.wanted in text.lower() for text in texts)

    # finding

    def action_find(self) -> None:
        """Show only some settings; again: all."""
        if self.wanted:
            self._find("")
            return
        self._taker = None
        self.entry.open("Find", "", "letters of a name or of what it does; enter keeps, esc ends")
        self.show_keys()

    def _find(self, text: str) -> None:
        self.wanted = text.strip().lower()
        self.hush()
        self.show_all()

    def typed(self, text: str) -> None:
        """The text field has changed."""
        if self._taker is None:
            self._find(text)

    def take(self, text: str) -> None:
        """The text field was confirmed."""
        if self._taker is None:
            self.entry.shut()
            self.set_focus(self.list)
            self.show_keys()
        else:
            self._taker(text)

    def leave_entry(self) -> None:
        """Close the field; a search ends, a value stays as it was."""
        if self._taker is None:
            self._find("")
        self._taker = None
        super().leave_entry()

    def action_close(self) -> None:
        """A search is the innermost thing that is open."""
        if self.wanted and not self.entry.is_open:
            self._find("")
        else:
            super().action_close()

    # changing a setting

    def change(self, item: Traced) -> None:
        """Switch, choose or type, as the setting is."""
        spec = item.spec
        if spec.kind is Kind.BOOLEAN:
            self.save(spec, _path(spec), not item.value)
        elif spec.kind is Kind.CHOICE:
            self._choose(item)
        elif spec.name == "key_binds":
            self._choose_action()
        elif spec.name == "guard_levels":
            self._ask("Rule and level", "", "S608 = warn; the rule alone takes it out", self._rule)
        else:
            text = "" if item.value in (None, "") else spelled(spec, item.value)
            hint = f"{spec.none}; nothing takes it out of your file" if spec.none else ""
            self._ask(spec.key, text, hint, lambda typed: self._take_value(spec, typed))

    def _ask(self, label: str, text: str, placeholder: str, taker: Taker) -> None:
        self._taker = taker
        self.entry.open(label, text, placeholder)
        self.show_keys()

    def _answered(self) -> None:
        """The field has done its work."""
        self._taker = None
        self.entry.shut()
        self.set_focus(self.list)

    def _choose(self, item: Traced) -> None:
        spec, program = item.spec, self.program
        if spec.name == "theme":
            rows = [
                ListRow(p.name, ((p.label, "foreground"),), ((f"  {p.about}", "muted"),))
                for p in program.palettes.values()
            ]
        elif spec.name == "endpoint":
            rows = [
                ListRow(p.name, ((p.name, "foreground"),), ((f"  {p.model} {p.kind}", "muted"),))
                for p in program.settings.endpoints
            ]
            if not rows:
                self.say("info", "No endpoint is set up yet; the last row of this page makes one.")
                return
        else:
            rows = [ListRow(name, ((name, "foreground"),)) for name in spec.choices]
        if spec.none:
            rows.insert(0, ListRow(NO_VALUE, ((spec.none, "muted"),)))
        before = program.palette.name

        def chosen(value: str | None) -> None:
            if spec.name == "theme" and value in (None, NO_VALUE):
                program.use_theme(before)
            if value == NO_VALUE:
                self.reset(item)
            elif value is not None:
                self.save(spec, _path(spec), value)

        def preview(value: str) -> None:
            if spec.name == "theme" and value != NO_VALUE:
                program.use_theme(value)

        program.push_screen(
            PickerScreen(
                self.palette,
                self.glyphs,
                spec.key,
                rows,
                preview=preview,
                select=str(item.value) if item.value else None,
            ),
            chosen,
        )

    def _take_value(self, spec: Spec, typed: str) -> None:
        text = typed.strip()
        try:
            value = _number(text) if spec.kind is Kind.NUMBER and text else text
            if text:
                checked(spec.name, value, spec.key)
        except UserError as error:
            self.say("error", str(error))
            return
        self._answered()
        if text:
            self.save(spec, _path(spec), value)
        else:
            self._remove(spec, _path(spec))

    # tables

    def _choose_action(self) -> None:
        program = self.program
        own = dict(program.settings.key_binds)
        rows = [
            ListRow(
                action.id,
                (
                    (f"{action.id}  ", "accent" if action.id in own else "foreground"),
                    (action.help.split(";")[0], "muted"),
                ),
                ((f"  {program.all_keys_for(action.id)}", "foreground"),),
            )
            for action in (*ACTIONS, *PAGE_ACTIONS)
        ]

        def chosen(action_id: str | None) -> None:
            if action_id is not None:
                self._ask(
                    f"Keys of {action_id}",
                    own.get(action_id, program.all_keys_for(action_id).replace(" ", ",")),
                    "such as a,ctrl+y; nothing takes your own keys back",
                    lambda typed: self._bind(action_id, typed),
                )

        picker = PickerScreen(self.palette, self.glyphs, "Keys of which action", rows)
        program.push_screen(picker, chosen)

    def _bind(self, action_id: str, typed: str) -> None:
        text = typed.strip()
        keys, wrong = own_keys([(action_id, text)])
        if wrong:
            self.say("error", " ".join(wrong))
            return
        self._answered()
        path = ("keys", "bind", action_id)
        if not text:
            self._write(lambda: remove_value(config_path(), path), f"{action_id} has its own keys")
            return
        former = dict(self.program.settings.key_binds)
        known, _ = own_keys(former.items())
        preset, now = self.program.settings.keys, {**known, **keys}
        trouble = [
            sentence
            for sentence in (*left_without(preset, now), *clashes(keys_of(preset, now)))
            if f'"{action_id}"' in sentence
        ]
        self._write(
            lambda: set_value(config_path(), path, text),
            f"{action_id} is {text} now",
            warning=" ".join(trouble),
        )

    def _rule(self, typed: str) -> None:
        rule, _, level = (part.strip() for part in typed.partition("="))
        try:
            if not rule:
                raise UserError("Write a rule and its level, such as S608 = warn.")
            checked("guard_levels", {rule: level or "warn"}, "guard")
        except UserError as error:
            self.say("error", str(error))
            return
        self._answered()
        path = ("guard", rule)
        if level:
            self._write(
                lambda: set_value(config_path(), path, level),
                f"{rule} is {level} from the next start",
            )
        else:
            self._write(
                lambda: remove_value(config_path(), path),
                f"{rule} is as shipped from the next start",
            )

    # endpoints

    def change_endpoint(self, profile: Profile) -> None:
        """Change one fact of an endpoint."""
        now = _facts(profile)
        rows = [
            ListRow(
                name,
                ((f"{name:<14}", "foreground"), (about, "muted")),
                ((f"  {now[name]}", "accent"),),
            )
            for name, about in ENDPOINT_FIELDS.items()
        ]

        def chosen(field: str | None) -> None:
            if field is not None:
                self._change_fact(profile.name, field, now[field])

        picker = PickerScreen(self.palette, self.glyphs, f"endpoints.{profile.name}", rows)
        self.program.push_screen(picker, chosen)

    def _change_fact(self, name: str, field: str, now: str) -> None:
        path = ("endpoints", name, field)
        label = f"endpoints.{name}.{field}"
        if field in _CHOICES:
            rows = [ListRow(value, ((value, "foreground"),)) for value in _CHOICES[field]]
            picker = PickerScreen(self.palette, self.glyphs, label, rows, select=now or None)

            def chosen(value: str | None) -> None:
                if value is not None:
                    self._write(
                        lambda: set_value(config_path(), path, value), f"{label} is {value} now"
                    )

            self.program.push_screen(picker, chosen)
            return

        def take(typed: str) -> None:
            text = typed.strip()
            try:
                value = _fact(field, text)
            except UserError as error:
                self.say("error", str(error))
                return
            self._answered()
            if text:
                self._write(lambda: set_value(config_path(), path, value), f"{label} is {text} now")
            else:
                self._write(lambda: remove_value(config_path(), path), f"{label} is taken out")

        self._ask(label, now, f"{ENDPOINT_FIELDS[field]}; nothing takes it out", take)

    def new_endpoint(self) -> None:
        """Ask for name, kind, address and model of a new endpoint, and write it."""
        given: dict[str, str] = {}

        def write() -> None:
            self._answered()
            name = given.pop("name")

            def work() -> None:
                # All at once: an endpoint without its address is no endpoint.
                set_value(config_path(), ("endpoints", name), {k: v for k, v in given.items() if v})

            self._write(work, f"The endpoint {name} is there; M uses it")

        def model(text: str) -> None:
            given["model"] = text.strip()
            write()

        def url(text: str) -> None:
            try:
                checked("endpoint_url", text.strip(), "url")
            except UserError as error:
                self.say("error", str(error))
                return
            given["url"] = text.strip()
            self._ask("Model", "", "the model to ask for; nothing leaves it to the server", model)

        def kind(value: str | None) -> None:
            if value is None:
                return
            given["kind"] = value
            default = DIALECTS[cast("Any", value)].url
            if default:
                self._ask("Address", default, "up to and including the version", url)
            else:
                self._ask("Address", "", "https://HOST/v1", url)

        def name(text: str) -> None:
            wanted = text.strip()
            taken = {profile.name for profile in self.program.settings.endpoints}
            if not wanted or "://" in wanted or wanted == "built-in" or wanted in taken:
                self.say("error", "Give it a name of its own, such as work or openai.")
                return
            given["name"] = wanted
            self._answered()
            rows = [
                ListRow(
                    k, ((f"{k:<10}", "foreground"), (d.url or "an address of its own", "muted"))
                )
                for k, d in DIALECTS.items()
            ]
            picker = PickerScreen(self.palette, self.glyphs, "What kind of endpoint", rows)
            self.program.push_screen(picker, kind)

        self._ask("Name of the endpoint", "", "such as work, openai, desk", name)

    def drop_endpoint(self, profile: Profile) -> None:
        """Take an endpoint out of the file, after a question."""
        name = profile.name
        if self.program.settings.endpoint == name:
            self.say("warning", f"The endpoint {name} is in use; choose another one first.")
            return
        self.ask(
            f"Take the endpoint {name} out of your file?",
            (
                "take it out",
                lambda: self._write(
                    lambda: remove_value(config_path(), ("endpoints", name)),
                    f"The endpoint {name} is gone",
                ),
            ),
            ("keep it", self.hush),
        )

    # writing

    def save(self, spec: Spec, path: Sequence[str], value: object) -> None:
        """Write a setting and say from when on it holds."""
        words = spelled(spec, value)
        when = "now" if spec.at_once else "from the next start"
        self._write(
            lambda: set_value(config_path(), path, value), f"{spec.key} is {words} {when}", spec
        )

    def reset(self, item: Traced) -> None:
        """Take a setting out of the person's file."""
        spec = item.spec
        if not any(source is Source.USER for source, _, _ in item.steps):
            self.say("info", f"{spec.key} is not in your file.")
        elif spec.kind is Kind.TABLE:
            self.say("info", "Choose the entry with enter, and give it nothing to take it out.")
        else:
            self._remove(spec, _path(spec))

    def _remove(self, spec: Spec, path: Sequence[str]) -> None:
        when = "now" if spec.at_once else "from the next start"
        self._write(
            lambda: remove_value(config_path(), path),
            f"{spec.key} is out of your file; what was before holds {when}",
            spec,
        )

    def _write(
        self,
        work: Callable[[], object],
        sentence: str,
        spec: Spec | None = None,
        *,
        warning: str = "",
    ) -> None:
        async def run() -> None:
            await asyncio.to_thread(work)
            settings = await asyncio.to_thread(load_settings, self.program.root)
            self.program.apply(settings)
            self.read()
            self.show_all()
            said = warning or self._overruled(spec)
            self.say("warning" if said else "info", said or f"{sentence}.")

        self.in_order(run)

    def _overruled(self, spec: Spec | None) -> str:
        """A sentence if another place wins over the person's file."""
        why = "" if spec is None else overruled(self.traced[spec.name])
        return f"Written, but {why}." if why else ""


def _path(spec: Spec) -> tuple[str, ...]:
    return tuple(spec.key.split("."))


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _fact(field: str, text: str) -> object:
    if field == "effort":
        return [part.strip() for part in text.split(",") if part.strip()]
    return _number(text) if field in _NUMBERS else text


def _facts(profile: Profile) -> dict[str, str]:
    """What an endpoint says now, as a person would type it."""
    price = profile.price
    return {
        "kind": profile.kind,
        "url": profile.url,
        "model": profile.model,
        "key_env": profile.key_env or "",
        "keyring": profile.keyring or "",
        "edit_format": profile.edit_format or "",
        "context": str(profile.context or ""),
        "price_in": f"{price.input:g}" if price else "",
        "price_out": f"{price.output:g}" if price else "",
        "price_cached": f"{price.cached:g}" if price else "",
        "effort": ", ".join(profile.efforts),
        "transport": profile.transport,
    }
