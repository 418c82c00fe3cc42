"""Added code streamed into a proposal: whatever the reply is, nothing of the file is deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.additions import AdditionParser, FileAdditionParser
from midstream.edits.documents import SourceText
from midstream.edits.formats.region import RegionParser
from midstream.edits.hunk_store import HunkStore
from midstream.edits.live import LiveReply
from midstream.edits.parsing import ReplyParser
from midstream.edits.proposal import FileProposal
from tests.helpers.property import examples

TEXT = """\
import math


class Steps:
    def first(self):
        return 1

    def second(self):
        return math.pi


def last():
    return 2
"""
LINES = TEXT.split("\n")[:-1]
CLASS = (3, 9)


def to_file() -> tuple[ReplyParser, tuple[int, int]]:
    return FileAdditionParser(LINES, 1, len(LINES), path="a.py"), (0, len(LINES))


def to_class() -> tuple[ReplyParser, tuple[int, int]]:
    old = LINES[slice(*CLASS)]
    return AdditionParser(old, len(old), "    ", first=1, path="a.py"), CLASS


def to_region() -> tuple[ReplyParser, tuple[int, int]]:
    return RegionParser(LINES[slice(*CLASS)]), CLASS


Start = Callable[[], tuple[ReplyParser, tuple[int, int]]]


def accepted(start: Start, pieces: Sequence[str], *, stopped: bool = False) -> tuple[int, str]:
    """How many hunks a reply leaves, and the file once all of them are accepted."""
    hunks = HunkStore()
    proposal = FileProposal("a.py", SourceText.from_text(TEXT), hunks)
    parser, place = start()
    segment = proposal.begin(*place, repair_indentation=True)
    live = LiveReply(parser, lambda *_: None, (proposal, *place), opened=segment)
    for piece in pieces:
        live.feed(piece)
    if stopped:
        live.stop()
    else:
        live.finish()
    if proposal.current is not None:  # No line came for the region.
        proposal.abandon()
    waiting = hunks.undecided("a.py")
    for hunk in waiting:
        hunks.accept(hunk.id)
    return len(waiting), proposal.composed().to_bytes().decode()


WITHOUT_CODE = [
    "", "```python\n```\n", "```python\n\n\n```\n", "<region>\n</region>\n", '{"code": ""}\n',
]  # fmt: skip


@pytest.mark.parametrize("start", [to_file, to_class, to_region])
@pytest.mark.parametrize("reply", [*WITHOUT_CODE, "I am sorry, but I cannot do that.\n"])
@pytest.mark.parametrize("stopped", [False, True])
def test_a_reply_without_code_leaves_no_hunk(start: Start, reply: str, *, stopped: bool) -> None:
    assert accepted(start, [reply], stopped=stopped) == (0, TEXT)
    assert accepted(start, [*reply], stopped=stopped) == (0, TEXT)


@pytest.mark.parametrize(
    "reply",
    [
        "Done.\n", "```python\nreturn title.upper()\n```\n", "```python\nprint(last())\n```\n",
        f"```python\n{TEXT}```\n", "```python\n# ... the rest as before\n```\n",
        "last()\n", "```python\nimport math\n",
    ],
)  # fmt: skip
def test_nothing_new_for_a_file_leaves_no_hunk(reply: str) -> None:
    assert accepted(to_file, [reply]) == (0, TEXT)


REPLY = st.lists(
    st.sampled_from([*LINES, *(
        "```", "```python", "Talk about it.", "# ... existing code ...", "# a", "@mark", "x = 1",
        "    y = 2", "def new():", "    def third(self):", "        pass", "import re",
        "from a import (", "    b,", ")", "<region>", "</region>", "1", '"""', "else:",
    )]),
    max_size=20,
)  # fmt: skip


@pytest.mark.parametrize("start", [to_file, to_class])
@examples(150)
@given(lines=REPLY, fenced=st.booleans(), size=st.integers(1, 40), stopped=st.booleans())
def test_every_line_stays_in_order(
    start: Start, lines: list[str], size: int, *, fenced: bool, stopped: bool
) -> None:
    reply = "".join(f"{line}\n" for line in [*["```python"] * fenced, *lines])
    pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
    _, text = accepted(start, pieces, stopped=stopped)
    after = iter(text.split("\n"))
    assert all(line in after for line in LINES), text
