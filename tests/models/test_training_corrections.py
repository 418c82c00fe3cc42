"""Training examples, the request to the server and the engine share one correction object."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path

import msgspec

from midstream.edits.request import RegionRequest, render_follow_up, render_request
from midstream.engine.codec import EditCodec
from midstream.engine.prompts import read_edit
from midstream.engine.types import Message
from midstream.guard.correction import CorrectionRequest
from midstream.resources import models_dir
from midstream.serving.requests import read_create
from models.training.code import Code
from models.training.evaluate import request_of
from models.training.instructions import vocabulary
from models.training.tasks import Example, attempt
from models.training.variants import corrected

BROOK = models_dir() / "brook-4m"

SOURCE = """\
def load(path, mode):
    value = read(path)
    result = eval(value)
    log(mode)
    return result
"""


def example() -> Example:
    for seed in range(400):
        code = Code(SOURCE, random.Random(seed), ["limit", "count"])
        edit = attempt("secure_call", code)
        made = None if edit is None else corrected(edit, code, random.Random(seed))
        if made is not None and made.earlier:
            return made
    raise AssertionError("no correction was made")


def test_an_example_of_the_recipe_is_worded_as_the_guard_words_it() -> None:
    made = example()
    assert made.correction is not None
    assert made.instruction == made.correction.instruction
    assert made.earlier == (made.correction.asked,)
    read = request_of(json.loads(json.dumps(asdict(made))))
    assert read.correction == made.correction
    assert {"line", "must", "not", "be", "written", "like", "that"} <= set(vocabulary())


def test_the_engine_reads_the_same_object_from_the_wire() -> None:
    made = example()
    messages = (
        Message("user", render_request(RegionRequest(made.earlier[0], made.region))),
        Message("assistant", made.kept),
        Message("user", render_follow_up(made.instruction)),
    )
    frame = json.loads(json.dumps({"correction": msgspec.to_builtins(made.correction)}))
    sent = read_create(frame).correction
    assert type(sent) is CorrectionRequest
    assert sent == made.correction
    codec = EditCodec.load(Path(BROOK))
    prompt = codec.encode(read_edit(messages, sent)).prompt_ids
    assert prompt == codec.encode(request_of(asdict(made))).prompt_ids
    assert prompt != codec.encode(read_edit(messages)).prompt_ids, "it is put as the advice alone"
