"""Replies streamed into proposals: hunks can be decided while the reply goes on."""

from __future__ import annotations

import json
import random

import pytest
from edits_strategies import chunks, code, mutate
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.edits.apply import apply_reply
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.formats.events import FileOp
from midstream.edits.formats.region import RegionParser
from midstream.edits.formats.sniff import Format, SniffingParser, parser_for
from midstream.edits.formats.whole import WholeFileParser
from midstream.edits.hunks import HunkState, HunkStore
from midstream.edits.live import LiveReply
from midstream.edits.outcome import Reason
from midstream.edits.proposal import FileProposal


class Files:
    """Proposals of the files that exist; new ones are empty."""

    def __init__(self, **texts: str) -> None:
        self.hunks = HunkStore()
        self.proposals = {
            path: FileProposal(path, SourceText.from_text(text), self.hunks)
            for path, text in texts.items()
        }

    def __call__(self, path: str, op: FileOp) -> FileProposal | None:
        if path not in self.proposals and op is not FileOp.UPDATE:
            self.proposals[path] = FileProposal(path, SourceText((), ()), self.hunks)
        return self.proposals.get(path)

    def accepted(self, path: str) -> str:
        for hunk in self.hunks.undecided(path):
            self.hunks.accept(hunk.id)
        return self.proposals[path].composed().to_bytes().decode()


def test_search_replace_block_is_decided_while_the_next_streams() -> None:
    files = Files(a="one\ntwo\nthree\nfour\n")
    live = LiveReply(parser_for(Format.SEARCH_REPLACE), files)
    head = "<path>a</path>\n<<<<<<< SEARCH\ntwo\nthree\n=======\n"
    live.feed(head + "TWO\nthr")
    segment = live.segments[0]
    assert [row.text for row in segment.tail()] == ["TWO", "thr"]
    live.feed("ee\n>>>>>>> REPLACE\n")
    (hunk,) = files.hunks
    assert (hunk.start, hunk.stop, hunk.old, hunk.new) == (1, 2, ("two",), ("TWO",))
    assert hunk.match_level == 1
    files.hunks.accept(hunk.id)
    live.feed("<<<<<<< SEARCH\nTWO\n=======\nZWEI\n")  # quotes what was accepted
    live.feed(">>>>>>> REPLACE\n<<<<<<< SEARCH\nfour\n=======\nFOUR\n>>>>>>> REPLACE\n")
    live.finish()
    assert not live.failures
    assert files.accepted("a") == "one\nZWEI\nthree\nFOUR\n"


def test_rejected_text_is_not_there_for_later_blocks() -> None:
    files = Files(a="one\ntwo\n")
    live = LiveReply(parser_for(Format.SEARCH_REPLACE), files)
    live.feed("<path>a</path>\n<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n")
    files.hunks.reject(1)
    live.feed("<<<<<<< SEARCH\nTWO\n=======\nZWEI\n>>>>>>> REPLACE\n")
    live.finish()
    assert [(f.hunk, f.error.reason) for f in live.failures] == [(1, Reason.NOT_FOUND)]


def test_json_streams_inside_a_line() -> None:
    files = Files(a="x = call(one, two)\ny\n")
    live = LiveReply(parser_for(Format.STR_REPLACE), files)
    live.feed('{"path": "a", "old_str": "one", "new_str": "ei')
    assert [row.text for row in live.segments[0].tail()] == ["x = call(ei"]
    live.feed('ns"}')
    live.finish()
    assert files.accepted("a") == "x = call(eins, two)\ny\n"


def test_patch_hunks_appear_when_they_close() -> None:
    files = Files(a="one\ntwo\nthree\nfour\nfive\n")
    live = LiveReply(parser_for(Format.V4A), files)
    live.feed("*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n+TWO\n three\n")
    assert len(files.hunks) == 0
    live.feed("@@\n")
    (hunk,) = files.hunks
    assert hunk.state is HunkState.SETTLED
    live.feed("-five\n+FIVE\n*** Add File: b\n+new")
    assert [row.text for row in live.segments[2].tail()] == ["new"]
    live.feed("\n*** Delete File: c\n*** Update File: nope\n@@\n-x\n+y\n*** End Patch\n")
    live.finish()
    assert files.accepted("a") == "one\nTWO\nthree\nfour\nFIVE\n"
    assert files.accepted("b") == "new\n"
    assert live.deletions == ["c"]
    assert [f.error.reason for f in live.failures] == [Reason.NO_FILE]


def test_patch_without_context_is_placed_by_all_its_old_lines() -> None:
    files = Files(a="x\nz\nx\ny\n")
    live = LiveReply(parser_for(Format.V4A), files)
    live.feed("*** Begin Patch\n*** Update File: a\n@@\n-x\n+X\n-y\n+Y\n*** End Patch\n")
    live.finish()
    assert files.accepted("a") == "x\nz\nX\nY\n"


def test_region_reply_and_stop() -> None:
    files = Files(a="".join(f"statement {n}\n" for n in range(6)))
    proposal = files.proposals["a"]
    live = LiveReply(RegionParser(proposal.base.lines[1:5]), files, region=(proposal, 1, 5))
    live.feed("Sure:\n```python\nstatement 1\nchanged 2\nstatement 3\nhal")
    live.stop()
    assert live.prose == ["Sure:\n"]
    text = files.accepted("a")
    assert text == "statement 0\nstatement 1\nchanged 2\nstatement 3\nstatement 4\nstatement 5\n"


@pytest.mark.parametrize("edit_format", list(Format))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_accepting_everything_is_applying_the_reply(edit_format: Format, seed: int) -> None:
    rng = random.Random(seed)
    old = [f"    {line}  # {n}" for n, line in enumerate(code(rng, 30))]
    new = mutate(rng, old, 2)
    before, after = join_lines(old), join_lines(new)
    if not new or old == new:
        return
    minus = "".join(f"-{line}\n" for line in old)
    plus = "".join(f"+{line}\n" for line in new)
    at = rng.randint(1, 28)
    reply = {
        Format.V4A: f"*** Begin Patch\n*** Update File: f.x\n@@\n{minus}{plus}*** End Patch",
        Format.UDIFF: f"--- a/f.x\n+++ b/f.x\n@@ -1,30 +1,{len(new)} @@\n{minus}{plus}",
        Format.SEARCH_REPLACE: f"f.x\n<<<<<<< SEARCH\n{old[at]}\n=======\nnew\n  {old[at]}\n"
        f">>>>>>> REPLACE\n\n<<<<<<< SEARCH\n{old[0].strip()}\n=======\n>>>>>>> REPLACE\n",
        Format.STR_REPLACE: json.dumps(
            {"path": "f.x", "edits": [{"old_text": old[at][5:] + "\n", "new_text": "ü\n  y\n"}]}
        ),
        Format.WHOLE: f"f.x\n```\n{after}```\n",
        Format.REGION: f"Fine:\n<region>\n{after}</region>\n",
    }[edit_format]
    applied = apply_reply(reply, {"f.x": before.encode()}.get, file="f.x")
    assert applied.ok, applied.message()
    files = Files(**{"f.x": before})
    sniffing = SniffingParser(WholeFileParser, Format.WHOLE)
    live = LiveReply(sniffing, files, region=(files.proposals["f.x"], 0, 30))
    for chunk in chunks(rng, reply):
        live.feed(chunk)
    live.finish()
    assert not live.failures
    assert files.accepted("f.x").encode() == applied.changes.get("f.x", before.encode())
