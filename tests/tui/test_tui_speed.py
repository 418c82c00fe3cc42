"""Savings in a fast stream: rows, frames and collections that can be left out."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from weakref import ref

import pytest
from pygments import lexers
from pygments.lexer import Lexer

from midstream import cli
from midstream.edits.documents import SourceText
from midstream.edits.events import Event, HunkClosed, NewText, Prose, merge_text
from midstream.edits.hunk_store import HunkCounts, HunkStore
from midstream.edits.proposal import FileProposal
from midstream.resources import themes_dir
from midstream.tui import garbage
from midstream.tui.diff.painter import RowPainter
from midstream.tui.diff.strips import RowStrips
from midstream.tui.diff.syntax import FileSyntax
from midstream.tui.diff.view import FileView, Look
from midstream.tui.eager import MAX_DELAY_S, SHARE, FramePace
from midstream.tui.glyphs import UNICODE
from midstream.tui.themes import load_themes
from midstream.tui.widgets.rail import FileEntry
from tests.helpers.stage import Stage, on_stage


def test_unread_rows_are_kept_while_lines_are_written_above() -> None:
    base = SourceText.from_text("".join(f"line_{n} = {n}\n" for n in range(20)))
    hunks = HunkStore()
    proposal = FileProposal("f.py", base, hunks)
    view = FileView(proposal, hunks)
    syntax = FileSyntax(view)
    strips = RowStrips(view, syntax)
    palette = load_themes(themes_dir(), Path("none"))[0]["midnight"]
    strips.painter = RowPainter(palette, UNICODE, 100, 3, focused=True)

    def unread() -> dict[str, object]:
        view.refresh()
        syntax.sync()
        syntax.begin_frame()
        shown = {}
        for y in range(view.size):
            row = view.row(y)
            painted = strips.of(y, cursor=False, selected=False)
            if row is not None and row.look is Look.UNREAD:
                shown[row.text] = painted
        return shown

    proposal.begin(0, 20)
    proposal.feed("line_0 = 0\n")
    before = unread()
    proposal.feed("new_1 = 1\nnew_2 = 2\nline_1 = 1\nline_2 = 2\n")
    after = unread()
    assert after.keys() < before.keys()
    assert all(after[text] is before[text] for text in after)


def test_lines_are_lexed_between_frames_with_the_same_colours() -> None:
    base = SourceText.from_text("".join(f"line_{n} = 'text {n}'\n" for n in range(40)))
    chunks = ["line_0 = 'text 0'\nnew = [", "1, 2]\nmore = 3\n", 'line_1 = """doc', 'more"""\n']

    def stream(*, between: bool) -> list[object]:
        hunks = HunkStore()
        proposal = FileProposal("f.py", base, hunks)
        view = FileView(proposal, hunks)
        syntax = FileSyntax(view)
        seen: list[object] = []
        proposal.begin(0, 40)
        for number, chunk in enumerate(chunks):
            proposal.feed(chunk)
            view.refresh()
            syntax.sync()
            syntax.begin_frame()
            rows = [row for y in range(view.size) if (row := view.row(y)) is not None]
            seen += [(row.look, row.text, syntax.spans(row)) for row in rows]
            proposal.feed(f" = {number}\n")
            if between:
                syntax.go_along()
                [(_, lexer, above)] = syntax._streams.values()
                assert len(lexer) - above == len(proposal.segments[0].new_lines)
                assert lexer.ready == len(lexer)
        return seen

    assert stream(between=True) == stream(between=False)


def test_cheap_frames_come_on_every_beat_and_dear_ones_keep_their_share() -> None:
    beat = 1 / 60
    pace = FramePace()
    pace.took(0.0005)
    assert [pace.due(100 + n * beat, beat) for n in range(3)] == [True] * 3
    for _ in range(60):
        pace.took(0.005)
    assert pace.gap == pytest.approx(0.005 / SHARE, rel=0.01)
    frames = sum(pace.due(200 + n * beat, beat) for n in range(600))
    assert frames * 0.005 / (600 * beat) == pytest.approx(SHARE, rel=0.2)
    for _ in range(60):
        pace.took(1.0)
    assert pace.gap == MAX_DELAY_S


def test_new_text_that_goes_on_is_taken_in_one_piece() -> None:
    events: list[Event] = [
        NewText(1, "a\n"),
        NewText(1, "b\n"),
        HunkClosed(1),
        NewText(2, "c\n"),
        NewText(3, "d"),
        Prose("so"),
        NewText(3, "e"),
    ]
    assert merge_text(events) == [
        NewText(1, "a\nb\n"),
        HunkClosed(1),
        NewText(2, "c\n"),
        NewText(3, "d"),
        Prose("so"),
        NewText(3, "e"),
    ]


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The generations that are collected, one after another, while the screen decides when."""
    monkeypatch.setattr(garbage, "gc", gc)
    monkeypatch.setattr(garbage._Made, "objects", 0)
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    garbage.begin()
    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)
        garbage.end()


class _Cycle:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.me = self


@pytest.mark.system
def test_everything_is_collected_only_in_a_quiet_moment_after_much_has_stayed(
    collections: list[int],
) -> None:
    old = _Cycle()
    gone = ref(old)
    garbage.begin()
    del old
    kept = [[n] for n in range(400_000)]
    assert 2 not in collections
    garbage.tidy()
    assert gone() is not None, "it was there at the beginning"
    garbage.tidy()
    assert gone() is None
    assert collections.count(2) == 2
    assert kept
    garbage.end()
    assert gc.get_threshold() == (700, 10, 10)


def test_what_a_stream_made_is_collected_in_the_next_quiet_moment(collections: list[int]) -> None:
    garbage.pause()
    gone = ref(_Cycle())
    frames = [[n] for n in range(50_000)]
    garbage.resume()
    frames += [[n] for n in range(50_000)]
    assert not collections, "the frames after the end wait for no collection"
    assert gone() is not None
    garbage.tidy()
    assert gone() is None
    assert collections == [2]
    garbage.tidy()
    assert collections == [2], "once is enough"
    assert gc.isenabled()


def test_what_is_kept_is_neither_looked_at_nor_counted(collections: list[int]) -> None:
    with garbage.keeping():
        garbage.pause()
        garbage.resume()
        garbage.tidy()
        assert not gc.isenabled(), "a stream has ended while files are still being opened"
        kept = [[n] for n in range(1_000_000)]
        assert not collections
    assert gc.isenabled()
    garbage.tidy()
    garbage.tidy()
    assert 2 not in collections
    assert kept


def test_nothing_is_collected_while_the_screen_is_imported(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    def run(*_: object, **__: object) -> int:
        return int(gc.isenabled() and not seen)

    class Imported(ModuleType):
        """Makes many objects when its function is imported."""

        def __getattr__(self, name: str) -> object:
            if name != "run_app":
                raise AttributeError(name)
            self.kept = [[n] for n in range(100_000)]
            gc.callbacks.remove(note)
            return run

    monkeypatch.setattr(garbage, "gc", gc)
    monkeypatch.setattr(cli, "_check_terminal", lambda: gc.callbacks.append(note))
    monkeypatch.setitem(sys.modules, "midstream.tui.app", Imported("midstream.tui.app"))
    assert cli.main([str(project)]) == 1


async def test_a_count_that_changes_paints_one_row_of_the_rail(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    rail = stage.rail
    files = stage.files
    rail.show_files([FileEntry("pkg/things.py", HunkCounts(added=1), current=True)], files)
    before = [rail._strip(y) for y in range(len(rail.rows))]
    rail.show_files([FileEntry("pkg/things.py", HunkCounts(added=2), current=True)], files)
    after = [rail._strip(y) for y in range(len(rail.rows))]
    assert [y for y, strip in enumerate(after) if strip is not before[y]] == [1]
    assert rail.rows[1].right[0] == (" +2", "success")


async def test_files_that_are_opened_below_the_window_paint_no_row_of_the_rail(
    project: Path,
) -> None:
    async with on_stage(project, size=(160, 40)) as stage:
        rail, files = stage.rail, stage.files
        height = rail.size.height
        opened = [FileEntry(f"pkg/part_{n:03}.py", HunkCounts(added=1)) for n in range(200)]
        rail.show_files(opened, files)
        rail.move(-len(rail.rows))
        before = [rail._strip(y) for y in range(height)]
        rail.show_files([*opened, FileEntry("pkg/part_200.py", HunkCounts())], files)
        assert height > 20
        assert all(rail._strip(y) is strip for y, strip in enumerate(before))
        rail.show_files([FileEntry("pkg/first.py", HunkCounts()), *opened], files)
        assert "first.py" in rail._strip(1).text
        assert "part_000.py" in rail._strip(2).text
        rail.show_files((), files)
        assert "part_0" not in "".join(rail._strip(y).text for y in range(height))


async def test_the_language_of_a_file_is_found_beside_the_loop(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first name that is looked up costs 80 ms, the first of each language 5."""
    (project / "unusual.zig").write_text("const x = 1;\n")
    find = lexers.get_lexer_for_filename
    found: dict[str, threading.Thread] = {}

    def noted(name: str) -> Lexer:
        found.setdefault(name, threading.current_thread())
        return find(name)

    monkeypatch.setattr(lexers, "get_lexer_for_filename", noted)
    async with on_stage(project) as stage:
        await stage.open("unusual.zig")
    assert found["x.zig"] is not threading.main_thread()
