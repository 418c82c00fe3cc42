"""Write the card of a model folder from what was measured.

    PYTHONPATH=app:. python -m models.training.card models/river-391m --reports report.json ... \
        --shards shards --sources models/training/data/DATA_SOURCES.json

Reports are those of ``evaluate``, of this folder and in any number. Their figures, by the
confidence that the folder is calibrated with, go into ``evaluation.json``, and those of the sets
that are there already stay. ``MODEL_CARD.md`` is written from that file, from the shards that were
trained on, and from the README of the recipe, which has what other weights reached. Without
``--reports`` the card is written anew from the files that are there.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Final

from midstream.engine.confidence import weighed
from midstream.engine.folder import Calibration, read_folder
from models.training.confidence import FITTED_ON, KEYS, accepted, digest, taken
from models.training.corpus import HELD_OUT
from models.training.data import HELD_OUT as MEASURING
from models.training.languages import LANGUAGES
from models.training.wordings import TEXTS

Report = dict[str, Any]

README: Final = Path(__file__).with_name("README.md")
FIFTHS: Final = (0.0, 0.2, 0.4, 0.6, 0.8)
SETS: Final = {
    "hand": "by hand",
    "goals": "goals",
    "known": "generator, wordings that training has",
    "new": "generator, wordings that it has not",
    "commits": "real commits",
    FITTED_ON: "apart (confidence is fitted on it)",
    **{
        name: f"outcomes and symptoms, {name.title().replace('script', 'Script')}"
        for name in LANGUAGES
    },
}
"""Sets of ``evaluate`` in the order of the card, and what they are called there."""
SOURCES: Final = {
    "generated": "exact edits by program (`generate.py`), with requests of a grammar",
    "everyday": "requests of a working day, and repairs told by their symptoms, by program",
    "goals": "requests that name a goal and no edit, by program",
    "commits": "commits with their subjects, from repositories under permissive licences",
    "requests": "small commits with requests written from the change",
    "wishes": "functions with everyday wishes, written from the code",
    "polyglot": "the same in JavaScript, TypeScript, Go, Rust and Java",
    "languages": "small edits by program in these languages",
    "questions": "questions about code, with answers",
    "done": "requests that have been carried out already",
    "none": "requests about something that is not there",
}


def section(readme: str, heading: str) -> str:
    """Return what stands under a heading."""
    found = re.search(rf"^## {re.escape(heading)}\n+(.*?)(?=^## |\Z)", readme, re.M | re.S)
    if found is None:
        raise ValueError(f"the README has no section {heading!r}")
    return found[1].strip()


def measured(report: Report, table: Calibration) -> Report:
    """Return a set's figures, with how right answers are by their confidence.

    Args:
        report: Figures and rows of a set, as ``evaluate`` saves them.
        table: The folder's calibration.
    """
    rows = [(weighed(table, row["features"]), row["right"]) for row in taken(report["rows"])]
    sure = [right for chance, right in rows if chance >= table.threshold]
    levels = {
        low: [right for chance, right in rows if low <= chance < low + 0.2 + (low == FIFTHS[-1])]
        for low in FIFTHS
    }
    known = accepted()
    right = [
        row["right"] or digest(*(row[key] for key in KEYS)) in known
        for row in report["rows"]
        if not row["left"]
    ]
    return report["figures"] | {
        "right": sum(right),
        "unmarked": len(sure),
        "right_unmarked": sum(sure),
        "by_confidence": {f"{low:.1f}": f"{sum(r)} of {len(r)}" for low, r in levels.items()},
    }


def ordered(sets: dict[str, Report]) -> list[tuple[str, Report]]:
    """Return the sets with what they are called, in the order of the card."""
    names = [*(name for name in SETS if name in sets), *(n for n in sets if n not in SETS)]
    return [(SETS.get(name, name), sets[name]) for name in names]


def row_of(name: str, found: Report) -> str:
    """Return a set's line in the table of figures."""
    share = f" ({100 * found['right'] / found['n']:.0f} %)" if found["n"] else ""
    cells = [
        name,
        found["n"],
        f"{found['right']}{share}",
        found["unchanged"],
        found["left_alone"],
        found["unmarked"],
        found["right_unmarked"],
        f"{found['seconds']:.1f}",
        f"{found['forwards']:.0f}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def counted(shards: Path) -> dict[str, tuple[int, int]]:
    """Return how many regions and requests each source of a folder of shards has."""
    regions, requests = Counter[str](), Counter[str]()
    for path in sorted(shards.glob("*.jsonl")):
        source = path.name.split("-")[0]
        for line in path.read_text("utf-8").splitlines():
            regions[source] += 1
            requests[source] += len(json.loads(line)["edits"])
    if not regions["requests"]:  # their code comes with the commits, but they are known
        asked = asked_for()
        regions["requests"] = len(asked)
        requests["requests"] = sum(count for _, count in asked)
    return {name: (regions[name], requests[name]) for name in SOURCES if regions[name]}


def fields_of(name: str) -> list[list[str]]:
    """Return the lines of a table of the texts, without those of remarks."""
    lines = (TEXTS / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def asked_for() -> list[tuple[str, int]]:
    """Return the repository of each commit that has requests, and how many."""
    rows = fields_of("requests.tsv")
    return [(repo, len(texts)) for repo, _, *texts in rows if repo not in MEASURING]


def repositories() -> list[str]:
    """Return the rows of the table of repositories."""
    asked: Counter[str] = Counter()
    for repo, count in asked_for():
        asked[repo] += count
    return [
        f"| {repo} | {licence} | {asked[repo] or '-'} | {head or '-'} |"
        for repo, licence, head in fields_of("repositories.tsv")
        if repo not in MEASURING
    ]


def card(folder: Path, evaluation: Report) -> str:
    """Return the text of ``MODEL_CARD.md``."""
    facts = tomllib.loads((folder / "midstream.toml").read_text("utf-8"))
    config = json.loads((folder / "genai_config.json").read_text("utf-8"))["model"]
    readme = README.read_text("utf-8")
    sets, counts = ordered(evaluation["sets"]), evaluation["sources"]
    packages: list[dict[str, Any]] = [
        row for row in evaluation["packages"] if row["split"] == "train" and row["snippets"]
    ]
    return (
        (TEXTS / "card.md")
        .read_text("utf-8")
        .format(
            name=folder.name,
            parameters=facts["card"]["parameters"] / 1e6,
            vocabulary=config["vocab_size"],
            lines=facts["max_region_lines"],
            threshold=evaluation["threshold"],
            sets="\n".join(row_of(name, found) for name, found in sets),
            levels="\n".join(
                f"| {name} | {' | '.join(found['by_confidence'].values())} |"
                for name, found in sets
            ),
            beside=section(readme, "Beside other weights"),
            curve=section(readme, "Learning curve"),
            packages=sum(row["package"] != "stdlib" for row in packages),
            held_out=", ".join(sorted(HELD_OUT)),
            sources="\n".join(
                f"| {name} | {' | '.join(map(str, counts.get(name, '--')))} | {said} |"
                for name, said in SOURCES.items()
            ),
            repositories="\n".join(repositories()),
            packages_table="\n".join(
                f"| {row['package']} | {row['licence']} | {row['snippets']} |" for row in packages
            ),
        )
    )


def main() -> None:
    """Write ``evaluation.json`` and ``MODEL_CARD.md`` of a model folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reports", type=Path, nargs="*", default=[], help="of evaluate")
    parser.add_argument("--shards", type=Path, help="that were trained on")
    parser.add_argument("--sources", type=Path, help="DATA_SOURCES.json of corpus")
    options = parser.parse_args()
    folder: Path = options.folder
    table = read_folder(folder).confidence
    if table is None:
        raise SystemExit(f"{folder / 'midstream.toml'} has no [confidence]: fit it first.")
    saved = folder / "evaluation.json"
    evaluation: Report = json.loads(saved.read_text("utf-8")) if saved.exists() else {}
    evaluation |= {"model": folder.name, "threshold": table.threshold}
    sets: dict[str, Report] = evaluation.setdefault("sets", {})
    for path in options.reports:
        for key, report in json.loads(path.read_text("utf-8")).items():
            sets[key.partition(" ")[2]] = measured(report, table)
    if options.shards:
        evaluation["sources"] = counted(options.shards)
    if options.sources:
        evaluation["packages"] = json.loads(options.sources.read_text("utf-8"))
    for key, option in (("sources", "--shards"), ("packages", "--sources")):
        if key not in evaluation:
            raise SystemExit(f"{saved} does not say what was trained on: give {option}.")
    saved.write_text(json.dumps(evaluation, indent=1) + "\n", "utf-8")
    (folder / "MODEL_CARD.md").write_text(card(folder, evaluation), "utf-8")


if __name__ == "__main__":
    main()
