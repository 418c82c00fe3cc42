"""Turn snippets into tokenised shards: many examples per snippet, written, encoded and packed as
integers.

A shard is one `.npz`: `tokens` (uint16, all examples end to end: prompt then target), `starts`
(int64, one more than examples), `prompts` (uint16, prompt lengths), `tasks` (uint8, index into
`tasks.SHARES`).
"""

from __future__ import annotations

import argparse
import json
import random
import textwrap
import time
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from midstream.engine.codec import EditCodec
from midstream.engine.edit_request import EditRequest
from midstream.engine.vocabulary import Vocabulary
from models.training import reasons
from models.training.code import ATOM, BUILTINS, Code
from models.training.tasks import SHARES, Example, attempt
from models.training.variants import corrected, examples, redirected

TASK_NAMES = list(SHARES)
MAX_TOKENS = 480
ATTEMPTS = 12
PER_SNIPPET = 4


@dataclass(slots=True)
class _Worker:
    """What a worker process keeps between jobs."""

    codec: EditCodec
    names: list[str]
    weights: list[float]
    seed: int


_worker: list[_Worker] = []


def name_pool(rows: list[dict[str, str]], size: int = 6_000) -> list[str]:
    """Return the most frequent identifiers of some snippets, as new names for edits."""
    import keyword

    count: Counter[str] = Counter()
    for row in rows:
        count.update(set(ATOM.findall(row["text"])))
    return [
        name
        for name, _ in count.most_common(size * 2)
        if len(name) > 2
        and len(name) <= 22
        and not keyword.iskeyword(name)
        and name not in BUILTINS
        and not name.startswith("__")
        and name == name.lower()
    ][:size]


def applicability(
    rows: list[dict[str, str]], names: list[str], tries: int = 700
) -> dict[str, float]:
    """Measure on what share of snippets each task works."""
    import textwrap

    rng = random.Random(1)
    picked = rng.sample(rows, min(tries, len(rows)))
    hits: Counter[str] = Counter()
    for row in picked:
        text = textwrap.dedent(row["text"])
        try:
            code = Code(text, rng, names)
        except (SyntaxError, ValueError):
            continue
        for task in TASK_NAMES:
            if task == "beyond" or attempt(task, code) is not None:
                hits[task] += 1
    return {task: max(hits[task], 1) / len(picked) for task in TASK_NAMES}


def weights_of(rates: dict[str, float], skip: frozenset[str]) -> list[float]:
    """Return how often to try each task for a mix like `SHARES` (rare tasks are capped)."""
    return [1e-9 if task in skip else min(SHARES[task] / rates[task], 400.0) for task in TASK_NAMES]


def _setup(
    tokenizer: str, names: list[str], weights: list[float], seed: int, prose: list[str]
) -> None:
    reasons.use_prose(prose)
    codec = EditCodec(Vocabulary(Tokenizer.from_file(tokenizer)))
    _worker[:] = [_Worker(codec, names, weights, seed)]


def _choose(rng: random.Random, weights: list[float]) -> list[str]:
    keyed = sorted(range(len(weights)), key=lambda k: rng.expovariate(1.0) / weights[k])
    return [TASK_NAMES[k] for k in keyed[:ATTEMPTS]]


def _encode_rows(job: tuple[int, list[dict[str, str]]]) -> tuple[bytes, bytes, bytes, bytes]:
    number, rows = job
    worker = _worker[0]
    rng = random.Random(f"{worker.seed}-{number}")
    tokens: list[int] = []
    lengths: list[int] = []
    prompts: list[int] = []
    tasks: list[int] = []
    for row in rows:
        chosen = _choose(rng, worker.weights)
        made = examples(
            row["text"],
            row["package"],
            worker.names,
            rng,
            chosen,
            held_out=False,
            plain=False,
            most=PER_SNIPPET,
        )
        for example in made:
            request = EditRequest(
                example.instruction, example.region, kept=example.kept, earlier=example.earlier
            )
            prompt, target = worker.codec.encode_target(request, example.target, shuffle=rng)
            if len(prompt) + len(target) > MAX_TOKENS:
                continue
            tokens += prompt + target
            lengths.append(len(prompt) + len(target))
            prompts.append(len(prompt))
            tasks.append(TASK_NAMES.index(example.task))
    pack = (
        np.array(tokens, np.uint16),
        np.array(lengths, np.int64),
        np.array(prompts, np.uint16),
        np.array(tasks, np.uint8),
    )
    return tuple(part.tobytes() for part in pack)  # type: ignore[return-value]


def write_shard(path: Path, parts: list[tuple[bytes, bytes, bytes, bytes]]) -> int:
    """Join encoded parts into one shard; return how many examples it has."""
    lengths = np.concatenate([np.frombuffer(p[1], np.int64) for p in parts])
    np.savez(
        path,
        tokens=np.concatenate([np.frombuffer(p[0], np.uint16) for p in parts]),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        prompts=np.concatenate([np.frombuffer(p[2], np.uint16) for p in parts]),
        tasks=np.concatenate([np.frombuffer(p[3], np.uint8) for p in parts]),
    )
    return len(lengths)


def evaluation_set(
    rows: list[dict[str, str]], per_task: int, *, held_out: bool, seed: int, tasks: list[str]
) -> list[Example]:
    """Make up to `per_task` plain examples of each task from snippets of up to 25 lines."""
    rng = random.Random(seed)
    names = name_pool(rows, 2_500)
    rows = [row for row in rows if row["text"].count("\n") <= 25]
    rng.shuffle(rows)
    found: dict[str, list[Example]] = {task: [] for task in tasks}
    for row in rows:
        missing = [task for task in tasks if len(found[task]) < per_task]
        if not missing:
            break
        chosen = rng.sample(missing, min(4, len(missing)))
        for example in examples(
            row["text"], row["package"], names, rng, chosen, held_out=held_out, plain=True, most=2
        ):
            found[example.task].append(example)
    return [example for task in tasks for example in found[task]]


def steered_set(rows: list[dict[str, str]], per_kind: int, seed: int) -> list[Example]:
    """Make redirected examples and corrections of the guard; `task` names the kind.

    Kinds: `rather` (another edit is asked for), `also` (one more), `corrected` (the guard has
    stopped a line; the lines before it are kept).
    """
    rng = random.Random(seed)
    names = name_pool(rows, 2_500)
    rows = [row for row in rows if row["text"].count("\n") <= 25]
    rng.shuffle(rows)
    found: dict[str, list[Example]] = {"rather": [], "also": [], "corrected": []}
    for row in rows:
        if all(len(group) >= per_kind for group in found.values()):
            break
        try:
            code = Code(textwrap.dedent(row["text"]), rng, names)
        except (SyntaxError, ValueError):
            continue
        task = rng.choice([t for t in TASK_NAMES if t not in ("beyond", "invert_if")])
        edit = attempt(task, code)
        if edit is None:
            continue
        if task.startswith("secure_"):
            made, kind = corrected(edit, code, rng), "corrected"
        elif edit.source is None:
            kind = rng.choice(("also", "rather"))
            made = redirected(edit, code, names, rng, also=kind == "also")
        else:
            continue
        if made is None or not made.earlier or len(found[kind]) >= per_kind:
            continue
        found[kind].append(replace(made, task=kind, package=row["package"]))
    return [example for group in found.values() for example in group]


def main() -> None:
    """Write training shards and the evaluation sets."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument(
        "--config",
        type=Path,
        default=Path("models/training/configs/nano.toml"),
        help="the training configuration: no examples are made of tasks that it skips",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--passes", type=int, default=1, help="how often to go over all snippets, one shard each"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first shard")
    parser.add_argument(
        "--snippets", type=int, default=0, help="how many snippets a shard uses (0: all)"
    )
    arguments = parser.parse_args()
    data: Path = arguments.data
    skip = frozenset(tomllib.loads(arguments.config.read_text())["train"]["skip_tasks"])
    rows = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    held = [json.loads(line) for line in (data / "heldout.jsonl").read_text().splitlines()]
    random.Random(0).shuffle(rows)
    for name, held_out in (("eval_known", False), ("eval_new", True)):
        path = data / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        there = {json.loads(line)["task"] for line in lines}
        tasks = [task for task in TASK_NAMES if task not in there | skip]
        if tasks:
            seed = 7 + held_out + len(lines)
            chosen = evaluation_set(held, 60, held_out=held_out, seed=seed, tasks=tasks)
            with path.open("a") as file:
                file.writelines(json.dumps(asdict(e)) + "\n" for e in chosen)
    if not (data / "eval_steered.jsonl").exists():
        chosen = steered_set(held, 100, seed=11)
        (data / "eval_steered.jsonl").write_text(
            "".join(json.dumps(asdict(e)) + "\n" for e in chosen)
        )
    names = name_pool(rows)
    prose = reasons.prose_of([row["text"] for row in rows])
    measured = data / "applicability.json"
    if not measured.exists():
        measured.write_text(json.dumps(applicability(rows, names), indent=1))
    rates = json.loads(measured.read_text())
    for number in range(arguments.first, arguments.first + arguments.passes):
        started = time.time()
        size = arguments.snippets or len(rows)
        begin = number * size % len(rows)
        used = (rows + rows)[begin : begin + size]
        jobs = [(k, used[k : k + 400]) for k in range(0, len(used), 400)]
        setup = (str(data / "tokenizer.json"), names, weights_of(rates, skip), number, prose)
        with Pool(arguments.jobs, _setup, setup) as pool:
            parts = list(pool.imap_unordered(_encode_rows, jobs))
        count = write_shard(data / f"shard-{number}.npz", parts)
        print(f"shard {number}: {count} examples in {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
