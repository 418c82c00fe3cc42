"""The composer: mentions from a list, long pastes as chips, earlier and later instructions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.keys import Keys

from midstream.code.outline import headers, outline
from midstream.tui.mentions import MentionChoice, MentionSource, typed_at
from midstream.tui.pastes import Pastes
from midstream.workspace.files import Workspace
from tests.helpers.stage import Stage, on_stage
from tests.helpers.waiting import PATIENCE_S

FILES = {
    "app/reader.py": "class Reader:\n    def feed(self): ...\n\n\ndef read_all(): ...\n",
    "app/writer.py": "def write_all():\n    pass\n",
    "docs/read me.md": "# Read\n",
    "setup.cfg": "",
}


def source(recent: tuple[str, ...] = ("app/writer.py",)) -> MentionSource:
    return MentionSource(
        lambda: tuple(FILES), lambda: recent, lambda path: FILES.get(path, "").splitlines()
    )


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("@", ""),
        ("fix @rea", "rea"),
        ("(@app/reader.py:fe", "app/reader.py:fe"),
        ('like @"docs/read m', "docs/read m"),
        ("me@example", None),
        ("@property is", None),
        ("`@x", "x"),
        ("@@", None),
    ],
)
def test_what_is_being_typed(line: str, query: str | None) -> None:
    typed = typed_at(line, len(line))
    assert (None if typed is None else typed.query) == query
    if typed is not None:
        assert line[typed.start] == "@"


async def test_names_that_begin_with_what_was_typed_come_first() -> None:
    text = (
        "class Host:\n    def __repr__(self): ...\n    def replace_host(self): ...\n\n\n"
        "def unrepeatable(): ...\ndef replace_params_of_the_whole_path(): ...\n"
    )
    files = {"app/routing.py": text, "app/the_report.py": "", "app/repeat.py": ""}
    made = MentionSource(
        lambda: tuple(files), lambda: ("app/the_report.py",), lambda path: files[path].splitlines()
    )
    await made.prepare("rep")
    first = ["Host.replace_host", "app/repeat.py", "replace_params_of_the_whole_path"]
    found = [candidate.symbol or candidate.path for candidate in made.candidates("rep")]
    assert sorted(found[:3]) == first
    assert {"Host.__repr__", "unrepeatable", "app/the_report.py"} == set(found[3:])
    await made.prepare("app/routing.py:rep")
    names = [candidate.symbol for candidate in made.candidates("app/routing.py:rep")]
    assert sorted(names[:2]) == [first[0], first[2]]
    assert made.candidates("host.re")[0].symbol == "Host.replace_host"


async def test_a_list_says_what_is_still_being_read() -> None:
    listed = False
    files = {"app/writer.py": FILES["app/writer.py"]}

    def known() -> tuple[str, ...]:
        return tuple(FILES) if listed else ()

    made = MentionSource(known, lambda: tuple(files), lambda path: FILES[path].splitlines(),
                         lambda: listed)  # fmt: skip
    await made.prepare("wri")
    assert [choice.symbol for choice in made.candidates("wri")] == ["write_all"]
    assert made.missing("wri") == "still reading the folder"
    listed = True
    assert made.missing("read_") == "still reading definitions"
    await made.prepare("read_")
    assert made.missing("read_") == ""
    assert "read_all" in [choice.symbol for choice in made.candidates("read_")]
    assert made.missing("app/reader.py:") == "reading app/reader.py"
    await made.prepare("app/reader.py:")
    assert made.missing("app/reader.py:") == ""


async def test_the_list_grows_when_the_folder_has_been_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = threading.Event()
    files = Workspace.files

    def slow(self: Workspace) -> Sequence[str]:
        assert read.wait(PATIENCE_S)
        return files(self)

    monkeypatch.setattr(Workspace, "files", slow)
    async with on_stage(project) as stage:
        listed = stage.composer.list
        await stage.press("i")
        await stage.type("fix @")
        await stage.until(lambda: listed.display, "list")
        words = ["".join(text for text, _ in row.left).strip() for row in listed.rows]
        assert words == ["still reading the folder"]
        assert not stage.composer.choosing
        read.set()
        await stage.until(lambda: len(listed.candidates) == 2, "files")
        assert all(row.value is not None for row in listed.rows)


async def test_a_definition_keeps_its_file_where_both_are_long(project: Path) -> None:
    folder = project / "a_folder_with_a_long_name" / "and_another_long_one"
    folder.mkdir(parents=True)
    (folder / "things_of_note.py").write_text(
        "def a_function_whose_name_is_rather_long():\n    1\n"
    )
    async with on_stage(project, size=(80, 24)) as stage:
        await stage.until(lambda: stage.screen.state.listed, "files")
        await stage.press("i")
        await stage.type("fix @a_func")
        await stage.until(lambda: stage.composer.choosing, "list")
        row = stage.composer.list._strip(0).text
        assert "a_function_whose_name_is_rather_long" in row
        assert "things_of_note.py" in row


def test_not_in_the_middle_of_a_word() -> None:
    assert typed_at("@reader", 3) is None
    assert typed_at("@rea der", 4) is not None


async def test_files_and_definitions_are_ranked() -> None:
    mentions = source()
    assert mentions.candidates("")[0] == MentionChoice("app/writer.py", about="recent")
    assert await mentions.prepare("")
    write_all = MentionChoice("app/writer.py", "write_all", "function, line 1")
    assert write_all in mentions.candidates("")
    assert [c.text for c in mentions.candidates("wri")][:2] == [
        "@app/writer.py",
        "@app/writer.py:write_all",
    ]
    assert mentions.candidates("rea")[0].path == "app/reader.py"
    assert not [c for c in mentions.candidates("feed") if c.symbol]
    assert await mentions.prepare("feed")
    assert [c.text for c in mentions.candidates("feed")] == ["@app/reader.py:Reader.feed"]
    assert not await mentions.prepare("feed")
    assert await mentions.prepare("app/reader.py:")
    assert [c.symbol for c in mentions.candidates("app/reader.py:")] == [
        "Reader",
        "Reader.feed",
        "read_all",
    ]
    assert [c.symbol for c in mentions.candidates("app/reader.py:all")] == ["read_all"]
    assert mentions.candidates("property") == []
    assert '@"docs/read me.md"' in [c.text for c in mentions.candidates("read")]


def test_headers_are_what_the_outline_finds() -> None:
    lines = FILES["app/reader.py"].splitlines()
    assert [(s.name, s.line) for s in headers(lines)] == [
        (d.name, d.start) for d in outline(lines).definitions
    ]


@given(
    st.lists(st.text("ab\n []#", min_size=1, max_size=40), max_size=6), st.text("x [", max_size=9)
)
def test_a_paste_comes_out_whole(blocks: list[str], between: str) -> None:
    pastes = Pastes()
    long = [block * 60 for block in blocks]
    shown = between.join(pastes.shorten(block) for block in long)
    assert pastes.expand(shown) == between.join(long)


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ("a\nb", "a\nb"),
        ("x\n" * 10, "x\n" * 10),
        ("x\n" * 84, "[pasted 84 lines]"),
        ("x" * 1_500, "[pasted 1,500 characters]"),
    ],
)
def test_only_long_pastes_become_chips(block: str, shown: str) -> None:
    assert Pastes().shorten(block) == shown


# on the screen


async def test_a_mention_is_taken_from_the_list(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    composer = stage.composer
    await stage.press("i")
    await stage.type("make it like @")
    await stage.until(lambda: len(composer.list.candidates) >= 3, "list")
    assert "tab take" in stage.keys
    region, text = composer.list.region, composer.field.region
    assert region.bottom <= composer.title.region.y
    assert region.x == text.x + len("make it like ")
    await stage.type("doub")
    await stage.until(lambda: composer.list.chosen and composer.list.chosen.symbol, "symbol")
    await stage.press("tab")
    assert composer.text == "make it like @pkg/things.py:double "
    assert not composer.list.display
    assert composer.field.has_focus
    await stage.type(", then")
    assert composer.text == "make it like @pkg/things.py:double, then"


async def test_enter_takes_and_escape_closes_only_the_list(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    composer = stage.composer
    await stage.press("i")
    await stage.type("see @no")
    await stage.until(lambda: composer.choosing, "list")
    await stage.press("escape")
    assert not composer.choosing
    assert composer.field.has_focus
    await stage.type("t")
    assert not composer.choosing  # it stays closed for this mention
    await stage.type(" and @no")
    await stage.until(lambda: composer.choosing, "list")
    await stage.press("down", "up", "enter")
    assert composer.text == "see @not and @notes.md "
    assert not stage.model.requests
    await stage.press("escape")
    assert stage.pane.has_focus


async def test_a_typed_out_name_does_not_hold_enter_back(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    composer = stage.composer
    await stage.press("i")
    await stage.type("rename total in count as in @notes.md")
    await stage.pilot.pause(0.1)
    assert not composer.choosing
    await stage.press("enter")
    await stage.until(lambda: composer.text == "", "sent")


async def test_a_long_paste_is_a_chip_and_sent_whole(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    composer = stage.composer
    block = "".join(f"line {n}\n" for n in range(84))
    await stage.press("i")
    await stage.type("see ")
    composer.field.post_message(events.Paste(block))
    await stage.until(lambda: composer.field.text == "see [pasted 84 lines]", "chip")
    assert composer.text == f"see {block}"
    assert "ctrl+t open paste" in stage.keys
    assert stage.composer.field.size.height == 1
    # The chip is one thing: typed text goes behind it, Backspace deletes all of it.
    await stage.press("left", "left")
    await stage.type("!")
    assert composer.field.text == "see [pasted 84 lines]!"
    await stage.press("backspace", "backspace")
    assert composer.field.text == "see "
    composer.field.post_message(events.Paste(block))
    await stage.until(lambda: "pasted" in composer.field.text, "chip")
    await stage.press("ctrl+t")
    assert composer.field.text == f"see {block}"
    assert composer.take() == f"see {block}".strip()
    # Recalled it is a chip again.
    await stage.press("up")
    assert composer.field.text == "see [pasted 84 lines]"
    assert composer.text == f"see {block}"


async def test_down_goes_back_to_later_instructions(stage: Stage) -> None:
    composer = stage.composer
    composer.history = ["first", "second"]
    await stage.type("dra")
    await stage.press(Keys.Up, Keys.Up)
    assert composer.text == "first"
    await stage.press(Keys.Down)
    assert composer.text == "second"
    await stage.press(Keys.Down)
    assert composer.text == "dra"
    await stage.press(Keys.Down)
    assert composer.text == "dra"


async def test_the_folder_of_the_session_is_searched(project: Path) -> None:
    (project / "pkg" / "other.py").write_text("def elsewhere():\n    pass\n")
    async with on_stage(project) as stage:
        await stage.open("pkg/things.py")
        composer = stage.composer
        await stage.press("i")
        await stage.type("@elsew")
        await stage.until(lambda: composer.choosing, "found in another file")
        await stage.press("enter")
        assert composer.text == "@pkg/other.py:elsewhere "


def test_folders_and_words_are_offered_to_models_that_read_them() -> None:
    files = ["a.py", "src/app/one.py", "src/app/two.py", "tests/diffs.py"]
    made = MentionSource(lambda: files, lambda: ("a.py",), lambda _: (), lambda: True, lambda: wide)
    wide = False
    assert [choice.text for choice in made.candidates("diff")] == ["@tests/diffs.py"]
    wide = True
    assert [choice.text for choice in made.candidates("diff")] == ["@diff", "@tests/diffs.py"]
    assert made.candidates("err")[0].text == "@error"
    assert made.candidates("src")[0].text == "@src/"
    assert made.candidates("app/")[0].text != "@app/"
    assert made.candidates("src/app/")[0].text == "@src/app/"
    assert "@diff" in [choice.text for choice in made.candidates("")]


async def test_one_key_clears_all_lines(stage: Stage) -> None:
    composer = stage.composer
    stage.screen.panes.focus_composer()
    composer.put("one\ntwo\nthree")
    await stage.press("ctrl+u")
    assert composer.text == ""
    await stage.press("ctrl+z")
    assert composer.text == "one\ntwo\nthree"
    await stage.press("left", "left", "ctrl+u")
    assert composer.text == "ee"


async def test_text_takes_the_place_of_what_could_not_be_sent(stage: Stage) -> None:
    composer = stage.composer
    stage.screen.panes.focus_composer()
    composer.give_back("rename it")
    await stage.press("w")
    assert composer.text == "w"
    composer.give_back("rename it")
    assert composer.text == "rename it\nw", "what was typed since is kept"
