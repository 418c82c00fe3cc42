"""Thoughts in the text of an answer, in every dress, cut into any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.responses.thoughts import ThoughtSplitter, without_thoughts
from tests.helpers.reading import answer, read_answer

ANSWER = "<region>\n    x = a[0] < 1  # a | b\n</region>\n"
DRAFT = "Okay. I could write\n\n```python\nx = 0\n```\n\nor <region>\ny\n</region>, but no.\n"
CHANNEL = "<|channel|>analysis<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"
DRESSES = {
    "none": "",
    "think": f"<think>\n{DRAFT}</think>\n\n",
    "blank before": f"\n<think>{DRAFT}</think>",
    "capitals": f"<THINK>{DRAFT}</THINK>\n",
    "thinking": f"<thinking>{DRAFT}</thinking>\n",
    "Mistral": f"[THINK]{DRAFT}[/THINK]",
    "Kimi": f"◁think▷{DRAFT}◁/think▷",
    "Seed": f"<seed:think>{DRAFT}</seed:think>\n",
    "scratchpad": f"<scratchpad>{DRAFT}</scratchpad>\n",
    "analysis": f"<analysis>\n{DRAFT}</analysis>\n",
    "token": f"<|thinking|>{DRAFT}<|/thinking|>",
    "two": f"<think>\n</think>\n<think>{DRAFT}</think>\n",
    "none, only closed": "</think>",
    "blanks": f"< think >{DRAFT}</ Think >\n",
    "a blank at the end": f"<think>\n{DRAFT}</think >\n",
    "a line end in a tag": f"<think\n>{DRAFT}</think\n>\n",
    "brackets and a blank": f"[THINK]{DRAFT}[/THINK ]\n",
    "an attribute": f'<think type="draft">{DRAFT}</think>\n',
    "another closing": f"<think>{DRAFT}</thinking>\n",
    "Gemma": f"<|channel>thought\n{DRAFT}<channel|>",
    "not opened, a blank": f"{DRAFT}</think >\n",
    "not opened": f"{DRAFT}</think>\n\n",
    "not opened, no line end": f"{DRAFT}</think>",
    "not opened, Mistral": f"{DRAFT}[/THINK]\n",
    "harmony": f"{CHANNEL}{DRAFT}<|end|>{FINAL}",
    "harmony, two channels": (
        f"{CHANNEL}{DRAFT}<|end|><|start|>assistant<|channel|>commentary<|message|>{DRAFT}<|end|>{FINAL}"
    ),
    "harmony, not opened": f"{DRAFT}<|end|>{FINAL}",
    "harmony without its tokens": f"analysisWe think. {DRAFT}assistantfinal",
    "wrapped answer": f"<think>{DRAFT}</think>\n<answer>\n",
    "none, a wrapping": "<answer>\n",
    "none, tokens": "\ufeff<|im_start|>assistant\n",
}
TAILS = ("", "<|im_end|>", "</s>\n", "<|eot_id|><|eot_id|>")


def told(text: str, size: int, asked: str = "") -> str:
    splitter, answered = ThoughtSplitter(lambda tag: tag in asked), ""
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    for piece in (*map(splitter.feed, parts), splitter.end()):
        answered = piece.answer if piece.retracts else answered + piece.answer
    assert answered == without_thoughts(text, lambda tag: tag in asked)
    return answered


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("tail", TAILS)
def test_a_thought_is_no_part_of_the_answer(dress: str, tail: str) -> None:
    for size in (1, 2, 3, 5, 8, 13, 1_000):
        assert told(DRESSES[dress] + ANSWER + tail, size) == ANSWER


@given(st.sampled_from(sorted(DRESSES)), st.sampled_from(TAILS), st.integers(1, 300))
def test_the_pieces_make_no_difference(dress: str, tail: str, size: int) -> None:
    assert told(DRESSES[dress] + ANSWER + tail, size) == ANSWER


@given(st.text(alphabet="<>|/[]thinkTHINK \nab", max_size=60), st.integers(1, 60))
def test_any_text_is_told_the_same_in_any_pieces(text: str, size: int) -> None:
    told(text, size)


@pytest.mark.parametrize(
    "text",
    [
        "  <thing>\n", "<", "<th", "a < b\n", "[tags]\n", "analysis = 1\n", "analysisResult = 1\n",
        'CLOSE = "</think>"\n', "say `</think>` then\n", "x = '<think>'\n", "<div>\n<p>\n</div>\n",
        '    re.split(r"</think>\\n", text)\n', "assistantfinal\n", "if a <= b:\n    c |= d\n",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_thought_is_text(text: str) -> None:
    for size in (1, 3, 1_000):
        assert told(text, size) == text


def test_tags_that_the_request_holds_are_text() -> None:
    text = "<region>\n<prompt>\n</think>\n</region>\n"
    assert told(text, 4, asked="a template with </think> in it") == text
    read = read_answer("chat", answer("chat", text), asked="<region>\n</think>\n</region>")
    assert read.text == text


def test_a_thought_after_the_answer_takes_nothing_back() -> None:
    assert told(f"{ANSWER}<think>\nIs it right?\n</think>\n", 3) == f"{ANSWER}\n"


def test_a_thought_that_never_ends_is_no_answer() -> None:
    for opening in ("<think>", CHANNEL):
        assert told(opening + DRAFT, 4) == ""


@pytest.mark.parametrize("api", ["responses", "chat", "messages"])
@pytest.mark.parametrize("dress", DRESSES)
def test_every_api_tells_thoughts_from_text(api: str, dress: str) -> None:
    read = read_answer(api, answer(api, DRESSES[dress] + ANSWER))
    assert (read.text, read.ended) == (ANSWER, "completed")
    assert (read.reasoned > 0) is (not dress.startswith("none"))
