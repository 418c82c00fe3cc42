"""Instructions in comments: finding them, their text, and the code without them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.code.ai_comments import find_comments, without_comments


@pytest.mark.parametrize(
    ("line", "text", "kind"),
    [
        ("# rename x to total AI!", "rename x to total", "change"),
        ("    # AI! rename x to total", "rename x to total", "change"),
        ("# ai: add a guard, ai!", "add a guard", "change"),
        ("# ai! add a guard", "add a guard", "change"),
        ("#AI! add a guard", "add a guard", "change"),
        ("x = 1  # call it count, AI!", "call it count", "change"),
        ("// make it const AI!", "make it const", "change"),
        ("-- drop the join AI!", "drop the join", "change"),
        ("; use a macro ai!", "use a macro", "change"),
        ("# why is this here AI?", "why is this here", "question"),
        ("# AI? why is this here", "why is this here", "question"),
    ],
)
def test_a_marked_comment_is_found(line: str, text: str, kind: str) -> None:
    found = find_comments(["def f():", line, "    pass"])
    assert [(c.start, c.stop, c.text, c.kind) for c in found] == [(1, 2, text, kind)]


@pytest.mark.parametrize(
    "line",
    [
        "# fail!",
        "# the mail? no",
        "# about ai",
        "# AI",
        "print('# do it AI!')",
        "# open-ai!",
        "# AI!",
        "ai = 1",
        "x = '#' + ai",
        "# ai-based!",
    ],
)
def test_other_lines_are_left_alone(line: str) -> None:
    assert find_comments([line]) == []
    assert without_comments([line]) == [line]


def test_what_only_looks_like_a_comment_is_none() -> None:
    lines = [
        "def f():",
        '    """Say what you want.',
        "",
        "    # rename x to y AI!",
        '    """',
        "    text = '''",
        "    # and this AI!",
        "    '''",
        "    return 1  # make it two AI!",
    ]
    assert [c.text for c in find_comments(lines, "f.py")] == ["make it two"]
    assert without_comments(lines, "f.py") == [*lines[:-1], "    return 1"]
    go = ["s := `", "// not this AI!", "`", "// but this AI!"]
    assert [c.text for c in find_comments(go, "f.go")] == ["but this"]
    assert [c.text for c in find_comments(go, "f.unknown")] == ["not this", "but this"]


def test_comments_above_that_are_marked_belong_to_it() -> None:
    lines = [
        "# unrelated",
        "    # AI when the list is empty",
        "    # AI: raise a ValueError",
        "    # not before the log line AI!",
        "    run()",
    ]
    (comment,) = find_comments(lines)
    assert (comment.start, comment.stop) == (1, 4)
    assert comment.text == "when the list is empty raise a ValueError not before the log line"
    assert without_comments(lines) == ["# unrelated", "    run()"]


def test_code_before_a_comment_stays() -> None:
    assert without_comments(["x = 1  # call it count AI!", "y = 2"]) == ["x = 1", "y = 2"]


@given(st.lists(st.text(st.sampled_from("#/ aAiI!?x=\t-;'"), max_size=12), max_size=8))
def test_without_comments_asks_for_nothing(lines: list[str]) -> None:
    found = find_comments(lines)
    left = without_comments(lines)
    taken = {n for c in found for n in range(c.start, c.stop)}
    others = [line for n, line in enumerate(lines) if n not in taken]
    assert len(others) <= len(left) <= len(others) + len(found)
    rest = iter(left)
    assert all(line in rest for line in others)  # in the same order
    for comment in found:
        assert comment.text.strip()
