"""Requests of a working day in many wordings, on real functions, several to a region.

    PYTHONPATH=REPO:REPO/app:RECIPE python everyday.py --data REPO/models/training/data/train.jsonl \
        --human REPO/models/training/human --out shards

`goals.py` has wishes on code as it is. Here are more of them (`everyday_results.py`,
`everyday_values.py`, `everyday_calls.py`; those of `goals.py` in the words of
`everyday_wordings.py`) and repairs (`everyday_bugs.py`: a real function is broken, the request tells
the symptom, the answer is the original). Regions are short and each has up to `--most` requests, so
that a token of training shows about twice as many answers. Wordings are small grammars: `(a|b|)`
stands for one of its alternatives. What equals a request of the folder `--human` is left out. Names
that a request brings are taken from the corpus, so that copying a name is practised on very many.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import everyday_calls  # noqa: F401  (registers its kinds, as the next two do)
import everyday_results  # noqa: F401
import everyday_values  # noqa: F401
import script_format as fmt
from everyday_bugs import BUGS, Bug
from everyday_kinds import WISHES, Names
from everyday_wordings import BEYOND, REWORDED
from goals import KINDS, Place, Wish, function_of, normalised, vary

LONGEST_LINES = 26
LONGEST_TEXT = 1_100

_ALTERNATIVES = re.compile(r"\(([^()]*\|[^()]*)\)")
_QUOTES = ["{}"] * 14 + ["`{}`"] * 4 + ["'{}'", '"{}"']
_NAMING = frozenset("xyfeabnkvp")
"""Words of a wish that are code, and that a programmer may put into quotes."""


def expanded(wording: str, rng: random.Random) -> str:
    """Return one sentence of a wording's grammar."""
    while found := _ALTERNATIVES.search(wording):
        wording = (
            wording[: found.start()] + rng.choice(found[1].split("|")) + wording[found.end() :]
        )
    return re.sub(r"  +", " ", wording).strip()


def request_of(wordings: list[str], words: dict[str, str], rng: random.Random) -> str:
    """Return a request for a wish, as somebody types it."""
    sentence = expanded(rng.choice(wordings), rng)
    # A sentence with quotes of its own gets no more of them.
    quote = "{}" if re.search("[\"'`=]", sentence) else rng.choice(_QUOTES)
    quoted = {
        key: quote.format(value) if key in _NAMING and re.fullmatch(r"[\w.]+", value) else value
        for key, value in words.items()
    }
    named = any("{" + key + "}" in sentence for key in _NAMING)
    text = sentence.format(**quoted)
    # Capitals and typing errors would spoil a name that the answer has to copy.
    return text if named and rng.random() < 0.75 else vary(text, rng)


class Maker:
    """Makes rows from functions."""

    def __init__(self, names: Names, taken: frozenset[str], rng: random.Random, most: int) -> None:
        self._names, self._taken, self._rng, self._most = names, taken, rng, most
        self.weights: dict[str, float] = {}
        self.totals: dict[str, int] = {}

    def _wordings(self, kind: str, wish: Wish) -> list[str]:
        if wish.extra:
            return list(wish.extra)
        return WISHES[kind][1] if kind in WISHES else REWORDED[kind]

    def wishes(self, place: Place) -> list[tuple[str, Wish]]:
        """Return one wish of every kind that has a place in a function, in random order."""
        found: list[tuple[str, Wish]] = []
        for kind, (make, _) in WISHES.items():
            if self._rng.random() < self.weights.get(kind, 1.0) and (
                made := list(make(place, self._names))
            ):
                found.append((kind, self._rng.choice(made)))
        for kind in REWORDED:
            if self._rng.random() < self.weights.get(kind, 1.0) and (
                made := list(KINDS[kind][0](place))
            ):
                found.append((kind, self._rng.choice(made)))
        self._rng.shuffle(found)
        return found

    def bug(self, place: Place) -> tuple[str, Bug] | None:
        """Return a broken version of a function."""
        found: list[tuple[str, Bug]] = []
        for kind, make in BUGS.items():
            if made := list(make(place, self._names)):
                found.append((kind, self._rng.choice(made)))
        return self._rng.choice(found) if found else None

    def _edit(self, kind: str, region: str, after: str, request: str) -> list[str] | None:
        if normalised(request) in self._taken or function_of(after) is None:
            return None
        script = fmt.script(region, after)
        if fmt.apply(region, script) != after or len(script) > 420:
            return None
        self.totals[kind] = self.totals.get(kind, 0) + 1
        return [f"everyday_{kind}", request, script]

    def row(self, text: str) -> dict[str, Any] | None:
        """Return a region with requests, or None where none was found."""
        rng = self._rng
        region = fmt.strip(text, fmt.margin_of(text))
        function = function_of(region)
        if function is None:
            return None
        edits: list[list[str] | None] = []
        roll = rng.random()
        place = Place(region, function, rng)
        if roll < 0.62 and (broken := self.bug(place)):
            kind, bug = broken
            other = function_of(bug.text)
            if other is not None and bug.text != region:
                request = request_of(list(bug.wordings), bug.words, rng)
                edits.append(self._edit(kind, bug.text, region, request))
                region, place = bug.text, Place(bug.text, other, rng)
        elif roll < 0.72 and (wishes := self.wishes(place)):
            # The first wish has come true already.
            kind, wish = wishes[0]
            after = function_of(wish.text)
            if after is not None and wish.text != region:
                request = request_of(self._wordings(kind, wish), wish.words, rng)
                done = Place(wish.text, after, rng)
                make = WISHES[kind][0] if kind in WISHES else None
                again = list(make(done, self._names) if make else KINDS[kind][0](done))
                region, place = wish.text, done
                if not again:
                    edits.append(self._edit("done", region, region, request))
        for kind, wish in self.wishes(place)[: self._most]:
            if wish.text != region:
                request = request_of(self._wordings(kind, wish), wish.words, rng)
                edits.append(self._edit(kind, region, wish.text, request))
        made = [edit for edit in edits if edit is not None]
        if made and rng.random() < 0.06:
            request = vary(expanded(rng.choice(BEYOND), rng), rng)
            if normalised(request) not in self._taken:
                made.append(["everyday_beyond", request, fmt.script(region, None)])
        return {"region": region, "edits": made} if made else None


def names_of(texts: list[str]) -> Names:
    """Collect names and short texts of a corpus."""
    variables: set[str] = set()
    functions: set[str] = set()
    strings: set[str] = set()
    for text in texts:
        function = function_of(fmt.strip(text, fmt.margin_of(text)))
        if function is None:
            continue
        if 3 < len(function.name) < 22 and not function.name.startswith("__"):
            functions.add(function.name)
        for node in ast.walk(function):
            if isinstance(node, ast.arg) and 2 < len(node.arg) < 18:
                variables.add(node.arg)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and re.fullmatch(r"[A-Za-z][a-z]+( [a-z]+){1,4}", node.value)
            ):
                strings.add(node.value)
    variables -= {"self", "cls", "args", "kwargs"}
    return Names(sorted(variables), sorted(functions), sorted(strings))


def taken_in(folder: Path) -> frozenset[str]:
    """Return the requests of the sets written by hand, which must not be trained on."""
    found: set[str] = set()
    for name in ("edits.toml", "goals.toml"):
        for row in tomllib.loads((folder / name).read_text("utf-8"))["edit"]:
            found |= {normalised(each) for each in row.get("instructions") or [row["instruction"]]}
    return frozenset(found)


def main() -> None:
    """Write shards."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="snippets")
    parser.add_argument("--human", type=Path, required=True, help="sets that must not occur")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", type=int, default=200, help="rows of a file")
    parser.add_argument("--most", type=int, default=6, help="wishes of a region")
    parser.add_argument("--snippets", type=int, default=8_000)
    parser.add_argument("--where", default="", help="a pattern that snippets match: for rare kinds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(f"everyday {options.seed}")
    snippets = [
        row["text"]
        for row in map(json.loads, options.data.read_text("utf-8").splitlines())
        if 3 <= row["text"].count("\n") <= LONGEST_LINES and len(row["text"]) <= LONGEST_TEXT
    ]
    rng.shuffle(snippets)
    maker = Maker(names_of(snippets[-6_000:]), taken_in(options.human), rng, most=options.most)
    snippets = [text for text in snippets if re.search(options.where, text)]
    counts: dict[str, int] = {}
    sample = snippets[:400]
    for text in sample:
        function = function_of(fmt.strip(text, fmt.margin_of(text)))
        if function is None:
            continue
        place = Place(fmt.strip(text, fmt.margin_of(text)), function, rng)
        found = [kind for kind, _ in maker.wishes(place)]
        for kind in found:
            counts[kind] = counts.get(kind, 0) + 1
    # Common kinds are thinned out, so that rare ones get their share.
    maker.weights = {kind: min(1.0, 0.06 * len(sample) / n) for kind, n in counts.items()}
    rows: list[str] = []
    number = edits = 0
    snippets = snippets[: options.snippets]
    for position, text in enumerate(snippets, 1):
        row = maker.row(text)
        if row and (len(row["edits"]) > 1 or rng.random() < 0.5):
            rows.append(json.dumps(row) + "\n")
            edits += len(row["edits"])
        if rows and (len(rows) == options.part or position == len(snippets)):
            target = options.out / f"everyday-{options.seed:02}-{number:03}.jsonl"
            unfinished = target.with_suffix(".part")
            unfinished.write_text("".join(rows), "utf-8")
            unfinished.replace(target)
            number += 1
            rows.clear()
    print(json.dumps({"edits": edits, "kinds": len(maker.totals), "by_kind": maker.totals}))


if __name__ == "__main__":
    main()
