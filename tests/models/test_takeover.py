"""The takeover rule as measured offline, and the cut of a vocabulary."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from models.training.edit_script import vocabulary
from models.training.edit_script.takeover import Rule, chosen, shown, with_takeover
from models.training.edit_script.vocabulary import SPECIAL, rows_of, smaller

FLAGS = (0.6, 0.5)


def answer(
    confidence: float, *, right: bool = True, gave_up: bool = False, opening: float = 0.0
) -> dict[str, Any]:
    return {
        "confidence": confidence,
        "same": right,
        "gave_up": gave_up,
        "answered": True,
        "features": {"opening": opening},
        "before": "a\n",
        "text": "a\n" if gave_up else "b\n",
        "left": False,
    }


def test_the_first_answer_is_shown_from_the_threshold_on() -> None:
    rule = Rule(0.9, 0.7)
    assert shown(answer(0.9), answer(0.99), rule, FLAGS).first
    assert not shown(answer(0.69), answer(0.1), rule, FLAGS).first


def test_in_between_the_likelier_answer_is_shown_where_the_second_is_unsure() -> None:
    rule = Rule(0.9, 0.7)
    assert shown(answer(0.8), answer(0.4), rule, FLAGS).first
    assert not shown(answer(0.8), answer(0.55), rule, FLAGS).first


def test_a_first_answer_below_the_threshold_is_flagged() -> None:
    made = shown(answer(0.8), answer(0.0, gave_up=True), Rule(0.9, 0.7), FLAGS)
    assert made.first
    assert made.flagged


def test_where_the_first_gives_up_the_second_answers() -> None:
    assert not shown(answer(0.95, gave_up=True), answer(0.2), Rule(0.9, 0.7), FLAGS).first


def test_an_answer_that_begins_doubtfully_is_compared_and_declined() -> None:
    rule = Rule(0.9, 0.7, hold=0.8, decline=0.1)
    assert not shown(answer(0.3), answer(0.2), rule, FLAGS).first
    assert shown(answer(0.3), answer(0.2, opening=-0.5), rule, FLAGS).first
    assert shown(answer(0.3), answer(0.05, opening=-0.5), rule, FLAGS).first
    declined = shown(answer(0.05), answer(0.05, opening=-0.5), rule, FLAGS)
    assert declined.answer["text"] == "a\n"
    assert declined.answer["gave_up"]
    assert not declined.answer["same"]
    assert shown(answer(0.05), answer(0.05), rule, FLAGS).answer["text"] == "b\n"


def test_the_rule_with_the_most_right_answers_is_chosen() -> None:
    pairs = [(answer(0.6, right=False), answer(0.6)), (answer(0.8), answer(0.6, right=False))]
    assert 0.6 < chosen(pairs, FLAGS).threshold <= 0.8


def test_the_table_is_replaced_and_stands_before_the_card() -> None:
    own = 'name = "a"\n\n[confidence]\nthreshold = 0.6\nbias = 1.0\n\n[card]\nparameters = 1\n'
    text = with_takeover(own, "brook-4m", Rule(0.9, 0.7), 0.6)
    again = with_takeover(text, "brook-4m", Rule(0.8, 0.8), 0.85)
    assert "[confidence]\nthreshold = 0.85\nbias = 1.0\n" in again
    assert again.count("[takeover]") == 1
    assert again.index("threshold = 0.8\n") < again.index("[card]")


def test_a_cut_vocabulary_splits_text_of_kept_tokens_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vocabulary, "ENGLISH", 0.0)
    letters = [*"abcdeĠ"]
    merges = [("a", "b"), ("ab", "c"), ("d", "e"), ("Ġ", "abc")]
    names = [*SPECIAL, *letters, *("".join(pair) for pair in merges)]
    whole = Tokenizer(models.BPE({name: n for n, name in enumerate(names)}, merges))
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.add_special_tokens(list(SPECIAL))
    base = json.loads(whole.to_str())
    kept = vocabulary.chosen(base, Counter({"Ġabc": 5, "de": 1}), len(names) - 1)
    cut = smaller(base, kept)
    assert "de" not in kept
    assert {"ab", "abc", "Ġabc"} < set(kept)
    assert [names[row] for row in rows_of(base, cut)] == kept
    small = Tokenizer.from_str(json.dumps(cut))
    assert small.encode("ab abc").tokens == whole.encode("ab abc").tokens
    assert small.encode("de").tokens == ["d", "e"]
