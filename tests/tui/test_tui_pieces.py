"""Small pure pieces: words that changed, picking by letters, bars."""

from __future__ import annotations

import pytest

from midstream.edits.rows import Row, RowKind
from midstream.tui.diff.strips import compare_halves, compare_rows
from midstream.tui.diff.view import MatchFinder
from midstream.tui.fuzzy import fuzzy_score, has_words, matched_letters
from midstream.tui.glyphs import ASCII, UNICODE, sparkline
from midstream.tui.widgets.rail import FileTree


def test_a_renamed_variable_is_marked_and_nothing_else() -> None:
    rows = [
        Row(RowKind.DELETED, 0, None, "    total += item", 1),
        Row(RowKind.DELETED, 1, None, "    return sum(total)", 1),
        Row(RowKind.ADDED, None, 0, "    found += item", 1),
        Row(RowKind.ADDED, None, 1, "something else entirely", 1),
    ]
    assert compare_rows(rows) == {0: ((4, 9),), 2: ((4, 9),)}


@pytest.mark.parametrize(
    ("typed", "better", "worse"),
    [
        ("money", "tally/money.py", "tests/test_money.py"),
        ("tesm", "tests/test_money.py", "tally/money.py"),
        ("entr", "tally/entries.py", "docs/central.md"),
    ],
)
def test_letters_find_the_likelier_file(typed: str, better: str, worse: str) -> None:
    good, bad = fuzzy_score(typed, better), fuzzy_score(typed, worse)
    assert good is not None
    assert bad is None or good > bad


def test_letters_of_a_sentence_follow_each_other_or_begin_words() -> None:
    assert fuzzy_score("test", "The keys of this screen") is None
    assert matched_letters("tkos", "The keys of this screen") == (0, 4, 9, 17)
    assert matched_letters("keys", "The keys of this screen") == (4, 5, 6, 7)


def test_a_phrase_is_found_by_its_words_in_any_order_and_form() -> None:
    tests = "Run the project's tests and list the places that failed"
    assert has_words("run tests", tests)
    assert has_words("how do i run a test", tests)
    assert has_words("failures in tests", tests, "failure")
    assert not has_words("run lint", tests)
    assert not has_words("tests", tests), "one word is matched by its letters"
    assert not has_words("what is the", tests)


def test_folders_that_begin_with_a_dot_are_listed_last() -> None:
    tree = FileTree([".github/ci.yml", "src/a.py", "README.md", ".idea/x/y.xml", "src/b/.c/d"])
    files = [path for path in tree.walk(lambda folder: True) if not path.endswith("/")]
    assert files == ["README.md", "src/a.py", "src/b/.c/d", ".github/ci.yml", ".idea/x/y.xml"]
    assert list(tree.walk(lambda folder: False)) == ["README.md", "src/", ".github/", ".idea/"]


def test_letters_that_are_missing_find_nothing() -> None:
    assert fuzzy_score("xyz", "tally/money.py") is None


def test_bars_scale_to_the_largest() -> None:
    assert sparkline([0, 50, 100], UNICODE, 8) == "▁▅█"
    assert sparkline([1, 2, 3, 4], ASCII, 3)[-1] == "@"
    assert sparkline([0, 0, 0], UNICODE, 8) == ""


def test_matches_go_around_the_end() -> None:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.tui.diff.view import FileView

    base = SourceText.from_bytes(b"One\ntwo\none one\nthree\n")
    hunks = HunkStore()
    view = FileView(FileProposal("f.txt", base, hunks), hunks)
    view.refresh()
    finder = MatchFinder(view, "one")
    assert finder.matches == {0: ((0, 3),), 2: ((0, 3), (4, 7))}
    assert finder.next(0, forward=True) == 2
    assert finder.next(2, forward=True) == 0
    assert finder.next(0, forward=False) == 2
    assert finder.count == 3
    assert list(finder.numbers(0)) == [1]
    assert list(finder.numbers(1)) == []
    assert list(finder.numbers(2)) == [2, 3]
    assert MatchFinder(view, "One").matches == {0: ((0, 3),)}


def test_rows_that_stream_in_get_their_tokens_even_when_they_come_at_once() -> None:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunk_store import HunkStore
    from midstream.edits.proposal import FileProposal
    from midstream.tui.diff.syntax import FileSyntax
    from midstream.tui.diff.view import FileView, Look

    base = SourceText.from_bytes(b'"""Doc."""\n\n\ndef f():\n    return 1\n')
    hunks = HunkStore()
    proposal = FileProposal("f.py", base, hunks)
    view = FileView(proposal, hunks)
    syntax = FileSyntax(view)
    view.refresh()
    syntax.sync()
    proposal.begin(3, 5)
    proposal.feed("def f():\n" + "".join(f"    call_{n}('text', {n})\n" for n in range(4_000)))
    view.refresh()
    syntax.sync()
    shown = [view.row(y) for y in range(view.size)]
    last = next(row for row in reversed(shown) if row.look in (Look.ADDED, Look.PENDING))
    while not syntax.is_ready(last):
        syntax.spans(last)
    assert [kind for _, _, kind in syntax.spans(last)].count("string") >= 1
    proposal.feed("    return")
    view.refresh()
    syntax.sync()
    writing = view.row(view.writing)
    assert writing.look is Look.WRITING
    assert syntax.spans(writing) == ((4, 10, "keyword"),)


def test_what_differs_in_a_moved_file_is_marked() -> None:
    old = ["import a", "", "def f(x):", "    return x + 1", "gone"]
    new = ["import a", "", "new", "def f(x):", "    return x + 2"]
    olds, news = compare_halves(old, new)
    assert olds == {3: ((15, 16),), 4: ((0, 4),)}
    assert news == {2: ((0, 3),), 4: ((15, 16),)}
