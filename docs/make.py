"""Write the reference pages of this folder from the program's own declarations.

    .venv/bin/python docs/make.py           # write the pages
    .venv/bin/python docs/make.py --check   # name the stale ones; exit 1 if there are any

``tests/test_docs.py`` runs the check.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from midstream import cli
from midstream.actions import ACTIONS, PAGE_ACTIONS, PAGES, Action, Place
from midstream.responses.dialect import DIALECTS
from midstream.settings import SETTINGS, Setting
from midstream.settings.endpoints import ENDPOINT_FIELDS
from midstream.settings.store import PROJECT_FILE
from midstream.settings.value_types import ValueType
from midstream.theme_files import DEFAULT_THEME, ROLES, TABLES, Role, read_theme
from midstream.tui.keymap import PRESETS, all_keys, keys_of
from midstream.words import WORDS

DOCS: Final = Path(__file__).resolve().parent
EXIT_CODES: Final = (
    (0, "done"),
    (1, "negative result (a finding, an edit that does not match, a flagged answer)"),
    (2, "bad usage"),
    (3, "endpoint or model unavailable"),
    (130, "interrupted"),
)
HEADER: Final = "<!-- Made by docs/make.py; do not edit. -->\n\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def code(text: str) -> str:
    """Text as code; ``""`` stays empty."""
    return f"`{text}`" if text else ""


# settings


def settings() -> Iterator[str]:
    """Every setting and every field of an endpoint."""
    yield "# Settings\n"
    yield (
        "Settings are read from these sources; later ones override earlier ones:\n\n"
        "1. your file, `midstream/config.toml` in the configuration folder "
        "(`MIDSTREAM_CONFIG` names another one)\n"
        f"2. `{PROJECT_FILE}` in the opened folder, for the settings marked *project* below; it "
        "can only make the guard stricter\n"
        '3. the table `[projects."/path/of/the/folder"]` in your file, for that folder and those '
        "below it\n"
        "4. environment variables\n"
        "5. the command line\n\n"
        "`midstream config` lists all settings with the source of each value, "
        "`midstream config NAME` explains one, `midstream config NAME VALUE` changes it, and "
        "`midstream config --unset NAME` removes it from your file. `midstream config --schema` "
        "prints a JSON Schema for editors. The settings page (`,`) does the same on screen.\n"
    )
    for section in dict.fromkeys(setting.section for setting in SETTINGS):
        yield f"## {section}\n"
        yield from table(
            ("setting", "value", "default", "what it does"),
            (setting_row(one) for one in SETTINGS if one.section is section),
        )
    yield "## Endpoints\n"
    yield (
        "A table `[endpoints.NAME]` in your file describes a model server; kinds with an address "
        "below need none. The setting `endpoint` or `--endpoint NAME` chooses one. Keys that a "
        "table omits default to those of its kind.\n"
    )
    yield from table(
        ("key", "value", "what it is"),
        ((code(one.key), holds(one.type), f"{one.help}.") for one in ENDPOINT_FIELDS),
    )
    yield from table(
        ("kind", "address", "variable of the key", "edit format"),
        (
            (code(kind), code(facts.url), code(facts.key_env or ""), facts.edit_format or "auto")
            for kind, facts in DIALECTS.items()
        ),
    )


def setting_row(setting: Setting) -> tuple[str, str, str, str]:
    facts = [setting.help]
    if setting.variable:
        facts.append(f"Variable `{setting.variable}`.")
    facts.append("Applies at once." if setting.at_once else "Applies at the next start.")
    if setting.in_projects:
        facts.append("*project*")
    default = setting.format(setting.default)
    return code(setting.label), holds(setting.type), default, " ".join(facts)


def holds(value_type: ValueType) -> str:
    if value_type.choices:
        listed = ", ".join(map(code, value_type.choices))
        return f"list of {listed}" if value_type.kind == "list" else listed
    return value_type.allowed


# keys


def keys() -> Iterator[str]:
    """Every action with its keys."""
    yield "# Keys\n"
    yield (
        "`?` shows the keys of the place you are in. The presets `git`, `vim` and `emacs` change "
        "some of them, and `[keys.bind]` in your settings binds any action to keys of your own, by "
        'the name in the first column: `"hunk.accept" = "a,ctrl+y"`. Actions without keys are in '
        "the palette (`:`).\n"
    )
    yield (
        "In a list that opens over the screen (files, actions, models, themes, effort), every "
        "letter narrows the list down. The arrows, `Tab` and `Shift+Tab`, `Ctrl+N` and `Ctrl+P`, "
        "or `Ctrl+J` and `Ctrl+K` move through it; `Enter` takes the row, `Esc` closes the list.\n"
    )
    for group in dict.fromkeys(action.group for action in ACTIONS):
        yield f"## {group}\n"
        yield from action_table(a for a in ACTIONS if a.group is group)
    for place in (*PAGES, Place.PAGE):
        yield f"## {'Every page' if place is Place.PAGE else f'The {place} page'}\n"
        yield from action_table(a for a in PAGE_ACTIONS if a.place is place)
    yield "## Presets\n"
    names = [name for name in PRESETS if PRESETS[name]]
    default, by_preset = keys_of("default"), {name: keys_of(name) for name in names}
    changed = dict.fromkeys(action for name in names for action in PRESETS[name])
    yield from table(
        ("action", "default", *names),
        (
            (
                code(action),
                key_cell(all_keys(default, action)),
                *(key_cell(all_keys(by_preset[name], action)) for name in names),
            )
            for action in changed
        ),
    )


def words() -> Iterator[str]:
    """The words of the screen."""
    yield "# Words\n"
    yield "What the words on the screen mean; help (`?`) has them, too.\n"
    yield from table(("word", "meaning"), WORDS)


def action_table(actions: Iterable[Action]) -> Iterator[str]:
    default = keys_of("default")
    rows = ((code(a.id), key_cell(all_keys(default, a.id)), f"{a.help}.") for a in actions)
    yield from table(("action", "keys", "what it does"), rows)


def key_cell(shown: str) -> str:
    return " ".join(f"`` {key} ``" if "`" in key else f"`{key}`" for key in shown.split())


# commands


def commands() -> Iterator[str]:
    """Every command with its arguments."""
    yield "# Commands\n"
    yield (
        f"Exit codes: {', '.join(f'{status} {meaning}' for status, meaning in EXIT_CODES)}. An "
        "error is one sentence on standard error or, with `--json`, an object on standard output.\n"
    )
    yield from command(cli.screen_parser())
    for one in cli.COMMANDS:
        yield from command(one.parser())


def command(parser: argparse.ArgumentParser, depth: int = 2) -> Iterator[str]:
    yield f"{'#' * depth} {parser.prog}\n"
    if parser.description:
        yield f"{parser.description.replace(chr(10), ' ')}\n"
    rows, below = arguments(parser)
    if rows:
        yield from table(("argument", "meaning"), ((code(typed), text) for typed, text in rows))
    for inner in below:
        yield from command(inner, depth + 1)


def arguments(
    parser: argparse.ArgumentParser,
) -> tuple[list[tuple[str, str]], list[argparse.ArgumentParser]]:
    """The arguments of a command, as typed and what they mean, and the commands below it."""
    rows: list[tuple[str, str]] = []
    below: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = list(dict.fromkeys(action.choices.values()))
            for choice in action._choices_actions:
                rows.append((choice.dest, choice.help or ""))
        elif not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:
            rows.append((written(action), (action.help or "").replace("%%", "%")))
    return rows, below


def written(action: argparse.Action) -> str:
    """An argument as it is typed."""
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    if isinstance(value, tuple):
        value = " ".join(value)
    if action.choices is not None and action.metavar is None:
        value = "|".join(map(str, action.choices))
    if not action.option_strings:
        return value
    return f"{', '.join(action.option_strings)} {value}".strip()


# manual page


def manual() -> Iterator[str]:
    """The manual page, in the macros of man(7)."""
    screen = cli.screen_parser()
    yield '.TH MIDSTREAM 1 "" Midstream "User Commands"'
    yield ".SH NAME\nmidstream \\- a terminal pair programmer"
    yield ".SH SYNOPSIS\n.B midstream\n[options] [PATH]\n.br\n.B midstream\nCOMMAND ..."
    yield f".SH DESCRIPTION\n{roff(screen.description or '')}"
    yield roff("The key ? shows the keys of the screen.")
    yield ".SH OPTIONS"
    yield from manual_arguments(screen)
    yield ".SH COMMANDS"
    for one in cli.COMMANDS:
        yield from manual_command(one.parser())
    yield ".SH EXIT STATUS"
    for status, meaning in EXIT_CODES:
        yield f".TP\n.B {status}\n{roff(meaning)}"
    yield ".SH FILES"
    yield ".TP\n.I ~/.config/midstream/config.toml\nSettings; MIDSTREAM_CONFIG names another file."


def manual_command(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f".SS {roff(parser.prog)}\n{roff(parser.description or '')}"
    for inner in (yield from manual_arguments(parser)):
        yield from manual_command(inner)


def manual_arguments(
    parser: argparse.ArgumentParser,
) -> Generator[str, None, list[argparse.ArgumentParser]]:
    rows, below = arguments(parser)
    for typed, text in rows:
        yield f".TP\n.B {roff(typed)}\n{roff(text)}"
    return below


def roff(text: str) -> str:
    """Text without markup, on one line that troff reads as text."""
    line = " ".join(text.replace("`", "").split())
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{line}" if line[:1] in (".", "'") else line


# themes


def themes() -> Iterator[str]:
    """The shipped themes and every role."""
    yield "# Themes\n"
    yield (
        "`T` chooses a theme and saves the choice. A theme is a TOML file; put your own into the "
        "folder `themes` beside your configuration file (`midstream config` shows where that is). "
        "It is reloaded whenever you save it, so you see changes at once. The file's name is the "
        "theme's name; `label` is its title, `about` describes it in a sentence, and `dark` says "
        "whether text is lighter than the background. With `ansi = true`, colours are named after "
        "the terminal's own sixteen, such as `ansi_blue`.\n"
    )
    files = [read_theme(path) for path in sorted((DOCS.parent / "themes").glob("*.toml"))]
    yield from table(
        ("theme", "label", "description"),
        (
            (f"{code(f.name)}{' (default)' if f.name == DEFAULT_THEME else ''}", f.label, f.about)
            for f in files
        ),
    )
    yield (
        "Colours are grouped in three tables. A theme must set the roles that have no derived "
        "colour and can omit all others. In the shipped themes, text has a contrast of at least "
        "4.5:1 on every background that it is drawn on; a test checks this.\n"
    )
    for name in TABLES:
        yield f"## [{name}]\n"
        yield from table(
            ("role", "used for", "derived from", "drawn on"),
            (
                (code(r.name), r.help, derivation(r), ", ".join(r.on))
                for r in ROLES
                if r.table == name
            ),
        )


def derivation(role: Role) -> str:
    mix = role.derived
    if mix is None:
        return "required"
    if not mix.percent:
        return code(mix.role)
    return f"`{mix.role}` with {mix.percent} % `{mix.into}`"


REFERENCES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "settings.md": settings,
    "keys.md": keys,
    "words.md": words,
    "commands.md": commands,
    "themes.md": themes,
    "midstream.1": manual,
}


def render(name: str) -> str:
    """The text of a page."""
    header = '.\\" Made by docs/make.py; do not edit.\n' if name.endswith(".1") else HEADER
    return header + "\n".join(REFERENCES[name]()).rstrip() + "\n"


def stale() -> list[str]:
    """The pages that are not what this script would write."""
    return [
        name
        for name in REFERENCES
        if not (DOCS / name).exists() or (DOCS / name).read_text("utf-8") != render(name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="only name the stale pages")
    options = parser.parse_args()
    names = stale()
    for name in names:
        if not options.check:
            (DOCS / name).write_text(render(name), "utf-8")
        print(f"docs/{name} {'is stale' if options.check else 'written'}")
    return int(options.check and bool(names))


if __name__ == "__main__":
    sys.exit(main())
