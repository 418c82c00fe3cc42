"""Region rewrites as chat models send them: bare, fenced, tagged, with chatter around."""

from __future__ import annotations

import pytest

from midstream.edits.events import HunkClosed, NewText, Problem, Prose
from midstream.edits.formats.region import RegionParser

OLD = ["def area(r):", "    return 3 * r", "", "x = 1"]
NEW = "def area(r):\n    return 4 * r\n"


def read(parser: RegionParser, reply: str) -> tuple[str | None, str, list[Problem]]:
    """The rewrite (None if there is none), the prose, the problems."""
    events = [*parser.feed(reply), *parser.finish()]
    text = "".join(e.text for e in events if isinstance(e, NewText))
    prose = "".join(e.text for e in events if isinstance(e, Prose))
    closed = any(isinstance(e, HunkClosed) for e in events)
    return text if closed else None, prose, [e for e in events if isinstance(e, Problem)]


@pytest.mark.parametrize(
    ("reply", "prose"),
    [
        (NEW, ""),
        (f"```python\n{NEW}```\n", ""),
        (f"Sure! Here is the function:\n\n```python\n{NEW}```\nI changed 3 to 4.\n",
         "Sure! Here is the function:\n\nI changed 3 to 4.\n"),
        (f"~~~\n{NEW}~~~", ""),
        (f"<region>\n{NEW}</region>\n", "\n"),
        (f'Done.\n<region path="a.py" language="python">\n{NEW}</region>', "Done.\n"),
        (f"<region-2>\n{NEW}    </region-2>", ""),
        (f"```python\n<region>\n{NEW}</region>\n```\n", "\n```\n"),
        (f"<region>\n```python\n{NEW}```\n</region>\n", "</region>\n"),
        (f"Here is the rewritten function.\n\n{NEW}", "Here is the rewritten function.\n\n"),
        (NEW.replace("\n", "\r\n"), ""),
    ],
)  # fmt: skip
def test_wrappings(reply: str, prose: str) -> None:
    text, around, problems = read(RegionParser(OLD), reply)
    assert (text, around, problems) == (NEW, prose, [])


def test_bare_mode_changes_nothing() -> None:
    reply = "```python\n<region>\nHere is the code:\n"
    assert read(RegionParser(OLD, bare=True), reply) == (reply, "", [])


def test_bare_text_streams_at_once() -> None:
    parser = RegionParser(OLD, bare=True)
    events = [event for char in "ab" for event in parser.feed(char)]
    assert [e.text for e in events if isinstance(e, NewText)] == ["a", "b"]


def test_a_known_first_line_ends_the_waiting() -> None:
    parser = RegionParser(OLD)
    assert any(isinstance(e, NewText) for e in parser.feed("def area(r):\n"))


def test_prose_alone_is_no_rewrite() -> None:
    text, prose, problems = read(RegionParser(OLD), "I cannot change this, because it is right.\n")
    assert text is None
    assert prose
    assert [p.fatal for p in problems] == [True]


def test_prose_region_is_rewritten_by_prose() -> None:
    old = ["This module computes areas.", "It is slow, but it is right."]
    reply = "This module computes areas and volumes.\nIt is fast.\n"
    assert read(RegionParser(old), reply) == (reply, "", [])
    assert read(RegionParser(old), f"```\n{reply}```\n")[0] == reply


def test_fences_of_the_old_text_stay_content() -> None:
    old = ["Use it:", "```", "ls", "```", "Done."]
    new = "Use it so:\n```\nls -l\n```\nDone.\n"
    assert read(RegionParser(old), f"```markdown\n{new}```\n")[0] == new
    assert read(RegionParser(old), f"<region>\n{new}</region>\n")[0] == new
    assert read(RegionParser([]), "```markdown\na\n```sh\nb\n```\nc\n```\n")[0] == (
        "a\n```sh\nb\n```\nc\n"
    )


def test_blank_lines_before_code_are_dropped_unless_the_region_has_them() -> None:
    assert read(RegionParser(OLD), "\n\n" + NEW)[0] == NEW
    assert read(RegionParser(["", *OLD]), "\n" + NEW)[0] == "\n" + NEW


@pytest.mark.parametrize("reply", [f"```python\n{NEW}", f"<region>\n{NEW}"])
def test_a_reply_cut_short_says_so(reply: str) -> None:
    text, _, problems = read(RegionParser(OLD), reply)
    assert text == NEW
    assert len(problems) == 1
    assert not problems[0].fatal
