"""Long lines: broken at good places, painted with right gutters, and moved through line by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region

from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.guard.findings import Finding, Level
from midstream.pairing.guard import FoundLine
from midstream.resources import themes_dir
from midstream.tui.diff.painter import Marks, RowPainter, SplitPainter, breaks, hanging, wrapped
from midstream.tui.diff.strips import RowStrips
from midstream.tui.diff.syntax import FileSyntax
from midstream.tui.diff.view import FileView, Look, ViewRow
from midstream.tui.glyphs import UNICODE
from midstream.tui.themes import load_themes
from midstream.tui.widgets.file_bar import FileBar
from tests.helpers.property import examples
from tests.helpers.stage import CODE, on_stage

TEXTS = st.text("ab (,.)\u4e2d\u00e9e\u0301\U0001f600 ", max_size=90)


@given(TEXTS, st.integers(1, 30))
@examples(400)
def test_nothing_is_lost_and_every_line_fits(text: str, room: int) -> None:
    places = breaks(text, room)
    parts = [text[a:b] for a, b in zip((0, *places), (*places, len(text)), strict=True)]
    assert "".join(parts) == text
    assert all(parts) or not text
    for number, part in enumerate(parts):
        limit = max(1, room - (hanging(text, room) if number else 0))
        assert cell_len(part) <= limit or len(part) == 1 or not cell_len(part[-1])


def test_lines_break_behind_separators_and_go_on_indented() -> None:
    text = "    call(first_argument, second_argument, third)"
    assert breaks(text, 60) == ()
    places = breaks(text, 30)
    assert [text[:p] for p in places[:1]] == ["    call(first_argument, "]
    red = Style(color="red")
    segments = [Segment(text[:9], red), Segment(text[9:])]
    first, second = wrapped(segments, 30, Style())
    assert first[0] == Segment("    call(", red)
    assert "".join(s.text for s in second) == "      second_argument, third)"


def test_a_figure_is_not_split() -> None:
    text = "The context may take up to 3,000 tokens, 1.5 of them"
    for room in range(8, 50):
        places = breaks(text, room)
        assert not [at for at in places if text[at - 1] in ",." and text[at].isdigit()], room


def test_a_wide_character_is_not_split() -> None:
    text = "\u4e2d" * 10
    assert all(cell_len(text[:p]) % 2 == 0 for p in breaks(text, 7))


LONG = "    total = compute(" + ", ".join(f"argument_{n}" for n in range(30)) + ")"


@pytest.fixture
def long_project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    lines = ["def work():", LONG, "\tx = '\u4e2d\u6587' * 3\t# tab", "    return total", ""]
    (root / "long.py").write_text("\n".join(lines * 20))
    return root


def test_gutters_and_rows(long_project: Path) -> None:
    import asyncio

    async def scene() -> None:
        async with on_stage(long_project, size=(100, 30)) as stage:
            await stage.open("long.py")
            pane = stage.pane
            assert stage.rows[1].endswith("\u2026")
            await stage.press("w")
            rows = stage.rows
            assert rows[0].split()[1:3] == ["1", "def"]
            assert "\u21b3" not in rows[1]
            below = [row for row in rows[2:8] if "\u21b3" in row]
            assert len(below) == 5
            text = "".join(row[12:].strip() for row in rows[1:7]).replace(" ", "")
            assert text == LONG.replace(" ", "")
            assert pane.row_at(0) == 0
            assert [pane.row_at(line) for line in range(1, 8)] == [1] * 6 + [2]
            assert "'\u4e2d\u6587' * 3" in rows[7]
            assert "wrap" in stage.notice
            # The cursor goes row by row, the window by as many lines as that takes.
            await stage.press("G")
            assert pane.cursor == pane.row_count - 1
            assert pane.bottom == pane.row_count
            assert stage.rows[-1].split()[0] in ("\u25b8", str(pane.row_count))
            await stage.press("g")
            assert (pane.top, pane.skip) == (0, 0)
            await stage.press("space")
            assert pane.top > 0
            seen = pane.lines_above(pane.cursor)
            assert 0 <= seen < pane.height
            await stage.press("b")
            assert (pane.top, pane.skip) == (0, 0)
            await stage.press("w")
            assert stage.rows[1].endswith("\u2026")

    asyncio.run(scene())


async def test_scrolled_sideways_it_says_so(long_project: Path) -> None:
    async with on_stage(long_project, size=(100, 30)) as stage:
        await stage.open("long.py")
        pane = stage.pane
        await stage.press("j", "l", "l")
        assert pane.strips.left == 16
        assert stage.rows[1][pane._painter.gutter] == "\u2026"
        assert stage.rows[1].endswith("\u2026")
        assert "from column 17" in stage.screen.query_one(FileBar).render().plain
        for _ in range(90):
            await stage.press("l")
        assert pane.strips.left < len(LONG)
        assert "argument_29)" in stage.rows[1]
        for _ in range(60):
            await stage.press("h")
        assert pane.strips.left == 0


@pytest.mark.parametrize("layout", ["unified", "split"])
async def test_a_wrapped_stream_is_followed(tmp_path: Path, layout: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    body = "".join(
        f"    value_{n} = compute(alpha_{n}, beta_{n}, gamma_{n}, delta_{n}, epsilon_{n})\n"
        for n in range(30)
    )
    (root / "f.py").write_text(f"def work():\n{body}")
    async with on_stage(root, size=(80, 24)) as stage:
        await stage.open("f.py")
        pane = stage.pane
        pane.set_layout(layout)
        await stage.press("w")
        await stage.instruct("rename compute to measure in work")
        lines = f"def work():\n{body}".splitlines(keepends=True)
        new = [
            line.replace("compute", "measure") if n % 3 else line for n, line in enumerate(lines)
        ]
        for at in range(0, len(new), 4):
            await stage.stream("".join(new[at : at + 4]))
            view = stage.view
            assert view is not None
            if view.writing is not None:
                assert 0 <= pane.lines_above(view.writing) < pane.height
        stage.model.give(None)
        await stage.until(lambda: stage.session.status.state == "ready", "end")
        await stage.press("g")
        for first, stop, hunk in list(view.places()):
            await stage.press("]")
            assert pane.hunk is hunk
            assert pane.shows(first, stop)
            shown = " ".join(" ".join(stage.rows).split())
            assert hunk.new[0].split(",")[0].strip() in shown
            assert len(stage.rows) == pane.height


def test_a_wide_text_fills_its_lines_to_the_last_cell() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = RowPainter(palette, UNICODE, 60, 3, focused=True, wrap=True)
    row = ViewRow(Look.CONTEXT, 3, 3, "\t" + "\u4e2d\u6587" * 60, line=3)
    strips = painter.paint(row, (), Marks())
    assert len(strips) > 4
    assert {strip.cell_length for strip in strips} == {60}
    assert not any("\u2026" in strip.text for strip in strips)
    assert "".join(s.text[painter.gutter :].strip() for s in strips) == "\u4e2d\u6587" * 60


def test_a_note_beside_long_code_can_be_read() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = RowPainter(palette, UNICODE, 80, 3, focused=True)
    row = ViewRow(Look.CONTEXT, 3, 3, "x = call(" + "argument, " * 20, line=3)
    text = painter.paint(row, (), Marks(note="a risky call"))[0].text
    assert text.endswith("\u2026  \u2691 a risky call")
    assert len(text) == 80


@pytest.mark.parametrize("theme", ["midnight", "ansi"])
def test_where_a_line_is_cut_the_mark_shows_that_a_changed_word_follows(theme: str) -> None:
    palette = load_themes(themes_dir())[0][theme]
    painter = RowPainter(palette, UNICODE, 40, 3, focused=True)
    row = ViewRow(Look.ADDED, None, 3, "def load(first, second, third, fourth=None):", line=3)
    word = row.text.index("fourth")

    def mark(start: int, stop: int) -> Style:
        strip = painter.paint(row, (), Marks(changed=((start, stop),)))[0]
        text, style, _ = list(strip)[-1]
        assert text == "\u2026"
        assert style is not None
        return style

    plain = mark(0, 3)
    changed = mark(word, word + 6)
    assert (changed.bgcolor, changed.underline) != (plain.bgcolor, plain.underline)


def test_a_brief_note_is_its_sign_where_the_code_needs_the_room() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = RowPainter(palette, UNICODE, 44, 3, focused=True)
    short = ViewRow(Look.CONTEXT, 3, 3, "x = 1", line=3)
    marks = Marks(note="model unsure", brief="")
    assert painter.paint(short, (), marks)[0].text.rstrip().endswith("x = 1  \u2691 model unsure")
    line = replace(short, text="value = compute(1, 2, 3)")
    assert painter.paint(line, (), marks)[0].text.rstrip().endswith("compute(1, 2, 3)  \u2691")
    there = painter.paint(line, (), replace(marks, brief=None))[0].text
    assert there.endswith("\u2026  \u2691 model unsure")


def test_the_note_of_a_flagged_hunk_that_is_put_back_later_has_no_brief_form() -> None:
    hunks = HunkStore()
    proposal = FileProposal("m.py", SourceText.from_text("x = 1\n"), hunks)
    proposal.begin(0, 1)
    proposal.feed("x = eval(a_name_that_is_long)\n")
    proposal.finish()
    (hunk,) = hunks
    found = Finding("S307", "eval runs code", 0, 1, Level.WARN, "", hunk.new[0])
    view = FileView(proposal, hunks)
    syntax = FileSyntax(view)
    strips = RowStrips(view, syntax)
    palette = load_themes(themes_dir())[0]["midnight"]
    strips.painter = RowPainter(palette, UNICODE, 60, 3, focused=True)
    strips.spot_of = lambda hunk: FoundLine(found, 0)
    strips.note_of = lambda hunk: "eval runs code (S307)"

    def rows() -> str:
        view.refresh()
        syntax.sync()
        syntax.begin_frame()
        painted = [strips.of(y, cursor=False, selected=False) for y in range(view.size)]
        return "\n".join(strip.text.rstrip() for strips in painted for strip in strips)

    assert "flagged (S307)" in rows()
    strips.forget(RowPainter(palette, UNICODE, 50, 3, focused=True))
    assert "that_is_long)  ⚑" in rows(), "the code is not cut for it"
    hunks.postpone([hunk.id], "")
    assert "will be put back" in rows()
    assert "flagged" not in rows()


def test_a_fact_stands_at_the_edge_on_its_own_ground_and_covers_no_code() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = RowPainter(palette, UNICODE, 44, 3, focused=True)
    row = ViewRow(Look.ADDED, None, 3, "x = 1", line=3)
    marks = Marks(note="on disk", fact=True, brief="", cursor=True)
    (strip,) = painter.paint(row, (), marks)
    assert strip.text.endswith("x = 1" + " " * 21 + " on disk ")
    grounds = [style.bgcolor for _, style, _ in strip if style is not None]
    assert grounds[-1] == palette.colors["raised"].rich_color not in grounds[:-1]
    (strip,) = painter.paint(replace(row, text="x = 1" + ", 2" * 8), (), marks)
    assert strip.text.rstrip().endswith(", 2"), "without room, there is the code"
    below = RowPainter(palette, UNICODE, 44, 3, focused=True, wrap=True)
    first, last = below.paint(replace(row, text="x = 1" + ", 2" * 8), (), marks)
    assert first.text.rstrip().endswith(", 2")
    assert last.text.split() == ["↳", "on", "disk"]


def test_a_note_leaves_the_words_that_have_changed() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = RowPainter(palette, UNICODE, 54, 3, focused=True)
    text = "value = compute(first, second, changed, 4, 5, 6)"
    stop = text.index("changed") + len("changed")
    row = ViewRow(Look.ADDED, None, 3, text, line=3)
    marks = Marks(note="would not parse (line 7)", cursor=True)
    assert "changed" not in painter.paint(row, (), marks)[0].text
    marks = replace(marks, changed=((stop - 7, stop),))
    assert text[: stop - 1] in painter.paint(row, (), marks)[0].text


def test_a_line_put_back_has_its_number_on_both_sides() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = SplitPainter(palette, UNICODE, 80, 3, focused=True)
    row = ViewRow(Look.KEPT, None, 41, "x = 1", line=3)
    text = painter.paint_both(row, (), Marks(), (), Marks())[0].text
    assert [half.split() for half in text.split(UNICODE.side)] == [["42", "x", "=", "1"]] * 2


def test_a_line_that_the_model_has_not_reached_is_on_both_sides() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = SplitPainter(palette, UNICODE, 80, 3, focused=True)
    row = ViewRow(Look.UNREAD, 3, 41, "x = 1", line=3)
    text = painter.paint_both(row, (), Marks(), (), Marks())[0].text
    old, new = (half.split() for half in text.split(UNICODE.side))
    assert (old, new) == (["4", "x", "=", "1"], ["x", "=", "1"]), "its number is not known yet"


def test_sides_scroll_to_what_has_changed_and_no_further_than_to_its_start() -> None:
    palette = load_themes(themes_dir())[0]["midnight"]
    painter = SplitPainter(palette, UNICODE, 80, 3, focused=True)

    def halves(old: str, new: str) -> list[str]:
        word = [(max(text.find("word"), 0), len(text)) for text in (old, new)]
        before = ViewRow(Look.DELETED, 3, None, old, line=3)
        row = ViewRow(Look.ADDED, None, 3, new, line=3, beside=before)
        one, other = (Marks(changed=(at,)) for at in word)
        (strip,) = painter.paint_both(row, (), other, (), one)
        return strip.text.split("│")

    start = "        minutes = total_minutes("
    old, new = halves(f"{start}word_before)", f"{start}word)")
    assert "…" in old
    assert old.rstrip().endswith("total_minutes(word_before)")
    assert new.rstrip().endswith("total_minutes(word)")
    assert old.index("total") == new.index("total"), "they are scrolled alike"
    old, new = halves("word" + " more" * 9, "word")
    assert "word" in old
    assert new.rstrip().endswith("+ word")


async def test_overview_marks_stand_beside_the_lines_of_a_short_wrapped_file(
    project: Path,
) -> None:
    words = ", ".join(f"argument_{n}" for n in range(30))
    (project / "pkg" / "things.py").write_text(f"first = [{words}]\n\n\n{CODE}")
    async with on_stage(project, size=(100, 50)) as stage:
        await stage.open("pkg/things.py")
        stage.pane.set_wrap(True)
        stage.pane.go_to(10)
        await stage.instruct("rename total to found")
        stage.model.give(stage.model.region.replace("total", "found"))
        stage.model.give(None)
        await stage.until(lambda: stage.session.hunks.undecided(), "hunks")
        ruler = stage.screen.panes.ruler
        await stage.until(lambda: any(ruler._cells), "marks")
        lines = [strip.text for strip in stage.pane.render_lines(Region(0, 0, *stage.pane.size))]
        changed = {y for y, line in enumerate(lines) if re.search(r" [-+]  ", line)}
        assert {y for y, role in enumerate(ruler._cells) if role} == changed
        for y in sorted(changed):
            await stage.pilot.click(ruler, offset=(0, y))
            hunk = stage.pane.undecided_hunk
            assert hunk is not None, f"a click on the mark in line {y} goes to its hunk"
