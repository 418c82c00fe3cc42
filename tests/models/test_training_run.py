"""Training, resuming and rounding, on random weights."""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from safetensors.torch import save_file

from models.training import rounding, train
from models.training.blocks import quantise_range, unpack_blocks
from models.training.examples import Codec, Group, Packer, batch_of, group_of
from models.training.network import Network
from models.training.vocabulary import SPECIAL
from tests.helpers.folders import make_tokenizer

CONFIG = {
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
}
ROWS = [
    {
        "region": f"def f{n}(x):\n    y = x + {n}\n    return y\n",
        "edits": [["kind", f"add {n} twice", f"2|    y = x + {2 * n}\n"], ["done", "be f", "=\n"]],
    }
    for n in range(30)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A base model, a cut of its vocabulary, and shards."""
    tokenizer = make_tokenizer(list(SPECIAL))
    vocab = tokenizer.get_vocab_size()
    torch.manual_seed(1)
    state = {"model.embed_tokens.weight": torch.randn(vocab + 40, 128), "model.norm.weight": ones()}
    for layer in range(3):
        at = f"model.layers.{layer}"
        state[f"{at}.input_layernorm.weight"] = ones()
        state[f"{at}.post_attention_layernorm.weight"] = ones()
        for name, rows, columns in (
            ("self_attn.q_proj", 128, 128),
            ("self_attn.k_proj", 64, 128),
            ("self_attn.v_proj", 64, 128),
            ("self_attn.o_proj", 128, 128),
            ("mlp.gate_proj", 128, 128),
            ("mlp.up_proj", 128, 128),
            ("mlp.down_proj", 128, 128),
        ):
            state[f"{at}.{name}.weight"] = torch.randn(rows, columns) / columns**0.5
            if name[10:] in ("q_proj", "k_proj", "v_proj"):
                state[f"{at}.{name}.bias"] = torch.randn(rows)
    for name in ("base", "cut", "shards"):
        (tmp_path / name).mkdir()
    save_file(state, str(tmp_path / "base" / "model.safetensors"))
    (tmp_path / "base" / "config.json").write_text(json.dumps(CONFIG))
    tokenizer.save(str(tmp_path / "cut" / "tokenizer.json"))
    (tmp_path / "cut" / "rows.json").write_text(json.dumps(list(range(40, vocab + 40))))
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "shards" / "generated-a.jsonl").write_text(lines)
    return tmp_path


def ones() -> Any:
    return torch.ones(128)


def options(folder: Path, **more: Any) -> argparse.Namespace:
    known = {
        "base": folder / "base",
        "cut": folder / "cut",
        "data": folder / "shards",
        "name": str(folder / "run"),
        "start": None,
        "resume": False,
        "seed": 0,
        "rate": 5e-3,
        "frozen": 1,
        "length": 256,
        "tokens": 512,
        "float32": False,
        "device": "cpu",
        "workers": 0,
    }
    return argparse.Namespace(**known | more)


def batches(folder: Path, count: int) -> list[Any]:
    packer = Packer(
        Codec(folder / "cut" / "tokenizer.json"),
        train.Mixture(folder / "shards", train.SHARES),
        256,
        seed=0,
    )
    return [batch_of([packer.sequence()], 256) for _ in range(count)]


def test_steps_lower_the_loss_and_leave_the_lowest_layers_alone(folder: Path) -> None:
    run = train.Run(options(folder))
    before = {name: value.clone() for name, value in run.network.adapters().items()}
    losses = [run.one_step(5e-3)[0] for _ in range(12)]
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])
    changed = {
        name for name, value in run.network.adapters().items() if not value.equal(before[name])
    }
    assert changed
    assert all(not name.startswith("layers.0.") for name in changed)


def test_a_run_goes_on_where_it_was_saved(folder: Path) -> None:
    first = train.Run(options(folder))
    for _ in range(3):
        first.one_step(1e-3)
    first.save()
    again = train.Run(options(folder, resume=True))
    assert (again.step, again.tokens, again.edits) == (first.step, first.tokens, first.edits)
    assert again.mixture.state() == first.mixture.state()
    for name, value in first.network.adapters().items():
        assert torch.allclose(again.network.adapters()[name], value, atol=1e-2)
    assert again.one_step(1e-3)[1] > 0


def test_another_seed_reads_the_rows_in_another_order(folder: Path) -> None:
    shard = folder / "shards" / "generated-a.jsonl"
    shard.write_text("".join(f'{{"number": {number}}}\n' for number in range(50)))

    def read(seed: int) -> list[int]:
        mixture = train.Mixture(folder / "shards", train.SHARES, seed)
        return [mixture.next()[1]["number"] for _ in range(50)]

    assert read(1) == read(1)
    assert read(1) != read(2)
    assert sorted(read(1)) == sorted(read(2)) == list(range(50))


def test_workers_begin_at_different_rows(folder: Path) -> None:
    rows = "".join(
        json.dumps({"region": f"x{n} = {n}\n", "edits": [["k", "be y", "", "y = 1\n"]]}) + "\n"
        for n in range(400)
    )
    (folder / "shards" / "generated-a.jsonl").write_text(rows)
    made = train.Batches(options(folder))
    first, second, again = next(made.part(0, 2)), next(made.part(1, 2)), next(made.part(0, 2))
    assert not first.tokens.equal(second.tokens)
    assert first.tokens.equal(again.tokens)


def test_a_question_is_answered_without_a_fence(folder: Path) -> None:
    codec = Codec(folder / "cut" / "tokenizer.json")
    row = {"region": "f = 1\n", "edits": [["question", "why?", "", "It is one."]]}
    group = group_of(codec, row, 256, random.Random(0))
    assert group is not None
    asked = codec.encode("why?")
    answer = [*codec.encode("It is one."), codec.end]
    assert group.tokens[-len(answer) :] == answer
    assert codec.encode("```")[0] not in group.tokens[len(codec.region("f = 1\n", "python")) :]
    assert group.tokens[len(codec.region("f = 1\n", "python")) :][: len(asked)] == asked
    learned = [label for label in group.labels if label >= 0]
    assert learned == answer


def test_a_request_does_not_see_the_others_of_its_region(folder: Path) -> None:
    codec = Codec(folder / "cut" / "tokenizer.json")
    network = Network(folder / "base", range(40, 343), 0)
    both, alone = codec.region(ROWS[3]["region"], "python"), codec.request("be f", "python")

    def last(requests: list[list[int]]) -> Any:
        group = Group(list(both))
        for request in requests:
            group.add(request, [codec.end], [1.0])
        batch = batch_of([[group]], 256)
        hidden = network.hidden(batch.tokens, batch.positions, batch.mask())
        return network.logits(hidden)[0, len(group.tokens) - 2]

    with torch.no_grad():
        assert torch.allclose(
            last([codec.request("other", "python"), alone]), last([alone]), atol=0.2
        )


def test_the_rate_rises_stays_and_falls() -> None:
    rates = [train.rate_at(1.0, 100, share / 100, 0.4) for share in range(101)]
    assert train.rate_at(1.0, 0, 0.0, 0.4) < 0.1
    assert rates[:60] == [1.0] * 60
    assert rates[60:] == sorted(rates[60:], reverse=True)
    assert rates[-1] == 0.02


def test_rounding_by_examples_beats_the_nearest(folder: Path) -> None:
    network, exact = (Network(folder / "base", range(40, 343), 0) for _ in range(2))
    found = batches(folder, 4)
    matrices = {
        name: (form, blocks) for name, form, blocks in rounding.rounded_layers(network, found)
    }

    assert len(matrices) == 3 * 5
    block: Any = exact.layers[0]
    rows = torch.nn.functional.embedding(found[0].tokens, exact.emb)[0].float()
    weight = block.gu.w.float()[:128]
    form, blocks = matrices["model.layers.0.mlp.gate_proj"]
    assert form == rounding.FOUR
    nearest = unpack_blocks(quantise_range(weight.numpy().T, form), 128, form)

    def error(values: Any) -> float:
        return float((rows @ (torch.from_numpy(values) - weight).T).square().mean())

    assert error(unpack_blocks(blocks, 128, form)) < 1.2 * error(nearest)


def test_layers_of_an_earlier_export_stay_as_they_are(folder: Path) -> None:
    first, second = (Network(folder / "base", range(40, 343), 0) for _ in range(2))
    found = batches(folder, 2)
    kept: dict[str, Any] = {}
    for name, form, blocks in rounding.rounded_layers(first, found):
        if ".layers.0." in name:
            kept[name] = unpack_blocks(blocks, blocks.stored.shape[0], form)
    for name in ("qkv", "o", "gu", "dn"):
        getattr(second.layers[0], name).w.zero_()

    names = [name for name, _, _ in rounding.rounded_layers(second, found, kept)]

    assert len(names) == 2 * 5
    assert not any(".layers.0." in name for name in names)
    for name in ("qkv", "o", "gu", "dn"):
        assert torch.equal(getattr(first.layers[0], name).w, getattr(second.layers[0], name).w)
