"""The shipped model in the engine: drafts change nothing, and what it costs."""

from __future__ import annotations

import pytest

from midstream.bench.reference_edits import edit_requests
from midstream.engine.folder import Drafting, read_folder
from midstream.engine.inspect import check
from midstream.engine.model import OnnxModel
from midstream.engine.types import FinishReason
from midstream.resources import default_model, model_folders

pytestmark = pytest.mark.skipif(not model_folders(), reason="no model has been exported yet")


def test_it_passes_the_check() -> None:
    results = {result.name: result for result in check(default_model(), threads=1)}
    assert all(result.ok for result in results.values())
    assert results["cache"].detail == "drafting is exact"


def test_drafted_edits_are_the_undrafted_ones() -> None:
    model = OnnxModel(read_folder(default_model()), threads=1)
    forwards = tokens = 0
    for request in edit_requests():
        texts: set[str] = set()
        for drafting in (None, Drafting(), Drafting(1, 4), Drafting(16, 16)):
            model.drafting = drafting
            generation = model.start(request)
            texts.add("".join(piece.text for piece in generation))
            assert generation.finish_reason in (FinishReason.STOP, FinishReason.LENGTH)
            if drafting == Drafting():
                forwards += generation.usage.forwards
                tokens += generation.usage.output_tokens
        assert len(texts) == 1
    assert forwards < 0.75 * tokens
