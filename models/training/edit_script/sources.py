"""Write where training data comes from: packages, repositories, licences, counts and hashes.

    python -m models.training.edit_script.sources --packages .../DATA_SOURCES.json --mined data/sources.jsonl --shards shards --out sources.json

Ends where the licence of a repository is not known.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

GIVEN: dict[str, str] = {
    **dict.fromkeys(
        ("openstack/nova", "openstack/neutron", "openstack/cinder", "aio-libs/aiohttp"),
        "Apache-2.0",
    ),
    "matrix-org/synapse": "Apache-2.0 (2023-12)",
    **dict.fromkeys(
        (
            "sympy/sympy",
            "ipython/ipython",
            "wagtail/wagtail",
            "sphinx-doc/sphinx",
            "dask/dask",
            "scrapy/scrapy",
            "celery/celery",
            "encode/django-rest-framework",
            "encode/httpx",
        ),
        "BSD",
    ),
    **dict.fromkeys(
        (
            "twisted/twisted",
            "pytest-dev/pytest",
            "pypa/pip",
            "sqlalchemy/sqlalchemy",
            "mitmproxy/mitmproxy",
            "python/mypy",
            "python-poetry/poetry",
            "pydantic/pydantic",
            "psf/black",
            "tiangolo/fastapi",
        ),
        "MIT",
    ),
}
"""Licences of the repositories whose commits were mined before `mine_commits` existed."""


def main() -> None:
    """Write one JSON file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--mined", type=Path, required=True)
    parser.add_argument("--shards", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    edits: Counter[str] = Counter()
    by_repository: Counter[str] = Counter()
    for file in sorted(options.shards.glob("*.jsonl")):
        source = file.name.split("-")[0]
        for line in file.read_bytes().splitlines():
            row: dict[str, Any] = json.loads(line)
            edits[source] += len(row["edits"])
            if source == "commits":
                by_repository[row["repo"]] += 1
    mined = {
        row["repo"]: row for row in map(json.loads, options.mined.read_text("utf-8").splitlines())
    }
    commits: list[dict[str, Any]] = []
    for name, count in by_repository.most_common():
        known = mined.get(name, {"licence": GIVEN.get(name, ""), "head": "given", "sha256": "-"})
        if not known["licence"]:
            raise SystemExit(
                f"{name}: no licence is known, and its commits are in {options.shards}"
            )
        facts = {key: known[key] for key in ("licence", "head", "sha256")}
        commits.append({"repo": name, "rows": count, **facts})
    found = {
        "packages": json.loads(options.packages.read_text("utf-8")),
        "generated": edits["generated"],
        "goals": edits["goals"],
        "everyday": edits["everyday"],
        "commits": commits,
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(dict(edits), len(commits), "repositories")


if __name__ == "__main__":
    main()
