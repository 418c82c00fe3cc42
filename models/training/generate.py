"""Generated edits: training shards, and the evaluation sets "known" and "new".

    PYTHONPATH=app:. python -m models.training.generate --snippets 12000 --seed 11 --out shards
    PYTHONPATH=app:. python -m models.training.generate --evaluation --out evaluation

Shards are made of the snippets that `corpus` keeps for training. Every `--part` snippets make one
file, `generated-SEED-NUMBER.jsonl`, so that a training run can take them up while others are being
made; another seed makes other edits. The evaluation sets are made of held-out packages: "known"
with wordings that training has, "new" with wordings that it never sees. Their rows have a region,
a request and the region after the edit.
"""

from __future__ import annotations

import argparse
import json
import keyword
import random
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from multiprocessing import Pool
from pathlib import Path

from models.training import instructions
from models.training import script_format as fmt
from models.training.code import ATOM, BUILTINS, Code, Edit
from models.training.tasks import SHARES, TASKS, Example, attempt, instruct
from models.training.wordings import table

Snippet = dict[str, str]
Rows = list[tuple[str, list[tuple[str, str, str]]]]
"""Regions with their edits: kind, request and script."""

ATTEMPTS = 40
"""Tasks that are tried on a snippet, at most."""
EDITS_OF_A_SNIPPET = 7
BOTH_SHARE = 0.05
"""Edits that are asked for together with another one."""
ADVICE_SHARE = 0.35
"""Of the security rewrites: requests in the words of the guard."""
BEYOND = "beyond"
"""The kind of requests that no task covers; of the evaluation sets alone."""
EACH = 12
"""Requests of a kind in an evaluation set."""
MAX_EVALUATION_LINES = 25

SAFE_TWINS: dict[str, tuple[str, str]] = {
    "yaml": ("yaml.load", "yaml.safe_load"),
    "eval": ("eval", "ast.literal_eval"),
    "hash": ("md5", "hashlib.sha256"),
    "pickle": ("pickle", "json"),
    "mktemp": ("mktemp", "tempfile.NamedTemporaryFile"),
    "ssl": ("_create_unverified_context", "ssl.create_default_context"),
    "autoescape": ("autoescape=False", "autoescape=True"),
}
"""The dangerous function of `secure_call` and its safe twin."""

_SECONDS = (
    *("rename_local", "rename_parameter", "add_docstring", "guard_return", "add_parameter"),
    *("guard_raise", "replace_literal", "add_hint", "change_default", "add_first"),
    *("replace_name", "delete_statement", "add_decorator"),
)
"""Edits that are asked for in the same breath as another one."""


def name_pool(rows: Sequence[Snippet], size: int = 6_000) -> list[str]:
    """Return the most frequent identifiers of some snippets, as new names for edits."""
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


def weights_of(rows: Sequence[Snippet], names: list[str], tries: int = 700) -> dict[str, float]:
    """Return how often to try each task for a mix like `SHARES` (rare tasks are capped)."""
    rng = random.Random(1)
    picked = rng.sample(rows, min(tries, len(rows)))
    hits: Counter[str] = Counter()
    for row in picked:
        try:
            code = Code(textwrap.dedent(row["text"]), rng, names)
        except (SyntaxError, ValueError):
            continue
        hits.update(task for task in TASKS if attempt(task, code) is not None)
    rates = {task: max(hits[task], 1) / max(len(picked), 1) for task in TASKS}
    return {task: min(share / rates[task], 400.0) for task, share in SHARES.items()}


def examples(
    snippet: Snippet,
    names: list[str],
    rng: random.Random,
    chosen: list[str],
    *,
    held_out: bool = False,
    plain: bool = False,
    most: int = EDITS_OF_A_SNIPPET,
) -> list[Example]:
    """Make examples of the chosen tasks from one snippet (with its indent).

    Args:
        snippet: what `corpus` wrote.
        names: pool of new names.
        rng: source of randomness.
        chosen: tasks to try.
        held_out: whether to use the held-out wordings.
        plain: one edit each, in one sentence without reasons (for evaluation).
        most: how many to make at most.
    """
    text = snippet["text"]
    dedented = textwrap.dedent(text)
    first = next(row for row in text.split("\n") if row.strip())
    margin = first[: len(first) - len(first.lstrip())]
    if fmt.place(dedented, margin) != text:
        margin = ""
    try:
        code = Code(dedented, rng, names, plain)
    except (SyntaxError, ValueError, RecursionError):
        return []
    made: list[Example] = []
    for task in chosen:
        if len(made) >= most:
            break
        if task == BEYOND:
            asked, region, target = _beyond(code, rng, held_out=held_out), text, None
        else:
            edit = attempt(task, code)
            if edit is None:
                continue
            asked, after = _asked(edit, code, names, rng, held_out=held_out, plain=plain)
            region = fmt.place(edit.source or dedented, margin)
            target = fmt.place(after, margin)
        made.append(Example(task, snippet["package"], asked, region, target))
    return made


def _asked(
    edit: Edit, code: Code, names: list[str], rng: random.Random, *, held_out: bool, plain: bool
) -> tuple[str, str]:
    """Return a request for an edit, by chance for another one as well, and the text after it."""
    if not plain:
        edit.values.update(_around(code, rng))
    if edit.task == "secure_call":
        edit.values["unsafe_name"], edit.values["safe"] = SAFE_TWINS[edit.values["about"]]
    elif edit.task == "secure_secret":
        edit.values["secret"] = edit.values["unsafe!"].split(" =")[0]
    if not plain and edit.task.startswith("secure_") and rng.random() < ADVICE_SHARE:
        return table("advice")[edit.values.get("about", edit.task)][0], edit.target
    if not plain and edit.source is None and rng.random() < BOTH_SHARE:
        second = attempt(rng.choice(_SECONDS), Code(edit.target, rng, names))
        if second is not None and second.source is None:
            one, two = (instruct(e, rng, held_out=False, styled=False) for e in (edit, second))
            (shapes,) = table("both").values()
            asked = instructions.write(rng.choice(shapes), {"one": one, "two": two}, rng)
            return asked, second.target
    return instruct(edit, rng, held_out=held_out), edit.target


def _around(code: Code, rng: random.Random) -> dict[str, str]:
    """Return words that a reason for an edit of a snippet may use."""
    atoms = sorted(code.atoms) or ["it"]
    return {instructions.NOUN: rng.choice(code.names), instructions.ATOM: rng.choice(atoms)}


def _beyond(code: Code, rng: random.Random, *, held_out: bool) -> str:
    """Write a request that no task covers."""
    name = code.fn.name if code.fn is not None else rng.choice(sorted(code.atoms) or ["it"])
    values = {"name": instructions.quoted(name, rng, name=True)} | _around(code, rng)
    wordings = table(BEYOND)["new" if held_out else "known"]
    return instructions.write(rng.choice(wordings), values, rng)


def evaluation_set(held: Sequence[Snippet], *, held_out: bool) -> list[Example]:
    """Return up to `EACH` plain examples of each task from snippets that are not long."""
    rng = random.Random(7 + held_out)
    names = name_pool(held, 2_500)
    rows = [row for row in held if row["text"].count("\n") <= MAX_EVALUATION_LINES]
    rng.shuffle(rows)
    found: dict[str, list[Example]] = {task: [] for task in (*TASKS, BEYOND)}
    for row in rows:
        missing = [task for task, made in found.items() if len(made) < EACH]
        if not missing:
            break
        chosen = rng.sample(missing, min(4, len(missing)))
        for example in examples(row, names, rng, chosen, held_out=held_out, plain=True, most=2):
            found[example.task].append(example)
    return [example for made in found.values() for example in made]


class Maker:
    """Makes rows of shards from snippets, the same for the same seed."""

    def __init__(self, names: list[str], weights: dict[str, float]) -> None:
        self._names, self._weights = names, weights

    def rows(self, job: tuple[str, list[Snippet]]) -> Rows:
        """Return the regions of some snippets with their edits.

        Args:
            job: the seed, and the snippets.
        """
        seed, snippets = job
        rng = random.Random(seed)
        rows: Rows = []
        for snippet in snippets:
            keyed = sorted(self._weights, key=lambda task: rng.expovariate(self._weights[task]))
            regions: dict[str, list[tuple[str, str, str]]] = {}
            for example in examples(snippet, self._names, rng, keyed[:ATTEMPTS]):
                margin = fmt.margin_of(example.region)
                before = fmt.strip(example.region, margin)
                after = fmt.strip(example.target or "", margin)
                script = fmt.script(before, after)
                if fmt.apply(before, script) == after:
                    edits = regions.setdefault(before, [])
                    edits.append((example.task, example.instruction, script))
            rows += regions.items()
        return rows


def parts(rows: list[Snippet], size: int) -> Iterator[list[Snippet]]:
    """Yield so many rows at a time."""
    for at in range(0, len(rows), size):
        yield rows[at : at + size]


def read(path: Path) -> list[Snippet]:
    """Read snippets."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main() -> None:
    """Write shards, or the evaluation sets of known and new wordings."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--snippets", type=int, default=12_000)
    parser.add_argument("--part", type=int, default=2_000, help="snippets of a file")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--evaluation", action="store_true")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    if options.evaluation:
        held = read(options.data / "heldout.jsonl")
        for name, held_out in (("known", False), ("new", True)):
            made = evaluation_set(held, held_out=held_out)
            lines = "".join(json.dumps(asdict(example)) + "\n" for example in made)
            (out / f"eval_{name}.jsonl").write_text(lines, "utf-8")
        return
    rows = read(options.data / "train.jsonl")
    random.Random(0).shuffle(rows)
    names = name_pool(rows)
    maker = Maker(names, weights_of(rows, names))
    random.Random(f"order {options.seed}").shuffle(rows)
    with Pool(options.jobs) as pool:
        for number, part in enumerate(parts(rows[: options.snippets], options.part)):
            jobs = [(f"{options.seed}-{number}-{k}", p) for k, p in enumerate(parts(part, 100))]
            target = out / f"generated-{options.seed:02}-{number:03}.jsonl"
            unfinished = target.with_suffix(".part")
            edits = 0
            with unfinished.open("w", encoding="utf-8") as file:
                for made in pool.imap(maker.rows, jobs):
                    for region, group in made:
                        edits += len(group)
                        file.write(json.dumps({"region": region, "edits": group}) + "\n")
            unfinished.replace(target)
            print(target.name, edits, flush=True)


if __name__ == "__main__":
    main()
