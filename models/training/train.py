"""Train an edit model: loss on the target only, Muon for matrices and AdamW for the rest.

The learning rate rises, stays, and falls linearly to zero over the last part of the time, so a run
fits any budget: `--minutes` is what all its calls together may take. `last.pt` holds everything
that `--resume` needs to go on, on the same or on another machine. The curve and the task table go
to `curve.jsonl`.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from midstream.engine.codec import EditCodec
from midstream.engine.edit_request import EditRequest
from midstream.engine.vocabulary import CodecLimits, Vocabulary
from models.training.model import Decoder, ModelConfig, induction_init
from models.training.optim import Muon
from models.training.shards import Batch, Shards, prefetched


@dataclass(slots=True)
class Progress:
    """How far a run is, over all its calls."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    tokens_before: int = 0
    seconds_before: float = 0.0


class Trainer:
    """A model, its optimisers and where it stands."""

    def __init__(self, model: Decoder, settings: dict[str, Any], device: torch.device) -> None:
        """Set the optimisers up; `settings` is the `[train]` table of a configuration."""
        self.model, self.settings, self.device = model, settings, device
        named = list(model.named_parameters())
        self.matrices = [p for n, p in named if p.ndim == 2 and "embedding" not in n]
        self.others = [p for n, p in named if p.ndim != 2 or "embedding" in n]
        self.muon = Muon(self.matrices, settings["muon_lr"])
        self.adam = torch.optim.AdamW(
            self.others, settings["adam_lr"], betas=(0.9, 0.98), weight_decay=0.0
        )
        self.at = Progress()

    def rate(self, share: float) -> float:
        """Return the factor of the learning rates at a share of the time."""
        run = self.settings
        return min(1.0, (self.at.step + 1) / run["warmup"], max(0.0, 1 - share) / run["decay"])

    def loss(self, batch: Batch) -> Tensor:
        """Return the weighted cross entropy of a batch."""
        tokens, places, answers, weights = (
            part.to(self.device, non_blocking=True)
            for part in (batch.tokens, batch.places, batch.answers, batch.weights)
        )
        with torch.autocast(self.device.type, torch.bfloat16):
            states = self.model.hidden(tokens).flatten(0, 1)[places]
            logits = F.linear(states, self.model.embedding.weight)
        losses = F.cross_entropy(logits.float(), answers, reduction="none")
        return (losses * weights).sum() / weights.sum()

    def step(self, batch: Batch, share: float) -> Tensor:
        """Learn from a batch; return its loss (on the device)."""
        rate = self.rate(share)
        for optimizer, base in (
            (self.muon, self.settings["muon_lr"]),
            (self.adam, self.settings["adam_lr"]),
        ):
            for group in optimizer.param_groups:
                group["lr"] = base * rate
            optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.others, 1.0)
        self.muon.step()
        self.adam.step()
        self.at.step += 1
        self.at.tokens += batch.tokens.numel()
        return loss.detach()

    def save(self, path: Path) -> None:
        """Write everything that going on needs; the file is never half written."""
        state = {
            "weights": self.model.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "progress": asdict(self.at),
            "tokens": self.at.tokens_before + self.at.tokens,
            "seconds": self.at.seconds_before + self.at.seconds,
        }
        part = path.with_suffix(".part")
        torch.save(state, part)
        part.replace(path)

    def load(self, path: Path) -> None:
        """Go on where `save` was."""
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["weights"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.at = Progress(**state["progress"])

    def start_from(self, path: Path) -> None:
        """Take the weights of another run; its tokens and seconds count."""
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["weights"])
        self.at.tokens_before, self.at.seconds_before = (
            int(state["tokens"]),
            float(state["seconds"]),
        )


@torch.no_grad()
def evaluate(
    model: Decoder, sets: dict[str, list[dict[str, Any]]], per_task: int, device: torch.device
) -> dict[str, Any]:
    """Return the share of examples with every target token right (teacher-forced), per set and
    task.
    """
    model.eval()
    report: dict[str, Any] = {}
    for name, examples in sets.items():
        used: dict[str, int] = {}
        picked: list[dict[str, Any]] = []
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
            with torch.autocast(device.type, torch.bfloat16):
                guess = model(tokens.to(device)).argmax(-1).cpu()
            for row, example in enumerate(group):
                prompt, length = example["prompt"], len(example["ids"])
                right = bool(
                    (guess[row, prompt - 1 : length - 1] == tokens[row, prompt:length]).all()
                )
                hits.setdefault(example["task"], []).append(right)
        report[name] = {task: round(100 * sum(h) / len(h)) for task, h in sorted(hits.items())}
        report[name + "_mean"] = round(sum(report[name].values()) / max(1, len(report[name])), 1)
    model.train()
    return report


def load_sets(
    data: Path, codec: EditCodec, skip: frozenset[str] = frozenset()
) -> dict[str, list[dict[str, Any]]]:
    """Read and encode the evaluation sets."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for name in ("eval_known", "eval_new", "eval_steered"):
        sets[name] = []
        path = data / f"{name}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            row = json.loads(line)
            if row["task"] in skip:
                continue
            request = EditRequest(
                row["instruction"],
                row["region"],
                kept=row["kept"],
                earlier=tuple(row.get("earlier", ())),
            )
            prompt, target = codec.encode_target(request, row["target"])
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
    parser.add_argument("--out", type=Path, default=Path("models/training/runs/brook"))
    parser.add_argument("--minutes", type=float, default=60, help="of the whole run, all calls")
    parser.add_argument(
        "--stop-after", type=float, help="minutes of this call; save then, to go on with --resume"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the run's last.pt")
    parser.add_argument("--start", type=Path, help="weights of another run to begin with")
    parser.add_argument("--init", choices=("induction", "standard"), default="induction")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="compile the blocks first")
    arguments = parser.parse_args()
    settings = tomllib.loads(arguments.config.read_text())
    run: dict[str, Any] = settings["train"]
    device = torch.device(arguments.device)
    if device.type == "cpu":
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    limits = CodecLimits()
    codec = EditCodec(
        Vocabulary(Tokenizer.from_file(str(arguments.data / "tokenizer.json")), limits)
    )
    config = ModelConfig(vocab=codec.vocab.size, **settings["model"])
    model = Decoder(config)
    if arguments.init == "induction":
        induction_init(model, codec.vocab.anchor_0, limits.lines + 1)
    model.to(device)
    trainer = Trainer(model, run, device)
    if arguments.resume:
        trainer.load(out / "last.pt")
    elif arguments.start:
        trainer.start_from(arguments.start)
    if arguments.compile:
        for block in model.blocks:
            block.compile(dynamic=True)
    (out / "config.json").write_text(json.dumps(asdict(config)))
    skip = frozenset[str](run.get("skip_tasks", []))
    anchors = (codec.vocab.anchor_0, codec.vocab.anchor_0 + limits.lines + 1)
    shards = Shards(arguments.data, anchors, skip, random.Random(trainer.at.step))
    sets = load_sets(arguments.data, codec, skip)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    train(trainer, shards, sets, out, arguments.minutes * 60, arguments.stop_after)


def train(
    trainer: Trainer,
    shards: Shards,
    sets: dict[str, list[dict[str, Any]]],
    out: Path,
    seconds: float,
    stop_after: float | None,
) -> None:
    """Train until the run's time, or this call's, is over.

    Raises:
        RuntimeError: the loss is not finite any more.
    """
    run, at = trainer.settings, trainer.at
    began = time.time()
    before, seen_before = at.seconds, at.tokens
    evaluating = 0.0
    losses: list[Tensor] = []
    running = math.nan
    next_report, next_save = 30.0, 90.0
    next_evaluation = at.seconds + run["evaluate_every" if before else "first_evaluation"]
    curve = (out / "curve.jsonl").open("a")

    def log(per_task: int, **extra: Any) -> None:
        report = {
            "seconds": round(at.seconds),
            "tokens": at.tokens_before + at.tokens,
            "loss": None if math.isnan(running) else round(running, 4),
            **extra,
        } | evaluate(trainer.model, sets, per_task, trainer.device)
        curve.write(json.dumps(report) + "\n")
        curve.flush()
        print(json.dumps(report), flush=True)

    def make() -> Batch:
        share = at.seconds / seconds
        ramp = min(1.0, share / run["ramp"])
        longest = int(run["shortest"] + (run["longest"] - run["shortest"]) * ramp)
        size = run["batch_tokens"] // (1 if share >= run["small_until"] else 2)
        return shards.next(size, longest, run["copied_weight"])

    ahead = trainer.device.type != "cpu"
    batches = prefetched(make, 6) if ahead else iter(make, None)
    while True:
        here = time.time() - began
        at.seconds = before + here
        share = at.seconds / seconds
        if share >= 1 or (stop_after is not None and here >= stop_after * 60):
            break
        losses.append(trainer.step(next(batches), share))
        if here > next_report:
            next_report = here + 30
            running = torch.stack(losses[-100:]).mean().item()
            losses = losses[-100:]
            if not math.isfinite(running):
                raise RuntimeError(f"the loss is {running} at step {at.step}")
            print(
                f"{at.seconds:6.0f} s step {at.step} tokens {at.tokens / 1e6:.2f} M loss "
                f"{running:.4f} {(at.tokens - seen_before) / max(here - evaluating, 1):.0f} tok/s "
                f"rate {trainer.rate(share):.2f}",
                flush=True,
            )
        if at.seconds > next_evaluation:
            mark = time.time()
            log(run["evaluate_per_task"])
            evaluating += time.time() - mark
            next_evaluation = at.seconds + run["evaluate_every"]
        if here > next_save:
            next_save = here + 120
            trainer.save(out / "last.pt")
    trainer.save(out / "last.pt")
    log(60, final=at.seconds >= seconds)


if __name__ == "__main__":
    main()
