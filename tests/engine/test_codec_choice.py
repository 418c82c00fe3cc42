"""The choice among a model's likeliest tokens, and the check of a changed line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from midstream.engine.answer import AnswerChoice
from midstream.engine.codec import EditCodec
from midstream.engine.edit_request import EditRequest
from midstream.engine.python_lines import balance, fitted, may_stand, stands_alone

MODEL = Path(__file__).parents[2] / "models" / "brook-4m"
REGION = "def total(items, rate):\n    amount = sum(items) * rate\n    return round(amount, 2)\n"


@pytest.fixture(scope="module")
def codec() -> EditCodec:
    return EditCodec.load(MODEL)


def logits_of(codec: EditCodec, **odds: float) -> np.ndarray:
    """Logits of a few named tokens; all others are out of the question."""
    row = np.full(codec.vocab.size, -30.0, np.float32)
    names = {codec.vocab.special_name(k): k for k in range(codec.vocab.first_text_id)}
    for name, value in odds.items():
        row[names[f"<{name}>"]] = value
    return row


def begun(
    codec: EditCodec, *names: str, instruction: str = "rename amount to gross"
) -> AnswerChoice:
    choice = codec.encode(EditRequest(instruction, REGION)).choice
    assert isinstance(choice, AnswerChoice)
    ids = {codec.vocab.special_name(k): k for k in range(codec.vocab.first_text_id)}
    for name in names:
        choice.feed(ids[f"<{name}>"])
    return choice


def name_of(codec: EditCodec, token: int) -> str | None:
    return codec.vocab.special_name(token)


def test_a_line_is_changed_where_its_changes_together_are_likelier(codec: EditCodec) -> None:
    choice = begun(codec, "L1", "L2")
    row = logits_of(codec, L3=1.0, swap=0.8, cut=0.7)
    assert name_of(codec, choice.pick(row)) == "<swap>"


def test_a_line_is_kept_where_that_is_likelier_than_any_change(codec: EditCodec) -> None:
    choice = begun(codec, "L1", "L2")
    row = logits_of(codec, L3=3.0, swap=0.8, cut=0.7)
    assert name_of(codec, choice.pick(row)) == "<L3>"


def test_a_slot_that_stands_for_nothing_is_passed_over(codec: EditCodec) -> None:
    choice = begun(codec, "L1", "L2", "swap", "i1")
    row = logits_of(codec, i2=5.0, i7=4.0)
    assert name_of(codec, choice.pick(row)) == "<i7>"


def test_an_anchor_out_of_order_is_passed_over(codec: EditCodec) -> None:
    choice = begun(codec, "L1", "L2", "swap", "i1", "i7")
    row = logits_of(codec, L2=5.0, L1=4.5, L3=4.0)
    assert name_of(codec, choice.pick(row)) == "<L3>"


def test_a_name_stays_in_its_line_unless_somebody_asks_for_it(codec: EditCodec) -> None:
    word = next(k for k in range(codec.vocab.size) if codec.vocab.bytes_of(k) == b"sum")
    assert begun(codec, "L1", "L2").allows(word)
    assert not begun(codec, "L1", "L2", "L3").allows(word)
    assert begun(codec, "L1", "L2", "L3", instruction="return the sum").allows(word)


def test_what_a_swap_replaces_stands_in_the_line(codec: EditCodec) -> None:
    choice = begun(codec, "L1", "L2", "L3", "swap")
    word = next(k for k in range(codec.vocab.size) if codec.vocab.bytes_of(k) == b"sum")
    row = logits_of(codec, i1=8.0)
    row[word] = 9.0
    assert name_of(codec, choice.pick(row)) == "<i1>"
    row[word] = 20.0
    assert name_of(codec, choice.pick(row)) == "<L4>"


def test_it_gives_up_only_where_it_is_sure(codec: EditCodec) -> None:
    assert name_of(codec, begun(codec).pick(logits_of(codec, end=2.0, L1=1.5))) == "<L1>"
    assert name_of(codec, begun(codec).pick(logits_of(codec, end=3.0, L1=1.5))) == "<end>"


@pytest.mark.parametrize(
    ("instruction", "target"),
    [
        ("rename amount to gross", REGION.replace("amount", "gross")),
        ("drop the rounding", REGION.replace("round(amount, 2)", "amount")),
        (
            "guard against None",
            REGION.replace(":\n", ":\n    if items is None:\n        return 0\n", 1),
        ),
        ("make rate optional", REGION.replace("rate)", "rate=1.0)")),
        (
            "catch errors",
            "def total(items, rate):\n    try:\n        amount = sum(items) * rate\n"
            "        return round(amount, 2)\n    except TypeError:\n        return 0\n",
        ),
    ],
)
def test_nothing_of_a_right_answer_is_refused(
    codec: EditCodec, instruction: str, target: str
) -> None:
    request = EditRequest(instruction, REGION)
    _, tokens = codec.encode_target(request, target)
    choice = codec.encode(request).choice
    for token in tokens:
        row = np.zeros(codec.vocab.size, np.float32)
        row[token] = 20.0
        assert choice.pick(row) == token
        choice.feed(token)


@pytest.mark.parametrize(
    ("line", "old", "inside", "stands"),
    [
        ("    x = f(a)", "    x = f(a, b)", False, True),
        ("    x = f(a", "    x = f(a, b)", False, False),
        ("    x = f(a, @cache)", "    x = f(a, b)", False, False),
        ("    x = 'a", "    x = 'a'", False, False),
        ("def f(self)", "def f(self, key): ...", False, False),
        ("    size=3, depth,", "    size=3, depth=1,", True, True),
        ("    x = 1 2", "    x = 1", False, False),
        ("    try:", None, False, True),
        ("    elif a:  # no", "    elif b:  # no", False, True),
        ("    raise <", None, False, False),
        ('    """Say', '    """Tell', False, True),
        ("    not a statement", "    none before", False, True),
    ],
)
def test_whether_a_line_may_stand(line: str, old: str | None, inside: bool, stands: bool) -> None:
    assert may_stand(line, old, inside=inside) is stands


def test_brackets_in_strings_and_comments_do_not_count() -> None:
    assert balance("x = '(' # [") == (0, False)
    assert balance("f('a', [") == (2, False)
    assert balance('"""doc') is None
    assert stands_alone("@cache")
    assert stands_alone("else:")
    assert not stands_alone("x = = 1")


def test_a_change_that_leaves_no_line_of_python_keeps_the_line(codec: EditCodec) -> None:
    encoded = codec.encode(EditRequest("rename amount to gross", REGION))
    names = {codec.vocab.special_name(k): k for k in range(codec.vocab.first_text_id)}
    bracket = next(k for k in range(codec.vocab.size) if codec.vocab.bytes_of(k) == b"(")
    tokens = [*(names[n] for n in ("<L1>", "<L2>", "<swap>", "<i1>", "<i7>")), bracket]
    tokens += [names["<L3>"], names["<L4>"]]
    assert "".join(encoded.decoder.feed(token) for token in tokens) == REGION


@pytest.mark.parametrize(
    ("line", "above", "below", "fits"),
    [
        ("        @cache", [], "    def f(self):", "    @cache"),
        ("    if x:", ["    a = 1"], None, "    if x:"),
        ("        if x:", ["    a = 1"], None, "    if x:"),
        ("    continue", ["    if x:"], None, "        continue"),
        ("  return", ["    a = 1"], None, "  return"),
        ("        b,", ["    f(a,"], None, "        b,"),
        ("        text", ['    """Say', "    this:"], None, "        text"),
        ("        x = 1", ["    # then:"], None, "        x = 1"),
        ("\tx = 1", ["    a = 1"], None, "\tx = 1"),
    ],
)
def test_a_new_line_goes_where_its_indentation_can_be_meant(
    line: str, above: list[str], below: str | None, fits: str
) -> None:
    assert fitted(line, above, below) == fits


def test_a_new_line_that_is_no_line_of_python_is_not_written(codec: EditCodec) -> None:
    encoded = codec.encode(EditRequest("add `check(items)` at the top", REGION))
    names = {codec.vocab.special_name(k): k for k in range(codec.vocab.first_text_id)}
    bracket = next(k for k in range(codec.vocab.size) if codec.vocab.bytes_of(k) == b"(")
    tokens = [names["<L1>"], names["<new>"], names["<in1>"], names["<q1>"], bracket]
    tokens += [names[f"<L{k}>"] for k in (2, 3, 4)]
    assert "".join(encoded.decoder.feed(token) for token in tokens) == REGION
