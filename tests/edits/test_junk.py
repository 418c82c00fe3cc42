"""Replies half in one format and half in another never raise, nor change what they must not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.apply import apply_reply
from midstream.edits.documents import SourceText
from midstream.edits.events import FileOp
from midstream.edits.formats import format_spec, names
from midstream.edits.hunk_store import HunkStore
from midstream.edits.live import LiveReply
from midstream.edits.proposal import FileProposal
from midstream.edits.sniffing import SniffingParser
from tests.helpers.property import examples

FILES = {"a.py": b"def f():\n    return 1\n\nx = 1\n", "b": b"", "c.txt": b"x\r\n\r\ny"}
TOKENS = st.lists(
    st.sampled_from(
        [
            *(
                "*** Begin Patch\n",
                "*** End Patch\n",
                "*** Update File: a.py\n",
                "*** Add File: n\n",
            ),
            *(
                "*** Delete File: c.txt\n",
                "*** End of File\n",
                "*** Move to: b\n",
                "@@\n",
                "@@ f\n",
            ),
            *(
                "a.py\n",
                "```\n",
                "```python\n",
                "<<<<<<< SEARCH\n",
                "=======\n",
                ">>>>>>> REPLACE\n",
            ),
            *(
                "------- SEARCH\n",
                "+++++++ REPLACE\n",
                "--- a/a.py\n",
                "+++ b/a.py\n",
                "...\n",
                "\n",
            ),
            *(
                "@@ -1,2 +1,2 @@\n",
                "\\ No newline at end of file\n",
                "--- /dev/null\n",
                "+x\n",
                "-x\n",
            ),
            *(
                " x = 1\n",
                "-x = 1\n",
                "+x = 2\n",
                "x = 1\n",
                "    return 1\n",
                "return 1\n",
                "-",
                "+",
            ),
            *(
                '{"path": "a.py", ',
                '"old_str": "1", ',
                '"new_str": "\\u00',
                '2"}',
                "[",
                "]",
                "}",
                '"',
            ),
            *("<region>\n", "</region>\n", "<region", "Some prose.\n", "é\r\n", "\r", "\\"),
            *('"insert_line": 99, ', '"edits": [', "diff --git a/a.py b/a.py\n", "rename to q\n"),
        ]
    ),
    max_size=14,
).map("".join)


@examples(400)
@given(TOKENS, st.sampled_from(["auto", *names()]), st.sampled_from([None, "a.py"]))
def test_applying_junk(reply: str, edit_format: str, file: str | None) -> None:
    result = apply_reply(reply, FILES.get, edit_format, file)
    if not result.ok:
        assert not result.changes
        assert result.message()
    assert result.to_json()["ok"] == result.ok
    for path, data in result.changes.items():
        assert data != FILES.get(path)
    partial = apply_reply(reply, FILES.get, edit_format, file, partial=True)
    assert partial.ok == result.ok


@examples(300)
@given(TOKENS, st.sampled_from([None, *names()]), st.integers(1, 7))
def test_streaming_junk(reply: str, edit_format: str | None, size: int) -> None:
    hunks = HunkStore()
    proposals = {
        path: FileProposal(path, SourceText.from_bytes(data), hunks) for path, data in FILES.items()
    }

    def lookup(path: str, op: FileOp) -> FileProposal | None:
        if path not in proposals and op in (FileOp.ADD, FileOp.WRITE):
            proposals[path] = FileProposal(path, SourceText((), ()), hunks)
        return proposals.get(path)

    if edit_format is None:
        parser = SniffingParser("whole")
    else:
        spec = format_spec(edit_format)
        parser = (spec.bare_parser or spec.parser)()
    live = LiveReply(parser, lookup, region=(proposals["a.py"], 1, 2))
    for at in range(0, len(reply), size):
        live.feed(reply[at : at + size])
        for hunk in hunks.undecided():
            hunks.accept(hunk.id)
    live.finish()
    for proposal in proposals.values():
        assert proposal.current is None
        proposal.composed().to_bytes()
