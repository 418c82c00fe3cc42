"""The edit request survives the way through text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from midstream.edits.request import (
    RegionRequest,
    parse_follow_up,
    parse_request,
    render_follow_up,
    render_request,
)

TEXT = st.lists(
    st.sampled_from(
        [
            "a",
            "\n",
            " ",
            "<region>",
            "</region>",
            "<region-2>\n",
            "</instruction>",
            "<instruction>",
            "<before>",
            "</after>\n",
            '<region path="x">',
            "é",
        ]
    ),
    max_size=6,
).map("".join)
BLOCK = TEXT.map(lambda text: text if not text or text.endswith("\n") else text + "\n")


@given(TEXT, BLOCK, TEXT, TEXT, BLOCK, BLOCK)
@example("", "", "", "", "", "")
@example("do", "x\n", 'a"&b\n.py', "python", "", "y\n")
def test_round_trip(
    instruction: str, region: str, path: str, language: str, before: str, after: str
) -> None:
    request = RegionRequest(instruction, region, path, language, before, after)
    assert parse_request(render_request(request)) == request


@given(TEXT)
def test_follow_up_round_trip(instruction: str) -> None:
    text = render_follow_up(instruction)
    assert parse_follow_up(text) == instruction
    assert parse_request(text) is None


def test_shape() -> None:
    request = RegionRequest("rename x to y", "x = 1\n", "a/b.py", "python", "import os\n")
    assert render_request(request) == (
        "<instruction>\nrename x to y\n</instruction>\n"
        "<before>\nimport os\n</before>\n"
        '<region path="a/b.py" language="python">\nx = 1\n</region>\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "<region>\nx",
        "<region>\nx\n</region>\nplease",
        "<a>\n</a>",
        "<region>x</region>",
    ],
)
def test_anything_else_is_no_request(text: str) -> None:
    assert parse_request(text) is None
    assert parse_follow_up(text) is None


def test_request_is_no_follow_up() -> None:
    assert parse_follow_up(render_request(RegionRequest("a", "b\n"))) is None
