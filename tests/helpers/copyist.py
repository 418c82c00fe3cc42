"""An edit model of the suite's own: it copies the region and does what is between backticks.

"rename `old` to `new`", in any words and for any number of pairs, replaces names; a request with
one text between backticks gets that text as a line above the region; with any other the region
stays as it is.

The folder is what a shipped model's is: a graph with a KV cache for ONNX Runtime, a tokenizer, a
card, and the prompt style of models that rewrite a region (``rewrite_codec``).  No weights are
learned: the cache keeps which tokens were read, and the next token of the answer is the one that
stands as far behind the beginning of the region as the answer is long.  So answers depend on all
that was read and on nothing else, and can be told beforehand.

Names that are replaced have to be one token each: the words of the demo and of ``NAMES`` are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from midstream import demo
from midstream.engine.rewrite_codec import BEGIN, END, FENCE

NAME: Final = "copyist"
CONTEXT: Final = 4_096
WIDTH: Final = 8
"""Width of a row of the cache, ONNX Runtime's least; the first value is the token."""
SURE: Final = 12.0
"""Logit of the next token; the others' is 0."""
NAMES: Final = (
    "total found data text result chosen count number entry item items things amount "
    "values settings name wanted merged out attempt turn rows records res whole rate"
)
CARD: Final = f"""\
schema = 1
name = "{NAME}"
title = "Copies, and renames what it is asked to"
prompt = "edit-rewrite"
edit_format = "region"
languages = ["python", "javascript", "typescript", "go", "rust", "java"]
max_region_lines = 200

[facts]
region_first = "1"

[limits]
max_prompt_tokens = 2048
max_output_tokens = 1024

[confidence]
threshold = {{threshold}}
bias = 1.0
weights = {{{{ doubt = -1.0 }}}}
"""


def write_copyist(path: Path, *, threshold: float = 0.5) -> Path:
    """Write the folder and return it.

    Args:
        path: Where it is to be.
        threshold: Confidence below which an answer is flagged: of all above 1, of none at 0.
    """
    path.mkdir(parents=True)
    tokenizer = _tokenizer(_words())
    tokenizer.save(str(path / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    genai = {
        "model": {
            "type": "qwen2",
            "context_length": CONTEXT,
            "eos_token_id": end,
            "vocab_size": tokenizer.get_vocab_size(),
            "decoder": {
                "filename": "model.onnx",
                "head_size": WIDTH,
                "hidden_size": WIDTH,
                "num_attention_heads": 1,
                "num_hidden_layers": 1,
                "num_key_value_heads": 1,
            },
        },
        "search": {"past_present_share_buffer": True, "max_length": CONTEXT},
    }
    (path / "genai_config.json").write_text(json.dumps(genai))
    (path / "midstream.toml").write_text(CARD.format(threshold=threshold))
    onnx.save(_graph(tokenizer), str(path / "model.onnx"))
    return path


def _words() -> set[str]:
    """The words that are one token each: those of the demo, and the names that tests rename."""
    project = Path(demo.__file__).parent / "project"
    texts = [NAMES, *(file.read_text("utf-8") for file in project.rglob("*.py"))]
    texts += (suggestion.instruction for suggestion in demo.SUGGESTIONS)
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _tokenizer(words: Iterable[str]) -> Tokenizer:
    """A byte-level BPE in which these words are one token each, whatever stands around them."""
    tokenizer = Tokenizer(models.BPE())
    cut = pre_tokenizers.Split(Regex(rf"{FENCE}|\w+| +|[^\w ]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=100_000,  # more than there are: every word is merged to the end
        special_tokens=[BEGIN, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*sorted(words), FENCE, *(" " * n for n in (4, 8, 12))], trainer)
    return tokenizer


class _Writer:
    """Adds nodes and constants to a graph, each named after what it holds."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, name: str, value: Any, dtype: Any = np.int64) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output


def _graph(tokenizer: Tokenizer) -> onnx.ModelProto:
    w = _Writer()
    for number in (0, 1, 2, 4):
        w.constant(f"{number}", number)
        w.constant(f"[{number}]", [number])
    for name, token in (
        ("begin", BEGIN), ("newline", "Ċ"), ("fence", FENCE), ("tick", "`"),
    ):  # fmt: skip
        w.constant(name, tokenizer.token_to_id(token))
    vocabulary = tokenizer.get_vocab_size()
    _remember(w)
    _find_places(w)
    _find_names(w)
    _find_line(w)
    _answer(w, vocabulary)
    cache, long = [1, 1, "past", WIDTH], [1, 1, "capacity", WIDTH]
    info = helper.make_tensor_value_info
    parts = ("key", "value")
    inputs = [
        info("input_ids", TensorProto.INT64, [1, "sequence"]),
        info("attention_mask", TensorProto.INT64, [1, "mask"]),
        *(info(f"past_key_values.0.{part}", TensorProto.FLOAT, cache) for part in parts),
    ]
    outputs = [
        info("logits", TensorProto.FLOAT, [1, "sequence", vocabulary]),
        *(info(f"present.0.{part}", TensorProto.FLOAT, long) for part in parts),
    ]
    graph = helper.make_graph(w.nodes, NAME, inputs, outputs, w.constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="midstream")
    model.ir_version = 9
    return model


def _remember(w: _Writer) -> None:
    """``read``: all tokens so far, as the cache keeps them; ``rows``: the places of the new."""
    w.node("ReduceSum", ["attention_mask", "[1]"], "[total]", keepdims=0)
    w.node("Squeeze", ["[total]"], "total")
    w.node("Sub", ["total", "1"], "last")
    w.node("Sub", ["[total]", "[1]"], "[last]")
    w.node("Cast", ["[last]"], "seqlens_k", to=TensorProto.INT32)
    w.node("Shape", ["attention_mask"], "mask_shape")
    w.node("Gather", ["mask_shape", "1"], "mask_length", axis=0)
    w.node("Cast", ["mask_length"], "total_sequence_length", to=TensorProto.INT32)
    w.node("Cast", ["input_ids"], "given", to=TensorProto.FLOAT)
    w.node("Unsqueeze", ["given", "[2]"], "column")
    keys = np.eye(1, 3 * WIDTH, WIDTH)  # queries and values are zeros
    w.node("MatMul", ["column", w.constant("as_keys", keys, np.float32)], "packed")
    attention = helper.make_node(
        "GroupQueryAttention",
        [
            "packed", "", "", "past_key_values.0.key", "past_key_values.0.value", "seqlens_k",
            "total_sequence_length",
        ],
        ["attention", "present.0.key", "present.0.value"],
        domain="com.microsoft",
        num_heads=1,
        kv_num_heads=1,
    )  # fmt: skip
    w.nodes.append(attention)
    w.constant("firsts", [0, 0, 0, 0])
    w.node("Concat", ["[1]", "[1]", "[total]", "[1]"], "ends", axis=0)
    w.node("Slice", ["present.0.key", "firsts", "ends"], "kept")
    w.node("Reshape", ["kept", w.constant("[-1]", [-1])], "kept_flat")
    w.node("Cast", ["kept_flat"], "read", to=TensorProto.INT64)
    w.node("Shape", ["input_ids"], "given_shape")
    w.node("Gather", ["given_shape", "1"], "new")
    w.node("Sub", ["total", "new"], "past")
    w.node("Range", ["past", "total", "1"], "rows")


def _where(w: _Writer, name: str, *conditions: str) -> str:
    """Whether all conditions hold at a place, as numbers."""
    first, *others = conditions
    for number, other in enumerate(others):
        first = w.node("And", [first, other], f"{name}.{number}")
    return w.node("Cast", [first], name, to=TensorProto.INT64)


def _counted(w: _Writer, name: str, *conditions: str) -> str:
    """How often all conditions have held up to a place."""
    return w.node("CumSum", [_where(w, f"{name}.here", *conditions), "0"], name)


def _find_places(w: _Writer) -> None:
    """``region`` and ``answer``: where they begin, each behind the line that opens a fence.

    Before such a place is known, it lies behind the tokens so far.
    """
    for name in ("begin", "newline", "fence", "tick"):
        w.node("Equal", ["read", name], f"is_{name}")
    _counted(w, "messages", "is_begin")
    for number, message, place in (("1", "asked", "region"), ("2", "answered", "answer")):
        w.node("Equal", ["messages", number], message)
        lines = _counted(w, f"{message}.lines", "is_newline", message)
        w.node("Less", [lines, "2"], f"{message}.head")
        before = _where(w, f"{message}.before", f"{message}.head")
        w.node("ReduceSum", [before], f"{message}.length", keepdims=0)
        w.node("Add", [f"{message}.length", "1"], place)


def _find_names(w: _Writer) -> None:
    """``old`` and ``new_names``: what stands between ticks in the request behind the region."""
    w.node("GreaterOrEqual", [_counted(w, "fences", "is_fence", "asked"), "2"], "behind")
    _where(w, "quotes", "is_tick", "asked", "behind")
    w.node("NonZero", ["quotes"], "found")
    w.node("Reshape", ["found", "[-1]"], "ticks")
    w.constant("[end]", [2**31])
    for name, first in (("old", "[0]"), ("mark", "[1]"), ("new_name", "[2]"), ("close", [3])):
        begin = first if isinstance(first, str) else w.constant("[3]", first)
        w.node("Slice", ["ticks", begin, "[end]", "[0]", "[4]"], f"{name}.tick")
    # A request may be read in pieces: only whole pairs count.
    w.node("Shape", ["close.tick"], "pairs")
    for name in ("old", "mark", "new_name"):
        w.node("Slice", [f"{name}.tick", "[0]", "pairs", "[0]"], f"{name}.whole")
    for name in ("old", "new_name"):
        w.node("Add", [f"{name}.whole", "1"], f"{name}.at")
        w.node("Gather", ["read", f"{name}.at"], f"{name}s")


def _find_line(w: _Writer) -> None:
    """``line``: where the only text between ticks begins; ``line.length`` with its newline, or 0.

    One token more than the text is its second tick: the newline takes its place.
    """
    for name, first, behind in (("line.open", "[0]", "[1]"), ("line.close", "[1]", "[2]")):
        w.node("Slice", ["ticks", first, behind], f"{name}.tick")
        w.node("ReduceSum", [f"{name}.tick"], name, keepdims=0)
    w.node("Add", ["line.open", "1"], "line")
    w.node("Size", ["ticks"], "ticks.count")
    w.node("Equal", ["ticks.count", "2"], "line.alone")
    w.node("Sub", ["line.close", "line.open"], "line.apart")
    w.node("Where", ["line.alone", "line.apart", "0"], "line.length")


def _token_at(w: _Writer, name: str, place: str) -> str:
    """The tokens at these places, of those that were read."""
    w.node("Max", [place, "0"], f"{name}.low")
    w.node("Min", [f"{name}.low", "last"], f"{name}.place")
    return w.node("Gather", ["read", f"{name}.place"], name)


def _answer(w: _Writer, vocabulary: int) -> None:
    """The line, then the region's token as far behind its beginning as the answer is long."""
    w.node("Add", ["rows", "1"], "next_rows")
    w.node("Sub", ["next_rows", "answer"], "length")
    w.node("Add", ["line", "length"], "line.place")
    _token_at(w, "line.token", "line.place")
    w.node("Equal", ["line.token", "tick"], "line.ends")
    w.node("Where", ["line.ends", "newline", "line.token"], "line.written")
    w.node("Sub", ["length", "line.length"], "region.length")
    w.node("Add", ["region", "region.length"], "region.place")
    _token_at(w, "copied", "region.place")
    w.node("Unsqueeze", ["copied", "[1]"], "copied.column")
    w.node("Equal", ["copied.column", "olds"], "renamed")
    w.node("Sub", ["new_names", "olds"], "changes")
    w.node("Where", ["renamed", "changes", "0"], "change.each")
    w.node("ReduceSum", ["change.each", "[1]"], "change", keepdims=0)
    w.node("Add", ["copied", "change"], "region.written")
    w.node("Less", ["length", "line.length"], "in_line")
    w.node("Where", ["in_line", "line.written", "region.written"], "written")
    w.node("GreaterOrEqual", ["length", "0"], "answering")
    w.node("Where", ["answering", "written", "newline"], "token")
    w.constant("depth", vocabulary)
    w.constant("levels", [0, SURE], np.float32)
    w.node("OneHot", ["token", "depth", "levels"], "rows_of_logits")
    w.node("Unsqueeze", ["rows_of_logits", "[0]"], "logits")
