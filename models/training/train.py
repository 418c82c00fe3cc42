"""Train an edit model: short examples first, loss on the target only, Muon for matrices and AdamW
for the rest.

The learning rate is constant and then falls linearly to zero over the last part of the given time,
so a run fits any
budget: `--minutes` is wall-clock time. The curve goes to `curve.jsonl`; `last.pt` holds the
    weights.
"""

# pyright: reportMissingImports=false
# (torch belongs to the `train` extra only)
from __future__ import annotations

import argparse
import json
import math
import random
import time
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from models.training.data import TASK_NAMES
from models.training.model import Decoder, ModelConfig, induction_init
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from midstream.engine.codec import CodecLimits, EditCodec, EditRequest


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised by Newton-Schulz iterations (Jordan et al., 2024); for weight
    matrices.
    """

    def __init__(
        self, params: list[Tensor], lr: float, momentum: float = 0.95, decay: float = 0.01
    ) -> None:
        """Take matrices only."""
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix once."""
        for group in self.param_groups:
            momentum = group["momentum"]
            weights = [weight for weight in group["params"] if weight.grad is not None]
            for weight in weights:
                if "momentum" not in self.state[weight]:
                    self.state[weight]["momentum"] = torch.zeros_like(weight)
            averages = [self.state[weight]["momentum"] for weight in weights]
            gradients = [weight.grad for weight in weights]
            torch._foreach_mul_(averages, momentum)
            torch._foreach_add_(averages, gradients)
            updates = torch._foreach_add(gradients, averages, alpha=momentum)
            torch._foreach_mul_(weights, 1 - group["lr"] * group["decay"])
            shapes: dict[torch.Size, list[int]] = {}
            for k, weight in enumerate(weights):
                shapes.setdefault(weight.shape, []).append(k)
            for shape, members in shapes.items():
                stacked = orthogonal(torch.stack([updates[k] for k in members]).bfloat16())
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for k, direction in zip(members, stacked, strict=True):
                    weights[k].add_(direction, alpha=-rate)


def orthogonal(x: Tensor, steps: int = 5) -> Tensor:
    """Return roughly the nearest matrices with orthonormal rows or columns, of a bf16 stack of
    matrices.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    flipped = x.shape[1] > x.shape[2]
    if flipped:
        x = x.transpose(1, 2).contiguous()
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(steps):
        gram = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if flipped else x


class Shards:
    """All training examples in memory, drawn in batches of similar length."""

    def __init__(self, paths: list[Path], anchors: tuple[int, int], skip: frozenset[str]) -> None:
        """Load shards; `anchors` is the half-open range of anchor ids, `skip` names tasks to leave
        out.
        """
        parts = [np.load(path) for path in paths]
        self.tokens = np.concatenate([part["tokens"] for part in parts]).astype(np.int64)
        lengths = np.concatenate([np.diff(part["starts"]) for part in parts])
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.lengths = lengths
        self.prompts = np.concatenate([part["prompts"] for part in parts]).astype(np.int64)
        self.tasks = np.concatenate([part["tasks"] for part in parts])
        self.usable = np.flatnonzero(
            ~np.isin(self.tasks, [TASK_NAMES.index(task) for task in skip])
        )
        self.anchors = anchors

    def order(self, rng: random.Random, repeat: dict[str, float]) -> list[int]:
        """Return usable examples in random order, each as often as its task's `repeat` says."""
        often = np.array([repeat.get(task, 1.0) for task in TASK_NAMES])[self.tasks[self.usable]]
        extra = np.array([rng.random() for _ in range(len(often))])
        order: list[int] = np.repeat(self.usable, np.floor(often + extra).astype(int)).tolist()
        rng.shuffle(order)
        return order

    def batches(
        self, rng: random.Random, tokens: int, longest: int, chosen: np.ndarray
    ) -> list[np.ndarray]:
        """Group examples of similar length into batches of about `tokens`, in random order."""
        chosen = chosen[self.lengths[chosen] <= longest]
        noise = np.array([rng.random() for _ in range(len(chosen))])
        order = chosen[np.argsort(self.lengths[chosen] * (1 + 0.1 * noise))]
        out: list[np.ndarray] = []
        begin = 0
        while begin < len(order):
            size = max(1, tokens // int(self.lengths[order[min(begin + 8, len(order) - 1)]]))
            out.append(order[begin : begin + size])
            begin += size
        rng.shuffle(out)
        return out

    def collate(
        self, picked: np.ndarray, copied_weight: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return (tokens, flat positions to predict from, answers, weights) of one batch."""
        width = -(-int(self.lengths[picked].max()) // 16) * 16
        tokens = np.zeros((len(picked), width), np.int64)
        places: list[np.ndarray] = []
        answers: list[np.ndarray] = []
        for row, example in enumerate(picked):
            text = self.tokens[self.starts[example] : self.starts[example + 1]]
            tokens[row, : len(text)] = text
            prompt = int(self.prompts[example])
            places.append(np.arange(prompt - 1, len(text) - 1) + row * width)
            answers.append(text[prompt:])
        answer = np.concatenate(answers)
        place = np.concatenate(places)
        low, high = self.anchors
        before = tokens.reshape(-1)[place]
        plain = (
            (answer >= low)
            & (answer < high)
            & (before >= low)
            & (before < high)
            & (answer == before + 1)
        )
        weight = np.where(plain, copied_weight, 1.0).astype(np.float32)
        return (
            torch.from_numpy(tokens),
            torch.from_numpy(place),
            torch.from_numpy(answer),
            torch.from_numpy(weight),
        )


@torch.no_grad()
def evaluate(
    model: Decoder, sets: dict[str, list[dict[str, Any]]], per_task: int
) -> dict[str, Any]:
    """Return the share of examples with every target token right (teacher-forced), per set and
    task.
    """
    model.eval()
    report: dict[str, Any] = {}
    for name, examples in sets.items():
        used: dict[str, int] = {}
        picked = []
        for example in examples:
            used[example["task"]] = used.get(example["task"], 0) + 1
            if used[example["task"]] <= per_task:
                picked.append(example)
        picked.sort(key=lambda e: len(e["ids"]))
        hits: dict[str, list[int]] = {}
        for begin in range(0, len(picked), 32):
            group = picked[begin : begin + 32]
            width = max(len(e["ids"]) for e in group)
            tokens = torch.zeros(len(group), width, dtype=torch.long)
            for row, example in enumerate(group):
                tokens[row, : len(example["ids"])] = torch.tensor(example["ids"])
            with torch.autocast("cpu", torch.bfloat16):
                guess = model(tokens).argmax(-1)
            for row, example in enumerate(group):
                prompt, length = example["prompt"], len(example["ids"])
                right = bool(
                    (guess[row, prompt - 1 : length - 1] == tokens[row, prompt:length]).all()
                )
                hits.setdefault(example["task"], []).append(right)
        report[name] = {task: round(100 * sum(h) / len(h)) for task, h in sorted(hits.items())}
        report[name + "_mean"] = round(sum(report[name].values()) / len(report[name]), 1)
    model.train()
    return report


def load_sets(
    data: Path, codec: EditCodec, skip: frozenset[str] = frozenset()
) -> dict[str, list[dict[str, Any]]]:
    """Read and encode the evaluation sets."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for name in ("eval_known", "eval_new"):
        sets[name] = []
        for line in (data / f"{name}.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row["task"] in skip:
                continue
            prompt, target = codec.encode_target(
                EditRequest(row["instruction"], row["region"]), row["target"]
            )
            if len(prompt) + len(target) <= 700:
                sets[name].append(
                    {"task": row["task"], "ids": prompt + target, "prompt": len(prompt)}
                )
    return sets


def main() -> None:
    """Train for the given minutes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--config", type=Path, default=Path("models/training/configs/nano.toml"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--out", type=Path, default=Path("models/training/runs/nano"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--init", choices=("induction", "standard"), default="induction")
    parser.add_argument("--start", type=Path, help="weights to go on from")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--compile", action="store_true", help="compile the blocks first (about 40 s)"
    )
    arguments = parser.parse_args()
    settings = tomllib.loads(arguments.config.read_text())
    run = settings["train"]
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    rng = random.Random(0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    limits = CodecLimits()
    codec = EditCodec(Tokenizer.from_file(str(arguments.data / "tokenizer.json")), limits)
    config = ModelConfig(vocab=codec.vocab_size, **settings["model"])
    model = Decoder(config)
    if arguments.init == "induction":
        induction_init(model, codec.anchor_0, limits.lines + 1)
    tokens_before, seconds_before = 0, 0.0
    if arguments.start:
        saved = torch.load(arguments.start)
        model.load_state_dict(saved["weights"])
        tokens_before, seconds_before = int(saved["tokens"]), float(saved["seconds"])
    if arguments.compile:
        for block in model.blocks:
            block.compile(dynamic=True)
    (arguments.out / "config.json").write_text(json.dumps(asdict(config)))
    skip = frozenset(run.get("skip_tasks", []))
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embedding" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embedding" in n]
    muon = Muon(matrices, run["muon_lr"])
    adam = torch.optim.AdamW(others, run["adam_lr"], betas=(0.9, 0.98), weight_decay=0.0)
    shards = Shards(
        sorted(arguments.data.glob("shard-*.npz")),
        (codec.anchor_0, codec.anchor_0 + limits.lines + 1),
        skip,
    )
    sets = load_sets(arguments.data, codec, skip)
    print(
        f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters, "
        f"{len(shards.usable)} examples",
        flush=True,
    )

    began = time.time()
    spent_evaluating = 0.0
    seen = step = 0
    running = 0.0
    next_report, next_evaluation, next_save = 30.0, run["first_evaluation"], 90.0
    order = shards.order(rng, run.get("repeat", {}))
    position = 0
    batches: list[np.ndarray] = []
    seconds = arguments.minutes * 60
    curve = (arguments.out / "curve.jsonl").open("a")
    while True:
        passed = time.time() - began
        share = passed / seconds
        if share >= 1:
            break
        if not batches:
            longest = int(
                min(
                    run["longest"],
                    run["shortest"] + (run["longest"] - run["shortest"]) * share / run["ramp"],
                )
            )
            chunk = np.array(order[position : position + 6_000])
            position = position + 6_000 if position + 6_000 < len(order) else 0
            size = run["batch_tokens"] if share > run["small_until"] else run["batch_tokens"] // 2
            batches = shards.batches(rng, size, longest, chunk)
        rate = min(1.0, (step + 1) / run["warmup"], (1 - share) / run["decay"])
        for optimizer, base in ((muon, run["muon_lr"]), (adam, run["adam_lr"])):
            for group in optimizer.param_groups:
                group["lr"] = base * rate
        tokens, places, answers, weights = shards.collate(batches.pop(), run["copied_weight"])
        with torch.autocast("cpu", torch.bfloat16):
            states = model.hidden(tokens).flatten(0, 1)[places]
            logits = F.linear(states, model.embedding.weight)
        losses = F.cross_entropy(logits.float(), answers, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        for optimizer in (muon, adam):
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        muon.step()
        adam.step()
        step += 1
        seen += tokens.numel()
        running = loss.item() if step == 1 else 0.97 * running + 0.03 * loss.item()
        if not math.isfinite(running):
            raise RuntimeError(f"loss is {running} at step {step}")
        if passed > next_report:
            next_report = passed + 30
            print(
                f"{passed:6.0f} s step {step} tokens {seen / 1e6:.2f} M loss {running:.4f} "
                f"{seen / max(passed - spent_evaluating, 1):.0f} tok/s rate {rate:.2f}",
                flush=True,
            )
        if passed > next_evaluation:
            mark = time.time()
            report = {
                "seconds": round(passed),
                "tokens": seen,
                "loss": round(running, 4),
            } | evaluate(model, sets, run["evaluate_per_task"])
            curve.write(json.dumps(report) + "\n")
            curve.flush()
            print(json.dumps(report), flush=True)
            spent_evaluating += time.time() - mark
            next_evaluation = passed + run["evaluate_every"]
        if passed > next_save:
            next_save = passed + 120
            torch.save(
                {
                    "weights": model.state_dict(),
                    "tokens": tokens_before + seen,
                    "seconds": seconds_before + passed,
                },
                arguments.out / "last.pt",
            )
    torch.save(
        {
            "weights": model.state_dict(),
            "tokens": tokens_before + seen,
            "seconds": seconds_before + time.time() - began,
        },
        arguments.out / "last.pt",
    )
    report = {
        "seconds": round(time.time() - began),
        "tokens": seen,
        "loss": round(running, 4),
        "final": True,
    } | evaluate(model, sets, 60)
    curve.write(json.dumps(report) + "\n")
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
