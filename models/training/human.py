"""Measure a model folder on edits written by hand, in words that training never sees.

The 120 edits of `human/edits.toml` ask for changes to real functions of held-out packages in the
words of a programmer. They run as in the product: the request as text, through the engine, with
its drafting. Nothing here reads the generator of the training examples.
"""

from __future__ import annotations

import argparse
import ast
import json
import textwrap
import time
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.loading import load_model
from midstream.engine.types import GenerateRequest, Message, TextModel
from midstream.errors import UserError

EDITS = Path(__file__).with_name("human") / "edits.toml"

LEFT_ALONE = frozenset(["nothing to do", "beyond"])
"""Kinds whose right answer is the region as it was: there is nothing to change, or the request is
more than a model of this size should try."""


@dataclass(frozen=True, slots=True)
class HumanEdit:
    """One edit.

    Attributes:
        id: unique, of package, function and kind.
        package: distribution and release that the function is from.
        path: file and function in it, as `click/types.py:convert`.
        licence: SPDX identifier of the package.
        kind: what sort of change it is.
        style: how it is said: terse, sentence, sloppy, question or reason.
        instruction: the person's words.
        before: the function, with the indentation that it has in its file.
        after: the person's result.
        accept: other results that are right.
        adapted: whether `before` differs from the package's function (a defect was put in).
    """

    id: str
    package: str
    path: str
    licence: str
    kind: str
    style: str
    instruction: str
    before: str
    after: str
    accept: tuple[str, ...] = ()
    adapted: bool = False

    @property
    def right(self) -> tuple[str, ...]:
        """Every result that counts as right."""
        return (self.after, *self.accept)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model made of one edit.

    Attributes:
        text: the rewritten region; "" if the model declined.
        declined: the sentence with which the engine turned the request down, or "".
        exact: it is one of the right results, to the character.
        same_tree: its syntax tree is that of a right result (comments and layout may differ).
        parses: it is Python, and not empty.
        unchanged: it is the region as it was, or the model declined.
        untouched: lines that the right result keeps.
        kept: those of them that the answer has.
        tokens: generated tokens.
        seconds: time they took, reading the request included.
    """

    text: str
    declined: str
    exact: bool
    same_tree: bool
    parses: bool
    unchanged: bool
    untouched: int
    kept: int
    tokens: int
    seconds: float


@dataclass(slots=True)
class Tally:
    """Sums over the edits of one kind or style; `row` gives percentages."""

    n: int = 0
    exact: int = 0
    same_tree: int = 0
    parses: int = 0
    unchanged: int = 0
    untouched: int = 0
    kept: int = 0

    def add(self, answer: Answer) -> None:
        """Count one answer."""
        self.n += 1
        for name in ("exact", "same_tree", "parses", "unchanged", "untouched", "kept"):
            setattr(self, name, getattr(self, name) + int(getattr(answer, name)))

    def row(self) -> dict[str, float]:
        """Percentages; `kept` is the share of untouched lines."""
        shares = {
            name: round(100 * getattr(self, name) / self.n, 1)
            for name in ("exact", "same_tree", "parses", "unchanged")
        }
        return {"n": self.n, **shares, "kept": round(100 * self.kept / max(1, self.untouched), 1)}


@dataclass(slots=True)
class Report:
    """The tallies of one run."""

    model: str
    total: Tally = field(default_factory=Tally)
    kinds: dict[str, Tally] = field(default_factory=dict[str, Tally])
    styles: dict[str, Tally] = field(default_factory=dict[str, Tally])
    tokens: int = 0
    seconds: float = 0.0

    def add(self, edit: HumanEdit, answer: Answer) -> None:
        """Count one answer.

        `total` and `styles` leave out the kinds of `LEFT_ALONE`: a model that does nothing would
        score there.
        """
        self.kinds.setdefault(edit.kind, Tally()).add(answer)
        self.tokens += answer.tokens
        self.seconds += answer.seconds
        if edit.kind not in LEFT_ALONE:
            self.total.add(answer)
            self.styles.setdefault(edit.style, Tally()).add(answer)

    def as_json(self) -> dict[str, Any]:
        """The whole report in plain types."""
        return {
            "model": self.model,
            "total": self.total.row(),
            "kinds": {name: tally.row() for name, tally in self.kinds.items()},
            "styles": {name: tally.row() for name, tally in sorted(self.styles.items())},
            "tokens_per_second": round(self.tokens / max(self.seconds, 1e-9)),
        }


def load(path: Path = EDITS) -> list[HumanEdit]:
    """Read the edits of a file."""
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["edit"]
    return [HumanEdit(**{**row, "accept": tuple(row.get("accept", ()))}) for row in rows]


def tree(text: str) -> str | None:
    """The dedented text's syntax tree as text; None if it is not Python."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except (SyntaxError, ValueError):
        return None


def ask(model: TextModel, edit: HumanEdit) -> tuple[str, str, int]:
    """Have a model make an edit; returns (text, sentence it declined with, tokens)."""
    message = render_request(
        RegionRequest(
            instruction=edit.instruction,
            region=edit.before,
            path=edit.path.partition(":")[0],
            language="python",
        )
    )
    try:
        generation = model.start(GenerateRequest((Message("user", message),)))
        return "".join(piece.text for piece in generation), "", generation.usage.output_tokens
    except UserError as error:
        return "", str(error), 0


def judge(edit: HumanEdit, text: str, declined: str, tokens: int, seconds: float) -> Answer:
    """Compare an answer with the right results."""
    found = tree(text)
    untouched = Counter(edit.before.splitlines()) & Counter(edit.after.splitlines())
    kept = untouched if declined else untouched & Counter(text.splitlines())
    unchanged = bool(declined) or text == edit.before
    left_alone = edit.kind in LEFT_ALONE and unchanged
    return Answer(
        text=text,
        declined=declined,
        exact=left_alone or text in edit.right,
        same_tree=left_alone or (found is not None and found in map(tree, edit.right)),
        parses=bool(declined) or (found is not None and bool(text.strip())),
        unchanged=unchanged,
        untouched=untouched.total(),
        kept=kept.total(),
        tokens=tokens,
        seconds=seconds,
    )


def table(title: str, tallies: dict[str, Tally]) -> str:
    """Tallies as an aligned table."""
    lines = [
        f"{title:22} {'n':>4} {'exact':>6} {'tree':>6} {'parses':>7} {'kept':>6} {'as was':>7}"
    ]
    for name, tally in tallies.items():
        r = tally.row()
        lines.append(
            f"{name:22} {tally.n:4} {r['exact']:7.0f} {r['same_tree']:7.0f} {r['parses']:7.0f} "
            f"{r['kept']:7.1f} {r['unchanged']:7.0f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure a model folder on the human-written edits."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/river-391m"))
    parser.add_argument("--edits", type=Path, default=EDITS)
    parser.add_argument("--threads", type=int, help="threads inside one operator")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--answers", type=Path, help="write every answer to this file")
    arguments = parser.parse_args()
    model = load_model(arguments.model, threads=arguments.threads)
    report = Report(arguments.model.name)
    rows: list[dict[str, Any]] = []
    for edit in load(arguments.edits):
        begin = time.perf_counter()
        text, declined, tokens = ask(model, edit)
        answer = judge(edit, text, declined, tokens, time.perf_counter() - begin)
        report.add(edit, answer)
        rows.append({"edit": asdict(edit), "answer": asdict(answer)})
    model.close()
    if arguments.answers:
        arguments.answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if arguments.json:
        print(json.dumps(report.as_json(), indent=1))
        return
    print(table("kind", report.kinds), "", sep="\n")
    print(table("style", dict(sorted(report.styles.items()))), "", sep="\n")
    print(table("edits", {"to be changed": report.total}))
    print(f"{report.tokens / report.seconds:.0f} tokens/s, reading included")


if __name__ == "__main__":
    main()
