"""Train the adapters: packed sequences, resumable, at a rate that falls to zero at the end.

    PYTHONPATH=app:. python -m models.training.train --base base --cut cut --data shards \
        --name run --until 18:30 --start models/training/rewriting/adapters.safetensors

``NAME.safetensors`` holds the adapters, ``NAME.state`` all that ``--resume`` needs. SIGTERM saves
and ends. ``OMP_WAIT_POLICY=passive`` where the machine is shared.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from models.training.examples import NO_LOSS, Batch, Codec, Packer, batch_of
from models.training.mixture import Mixture
from models.training.network import Network

SHARES = {
    "outcomes": 0.24,
    "generated": 0.3,
    "commits": 0.22,
    "wishes": 0.04,
    "polyglot": 0.02,
    "requests": 0.04,
    "everyday": 0.04,
    "goals": 0.02,
    "languages": 0.02,
    "done": 0.03,
    "none": 0.03,
}
"""Each source's share of the tokens; ``questions`` were answered too badly to be offered."""
WARM_UP = 20
LOG_EVERY = 4


def rate_at(most: float, step: int, share: float, decay: float) -> float:
    """Return the rate after a share of the time: it rises, stays, and falls over the last part."""
    falling = 1.0 if share < 1 - decay else max(0.02, (1 - share) / decay)
    return most * min(1.0, (step + 1) / WARM_UP) * falling


def loss_of(network: Network, batch: Batch) -> torch.Tensor:
    """Return the weighted mean loss of a batch."""
    keep = batch.labels != NO_LOSS
    hidden = network.hidden(batch.tokens, batch.positions, batch.mask())[keep]
    each = F.cross_entropy(network.logits(hidden).float(), batch.labels[keep], reduction="none")
    weights = batch.weights[keep]
    return (each * weights).sum() / weights.sum()


def seconds_until(clock: str) -> float:
    """Return the time up to ``HH:MM``, today or tomorrow."""
    hour, minute = map(int, clock.split(":"))
    now = time.localtime()
    left = (hour - now.tm_hour) * 3600 + (minute - now.tm_min) * 60 - now.tm_sec
    return left if left > 0 else left + 86_400


def packed(options: argparse.Namespace, mixture: Mixture, seed: int) -> Iterator[Batch]:
    """Yield batches without end."""
    packer = Packer(Codec(options.cut / "tokenizer.json"), mixture, options.length, seed)
    count = max(1, options.tokens // options.length)
    while True:
        yield batch_of([packer.sequence() for _ in range(count)], options.length)


class Batches(IterableDataset[Batch]):
    """Batches for a loader with workers, each of which begins elsewhere in the shards."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options = options

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        return self.part(worker.id, worker.num_workers) if worker else self.part(0, 1)

    def part(self, number: int, count: int) -> Iterator[Batch]:
        """Yield the batches of worker ``number`` of ``count`` workers, endlessly."""
        mixture = Mixture(self.options.data, SHARES, self.options.seed)
        at: dict[str, tuple[int, int]] = {}
        for path in self.options.data.glob("*.jsonl"):
            rows = path.read_bytes().count(b"\n")
            at[path.name] = (0, rows * number // count)
        mixture.restore({"files": at, "owed": {}, "tokens": {}})
        return packed(self.options, mixture, number)


class Run:
    """One training run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        rows = json.loads((options.cut / "rows.json").read_text("utf-8"))
        self.device = torch.device(options.device)
        self.network = Network(options.base, rows, options.frozen).to(self.device)
        if options.float32:
            self.network.float()
        if self.device.type == "cuda":
            for layer in self.network.layers:
                layer.compile()
        self.optimiser = torch.optim.AdamW(
            self.network.learning(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        self.mixture = Mixture(options.data, SHARES, options.seed)
        self.step = self.tokens = self.edits = 0
        state: dict[str, Any] = {}
        if options.resume:
            state = torch.load(f"{options.name}.state", weights_only=False)
        start = f"{options.name}.safetensors" if options.resume else options.start
        if start:
            found = {name: value.float() for name, value in load_file(start).items()}
            self.network.load_state_dict(found, strict=False)
        if state:
            self.optimiser.load_state_dict(state["optimiser"])
            self.mixture.restore(state["mixture"])
            self.step, self.tokens, self.edits = state["counts"]
        if options.workers:
            loaded = DataLoader(
                Batches(options),
                batch_size=None,
                num_workers=options.workers,
                pin_memory=self.device.type == "cuda",
                multiprocessing_context="spawn",  # threads of this process do not survive a fork
            )
            self.batches: Iterator[Batch] = iter(loaded)
        else:
            self.batches = packed(options, self.mixture, self.step)

    def save(self) -> None:
        """Write adapters and state."""
        name = self.options.name
        found = {k: v.to(torch.bfloat16).contiguous() for k, v in self.network.adapters().items()}
        save_file(found, f"{name}.part")
        os.replace(f"{name}.part", f"{name}.safetensors")  # noqa: PTH105
        counts = (self.step, self.tokens, self.edits)
        state = {"optimiser": self.optimiser.state_dict(), "mixture": self.mixture.state()}
        torch.save(state | {"counts": counts}, f"{name}.state")

    def one_step(self, rate: float) -> tuple[float, int]:
        """Take a step; return its loss and tokens."""
        batch = next(self.batches).to(self.device)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = loss_of(self.network, batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.learning(), 1.0)
        self.optimiser.step()
        self.step, self.tokens = self.step + 1, self.tokens + batch.used
        self.edits += batch.edits
        return float(loss.item()), batch.used

    def train(self) -> None:
        """Take steps until the time is over or SIGTERM comes."""
        ending: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
        options = self.options
        began = saved = time.time()
        first = self.step
        whole = options.minutes * 60 if options.minutes else seconds_until(options.until)
        losses: list[float] = []
        while (spent := time.time() - began) < whole and not ending:
            rate = rate_at(options.rate, self.step - first, spent / whole, options.decay)
            begun = time.time()
            loss, used = self.one_step(rate)
            losses.append(loss)
            if self.step % LOG_EVERY == 0:
                print(
                    f"{self.step} {spent / 60:.1f} min, {self.tokens} tokens, {self.edits} edits, "
                    f"loss {sum(losses) / len(losses):.3f}, rate {rate:.1e}, "
                    f"{used / (time.time() - begun):.0f} tokens/s",
                    flush=True,
                )
                losses.clear()
            if time.time() - saved > options.save_every * 60:
                self.save()
                saved = time.time()
        self.save()
        print("end", self.mixture.tokens)


def main() -> None:
    """Train until a time of day."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--base", type=Path, default=Path("base"))
    parser.add_argument("--cut", type=Path, default=Path("cut"), help="what `vocabulary` wrote")
    parser.add_argument("--data", type=Path, default=Path("shards"))
    parser.add_argument("--name", default="run")
    parser.add_argument("--start", help="adapters to start from")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="order of the rows; a run with --start needs another one than the run before it",
    )
    ends = parser.add_mutually_exclusive_group(required=True)
    ends.add_argument("--until", help="HH:MM")
    ends.add_argument("--minutes", type=float)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--decay", type=float, default=0.45, help="part of the time that it falls")
    parser.add_argument("--frozen", type=int, default=8, help="layers that are left as they are")
    parser.add_argument("--length", type=int, default=640)
    parser.add_argument("--tokens", type=int, default=1920, help="of a step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--float32", action="store_true", help="for a processor that has no instructions for bf16"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        help="processes that make batches; the "
        "position in the shards is not kept for --resume then",
    )
    parser.add_argument("--save-every", type=float, default=5, help="minutes")
    options = parser.parse_args()
    Path(options.name).parent.mkdir(parents=True, exist_ok=True)  # A save comes minutes later.
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    Run(options).train()


if __name__ == "__main__":
    main()
