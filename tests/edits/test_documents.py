"""Bytes to lines and back, and edits that leave untouched lines alone."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.edits.documents import LineEdit, NotTextError, SourceText, UnencodableError

PIECES = st.lists(
    st.sampled_from(
        ["a", "b", "  c", "é", "\u2028", "\x0c", "\x85", "\t", "\n", "\r\n", "\r", "\U0001f600"]
    )
)
ENCODINGS = [("utf-8", b""), ("utf-8", codecs.BOM_UTF8), ("utf-16-le", codecs.BOM_UTF16_LE)]


@given(PIECES, st.sampled_from(ENCODINGS))
def test_bytes_survive(pieces: list[str], kind: tuple[str, bytes]) -> None:
    encoding, mark = kind
    data = mark + "".join(pieces).encode(encoding)
    source = SourceText.from_bytes(data)
    assert source.to_bytes() == data
    assert source.bom == bool(mark)
    assert len(source.lines) == len(source.ends)
    assert not any("\n" in line or "\r" in line for line in source.lines)
    assert "" not in source.ends[:-1]


def test_only_real_terminators_split() -> None:
    source = SourceText.from_bytes("a\x0cb\u2028c\x85d\x1ce\n".encode())
    assert source.lines == ("a\x0cb\u2028c\x85d\x1ce",)


@pytest.mark.parametrize(
    ("data", "why"), [(b"a\0b", "NUL byte at offset 1"), (b"ok \xff", "byte 0xff at offset 3")]
)
def test_not_text(data: bytes, why: str) -> None:
    with pytest.raises(NotTextError, match=why):
        SourceText.from_bytes(data)


def test_declared_encoding() -> None:
    data = b"# -*- coding: latin-1 -*-\nname = 'Ren\xe9'\n"
    source = SourceText.from_bytes(data)
    assert source.lines[1] == "name = 'René'"
    assert source.replace([LineEdit(1, 2, ("x = 'ü'",))]).to_bytes().endswith(b"x = '\xfc'\n")
    with pytest.raises(UnencodableError, match="iso8859-1"):
        source.replace([LineEdit(1, 2, ("x = '→'",))]).to_bytes()


def test_wrong_declaration_falls_back_to_utf8() -> None:
    data = "# coding: ascii\ns = 'é'\n".encode()
    assert SourceText.from_bytes(data).lines[1] == "s = 'é'"
    assert SourceText.from_bytes(b"# coding: no-such-codec\n").encoding == "utf-8"


@given(PIECES, st.data())
def test_untouched_lines_keep_their_bytes(pieces: list[str], data: st.DataObject) -> None:
    source = SourceText.from_text("".join(pieces))
    total = len(source.lines)
    bounds = sorted(data.draw(st.lists(st.integers(0, total), min_size=2, max_size=2)))
    new = tuple(data.draw(st.lists(st.sampled_from(["x", "", "y z"]), max_size=3)))
    result = source.replace([LineEdit(bounds[0], bounds[1], new)])
    assert result.lines == source.lines[: bounds[0]] + new + source.lines[bounds[1] :]
    kept = list(zip(source.lines, source.ends, strict=True))
    got = list(zip(result.lines, result.ends, strict=True))
    tail = total - bounds[1]
    assert got[len(got) - tail :] == kept[total - tail :]
    head = got[: bounds[0]]
    if head and not tail and not new and source.ends[-1] == "":
        assert head[:-1] == kept[: bounds[0]][:-1]
    elif not (head and head[-1][1] and kept[bounds[0] - 1][1] == ""):
        assert head == kept[: bounds[0]]
    assert SourceText.from_bytes(result.to_bytes()).lines == result.lines or "" in result.lines


def test_new_lines_take_the_neighbours_terminator() -> None:
    source = SourceText.from_text("a\r\nb\nc\r\n")
    edited = source.replace([LineEdit(1, 2, ("B", "B2")), LineEdit(3, 3, ("d",))])
    assert edited.to_bytes() == b"a\r\nB\nB2\nc\r\nd\r\n"


def test_missing_final_newline_survives_the_removal_of_the_last_line() -> None:
    text = SourceText.from_bytes(b"a\nb\nc")
    assert text.replace([LineEdit(2, 3, ())]).to_bytes() == b"a\nb"
    assert text.replace([LineEdit(0, 1, ("x",)), LineEdit(1, 3, ())]).to_bytes() == b"x"
    assert text.replace([LineEdit(0, 3, ())]).to_bytes() == b""


def test_missing_final_newline_survives() -> None:
    source = SourceText.from_text("a\nb")
    assert source.replace([LineEdit(1, 2, ("B",))]).to_bytes() == b"a\nB"
    assert source.replace([LineEdit(2, 2, ("c",))]).to_bytes() == b"a\nb\nc"
    assert source.replace([LineEdit(0, 1, ("A",))]).to_bytes() == b"A\nb"
    assert SourceText.from_text("").replace([LineEdit(0, 0, ("a",))]).to_bytes() == b"a\n"


@pytest.mark.parametrize(
    "edits",
    [
        [LineEdit(0, 2, ("x",)), LineEdit(1, 2, ("y",))],
        [LineEdit(1, 2, ("x",)), LineEdit(0, 1, ("y",))],
        [LineEdit(0, 4, ())],
        [LineEdit(0, 1, ("a\nb",))],
    ],
)
def test_bad_edits(edits: list[LineEdit]) -> None:
    with pytest.raises(ValueError, match=r"overlaps|terminator"):
        SourceText.from_text("a\nb\nc\n").replace(edits)
