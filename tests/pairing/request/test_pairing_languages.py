"""Which region an instruction is about in other languages than Python, and what stops parsing."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.code.languages import LANGUAGES
from midstream.code.outline import outline
from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.pairing.request.target import (
    TargetUnclearError,
    find_in_files,
    find_target,
    search_workspace,
)
from midstream.pairing.turn.checks import look, newly_broken
from midstream.tui.mentions import MentionSource
from midstream.workspace.files import Workspace
from tests.helpers.code_samples import SAMPLES

ROOT = Path(__file__).parents[3]


def found(path: str, instruction: str, line: int | None = None) -> str:
    """The region as ``symbol first-last``, 1-based."""
    text = SourceText.from_bytes(SAMPLES[path].encode())
    target = find_target(text, instruction=instruction, path=path, cursor=line and line - 1)
    return f"{target.symbol} {target.start + 1}-{target.stop}"


@pytest.mark.parametrize(
    ("path", "instruction", "said"),
    [
        ("cart.js", "make `load` async", "load 1-2"),
        ("cart.js", "Cart.add forgets the price", "Cart.add 9-10"),
        ("cart.js", "rename total to sum", "save 3-6"),
        ("store.ts", "rename b to other in NS.inner", "NS.inner 10-10"),
        ("server.go", "let Start return the number", "Server.Start 13-17"),
        ("point.rs", "give Point::new a second argument", "Point.new 6-7"),
        ("Cart.java", "`Cart.add` must refuse null", "Cart.add 7-8"),
        ("add.c", "rename total to sum in add", "add 8-12"),
        ("cart.cpp", "Cart::size returns the wrong number", "shop.deep.Cart.size 12-12"),
        ("shop.rb", "let Cart#add take a block", "Shop.Cart.add 6-10"),
        ("load.sh", "quote everything in load()", "load 4-8"),
    ],
)
def test_a_named_function_is_the_target(path: str, instruction: str, said: str) -> None:
    assert found(path, instruction) == said


@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        ("cart.js", 5, "save 3-6"),
        ("cart.js", 13, "Cart 8-13"),
        ("store.ts", 5, "Store.handler 5-5"),
        ("server.go", 15, "Server.Start 13-17"),
        ("server.go", 1, " 1-1"),
        ("point.rs", 7, "Point.new 6-7"),
        ("Cart.java", 8, "Cart.add 7-8"),
        ("add.c", 10, "add 8-12"),
        ("cart.cpp", 8, "shop.deep.Cart.add 8-8"),
        ("shop.rb", 9, "Shop.Cart.add 6-10"),
        ("load.sh", 7, "load 4-8"),
    ],
)
def test_otherwise_the_function_at_the_cursor_is(path: str, line: int, said: str) -> None:
    assert found(path, "make it faster", line) == said


def test_a_name_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(TargetUnclearError, match=r"no `Server\.Stat` in .*; nearest: `Serv"):
        found("server.go", "change `Server.Stat`")


def test_two_languages_do_not_share_an_outline() -> None:
    lines = ("class A:", "    def f(self): pass", "")
    assert [d.name for d in outline(lines, "a.py").definitions] == ["A", "A.f"]
    assert [d.name for d in outline(lines, "a.rb").definitions] != ["A", "A.f"]
    assert [d.name for d in outline(lines, "a.py").definitions] == ["A", "A.f"]


def test_the_file_that_defines_a_name_is_found() -> None:
    files = [*SAMPLES.items(), ("shop.py", "def fetch_all():\n    pass\n")]
    assert find_in_files(files, instruction="add a comment to `Server.Start`")[0] == "server.go"
    assert find_in_files(files, instruction="add a comment to `Point`")[0] == "point.rs"
    assert find_in_files(files, instruction="add a comment to `fetch_all`")[0] == "shop.py"
    with pytest.raises(TargetUnclearError, match=r"nearest: `handler`|nearest: `load`") as raised:
        find_in_files(files, instruction="change `loda`")
    assert raised.value.missing == "loda"


def test_a_folder_without_python_has_targets(tmp_path: Path) -> None:
    for path, text in SAMPLES.items():
        (tmp_path / path).write_text(text)
    assert search_workspace(Workspace(tmp_path), "give `MAX` three arguments") == "add.c"


def proposed(path: str, before: str, after: str) -> FileProposal:
    proposal = FileProposal(path, SourceText.from_bytes(before.encode()), HunkStore())
    proposal.begin(0, len(proposal.base.lines))
    proposal.feed(after)
    proposal.finish()
    return proposal


@pytest.mark.parametrize("path", SAMPLES)
async def test_a_proposal_that_breaks_the_syntax_is_told(path: str) -> None:
    before = SAMPLES[path]
    broken = f"{before}{'do (' if path.endswith('.sh') else ') {'}\n"
    assert (await newly_broken(proposed(path, before, broken))).startswith("line ")
    assert (await newly_broken(proposed(path, broken, f"{before}\n{broken}"))) == ""
    assert (await newly_broken(proposed(path, before, f"{before}\n"))) == ""
    verdict = await look(path, before.split("\n")[:-1], broken.split("\n")[:-1])
    assert verdict.words.startswith("does not parse (line ")


async def test_definitions_are_offered_for_a_mention() -> None:
    source = MentionSource(
        lambda: tuple(SAMPLES),
        lambda: ("server.go",),
        lambda path: SAMPLES[path].splitlines(),
    )
    assert source.missing("server.go:St") == "reading server.go"
    assert await source.prepare("server.go:St")
    assert source.candidates("server.go:St")[0].symbol == "Server.Start"
    assert await source.prepare("Poi")
    assert ("point.rs", "Point") in [(c.path, c.symbol) for c in source.candidates("Poi")]


def test_the_documentation_names_every_language() -> None:
    text = (ROOT / "docs" / "languages.md").read_text()
    for language in LANGUAGES:
        assert f"| {language.name} |" in text
        assert all(f"`{suffix}`" in text for suffix in language.suffixes)
