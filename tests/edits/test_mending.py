"""What models write around a region, or in front of its lines."""

from __future__ import annotations

import pytest

from midstream.edits.documents import SourceText
from midstream.edits.formats.region import RegionParser
from midstream.edits.hunk_store import HunkStore
from midstream.edits.live import LiveReply
from midstream.edits.mending import unnumbered, without_surroundings
from midstream.edits.proposal import FileProposal, Overlay

FILE = """\
\"\"\"Prices.\"\"\"

TAX = 0.19


class Shop:
    def total(self, items):
        result = 0
        for item in items:
            result += item.price
        return result

    def with_tax(self, items):
        return self.total(items) * (1 + TAX)
"""
NEW = FILE.replace("item.price", "item.price * item.count")
LINES, WRITTEN = FILE.splitlines(), NEW.splitlines()
START, STOP = 6, 11


def rewritten(answer: str) -> str:
    """The file after an answer to a request for the method ``total``."""
    proposal = FileProposal("shop.py", SourceText.from_text(FILE), HunkStore())
    opened = proposal.begin(START, STOP, repair_indentation=True)
    parser = RegionParser(LINES[START:STOP])
    reply = LiveReply(parser, lambda path, op: None, (proposal, START, STOP), opened=opened)
    for start in range(0, len(answer), 7):
        reply.feed(answer[start : start + 7])
    reply.finish()
    assert not reply.failures
    return Overlay(proposal).source.text()


@pytest.mark.parametrize(
    ("first", "last"), [(0, len(LINES)), (2, 11), (5, 11), (6, len(LINES)), (6, 13), (6, 11)]
)
def test_lines_around_a_region_are_not_doubled(first: int, last: int) -> None:
    answer = "\n".join(WRITTEN[first:last])
    assert rewritten(f"```python\n{answer}\n```\n") == NEW


def test_a_whole_file_may_add_a_line_elsewhere() -> None:
    text = NEW.replace("TAX = 0.19", "import math\n\nTAX = 0.19")
    assert rewritten(f"```python\n{text}```\n") == text


def test_a_whole_file_that_lacks_lines_is_no_whole_file() -> None:
    lines = [line for line in WRITTEN if "with_tax" not in line]
    assert without_surroundings(LINES, START, STOP, lines) != (0, len(LINES), lines)


def test_numbers_in_front_of_lines_are_left_out() -> None:
    numbered = [f"{n:>3} | {line}" for n, line in enumerate(WRITTEN[START:STOP], START + 1)]
    assert rewritten("```python\n" + "\n".join(numbered) + "\n```\n") == NEW


@pytest.mark.parametrize("separator", [" | ", "|", ": ", "\t", " "])
def test_numbers_are_told_from_text(separator: str) -> None:
    lines = ["def f():", "    return 1", "", "x = 2"]
    numbered = [f"{n}{separator}{line}".rstrip() for n, line in enumerate(lines, 9)]
    assert unnumbered(["def f():"], numbered) == lines
    assert unnumbered(["1 a", "2 b"], ["1 c", "2 d"]) is None
    assert unnumbered(["a"], ["3 c", "1 d"]) is None
    assert unnumbered(["a"], ["1 c", "d"]) is None
    assert unnumbered(["a"], ["10x", "20y"]) is None
