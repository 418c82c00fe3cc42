"""What uses the definitions that a hunk changes, and its lines on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.edits.documents import NO_FILE, SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk
from midstream.edits.proposal import FileProposal
from midstream.edits.stand_ins import FileProperties, StandIn
from midstream.pairing.review.uses import HunkText, find_places
from midstream.workspace.files import Workspace
from tests.helpers.pairing import make_repo

SHOP = """\
def total(items):
    return sum(items)


def tax(amount):
    return amount * 0.2


class Bill:
    def __init__(self, items):
        self.items = items

    def due(self):
        return total(self.items)
"""
FILES = {
    "shop.py": SHOP,
    "report.py": "from shop import Bill, tax\n\nprint(tax(3))\nbill = Bill([1])\n",
    "tests/test_shop.py": (
        "from shop import tax\n\n\nclass TestTax:\n    def test_one(self):\n"
        "        assert tax(10) == 2\n"
    ),
}


def hunk_of(after: str, before: str = SHOP) -> tuple[HunkText, Hunk]:
    """The only hunk of a file that another program has changed."""
    store = HunkStore()
    proposal = FileProposal("shop.py", SourceText.from_bytes(before.encode()), store)
    (hunk,) = proposal.advance(SourceText.from_bytes(after.encode()), review=True)
    return HunkText(proposal, hunk), hunk


def names(text: HunkText) -> list[tuple[str, bool]]:
    return [(each.name, each.gone) for each in text.definitions()]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(make_repo(tmp_path / "work", FILES))


def test_the_innermost_definitions_of_its_lines_are_changed() -> None:
    text, _ = hunk_of(SHOP.replace("total(self.items)", "total([])"))
    assert names(text) == [("Bill.due", False)]
    assert text.lines_on_disk() == [13]
    text, _ = hunk_of(SHOP.replace("    return amount * 0.2\n", ""))
    assert names(text) == [("tax", False)]
    text, _ = hunk_of(SHOP.replace("def tax(amount):\n    return amount * 0.2\n\n\n", ""))
    assert names(text) == [("tax", True)]
    assert text.lines_on_disk() == [3, 4]  # what is beside it now
    text, _ = hunk_of(SHOP.replace("def tax", "def vat"))
    assert names(text) == [("vat", False), ("tax", True)]
    text, _ = hunk_of("import sys\n\n" + SHOP)
    assert names(text) == []


@pytest.mark.system  # a child process reads a package
async def test_uses_are_found_without_its_own_lines_and_tests_are_marked(
    workspace: Workspace,
) -> None:
    after = SHOP.replace("0.2", "0.25")
    (workspace.root / "shop.py").write_text(after)
    text, _ = hunk_of(after)
    (definition,) = text.definitions()
    places = await find_places(workspace, text, definition)
    assert [(p.path, p.line, p.text, p.test) for p in places] == [
        ("report.py", 0, "from shop import Bill, tax", False),
        ("report.py", 2, "print(tax(3))", False),
        ("tests/test_shop.py", 0, "from shop import tax", True),
        ("tests/test_shop.py", 5, "assert tax(10) == 2", True),
    ]
    assert places[-1].inside == "TestTax.test_one"
    assert all(place.certain for place in places)


@pytest.mark.system  # a child process reads a package
async def test_uses_of_what_is_gone_are_found(workspace: Workspace) -> None:
    after = SHOP.replace("def tax(amount):\n    return amount * 0.2\n\n\n", "")
    (workspace.root / "shop.py").write_text(after)
    text, _ = hunk_of(after)
    (definition,) = text.definitions()
    places = await find_places(workspace, text, definition)
    assert ("report.py", 2) in [(place.path, place.line) for place in places]


@pytest.mark.system  # a child process reads a package
async def test_a_constructor_is_used_by_the_name_of_its_class(workspace: Workspace) -> None:
    after = SHOP.replace("self.items = items", "self.items = list(items)")
    (workspace.root / "shop.py").write_text(after)
    text, _ = hunk_of(after)
    (definition,) = text.definitions()
    assert definition.name == "Bill.__init__"
    places = await find_places(workspace, text, definition)
    assert [(place.path, place.line) for place in places] == [("report.py", 0), ("report.py", 3)]


def test_what_a_new_file_defines_is_changed() -> None:
    proposal = FileProposal("shop.py", NO_FILE, HunkStore())
    (hunk,) = proposal.propose(SHOP.splitlines(), 1)
    text = HunkText(proposal, hunk)
    everything = ("total", "tax", "Bill", "Bill.__init__", "Bill.due")
    assert names(text) == [(name, False) for name in everything]
    assert text.lines_on_disk() == []


@pytest.mark.system  # a child process reads a package
async def test_uses_of_what_a_deleted_file_defined_are_found(workspace: Workspace) -> None:
    proposal = FileProposal("shop.py", SourceText.from_bytes(SHOP.encode()), HunkStore())
    (workspace.root / "shop.py").unlink()
    (hunk,) = proposal.advance(NO_FILE, review=True)
    text = HunkText(proposal, hunk)
    by_name = {each.name: each for each in text.definitions()}
    places = await find_places(workspace, text, by_name["tax"])
    assert ("report.py", 2) in [(place.path, place.line) for place in places]
    assert await find_places(workspace, text, by_name["total"]) == []  # its use is gone too


def test_what_a_deleted_file_defined_is_gone() -> None:
    store = HunkStore()
    proposal = FileProposal("shop.py", SourceText.from_bytes(SHOP.encode()), store)
    (hunk,) = proposal.advance(proposal.base.gone(), review=True)
    text = HunkText(proposal, hunk)
    assert ("tax", True) in names(text)
    assert ("Bill.due", True) in names(text)
    assert text.lines_on_disk() == []


def test_a_file_that_is_decided_as_a_whole_has_no_definitions() -> None:
    store = HunkStore()
    proposal = FileProposal("a.py", SourceText.from_bytes(SHOP.encode()), store)
    line = "binary file, 2 bytes"
    binary = StandIn.named(line, FileProperties(b"\x00\x01", None, False), [proposal.base])
    (hunk,) = proposal.advance(binary, review=True)
    text = HunkText(proposal, hunk)
    assert (names(text), text.lines_on_disk()) == ([], [])


def test_other_text_has_no_definitions() -> None:
    store = HunkStore()
    proposal = FileProposal("a.md", SourceText.from_bytes(b"one\n"), store)
    (hunk,) = proposal.advance(SourceText.from_bytes(b"two\n"), review=True)
    assert HunkText(proposal, hunk).definitions() == []
