"""The trainer: it learns, it stops, and it goes on from where it was (needs torch)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
from midstream.engine.codec import EditCodec  # noqa: E402
from midstream.engine.edit_request import EditRequest  # noqa: E402
from models.training import data, tasks  # noqa: E402
from models.training.average import averaged  # noqa: E402
from models.training.model import Decoder, ModelConfig  # noqa: E402
from models.training.shards import Shards, prefetched  # noqa: E402
from models.training.train import Trainer, load_sets, train  # noqa: E402

pytestmark = pytest.mark.system

FOLDER = next(p.parent for p in sorted((ROOT / "models").glob("*/midstream.toml")))
SETTINGS: dict[str, Any] = {
    "muon_lr": 0.01,
    "adam_lr": 0.002,
    "batch_tokens": 512,
    "small_until": 0.0,
    "shortest": 300,
    "longest": 300,
    "ramp": 0.1,
    "warmup": 2,
    "decay": 0.4,
    "copied_weight": 0.5,
    "first_evaluation": 1e9,
    "evaluate_every": 1e9,
    "evaluate_per_task": 2,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    codec = EditCodec.load(FOLDER)
    rng = random.Random(1)
    tokens: list[int] = []
    lengths: list[int] = []
    prompts: list[int] = []
    kinds: list[int] = []
    for k in range(60):
        old, new = rng.sample(["count", "total_size", "path", "node", "limit"], 2)
        region = f"def f{k}({old}):\n    return {old} + {k}\n"
        prompt, target = codec.encode_target(
            EditRequest(f"rename {old} to {new}", region), region.replace(old, new), shuffle=rng
        )
        tokens += prompt + target
        lengths.append(len(prompt) + len(target))
        prompts.append(len(prompt))
        kinds.append(list(tasks.SHARES).index("rename_parameter"))
    import numpy as np

    part = (
        np.array(tokens, np.uint16).tobytes(),
        np.array(lengths, np.int64).tobytes(),
        np.array(prompts, np.uint16).tobytes(),
        np.array(kinds, np.uint8).tobytes(),
    )
    assert data.write_shard(tmp_path / "shard-0.npz", [part]) == 60
    row = {"task": "rename_parameter", "instruction": "rename a to b", "region": "a\n", "kept": ""}
    (tmp_path / "eval_known.jsonl").write_text(json.dumps(row | {"target": "b\n"}) + "\n")
    return tmp_path


def made(folder: Path) -> tuple[Trainer, Shards, dict[str, list[dict[str, Any]]]]:
    codec = EditCodec.load(FOLDER)
    torch.manual_seed(0)
    model = Decoder(ModelConfig(vocab=codec.vocab.size, width=64, layers=2, heads=2, kv_heads=1))
    trainer = Trainer(model, SETTINGS, torch.device("cpu"))
    anchors = (
        codec.vocab.anchor_0,
        codec.vocab.anchor_0 + codec.vocab.limits.lines + 1,
    )
    shards = Shards(folder, anchors, frozenset(), random.Random(0))
    return trainer, shards, load_sets(folder, codec)


def test_a_run_learns_and_goes_on_where_it_stopped(folder: Path, tmp_path: Path) -> None:
    trainer, shards, sets = made(folder)
    begin = trainer.loss(shards.next(4_000, 300, 0.5)).item()
    train(trainer, shards, sets, tmp_path, seconds=6.0, stop_after=3 / 60)
    steps = trainer.at.step
    assert steps > 5
    again, shards, sets = made(folder)
    again.load(tmp_path / "last.pt")
    assert again.at.step == steps
    assert again.at.seconds >= 3
    train(again, shards, sets, tmp_path, seconds=6.0, stop_after=None)
    assert again.at.step > steps
    assert again.at.seconds >= 6
    assert again.loss(shards.next(4_000, 300, 0.5)).item() < begin - 1
    rows = [json.loads(line) for line in (tmp_path / "curve.jsonl").read_text().splitlines()]
    assert [row["final"] for row in rows] == [False, True]
    assert again.rate(0.5) == 1
    assert again.rate(1.0) == 0


def test_new_shards_are_taken_up_and_batches_come_ahead(folder: Path) -> None:
    _, shards, _ = made(folder)
    batches = prefetched(lambda: shards.next(400, 300, 0.5), 2)
    first = next(batches)
    assert first.tokens.numel() >= 256
    assert first.answers.shape == first.places.shape == first.weights.shape
    (folder / "shard-1.npz").write_bytes((folder / "shard-0.npz").read_bytes())
    for _ in range(60):
        next(batches)
    batches.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert len(shards) == 60


def test_a_folder_without_shards_says_so(tmp_path: Path) -> None:
    shards = Shards(tmp_path, (0, 1), frozenset(), random.Random(0))
    batches = prefetched(lambda: shards.next(400, 300, 0.5), 2)
    with pytest.raises(FileNotFoundError, match="no shards"):
        next(batches)


def test_checkpoints_are_averaged_and_only_of_one_shape() -> None:
    def state(value: float, size: int = 2) -> dict[str, Any]:
        weights = {"a": torch.full((size,), value)}
        return {"weights": weights, "progress": {}, "tokens": int(value), "seconds": value}

    mixed = averaged(state(1.0), state(3.0), 0.75)
    assert mixed["weights"]["a"].tolist() == [2.5, 2.5]
    assert mixed["tokens"] == 3
    assert "muon" not in mixed
    with pytest.raises(ValueError, match="shapes"):
        averaged(state(1.0), state(3.0, 5), 0.5)
