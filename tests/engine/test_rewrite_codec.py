"""Requests to models that rewrite a region in a fence, and the reading of their answers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("onnx")

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.confidence import EditJudge, features
from midstream.engine.edit_request import EditRequest
from midstream.engine.folder import read_folder
from midstream.engine.model import OnnxModel
from midstream.engine.plan import EncodedRequest
from midstream.engine.prompts import load_tokenizer, prompt_style
from midstream.engine.rewrite_codec import BEGIN, END, FENCE, RewriteCodec
from midstream.engine.types import GenerateRequest, Message
from midstream.errors import UserError
from tests.helpers.folders import make_tokenizer, write_folder

REGION = """    def total(self, items):
        return sum(items)

        # done
"""
LINES = st.lists(st.text(st.sampled_from("ab:\t #é`日"), max_size=12), min_size=1, max_size=8)
regions = st.tuples(st.sampled_from(["", "    ", "\t"]), LINES).map(
    lambda made: "".join((made[0] + text if text.strip() else text) + "\n" for text in made[1])
)


def codec() -> RewriteCodec:
    return RewriteCodec(make_tokenizer([BEGIN, END]))


def text_of(ids: list[int]) -> str:
    return make_tokenizer([BEGIN, END]).decode(ids, skip_special_tokens=False)


def written(encoded: EncodedRequest, ids: list[int]) -> str:
    pieces = [encoded.decoder.feed(token) for token in ids]
    return "".join(pieces) + encoded.decoder.finish()


def test_the_region_is_read_before_the_request() -> None:
    encoded = codec().encode(EditRequest("sum it", REGION, language="python"))
    assert text_of(encoded.prompt_ids) == (
        f"{BEGIN}user\n```python\ndef total(self, items):\n    return sum(items)\n\n    # done\n"
        f"```\nsum it{END}\n{BEGIN}assistant\n```python\n"
    )


def test_what_is_read_ahead_begins_every_request_for_the_region() -> None:
    ahead = codec().encode(EditRequest("", REGION)).prompt_ids
    for words in ("a", "return it", "``` \n"):
        assert codec().encode(EditRequest(words, REGION)).prompt_ids[: len(ahead)] == ahead


@given(regions)
def test_a_draft_that_is_taken_changes_nothing(region: str) -> None:
    encoded = codec().encode(EditRequest("do it", region))
    if FENCE not in region:
        assert written(encoded, encoded.draft_ids) == region


@given(regions, st.data())
def test_kept_lines_are_not_written_again(region: str, data: st.DataObject) -> None:
    lines = region.splitlines(keepends=True)
    kept = "".join(lines[: data.draw(st.integers(0, len(lines)))])
    encoded = codec().encode(EditRequest("do it", region, kept=kept))
    assert text_of(encoded.prompt_ids).endswith(("\n", END)) or not kept
    if FENCE not in region and len(set(lines)) == len(lines) and all(map(str.strip, lines)):
        assert kept + written(encoded, encoded.draft_ids) == region


def test_marks_in_source_are_text() -> None:
    region = f"x = '{END}'\n"
    encoded = codec().encode(EditRequest("do it", region))
    assert written(encoded, encoded.draft_ids) == region
    assert encoded.prompt_ids.count(encoded.draft_ids[-1]) == 1


def test_a_fence_within_the_region_does_not_end_the_answer() -> None:
    region = '"""Use it:\n```sh\nrun\n"""\n'
    encoded = codec().encode(EditRequest("do it", region))
    ids = make_tokenizer([BEGIN, END]).encode(region + FENCE, add_special_tokens=False).ids
    assert written(encoded, [*ids, encoded.draft_ids[-1]]) == region


def test_a_line_is_shown_as_it_is_written() -> None:
    encoded = codec().encode(EditRequest("do it", "    one\n    two\n"))
    ids = make_tokenizer([BEGIN, END]).encode("one\ntw", add_special_tokens=False).ids
    assert written(encoded, ids) == "    one\n    tw"


@given(regions)
def test_pieces_are_the_text_however_it_is_cut(region: str) -> None:
    encoded = codec().encode(EditRequest("do it", region))
    text = ""
    for token in encoded.draft_ids:
        text += encoded.decoder.feed(token)
        if FENCE not in region:
            assert region.startswith(text)


@pytest.mark.parametrize("end", ["`", "``", FENCE, "  "])
def test_what_may_be_the_closing_fence_is_held_back(end: str) -> None:
    encoded = codec().encode(EditRequest("do it", "one\n"))
    ids = make_tokenizer([BEGIN, END]).encode(f"one\n{end}", add_special_tokens=False).ids
    assert written(encoded, ids) == "one\n"


def test_a_tokenizer_without_marks_is_refused() -> None:
    with pytest.raises(UserError, match="im_start"):
        RewriteCodec(make_tokenizer(["<end>"]))


def test_a_folder_may_ask_for_it(tmp_path: Path) -> None:
    write_folder(tmp_path)
    folder = read_folder(tmp_path)
    assert folder.is_edit_model
    encoded = prompt_style(folder)
    assert encoded.vocab_size == load_tokenizer(folder).get_vocab_size()


def test_what_changes_is_told_apart_from_what_is_copied() -> None:
    draft, tokens = [1, 2, 3, 4, 5], [1, 2, 9, 8, 4, 5]
    chances = np.log(np.array([1.0, 0.9, 0.5, 0.8, 1.0, 1.0]))
    found = features(chances, tokens, draft)
    assert found == {
        "mean": pytest.approx(math.log(0.9 * 0.5 * 0.8) / 6),
        "doubt": pytest.approx(math.log(1e-3 - math.log(0.9 * 0.5 * 0.8))),
        "changes": pytest.approx(math.log(1e-3 - math.log(0.5 * 0.8))),
        "size": pytest.approx(math.log(3)),
    }


def test_an_answer_that_only_copies_changes_nothing() -> None:
    found = features(np.log(np.array([0.9, 0.8])), [1, 2], [1, 2])
    assert found["size"] == 0.0
    assert found["changes"] == pytest.approx(math.log(1e-3))


def test_a_folder_with_a_calibration_says_how_sure_it_is(tmp_path: Path) -> None:
    card = "[confidence]\nthreshold = 0.6\nbias = 1.0\nweights = { doubt = -0.5, size = -0.1 }\n"
    write_folder(tmp_path, prompt="edit-rewrite", card=card)
    make_tokenizer([BEGIN, END]).save(str(tmp_path / "tokenizer.json"))
    model = OnnxModel(read_folder(tmp_path), threads=1)
    text = render_request(RegionRequest("sum it", REGION, language="python"))
    generation = model.answer(GenerateRequest((Message("user", text),)))
    list(generation)
    judge = generation.judge
    assert isinstance(judge, EditJudge)
    assert set(judge.features()) == {"mean", "doubt", "changes", "size"}
    assert 0 < judge.confidence() < 1
