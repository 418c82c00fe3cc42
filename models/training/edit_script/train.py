"""Train the edit model: packed sequences, bf16 products with float32 masters loss on scripts only.

The learning rate warms up and then stays: the *trunk*, which any later session can go on with
(`--resume`). `--decay` makes a *branch* of a trunk's checkpoint, in which the rate falls to zero;
only branches are worth measuring, since the fall of the rate brings 15 points. Everything that a
run needs to go on is written every ten minutes and when SIGTERM arrives: weights, optimiser, data
position and random state, first to a file beside it and then renamed. Shards that appear in the
data folder are taken up at once.

    python train.py --name trunk --start start.safetensors          # a new trunk
    python train.py --name trunk --resume                           # go on with it
    python train.py --name branch --decay runs/trunk.pt --minutes 55 --deadline 15:45

Time is counted by steps, and no step counts for more than `--longest-step` seconds, so that a
stopped process (SIGSTOP) does not use its time up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from native import Engine, Kernels, build, step_of
from network import load_weights, save_weights
from packing import Codec, Mixture, Packer

if TYPE_CHECKING:
    from torch_engine import TorchEngine

IDLE = 2.6
"""Below this load, our own included, a second thread is worth having: on a busy machine it only waits."""

SHARES = "generated=0.5,commits=0.3,goals=0.2"


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--name", default="trunk", help="files are runs/NAME.*")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data", type=Path, default=Path("shards"))
    parser.add_argument("--tokenizer", type=Path, default=Path("base/tokenizer.json"))
    parser.add_argument("--start", type=Path, help="weights of a new run")
    parser.add_argument("--seen", type=int, default=0, help="tokens that --start has seen")
    parser.add_argument("--resume", action="store_true", help="go on with runs/NAME.pt")
    parser.add_argument("--decay", type=Path, help="a checkpoint to make a decaying branch of")
    parser.add_argument(
        "--minutes", type=float, default=1e9, help="counted time of the run or branch"
    )
    parser.add_argument(
        "--deadline", default="", help="HH:MM UTC of today at which a branch is over"
    )
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--warm", type=int, default=30, help="steps of warm-up")
    parser.add_argument("--longest", type=int, default=768, help="tokens of a region and its edits")
    parser.add_argument("--tokens", type=int, default=3072, help="tokens of a step at most")
    parser.add_argument("--shares", default=SHARES, help="of tokens, by source")
    parser.add_argument(
        "--device", default="amx", help="amx (the kernels beside this file), cuda or cpu"
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="0: one where others use the machine, else two"
    )
    parser.add_argument("--save-every", type=float, default=10, help="minutes")
    parser.add_argument(
        "--longest-step", type=float, default=60, help="seconds a step counts for at most"
    )
    parser.add_argument(
        "--steps", type=int, default=0, help="stop after so many steps (tests, speed)"
    )
    return parser.parse_args()


class Run:
    """A model with its optimiser and data, that can be saved and restored."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.count: dict[str, float] = {
            "step": 0,
            "tokens": 0,
            "edits": 0,
            "answers": 0,
            "seconds": 0.0,
        }
        shares = {k: float(v) for k, v in (pair.split("=") for pair in options.shares.split(","))}
        self.mixture = Mixture(options.data, shares)
        longest = min(options.longest, options.tokens)  # a longer one would never be taken
        self.packer = Packer(Codec(options.tokenizer), self.mixture, longest)
        self.path: Path = options.runs / f"{options.name}.pt"
        source = self.path if options.resume else options.decay
        stored: dict[str, Any] = {}
        if source:
            stored = torch.load(source, mmap=True, weights_only=False)
            masters = stored["masters"]
        else:
            masters = load_weights(options.start).state_dict()
            self.count["tokens"] = options.seen
        self.kernels: Kernels | None = None
        self.engine: Engine | TorchEngine
        if options.device == "amx":
            self.kernels = Kernels(build(options.runs / "kernels.so"), options.threads or 1)
            self.engine = Engine(masters, self.kernels, options.tokens)
        else:
            from torch_engine import TorchEngine

            on_gpu = options.device == "cuda"
            rows = -(-options.tokens // 128) * 128 if on_gpu else 0
            self.engine = TorchEngine(masters, options.device, on_gpu, rows)
        self.branch_start: dict[str, float] | None = None
        if stored:
            self.engine.restore(stored["optimiser"])
            self.count = stored["count"]
            self.mixture.restore(stored["data"])
            self.packer.waiting = stored["waiting"]
            random.setstate(stored["random"])
            self.branch_start = stored["branch_start"]
        self.warm_from = self.count["step"]
        if options.decay and not options.resume:
            self.branch_start = dict(self.count, clock=time.time())

    def save(self) -> None:
        """Write the checkpoint and the bf16 weights, each atomically."""
        masters = self.engine.masters
        state = {
            "masters": masters,
            "optimiser": self.engine.state(),
            "count": self.count,
            "data": self.mixture.state(),
            "waiting": self.packer.waiting,
            "random": random.getstate(),
            "branch_start": self.branch_start,
        }
        unfinished = self.path.with_suffix(".pt.part")
        torch.save(state, unfinished)
        unfinished.replace(self.path)
        save_weights(masters, self.path.with_suffix(".safetensors"))

    def share_done(self) -> float:
        """Return how much of a branch is over, by counted time or the clock, whichever is more."""
        start = self.branch_start
        if start is None:
            return 0.0
        share = (self.count["seconds"] - start["seconds"]) / (self.options.minutes * 60)
        if self.options.deadline:
            hours, minutes = map(int, self.options.deadline.split(":"))
            now = time.time()
            end = now - now % 86_400 + hours * 3_600 + minutes * 60
            share = max(share, (now - start["clock"]) / max(end - start["clock"], 1))
        return min(share, 1.0)

    def rate(self) -> float:
        """Return the learning rate of the next step."""
        warm = 1.0
        if self.branch_start is None:
            warm = min(1.0, (self.count["step"] - self.warm_from + 1) / self.options.warm)
        return self.options.rate * warm * max(1.0 - self.share_done(), 0.01)

    def step(self) -> tuple[float, float]:
        """Do one step; returns the loss and the norm of the gradient."""
        began = time.time()
        if self.kernels is not None and self.options.threads == 0:
            self.kernels.setup(2 if os.getloadavg()[0] < IDLE else 1)
        step = step_of(self.packer.groups(self.options.tokens))
        loss = float(self.engine.loss(step))
        norm = float(self.engine.update(self.rate()))
        self.count["step"] += 1
        self.count["tokens"] += step.used
        self.count["edits"] += step.edits
        self.count["answers"] += len(step.chosen)
        self.count["seconds"] += min(time.time() - began, self.options.longest_step)
        return loss, norm


def main() -> None:
    """Train until the time is over, the branch is at its end or SIGTERM arrives."""
    options = arguments()
    torch.set_num_threads(options.threads or 1)
    torch.manual_seed(0)
    options.runs.mkdir(parents=True, exist_ok=True)
    run = Run(options)
    log = (options.runs / f"{options.name}.log").open("a")
    (options.runs / f"{options.name}.pid").write_text(f"{os.getpid()}\n")
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))

    def say(**values: object) -> None:
        line = json.dumps(values)
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    say(start=time.strftime("%H:%M:%S"), options={k: str(v) for k, v in vars(options).items()})
    began = dict(run.count)
    saved = run.count["seconds"]
    losses: list[float] = []
    while not stopping:
        loss, norm = run.step()
        losses.append(loss)
        count = run.count
        spent = count["seconds"] - began["seconds"]
        if count["step"] % 10 == 0 or options.steps:
            speed = (count["tokens"] - began["tokens"]) / spent
            say(
                step=count["step"],
                loss=round(sum(losses) / len(losses), 4),
                norm=round(norm, 2),
                rate=float(f"{run.rate():.2e}"),
                tokens=count["tokens"],
                edits=count["edits"],
                speed=round(speed),
                seconds=round(count["seconds"]),
                clock=time.strftime("%H:%M:%S"),
                load=round(os.getloadavg()[0], 1),
                sources=run.mixture.tokens,
            )
            losses.clear()
        over = run.share_done() >= 1 or spent >= options.minutes * 60
        if options.steps and count["step"] - began["step"] >= options.steps:
            return
        if over or count["seconds"] - saved >= options.save_every * 60:
            run.save()
            saved = count["seconds"]
            say(saved=time.strftime("%H:%M:%S"), passes=run.mixture.passes())
        if over:
            return
    run.save()
    say(stopped=time.strftime("%H:%M:%S"))


if __name__ == "__main__":
    main()
