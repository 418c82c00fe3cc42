"""Titles of groups in a model's words: asked for, kept, and nothing but words."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from midstream.pairing.request.sent import SentKind
from midstream.pairing.review.titles import MAX_LENGTH, titles_in
from midstream.pairing.session import PairingSession
from midstream.settings import Settings
from tests.helpers.pairing import Witness, make_repo
from tests.helpers.stepped import SteppedModel, served

FILES = {f"use{n}.py": f"import a\n\nprint({n}, a.total({n}) > 0)\n" for n in range(3)}


async def test_titles_are_kept_in_the_journal(tmp_path: Path) -> None:
    root = make_repo(tmp_path / "work", FILES)
    model = SteppedModel({"prompt": "chat", "languages": ""})
    async with served(model) as endpoint:
        async with await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False
        ) as session:
            await session.review.switch_on(since_commit=True)
            for path, text in FILES.items():
                (root / path).write_text(text.replace("total", "amount"))
            await session.review.changed(set(FILES))
            await Witness(session).until(lambda: session.walk.walk.groups)
            (group,) = session.walk.walk.groups
            (first, *_) = session.walk.present(group.hunks)
            model.give("1. `Say amount`.\n")
            model.end()
            assert await session.titles.ask([(group, first)]) == 1
            assert session.titles.of(group) == "Say amount"
            assert next(iter(session.sent)).kind is SentKind.TITLES
            assert await session.titles.ask([(group, first)]) == 0
            assert len(session.sent) == 1
            assert len(model.requests) == 1
            journal = session.journal.path
        async with await PairingSession.open(
            root, settings=Settings(), endpoint=endpoint, watch=False, resume=journal
        ) as session:
            assert session.titles.of(group) == "Say amount"


def test_lines_that_are_no_titles_mean_nothing() -> None:
    answer = "Here they are:\n1: One\n- 2) **Two**\n2: Again\n4: None of them\n3:\n"
    assert titles_in(answer, ["a", "b", "c"]) == {"a": "One", "b": "Two"}
    assert titles_in(f"1: {'long ' * 40}", ["a"])["a"].endswith("…")


@given(st.text(max_size=200), st.integers(0, 3))
def test_a_title_is_short_and_can_be_shown(text: str, count: int) -> None:
    keys = [str(number) for number in range(count)]
    found = titles_in(f"1: {text}\n{text}", keys)
    assert found.keys() <= set(keys)
    assert all(title.isprintable() and 0 < len(title) <= MAX_LENGTH for title in found.values())
