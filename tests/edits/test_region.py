"""Region rewrites as chat models send them: bare, fenced, tagged, with chatter around."""

from __future__ import annotations

import json

import pytest

from midstream.edits.events import HunkClosed, NewText, Problem, Prose
from midstream.edits.formats.region import RegionParser

OLD = ["def area(r):", "    return 3 * r", "", "x = 1"]
NEW = "def area(r):\n    return 4 * r\n"
BARE = f"{NEW}\nx = 1\n"


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
        (f"```python\n{NEW}```\n", ""),
        (f"Sure! Here is the function:\n\n```python\n{NEW}```\nI changed 3 to 4.\n",
         "Sure! Here is the function:\n\nI changed 3 to 4.\n"),
        (f"~~~\n{NEW}~~~", ""),
        (f"<region>\n{NEW}</region>\n", "\n"),
        (f'Done.\n<region path="a.py" language="python">\n{NEW}</region>', "Done.\n"),
        (f"<region-2>\n{NEW}    </region-2>", ""),
        (f"```python\n<region>\n{NEW}</region>\n```\n", "\n```\n"),
        (f"<region>\n```python\n{NEW}```\n</region>\n", "</region>\n"),
        (f"a.py\n```python\n{NEW}```\n", "a.py\n"),
        (f"**a.py**\n\n```\n{NEW}```\n", "**a.py**\n\n"),
        (f"<updated_code>\n{NEW}</updated_code>\n", "\n"),
        (f"<code>\n```python\n{NEW}```\n</code>\n", "</code>\n"),
        (f"<answer>\n<region>\n{NEW}</region>\n</answer>\n", "\n</answer>\n"),
        (f"<before>\nx = 0\n</before>\n<region>\n{NEW}</region>\n<after>\n</after>\n",
         "<before>\nx = 0\n</before>\n\n<after>\n</after>\n"),
        (f"<region>\n{NEW}</region>\n".replace("<", "&lt;").replace(">", "&gt;"), "\n"),
        (json.dumps({"region": NEW}), ""),
        (json.dumps({"path": "a.py", "code": NEW.strip()}, indent=2), ""),
        (f"```json\n{json.dumps({'updated_code': NEW})}\n```\nDone.\n", "Done.\n"),
    ],
)  # fmt: skip
def test_wrappings(reply: str, prose: str) -> None:
    text, around, problems = read(RegionParser(OLD), reply)
    assert (text, around, problems) == (NEW, prose, [])


@pytest.mark.parametrize(
    ("reply", "prose"),
    [
        (BARE, ""),
        (f"Here is the rewritten function.\n\n{BARE}", "Here is the rewritten function.\n\n"),
        (BARE.replace("\n", "\r\n"), ""),
        (BARE.removesuffix("\n"), ""),
    ],
)
def test_bare_text_that_ends_as_the_region_did_is_complete(reply: str, prose: str) -> None:
    text, around, problems = read(RegionParser(OLD), reply)
    assert text is not None
    assert (text.rstrip(), around, problems) == (BARE.rstrip(), prose, [])


@pytest.mark.parametrize("reply", [NEW, f"{BARE}\nI changed 3 to 4.\n", "def area(r):\n"])
def test_bare_text_that_ends_elsewhere_is_cut(reply: str) -> None:
    text, _, problems = read(RegionParser(OLD), reply)
    assert text is not None
    assert [problem.unfinished for problem in problems] == [True]


def test_bare_text_may_end_with_a_version_of_the_last_line() -> None:
    old = ["def total(items):", "    total = 0", "    for item in items:", "        total += item"]
    old.append("    return total")
    renamed = "\n".join(old).replace("total", "found")
    assert read(RegionParser(old), renamed + "\n") == (renamed + "\n", "", [])
    cut = "def total(items):\n    if not items:\n        return 0\n    return sum(\n"
    for reply in (cut, renamed.rpartition("\n")[0], renamed.replace("    return", "return")):
        assert [p.unfinished for p in read(RegionParser(old), reply)[2]] == [True]


def test_a_last_line_that_stands_several_times_must_come_as_often() -> None:
    old = ["if a:", "    return 1", "b()", "    return 1"]
    assert read(RegionParser(old), "if c:\n    return 1\n")[2]
    assert not read(RegionParser(old), "if c:\n    return 1\nb()\n    return 1\n")[2]


@pytest.mark.parametrize(
    "reply", [json.dumps({"region": NEW})[:-4], f"```json\n{json.dumps({'region': NEW})}\n"]
)
def test_an_object_that_is_cut_says_so(reply: str) -> None:
    assert [problem.unfinished for problem in read(RegionParser(OLD), reply)[2]] == [True]


def test_an_object_in_a_file_of_objects_is_text() -> None:
    old = ['{"code": "a"}', '{"code": "b"}']
    reply = '{"code": "c"}\n{"code": "b"}\n'
    assert read(RegionParser(old), reply) == (reply, "", [])
    assert read(RegionParser(old), f"```json\n{reply}```\n") == (reply, "", [])


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
    reply = "This module computes areas and volumes.\nIt is slow, but it is right.\n"
    assert read(RegionParser(old), reply) == (reply, "", [])
    assert read(RegionParser(old), f"```\n{reply}```\n")[0] == reply
    talk = "Here is the new text:\n\n"
    assert read(RegionParser(old), f"{talk}```markdown\n{reply}```\n") == (reply, talk, [])
    refusal = "I cannot do that, because nobody has said how fast it is.\n"
    assert read(RegionParser(old), refusal)[2]


def test_fences_of_the_old_text_stay_content() -> None:
    old = ["Use it:", "```", "ls", "```", "Done."]
    new = "Use it so:\n```\nls -l\n```\nDone.\n"
    assert read(RegionParser(old), f"```markdown\n{new}```\n")[0] == new
    assert read(RegionParser(old), f"<region>\n{new}</region>\n")[0] == new
    assert read(RegionParser([]), "```markdown\na\n```sh\nb\n```\nc\n```\n")[0] == (
        "a\n```sh\nb\n```\nc\n"
    )


@pytest.mark.parametrize("marks", ["```", "````", "~~~"])
@pytest.mark.parametrize("inner", ["```sh", "```"])
def test_talk_after_a_text_with_fences_is_no_text(marks: str, inner: str) -> None:
    old = ["Use it:", "```", "ls", "```", "Done."]
    new = f"Use it so:\n{inner}\nls -l\n```\nOr so:\n{inner}\nls -a\n```\nDone.\n"
    talk = "\nI added an option.\n"
    reply = f"README.md\n{marks}markdown\n{new}{marks}\n"
    assert read(RegionParser(old), reply) == (new, "README.md\n", [])
    assert read(RegionParser(old), reply + talk) == (new, f"README.md\n{talk}", [])
    example = f"{talk}```sh\nls -l\n```\n"
    assert read(RegionParser(old), reply + example) == (new, f"README.md\n{example}", [])


def test_a_text_with_fences_that_is_cut_says_so() -> None:
    old = ["Use it:", "```", "ls", "```", "Done."]
    reply = "```markdown\nUse it so:\n```\nls -l\n"
    assert [p.unfinished for p in read(RegionParser(old), reply)[2]] == [True]


def test_blank_lines_before_code_are_dropped_unless_the_region_has_them() -> None:
    assert read(RegionParser(OLD), "\n\n" + NEW)[0] == NEW
    assert read(RegionParser(["", *OLD]), "\n" + NEW)[0] == "\n" + NEW


@pytest.mark.parametrize("reply", [f"```python\n{NEW}", f"<region>\n{NEW}"])
def test_a_reply_cut_short_says_so(reply: str) -> None:
    text, _, problems = read(RegionParser(OLD), reply)
    assert text == NEW
    assert len(problems) == 1
    assert not problems[0].fatal
