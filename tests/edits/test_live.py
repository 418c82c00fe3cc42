"""Replies streamed into proposals: hunks can be decided while the reply goes on."""

from __future__ import annotations

import difflib
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.apply import apply_reply
from midstream.edits.documents import SourceText, join_lines
from midstream.edits.events import FileOp
from midstream.edits.formats import format_spec, names
from midstream.edits.formats.region import RegionParser
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import HunkState
from midstream.edits.live import LiveReply
from midstream.edits.outcome import FailureReason
from midstream.edits.proposal import FileProposal
from midstream.edits.sniffing import SniffingParser
from tests.helpers.property import examples
from tests.helpers.strategies import chunks, code, mutate


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
    live = LiveReply(format_spec("search-replace").parser(), files)
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
    live = LiveReply(format_spec("search-replace").parser(), files)
    live.feed("<path>a</path>\n<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n")
    files.hunks.reject(1)
    live.feed("<<<<<<< SEARCH\nTWO\n=======\nZWEI\n>>>>>>> REPLACE\n")
    live.finish()
    assert [(f.hunk, f.error.reason) for f in live.failures] == [(1, FailureReason.NOT_FOUND)]


def test_json_streams_inside_a_line() -> None:
    files = Files(a="x = call(one, two)\ny\n")
    live = LiveReply(format_spec("str-replace").parser(), files)
    live.feed('{"path": "a", "old_str": "one", "new_str": "ei')
    assert [row.text for row in live.segments[0].tail()] == ["x = call(ei"]
    live.feed('ns"}')
    live.finish()
    assert files.accepted("a") == "x = call(eins, two)\ny\n"


def test_patch_hunks_appear_while_their_block_streams() -> None:
    files = Files(a="one\ntwo\nthree\nfour\nfive\n")
    live = LiveReply(format_spec("v4a").parser(), files)
    live.feed("*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n")
    assert len(files.hunks) == 0
    live.feed("+TW")
    assert [row.text for row in live.segments[0].tail()] == ["TW"], "the place is known"
    live.feed("O\n three\n")
    (hunk,) = files.hunks
    assert hunk.state is HunkState.SETTLED, "before the block has ended"
    files.hunks.accept(hunk.id)
    live.feed("-four\n+FOUR\n+FOUR AGAIN\n@@\n")
    assert files.hunks.get(2).state is HunkState.SETTLED
    live.feed("-five\n+FIVE\n*** Add File: b\n+new")
    assert [row.text for row in live.segments[2].tail()] == ["new"]
    live.feed("\n*** Delete File: c\n*** Update File: nope\n@@\n-x\n+y\n*** End Patch\n")
    live.finish()
    assert files.accepted("a") == "one\nTWO\nthree\nFOUR\nFOUR AGAIN\nFIVE\n"
    assert files.accepted("b") == "new\n"
    assert live.deletions == ["c"]
    assert [f.error.reason for f in live.failures] == [FailureReason.NO_FILE]


def test_a_patch_waits_until_its_lines_fit_one_place() -> None:
    files = Files(a="x\nkeep\nx\nother\n")
    live = LiveReply(format_spec("udiff").parser(), files)
    live.feed("--- a/a\n+++ b/a\n@@ ... @@\n-x\n+X\n")
    assert len(files.hunks) == 0
    live.feed(" other\n")
    assert [(h.start, h.new) for h in files.hunks] == [(2, ("X",))]


def test_a_patch_that_turns_out_to_stand_elsewhere_is_taken_back() -> None:
    files = Files(a="head\nold\nmiddle\nhead \nold\ntail\n")
    live = LiveReply(format_spec("v4a").parser(), files)
    live.feed("*** Begin Patch\n*** Update File: a\n@@\n head\n-old\n+new\n")
    assert live.segments[0].start == 1, "the only place with these lines exactly"
    live.feed(" tail\n*** End Patch\n")
    live.finish()
    assert not live.failures
    assert [(h.start, h.state) for h in files.hunks.for_path("a")] == [(4, HunkState.SETTLED)]
    assert files.accepted("a") == "head\nold\nmiddle\nhead \nnew\ntail\n"


def test_a_misplaced_patch_fails_and_keeps_its_accepted_hunks() -> None:
    files = Files(a="head\nold\nmiddle\n")
    live = LiveReply(format_spec("v4a").parser(), files)
    live.feed("*** Begin Patch\n*** Update File: a\n@@\n head\n-old\n+new\n middle\n")
    files.hunks.accept(1)
    live.feed("-nowhere\n*** End Patch\n")
    live.finish()
    assert [f.error.reason for f in live.failures] == [FailureReason.NOT_FOUND]
    assert files.accepted("a") == "head\nnew\nmiddle\n"


def test_new_lines_before_old_ones_are_one_hunk() -> None:
    files = Files(a="one\ntwo\nthree\n")
    live = LiveReply(format_spec("v4a").parser(), files)
    live.feed("*** Begin Patch\n*** Update File: a\n@@\n one\n+TWO\n-two\n+END\n three\n")
    (hunk,) = files.hunks.for_path("a")
    assert (hunk.old, hunk.new) == (("two",), ("TWO", "END"))


@pytest.mark.parametrize("edit_format", ["v4a", "udiff", "search-replace"])
def test_a_block_with_too_little_indentation_is_mended_as_it_streams(edit_format: str) -> None:
    files = Files(a="def f():\n\tif x:\n\t\told()\n\treturn\n")
    live = LiveReply(format_spec(edit_format).parser(), files)
    live.feed(
        {
            "v4a": "*** Begin Patch\n*** Update File: a\n@@\n if x:\n-\told()\n+\tnew()\n+x",
            "udiff": "--- a/a\n+++ b/a\n@@ @@\n if x:\n-\told()\n+\tnew()\n+x",
            "search-replace": "<path>a</path>\n<<<<<<< SEARCH\nif x:\n\told()\n=======\n"
            "if x:\n\tnew()\nx",
        }[edit_format]
    )
    assert live.segments[0].new_text.endswith("\t\tnew()\n")
    ends = {"search-replace": ">>>>>>> REPLACE\n", "v4a": "*** End Patch\n"}
    live.feed("()\n" + ends.get(edit_format, ""))
    live.finish()
    assert files.accepted("a") == "def f():\n\tif x:\n\t\tnew()\n\tx()\n\treturn\n"
    assert {hunk.match_level for hunk in files.hunks} == {3}


def test_blocks_that_follow_tell_ambiguous_places_apart() -> None:
    files = Files(a="x\nsame\ny\nsame\nz\n")
    live = LiveReply(format_spec("search-replace").parser(), files)
    block = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
    live.feed("<path>a</path>\n" + block.format("same", "SAME"))
    assert [f.error.reason for f in live.failures] == [FailureReason.AMBIGUOUS]
    live.feed(block.format("y\nsame\nz", "y\nsame\nZ"))
    live.finish()
    assert not live.failures
    assert files.accepted("a") == "x\nSAME\ny\nsame\nZ\n"


def test_a_block_may_quote_what_is_proposed_and_not_decided() -> None:
    files = Files(a="one\ntwo\nthree\n")
    block = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
    live = LiveReply(format_spec("search-replace").parser(), files)
    live.feed("<path>a</path>\n" + block.format("two", "zwei\nzwo"))
    live.feed(block.format("one\nzwei", "eins\nZWEI"))
    live.finish()
    assert not live.failures
    (hunk,) = files.hunks.for_path("a")
    assert (hunk.old, hunk.new) == (("one", "two"), ("eins", "ZWEI", "zwo"))
    assert files.accepted("a") == "eins\nZWEI\nzwo\nthree\n"


def test_nothing_of_a_malformed_block_stays_and_the_model_is_told() -> None:
    files = Files(a="one\ntwo\n")
    live = LiveReply(format_spec("search-replace").parser(), files)
    live.feed("<path>a</path>\n<<<<<<< SEARCH\none\n=======\nONE\n>>>>>>> REPLACE\n")
    live.feed("<<<<<<< SEARCH\ntwo\n=======\nTWO\n")
    assert len(files.hunks.for_path("a")) == 1
    live.finish()
    assert [f.error.reason for f in live.failures] == [FailureReason.MALFORMED]
    assert [h.new for h in files.hunks.for_path("a")] == [("ONE",)]
    said = live.outcome("search-replace").message()
    assert "Hunk 1 applied; do not send it again." in said
    assert "Send only hunk 2 again" in said


@examples(120)
@given(seed=st.integers(0, 2**32))
def test_streamed_patches_do_what_apply_does(seed: int) -> None:
    rng = random.Random(seed)
    old = [f"{line}  # {n // 3}" for n, line in enumerate(code(rng, 24))]
    new = mutate(rng, old, 3)
    if not new or old == new:
        return
    context = rng.randint(0, 3)
    diff = list(difflib.unified_diff(old, new, "a/f.x", "b/f.x", n=context, lineterm=""))
    if rng.random() < 0.3:  # models drop white space at line ends
        old = [line + " " * rng.randint(0, 1) for line in old]
    if rng.random() < 0.5:
        diff = ["*** Begin Patch", "*** Update File: f.x"] + [
            "@@" if line.startswith("@@") else line for line in diff[2:]
        ]
        diff.append("*** End Patch")
    reply = "\n".join(diff) + "\n"
    before = join_lines(old)
    applied = apply_reply(reply, {"f.x": before.encode()}.get)
    files = Files(**{"f.x": before})
    live = LiveReply(SniffingParser("whole"), files)
    for chunk in chunks(rng, reply):
        live.feed(chunk)
    live.finish()
    if applied.ok:
        assert not live.failures
        assert files.accepted("f.x").encode() == applied.changes.get("f.x", before.encode())


def test_patch_without_context_is_placed_by_all_its_old_lines() -> None:
    files = Files(a="x\nz\nx\ny\n")
    live = LiveReply(format_spec("v4a").parser(), files)
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


@pytest.mark.parametrize("edit_format", names())
@examples(40)
@given(seed=st.integers(0, 2**32))
def test_accepting_everything_is_applying_the_reply(edit_format: str, seed: int) -> None:
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
        "v4a": f"*** Begin Patch\n*** Update File: f.x\n@@\n{minus}{plus}*** End Patch",
        "udiff": f"--- a/f.x\n+++ b/f.x\n@@ -1,30 +1,{len(new)} @@\n{minus}{plus}",
        "search-replace": f"f.x\n<<<<<<< SEARCH\n{old[at]}\n=======\nnew\n  {old[at]}\n"
        f">>>>>>> REPLACE\n\n<<<<<<< SEARCH\n{old[0].strip()}\n=======\n>>>>>>> REPLACE\n",
        "str-replace": json.dumps(
            {"path": "f.x", "edits": [{"old_text": old[at][5:] + "\n", "new_text": "ü\n  y\n"}]}
        ),
        "whole": f"f.x\n```\n{after}```\n",
        "region": f"Fine:\n<region>\n{after}</region>\n",
    }[edit_format]
    applied = apply_reply(reply, {"f.x": before.encode()}.get, file="f.x")
    assert applied.ok, applied.message()
    files = Files(**{"f.x": before})
    sniffing = SniffingParser("whole")
    live = LiveReply(sniffing, files, region=(files.proposals["f.x"], 0, 30))
    for chunk in chunks(rng, reply):
        live.feed(chunk)
    live.finish()
    assert not live.failures
    assert files.accepted("f.x").encode() == applied.changes.get("f.x", before.encode())


@pytest.mark.parametrize("edit_format", ["whole", "region"])
def test_a_text_that_leaves_code_out_deletes_nothing(edit_format: str) -> None:
    before = "import os\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n"
    body = (
        "# ... existing code ...\ndef a():\n    return 10\n\n# ... rest of the code unchanged ...\n"
    )
    reply = {
        "whole": f"f.py\n```python\n{body}```\n",
        "region": f"<region>\n{body}</region>\n",
    }[edit_format]
    files = Files(**{"f.py": before})
    live = LiveReply(
        format_spec(edit_format).parser(), files, region=(files.proposals["f.py"], 0, 9)
    )
    live.feed(reply)
    live.finish()
    assert not live.failures
    assert [(h.old, h.new) for h in files.hunks.for_path("f.py")] == [
        (("    return 1",), ("    return 10",))
    ]
    unclear = Files(**{"f.py": before})
    live = LiveReply(
        format_spec(edit_format).parser(), unclear, region=(unclear.proposals["f.py"], 0, 9)
    )
    live.feed(reply.replace("def a()", "def c()"))
    live.finish()
    assert [f.error.reason for f in live.failures] == [FailureReason.ELIDED]
    assert not unclear.hunks.for_path("f.py")


@pytest.mark.parametrize("edit_format", ["search-replace", "whole"])
def test_files_are_deleted_and_moved_where_the_format_has_no_spelling(edit_format: str) -> None:
    files = Files(**{"old.py": "a\n", "x.py": "b\n"})
    live = LiveReply(format_spec(edit_format).parser(), files)
    live.feed("*** Delete File: old.py\n*** Move File: x.py -> y.py\n")
    live.finish()
    assert (live.deletions, live.moves) == (["old.py"], [("x.py", "y.py")])
    assert not live.problems
    assert not live.failures
    reply = "*** Delete File: old.py\n*** Move File: x.py -> y.py\n"
    texts = {"old.py": b"a\n", "x.py": b"b\n"}
    result = apply_reply(reply, texts.get, format=edit_format)
    assert result.ok, result.message()
    assert result.changes == {"old.py": None, "x.py": None, "y.py": b"b\n"}


@given(seed=st.integers(0, 2**32))
def test_a_new_file_streams_from_a_block_without_old_lines(seed: int) -> None:
    text = "new.py\n<<<<<<< SEARCH\n=======\nfirst = 1\nsecond = 2\n>>>>>>> REPLACE\n"
    files = Files(**{"a.py": "x\n"})
    live = LiveReply(format_spec("search-replace").parser(), files)
    for piece in chunks(random.Random(seed), text):
        live.feed(piece)
    live.finish()
    assert not live.failures
    assert files.accepted("new.py") == "first = 1\nsecond = 2\n"


def test_a_new_file_is_there_with_its_first_line() -> None:
    files = Files(**{"a.py": "x\n"})
    live = LiveReply(format_spec("search-replace").parser(), files)
    live.feed("new.py\n<<<<<<< SEARCH\n=======\nfirst = 1\nsec")
    assert live.segments[0].new_text == "first = 1\nsec"
