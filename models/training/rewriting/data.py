"""Shards of this recipe's own: requests for commits, wishes, other languages, nothing to do.

    PYTHONPATH=app:. python -m models.training.rewriting.data --snippets train.jsonl \
        --commits commits.jsonl --sources FOLDER --shards shards

Run it when the shards of ``edit_script`` (generated, everyday, goals) are there: two of its
sources are made of them. It writes

- ``commits``: commits whose subject says what they do (score of 0.88 and more);
- ``requests``: other small commits with requests in the words of a programmer, two each, written by
  hand from the change (``texts/requests.tsv``);
- ``wishes``: functions with everyday wishes, written by hand (``texts/wishes*.txt``);
- ``languages``: those of them in other languages than Python, and small edits by program;
- ``done``: requests that have been carried out already; nothing is to change;
- ``none``: requests about something that the region does not have.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pygments.lexers import get_lexer_by_name

from models.training.edit_script import languages
from models.training.edit_script import script_format as fmt

Row = dict[str, Any]

TEXTS = Path(__file__).with_name("texts")
SCORE = 0.88
DONE_SHARE = 0.3
"""Of the wishes, so many come again for code in which they have come true."""
MAX_DONE_CHARACTERS = 700
MAX_FUNCTIONS = 500
"""Of each language."""
EACH_ABSENT = 70
"""Requests of each kind about something that is not there."""
SUFFIXES = {
    "javascript": (".js", ".mjs"),
    "typescript": (".ts", ".tsx"),
    "go": (".go",),
    "rust": (".rs",),
}
NOTHING = "=\n"

_AGAIN = re.compile(
    "swap|negat|revers|invert|flip|doubl|twice|order|increas|argument|extract|comment|first|last|"
    "before|after|delete|beyond|print|sign|boundary|other|step|wrap"
)
"""Kinds of edits that could be made again on their own result."""

ABSENT = {
    "remove_prints": r"\bprint\(",
    "print_log": r"\bprint\(",
    "remove_else": r"\bel(se|if)\b",
    "fstring": r"%|\.format\(|\+",
    "remove_decorator": r"^@",
    "remove_decorators": r"^@",
    "remove_docstring": r"\"\"\"|'''",
    "replace_docstring": r"\"\"\"|'''",
    "remove_comments": r"#",
    "remove_hints": r"->|\w: ",
    "remove_asserts": r"assert",
    "fix_bare_except": r"except",
    "fix_mutable_default": r"=\s*[\[\{]",
    "make_sync": r"async|await",
    "fix_await": r"async|await",
    "secure_verify": r"verify",
    "secure_shell": r"shell|system|subprocess|popen",
    "secure_sql": r"execute|sql|SELECT",
    "fix_none": r"None",
    "optional_union": r"Optional|Union",
}
"""Kinds of requests, and what a region must not have for them to ask nothing of it."""

NAMED = [
    "rename_local",
    "rename_parameter",
    "rename_function",
    "rename_attribute",
    "replace_name",
    "finish_rename",
    "remove_parameter",
    "remove_argument",
    "replace_exception",
    "change_default",
    "replace_literal",
    "make_optional",
    "change_argument",
    "everyday_rename_variable",
    "everyday_rename_function",
    "everyday_change_default",
    "everyday_mistyped_name",
]
"""Kinds of requests that name something of their region."""

_NAME = re.compile(r"[A-Za-z_]\w+")
_SMALL_WORDS = frozenset(
    [
        "the",
        "self",
        "to",
        "it",
        "is",
        "and",
        "or",
        "in",
        "not",
        "for",
        "if",
        "as",
        "by",
        "of",
        "None",
        "from",
        "with",
        "return",
        "def",
        "use",
        "be",
        "at",
        "on",
        "no",
    ]
)


def write(shards: Path, name: str, rows: Iterable[Row]) -> int:
    """Write a shard; return how many rows it has."""
    lines = [json.dumps(row) + "\n" for row in rows]
    (shards / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    return len(lines)


def read(path: Path) -> Iterator[Row]:
    """Yield the rows of a file."""
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def requested(commits: Iterable[Row], table: Path, rng: random.Random) -> Iterator[Row]:
    """Yield the commits that have requests written by hand, some again where they are done."""
    asked: dict[tuple[str, str], list[str]] = {}
    for line in table.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            repository, commit, *texts = line.split("\t")
            asked[repository, commit] = texts
    for row in commits:
        texts = asked.get((row["repo"], row["sha"]))
        if texts is None:
            continue
        after = fmt.apply(row["region"], row["edits"][0][2])
        yield {"region": row["region"], "edits": [["commit", text, "", after] for text in texts]}
        if rng.random() < DONE_SHARE:
            yield {"region": after, "edits": [["done", rng.choice(texts), NOTHING]]}


def wishes(text: str, corpus: dict[str, str], rng: random.Random) -> Iterator[Row]:
    """Yield functions with their wishes.

    Args:
        text: Blocks that begin with ``%%LANGUAGE`` and a region, or with ``%%corpus`` and the
            start of the SHA-256 of a snippet; then ``> one wording | another`` before each script.
        corpus: Snippets by digest; blocks of others are left out.
        rng: Chooses which wishes come again where they are done.
    """
    for block in re.split(r"^%%", text, flags=re.M)[1:]:
        head, _, body = block.partition("\n")
        language, _, digest = head.partition(" ")
        at = 0 if body.startswith("> ") else body.index("\n> ") + 1
        region = corpus.get(digest, "") if digest else body[:at]
        if not region:
            continue
        language = "python" if digest else language
        edits: list[list[str]] = []
        for part in re.split(r"^> ", body[at:], flags=re.M)[1:]:
            asked, _, script = part.partition("\n")
            after = fmt.apply(region, script)
            texts = [each.strip() for each in asked.split(" | ")]
            if after == region or (language == "python" and not _parses(after)):
                raise ValueError(f"the script for {texts[0]!r} changes nothing, or breaks the code")
            edits += [["wish", each, "", after] for each in texts]
            if rng.random() < DONE_SHARE:
                done = [["done", texts[0], NOTHING]]
                yield {"region": after, "language": language, "edits": done}
        yield {"region": region, "language": language, "edits": edits}


def by_program(folder: Path, name: str, rng: random.Random) -> Iterator[Row]:
    """Yield functions of a language with small edits that a program can make."""
    files = [p for p in sorted(folder.rglob("*")) if p.suffix in SUFFIXES[name] and p.is_file()]
    rng.shuffle(files)
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    count = 0
    for path in files:
        if ".min." in path.name or path.name.endswith(".d.ts") or "test" in str(path).lower():
            continue
        found = list(languages.functions(path.read_text("utf-8", "replace"), name))
        for region in rng.sample(found, min(3, len(found))):
            region = fmt.strip(region, fmt.margin_of(region))
            if len(region) > MAX_DONE_CHARACTERS or not region.isascii():
                continue
            tokens = list(lexer.get_tokens(region))
            edits: list[list[str]] = []
            for kind, make in languages.KINDS.items():
                made = make(tokens, region, languages.LANGUAGES[name], rng)
                if made and made[1] != region:
                    edits.append([f"language_{kind}", made[0], "", made[1]])
            if len(edits) > 1:
                count += 1
                yield {"region": region, "language": name, "edits": edits}
        if count >= MAX_FUNCTIONS:
            return


def done(rows: Iterable[Row], rng: random.Random) -> Iterator[Row]:
    """Yield results of edits with the request that has come true in them."""
    for row in rows:
        kind, text, script = rng.choice(row["edits"])[:3]
        if script.strip() in ("=", "?") or _AGAIN.search(kind) or rng.random() > DONE_SHARE:
            continue
        after = fmt.apply(row["region"], script)
        if after != row["region"] and len(after) < MAX_DONE_CHARACTERS:
            yield {"region": after, "edits": [["done", text, NOTHING]]}


def about_nothing(rows: Sequence[Row], rng: random.Random) -> Iterator[Row]:
    """Yield regions with requests about something that they do not have."""
    asked: dict[str, list[tuple[str, str]]] = {}
    regions = [row["region"] for row in rows if 80 < len(row["region"]) < 600]
    for row in rows:
        for kind, text, *_ in row["edits"]:
            asked.setdefault(kind, []).append((text, row["region"]))
    for kind in (*ABSENT, *NAMED):
        found = asked.get(kind, [])
        for text, own in rng.sample(found, min(EACH_ABSENT, len(found))):
            names = set(_NAME.findall(text)) & set(_NAME.findall(own)) - _SMALL_WORDS
            if not regions or (kind not in ABSENT and not names):
                continue
            for region in rng.choices(regions, k=60):
                if kind in ABSENT:
                    there = bool(re.search(ABSENT[kind], region, re.M))
                else:
                    there = bool(names & set(_NAME.findall(region)))
                if not there:
                    yield {"region": region, "edits": [["none", text, NOTHING]]}
                    break


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def main() -> None:
    """Write the shards."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--snippets", type=Path, required=True, help="train.jsonl")
    parser.add_argument(
        "--commits", type=Path, required=True, help="region, edits, repo, sha, score"
    )
    parser.add_argument("--sources", type=Path, help="folder with code in other languages")
    parser.add_argument("--shards", type=Path, required=True)
    options = parser.parse_args()
    shards: Path = options.shards
    rng = random.Random(5)
    commits = list(read(options.commits))
    scored = [row for row in commits if row["score"] >= SCORE]
    corpus: dict[str, str] = {}
    for row in read(options.snippets):
        text = fmt.strip(row["text"], fmt.margin_of(row["text"]))
        corpus[hashlib.sha256(text.encode()).hexdigest()[:16]] = text
    wished = [
        row
        for name in ("wishes.txt", "wishes_corpus.txt")
        for row in wishes((TEXTS / name).read_text("utf-8"), corpus, rng)
    ]
    python = [row for row in wished if row["language"] == "python"]
    others = [row for row in wished if row["language"] != "python"]
    for name in SUFFIXES if options.sources else ():
        others += by_program(options.sources, name, rng)
    made = [
        row
        for name in ("generated", "everyday")
        for path in sorted(shards.glob(f"{name}-*.jsonl"))
        for row in read(path)
    ]
    counts = {
        "commits-a": write(shards, "commits-a", scored),
        "requests-a": write(shards, "requests-a", requested(commits, TEXTS / "requests.tsv", rng)),
        "wishes-a": write(shards, "wishes-a", python),
        "languages-a": write(shards, "languages-a", others),
        "done-a": write(shards, "done-a", done(made, rng)),
        "none-a": write(shards, "none-a", about_nothing(made, rng)),
    }
    print(counts)


if __name__ == "__main__":
    main()
