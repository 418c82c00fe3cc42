"""The laws that hold for every parser: chunking, ids, markers, cost."""

from __future__ import annotations

import codecs
import random
import time

import pytest

from midstream.edits.events import (
    ContextLine,
    Event,
    HunkClosed,
    HunkOpened,
    NewText,
    OldLine,
    Problem,
    Prose,
    merge_text,
)
from midstream.edits.parsing import ReplyParser
from tests.helpers.property import thorough
from tests.helpers.replies import CASES, Case

CHUNKINGS = 1000 if thorough() else 50


def read(parser: ReplyParser, chunks: list[str]) -> list[Event]:
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return merge_text([*events, *parser.finish()])


def cut(rng: random.Random, data: bytes) -> list[str]:
    """Random pieces of UTF-8, cut anywhere, decoded as they come."""
    mean = rng.choice([1, 2, 5, 30])
    decoder = codecs.getincrementaldecoder("utf-8")()
    chunks: list[str] = []
    at = 0
    while at < len(data):
        size = rng.randint(1, 2 * mean)
        chunks.append(decoder.decode(data[at : at + size]))
        at += size
    chunks.append(decoder.decode(b"", final=True))
    return chunks


@pytest.mark.fuzz
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_do_not_depend_on_the_chunking(case: Case) -> None:
    whole = read(case.make(), [case.reply])
    data = case.reply.encode()
    rng = random.Random(case.name)
    assert read(case.make(), list(case.reply)) == whole
    for _ in range(CHUNKINGS):
        assert read(case.make(), cut(rng, data)) == whole


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ids_grow_and_closed_hunks_do_not_change(case: Case) -> None:
    opened: list[int] = []
    closed: set[int] = set()
    parser = case.make()
    for char in [*case.reply, None]:
        for event in parser.finish() if char is None else parser.feed(char):
            match event:
                case HunkOpened(hunk):
                    assert not opened or hunk > opened[-1]
                    opened.append(hunk)
                case HunkClosed(hunk):
                    assert hunk in opened
                    assert hunk not in closed
                    closed.add(hunk)
                case OldLine(hunk, text) | ContextLine(hunk, text) | NewText(hunk, text):
                    assert hunk in opened
                    assert hunk not in closed
                    assert "\r" not in text
                case _:
                    pass


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_prefix_only_shows_what_the_whole_reply_shows(case: Case) -> None:
    """Nothing is reported that a later character turns into a marker."""
    whole = read(case.make(), [case.reply])
    shown = [e for e in whole if not isinstance(e, Problem)]
    parser = case.make()
    events: list[Event] = []
    for char in case.reply:
        events += parser.feed(char)
        events = [e for e in merge_text(events) if not isinstance(e, Problem)]
        assert events[:-1] == shown[: len(events[:-1])]
        if not events:
            continue
        last, final = events[-1], shown[len(events) - 1]
        if isinstance(last, NewText | Prose):
            assert isinstance(final, type(last))
            assert final.text.startswith(last.text)
        else:
            assert last == final


def test_new_text_is_shown_before_its_line_ends() -> None:
    seen: list[str] = []
    for case in CASES:
        parser = case.make()
        half: list[Event] = []
        for char in case.reply:
            half += parser.feed(char)
            if half and isinstance(half[-1], NewText) and not half[-1].text.endswith("\n"):
                seen.append(case.name)
                break
    assert {"region bare", "region fence", "v4a", "search-replace", "json", "udiff"} <= set(seen)


@pytest.mark.parametrize("name", ["v4a", "search-replace", "json", "udiff", "whole", "region bare"])
def test_a_very_long_line_costs_the_same_per_character(name: str) -> None:
    case = next(c for c in CASES if c.name == name)

    def seconds(size: int) -> float:
        begin = time.thread_time()
        parser = case.make()
        for char in case.reply + "x" * size:
            parser.feed(char)
        return time.thread_time() - begin

    small = min(seconds(20_000) for _ in range(3))
    assert min(seconds(80_000) for _ in range(2)) < 12 * small
