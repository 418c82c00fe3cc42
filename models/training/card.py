# ruff: noqa: E501 (a row of a table is one line)
"""Write `MODEL_CARD.md`, `learning_curve.json` and the measured part of `midstream.toml` from
`evaluation.json` and what training logged.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

from models.training import aims, expected
from models.training.export import load_run, midstream_toml
from models.training.phrasings import good

_CARD = """\
# {name}

A {parameters:.1f} M parameter decoder that rewrites a marked Python region (up to {lines} lines)
as one plain instruction asks. It was trained from scratch on two CPU cores for about
{minutes:.0f} minutes ({tokens:.0f} M tokens). It does the edits in the table below and little
else: it does not write new functions, does not find bugs by itself and does not chat.

## Measured

Greedy decoding of the shipped {bits}-bit ONNX graph, through the engine with its drafting. All
snippets (functions, methods and blocks of up to 25 lines) are from packages that were never
trained on: {held_out}.
"known" uses instruction templates that training saw (with other names), "new" uses template
families that were held out, "by hand" are edits of real functions, written by hand in a
programmer's words (`models/training/human`; whoever made the training data had not read them, only
seen totals). Up to {most} examples per task, so a single figure is uncertain by about six points.
Exact match means every character of the region; "same program" compares syntax trees.

| | n | exact match | same program | result parses | untouched lines kept |
|---|---|---|---|---|---|
| known phrasings | {known[n]} | {known[exact_match]} % | {known[same_tree]} % | {known[parses]} % | {known[untouched_lines_kept]} % |
| new phrasings | {new[n]} | {new[exact_match]} % | {new[same_tree]} % | {new[parses]} % | {new[untouched_lines_kept]} % |
{human_row}
{before}

What it was meant to reach, and what it reached (italics: short of it). "Right to give up" is the share
of the requests it gives up on that are beyond it, if one request in ten were.

| | aim | known | new |
|---|---|---|---|
{aims}

- An edit takes {known[milliseconds_median]} ms (median, request read and answer written, one core
  of a shared machine) at {known[tokens_a_forward]} tokens a forward pass; renaming a variable in a function of
  28 to 32 lines {thirty[milliseconds_median]} ms at {thirty[tokens_a_second]} tokens a second, the
  reading included ({thirty[exact_match]} % exact, n = {thirty[n]}).
- Going on after a stop (the first half of a right answer is kept, n = {continued[n]}):
  {continued[exact_match]} % exact.
- Asked about a name that is not there (n = {nothing[n]}): the region stays unchanged in
  {nothing[unchanged]} % of cases, and in {nothing[said]} % the model says so.
- Redirects, asked while an answer is being written (exact, n = {steered_n} each), with the prompt
  read again, in place of what was asked before: {reread}. Appended to what is in the cache, of which
  {appended_read} % is read: {appended}. {chosen_form} is how this folder is set up (`appended` in
  `midstream.toml`). Corrections by the guard are read again in both.
- Requests that are beyond it are left alone in {declined[known][recall]} % of cases where training
  saw such a request and {declined[new][recall]} % where it did not (n = {declined[new][n]}); of the
  edits that it should do it leaves alone {declined[known][others_left_alone]} % (known) and
  {declined[new][others_left_alone]} % (new). If one request in ten were beyond it,
  {declined[known][precision]} % and {declined[new][precision]} % of what it leaves alone would be.
  Mostly it says that it gives up: of {declined[known][said_recall]} % and
  {declined[new][said_recall]} % of the requests that are beyond it, and of
  {declined[known][others_said]} % and {declined[new][others_said]} % of the others; so
  {declined[known][said_precision]} % and {declined[new][said_precision]} % of what it says that of
  would be.

Kinds of edits together ("next edit": a name was changed in one place or some, the rest follows):

| kinds | known, exact | same program | new, exact | same program | n |
|---|---|---|---|---|---|
{groups}

{unsure}
| edit | known, exact | known, same program | new, exact | known, parses | n |
|---|---|---|---|---|---|
{rows}

{people}
## Learning curve

Teacher-forced exact match, mean over the tasks (a few examples each) and over both sets, while
the last {run_tokens:.0f} M tokens were trained, in {phases} phases: at the end of each (bold) the rate
has fallen to zero. Kinds of edits were added to training and to the sets on the way, so the first
points are of fewer kinds, and the examples became harder from phase to phase.

| tokens | loss | known | new | redirects |
|---|---|---|---|---|
{curve}

{expected}
## Phrasings that work

{candidates} fixed sentences were tried on one half of the held-out snippets; the {chosen} that were
right at least nine times out of ten were measured again on the other half. These hold there as well
(the others fell to {lowest}-89 %):

{phrasings}

## How far to trust these numbers

- The held-out packages were never trained on, but they were looked at: the codec, the
  choice among tokens, the task mix, how corrections by the guard are put and the length of training
  were chosen while watching scores and failures on the "known" and redirected examples. Those figures are therefore somewhat optimistic.
- Whoever wrote the training grammar had seen the templates of "new" before, and which kinds did badly
  on them. In the last phase the grammar grew most for such kinds (small bugs, optional parameters, added
  lines). No sentence of "new" is in it, but what "new" gained there is partly that somebody knew
  where something was missing: take "by hand" for phrasings that nobody prepared for.
- The templates of "new" are never made by the training grammar for the same kind of edit (a filter
  drops what says the same). Their single words may occur in training, in other constructions or for
  other kinds of edits: "new" measures unseen phrasings, not unseen words. Only "by hand" is blind,
  and it shows how much freer people phrase: long sentences with a reason are right least often.
- Training snippets that share six tenths of their five-token runs with a held-out snippet, or have
  the name of a function of HumanEval or QuixBugs, were left out ({removed} in all).
- Some examples were made backwards (prints, `else` branches, small bugs, unsafe lines or old string
  formatting put into real code, the real code being the answer). Unsafe lines are made up.
- One training run, one seed, no repeats. The shipped weights are the average of two checkpoints, chosen
  on "known"; the learning curve is of the later checkpoint alone.

## Limits

- Phrasing matters: compare the columns. Short imperatives with the names in backticks work best.
- Renames follow names inside the region only. Strings, comments and docstrings are left alone,
  and so are other files.
- What is beyond it usually leaves the region as it was, but not always, and what it misunderstands
  may cost lines ("path is a string and it returns bytes" once deleted a whole body). The product
  says so where the model is unsure (above), which is most of it and not all: look at every diff.
- The security rewrites know the patterns that the guard stops (SQL built from strings, shells,
  unsafe loaders, disabled certificate checks, weak hashes, secrets in the source) and no others. A
  secret is read from the environment variable of the variable's own name.
- Regions over 25 lines were seldom trained on. Non-ASCII sources and tabs survive but were not
  trained on.
{skipped}
## Data

{snippets} functions, methods and blocks from the standard library and {packages} packages whose
own metadata names an MIT, BSD, Apache, ISC, HPND or PSF licence; duplicates removed by syntax tree.
The edits and their instructions are generated by program (`models/training/tasks*.py`,
`instructions.py`, `phrases_*.py`); every pair parses on both sides. None of HumanEval, EditEval,
QuixBugs, Exercism, SVEN or SecurityEval is among the sources.
The model's weights are under this project's licence (Apache-2.0).

| package | licence | snippets |
|---|---|---|
{sources}

Held out for measuring only: {held_out}.

## Again

`models/training/README.md` has the commands, one per step, and how this file came about: in phases,
each going on from the weights of the one before.
"""

_PEOPLE = """\
### Written by hand

| kind | n | exact | same program | left as it was |
|---|---|---|---|---|
{rows}

"""


_UNSURE = """\
### When it is not sure

An answer that changes something comes with the probability that it is right: the probabilities of
its tokens and signs in the text (it is no Python any more, a quoted name is missing, lines are gone
that nobody asked to remove, ...), weighed by a logistic regression. Below {threshold} the product
says that the model is unsure: of unflagged answers to free words ("reworded" and "outside",
weighed as many wrong as right) at least 85 % are to be right. Weights and threshold come from the sets below;
AUC over all of them {auc}. "reworded" puts free words round requests of "new" and "known";
"outside" asks, in free words, for what no task covers, so that every change is wrong. "by hand"
chose nothing.

| | asked | left alone | changed | right of these | AUC | wrong ones flagged | right ones flagged | right if flagged | right if not |
|---|---|---|---|---|---|---|---|---|---|
{rows}
"""


def _unsure(report: dict[str, Any] | None) -> str:
    if report is None:
        return ""
    rows = "\n".join(
        f"| {'by hand' if name == 'human' else name} | {row['asked']} | {row['left_alone']} % | "
        f"{row['answers']} | {row['right']} % | {row['auc'] or '-'} | {row['wrong_flagged']} % | "
        f"{row['right_flagged']} % | {row['right_among_flagged']} % | "
        f"{row['right_among_others']} % |"
        for name, row in report["sets"].items()
    )
    return _UNSURE.format(rows=rows, threshold=report["threshold"], auc=report["auc"])


def _groups(report: dict[str, Any]) -> str:
    return "\n".join(
        f"| {group} | {row['known']} % | {row['known_same_tree']} % | {row['new']} % | "
        f"{row['new_same_tree']} % | {row['n']} |"
        for group, row in report.items()
    )


def _steered(report: dict[str, Any]) -> str:
    words = {
        "rather": "another edit instead",
        "also": "one more edit",
        "corrected": "a line that the guard stopped",
    }
    return "; ".join(f"{words[kind]} {row['exact_match']} %" for kind, row in report.items())


def _curve(rows: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"| {_bold(row, rows)} | {row['loss']} | {row['known']} % | {row['new']} % | "
        f"{row['steered']} % |"
        for row in rows
    )


def _bold(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    tokens = f"{row['tokens'] / 1e6:.1f} M"
    return f"**{tokens}**" if row in expected.ends_of_phases(rows) else tokens


def learning_curve(path: Path) -> list[dict[str, Any]]:
    """Return the points of a run's curve: tokens, loss, mean exact match of each set."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {
            "tokens": row["tokens"],
            "loss": row["loss"],
            "known": row["eval_known_mean"],
            "new": row["eval_new_mean"],
            "steered": row["eval_steered_mean"],
            "end": bool(row.get("final")),
        }
        for row in rows
    ]


def main() -> None:
    """Write the card and the facts of a model folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/brook-4m"))
    parser.add_argument("--run", type=Path, default=Path("models/training/runs/brook"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument("--config", type=Path, default=Path("models/training/configs/nano.toml"))
    parser.add_argument("--human", type=Path, help="what `models.training.human --json` printed")
    parser.add_argument("--bits", type=int, default=8)
    arguments = parser.parse_args()
    folder: Path = arguments.model
    saved = folder / "evaluation.json"
    report: dict[str, Any] = json.loads(saved.read_text())
    if arguments.human:
        report["human"] = json.loads(arguments.human.read_text())
        saved.write_text(json.dumps(report, indent=1) + "\n")
    sources: list[dict[str, Any]] = json.loads((arguments.data / "DATA_SOURCES.json").read_text())
    model, facts = load_run(arguments.run)
    parameters = sum(weight.numel() for weight in model.parameters())
    curve = learning_curve(arguments.run / "curve.jsonl")
    (folder / "learning_curve.json").write_text(json.dumps(curve, indent=1) + "\n")
    settings: dict[str, Any] = tomllib.loads(arguments.config.read_text())["train"]
    used = [row for row in sources if row["snippets"] and row["split"] == "train"]
    text = _CARD.format(
        name=folder.name,
        parameters=parameters / 1e6,
        lines=64,
        minutes=facts["seconds"] / 60,
        tokens=facts["tokens"] / 1e6,
        bits=arguments.bits,
        held_out=", ".join(row["package"] for row in sources if row["split"] == "heldout"),
        removed=sum(row.get("left_out", 0) for row in sources),
        snippets=sum(row["snippets"] for row in used),
        packages=len(used) - 1,
        sources="\n".join(
            f"| {row['package']} | {row['licence']} | {row['snippets']} |" for row in used
        ),
        curve=_curve(curve),
        expected=expected.told(curve),
        phases=len(expected.ends_of_phases(curve)),
        run_tokens=(curve[-1]["tokens"] - facts["tokens_before"]) / 1e6,
        **measured(report, settings["skip_tasks"]),
    )
    (folder / "MODEL_CARD.md").write_text(text, "utf-8")
    there = tomllib.loads((folder / "midstream.toml").read_text("utf-8"))
    appended = int(there["codec"]["appended"])
    table = midstream_toml(
        folder.name, model.config, parameters, facts["tokens"], report, appended=appended
    )
    (folder / "midstream.toml").write_text(table, "utf-8")
    (folder / "DATA_SOURCES.json").write_text(json.dumps(used, indent=1) + "\n")


def measured(report: dict[str, Any], skipped: list[str]) -> dict[str, Any]:
    """Return the parts of the card that `evaluation.json` fills."""
    known, new = report["sets"]["eval_known"], report["sets"]["eval_new"]
    rows: list[str] = []
    for task, row in known["tasks"].items():
        other = new["tasks"].get(task, {"exact_match": "-"})["exact_match"]
        rows.append(
            f"| {task.replace('_', ' ')} | {row['exact_match']} % | {row['same_tree']} % | "
            f"{other} % | {row['parses']} % | {row['n']} |"
        )
    people, human_row = "", ""
    if "human" in report:
        human = report["human"]
        total = human["total"]
        human_row = (
            f"| by hand | {total['n']} | {total['exact']} % | {total['same_tree']} % | "
            f"{total['parses']} % | {total['kept']} % |"
        )
        people = _PEOPLE.format(
            rows="\n".join(
                f"| {kind} | {row['n']} | {row['exact']} % | {row['same_tree']} % | "
                f"{row['unchanged']} % |"
                for kind, row in human["kinds"].items()
            )
        )
    before = ""
    if "before" in report:
        old = report["before"]
        before = (
            f"\nThe model that was shipped before reached {old['known']} % (known) and "
            f"{old['new']} % (new) on the {old['tasks']} kinds of edits that it knew"
            + (f" and {old['human']} % of the edits written by hand" if "human" in old else "")
            + f"; on those same kinds this one reaches {old['now_known']} % and "
            f"{old['now_new']} %."
        )
    forms = report["steered"], report["steered_otherwise"]
    reread, appended = forms[::-1] if report["appended"] else forms
    return {
        "most": max(row["n"] for row in known["tasks"].values()),
        "known": known,
        "new": new,
        "continued": report["continued"],
        "nothing": report["nothing_to_do"],
        "declined": report["declining"],
        "reread": _steered(reread),
        "steered_n": max(row["n"] for row in reread.values()),
        "appended": _steered({kind: appended[kind] for kind in ("rather", "also")}),
        "appended_read": round(
            (appended["rather"]["prompt_read"] + appended["also"]["prompt_read"]) / 2
        ),
        "chosen_form": "The appended form" if report["appended"] else "Reading again",
        "groups": _groups(report["groups"]),
        "aims": aims.table(report),
        "thirty": report["thirty_lines"],
        "rows": "\n".join(rows),
        "unsure": _unsure(report.get("confidence")),
        "people": people,
        "human_row": human_row,
        "before": before,
        "candidates": len(report["phrasings"]),
        "chosen": len(report["confirmed"]),
        "lowest": min(row["exact"] for row in report["confirmed"]),
        "phrasings": "\n".join(
            "- {phrasing} ({task}: {exact} %, n = {n}; up to 12 lines {to_12} %)".format(**row)
            for row in good(report["confirmed"])
        ),
        "skipped": "".join(f"- Not trained: {task.replace('_', ' ')}.\n" for task in skipped),
    }


if __name__ == "__main__":
    main()
