"""Instructions that list several definitions are carried out one by one."""

from __future__ import annotations

import pytest

from midstream.code.outline import outline
from midstream.pairing.request.question import Question
from midstream.pairing.request.several import first_of_several
from midstream.pairing.session import PairingSession
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel

SOURCE = """\
def load(path, ret):
    return ret

def save(path, ret):
    return ret

def check(path):
    return path

class Cart:
    def add(self, item):
        pass

    def count(self):
        pass
"""
OUTLINED = outline(SOURCE.split("\n"), "store.py")
FILES = {"store.py": SOURCE}


@pytest.mark.parametrize(
    ("instruction", "asked", "later"),
    [
        (
            "add a docstring to load and to save",
            "add a docstring to load",
            "add a docstring to save",
        ),
        (
            "add type hints to load, save and check",
            "add type hints to load",
            "add type hints to save and check",
        ),
        (
            "rename ret to out in load and in save",
            "rename ret to out in load",
            "rename ret to out in save",
        ),
        ("make load and save return None", "make load return None", "make save return None"),
        ("document load, save, and check", "document load", "document save, and check"),
        (
            "fix the crash in `load` & `save()`",
            "fix the crash in `load`",
            "fix the crash in `save()`",
        ),
        ("load and save should log it", "load should log it", "save should log it"),
        (
            "add a docstring to Cart.add and Cart.count, as in @other.py",
            "add a docstring to Cart.add, as in @other.py",
            "add a docstring to Cart.count, as in @other.py",
        ),
    ],
)
def test_the_first_of_a_list_is_asked_for(instruction: str, asked: str, later: str) -> None:
    parts = first_of_several(instruction, OUTLINED)
    assert parts is not None
    assert (parts.asked, parts.later) == (asked, later)


@pytest.mark.parametrize(
    "instruction",
    [
        "add a docstring to load",
        "merge load and save",
        "swap load and save",
        "call load and save",
        "call load and save in check",
        "make check use load and save",
        "rename load and save to read and write",
        "rename load to read and save to write",
        "return path and load from check",
        "add docstrings to Cart and Cart.add",
        "write tests for load and save",
        "add a docstring to load and to nothing",
        "let load and save have the same signature",
    ],
)
def test_an_instruction_for_one_place_or_for_all_at_once_stays_whole(instruction: str) -> None:
    assert first_of_several(instruction, OUTLINED) is None


async def test_what_comes_next_outlives_a_redirect(
    session: PairingSession, model: SteppedModel
) -> None:
    witness = Witness(session)
    await session.turns.instruct(Question("make load and save return None", "store.py"))
    model.give("def load(path, ret):\n")
    await witness.until(lambda: session.turns[-1].tokens > 0)
    await session.turns.redirect("with a comment")
    model.give("    return None  # nothing\n")
    model.end()
    await session.turns.finished()
    assert session.turns[-1].instruction == "with a comment"
    assert session.turns[-1].next == "make save return None"
    assert "Not asked for yet: save." in witness.notice
