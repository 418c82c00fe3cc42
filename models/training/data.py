"""Shards of all sources, but for the generated edits.

    PYTHONPATH=app:. python -m models.training.data --snippets train.jsonl \
        --commits commits.jsonl --sources FOLDER --shards shards

Run it when the shards of ``generate`` are there: two of its sources are made of them. It writes

- ``everyday``: requests of a working day, and repairs told by their symptoms
  (``texts/everyday.jsonl.xz``);
- ``goals``: requests that name a goal and no edit (``texts/goals.jsonl.xz``);
- ``commits``: commits whose subject says what they do (score of 0.88 and more);
- ``requests``: small commits with requests in the words of a programmer, two each, written from the
  change (``texts/requests.tsv``);
- ``wishes``: functions with everyday wishes and what they lead to (``texts/wishes*.txt``);
- ``polyglot``: those of them in other languages than Python;
- ``outcomes``: wishes that state an outcome, a symptom or a new behaviour, in all languages
  (``texts/outcomes*.txt``);
- ``languages``: small edits by program in other languages;
- ``questions``: functions and diffs with questions, and answers in words (``texts/questions.txt``);
- ``done``: requests that have been carried out already; nothing is to change;
- ``none``: requests about something that the region does not have.

Nothing is made of the commits of ``HELD_OUT``: they are for measuring.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import lzma
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pygments.lexers import get_lexer_by_name

from models.training import languages
from models.training import script_format as fmt
from models.training.wordings import TEXTS

Row = dict[str, Any]

SCORE = 0.88
HELD_OUT = frozenset({"encode/httpx", "tiangolo/fastapi", "psf/black", "pydantic/pydantic"})
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
    "java": (".java",),
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


def frozen(text: str, corpus: dict[str, str]) -> Iterator[Row]:
    """Yield edits that a program made once.

    Args:
        text: Lines of JSON: the start of the SHA-256 of a snippet, a script that makes the region
            of it, then lists of kind, request and script.
        corpus: Snippets by digest; edits of others are left out.
    """
    for line in text.splitlines():
        digest, before, *edits = json.loads(line)
        if snippet := corpus.get(digest):
            yield {"region": fmt.apply(snippet, before), "edits": edits}


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


def blocks(text: str, corpus: dict[str, str]) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield the language and the region of each block, and its requests with what follows them.

    Args:
        text: Blocks that begin with ``%%LANGUAGE`` and a region, or with ``%%LANGUAGE`` or
            ``%%corpus`` (Python) and the start of the SHA-256 of a snippet; then ``> request``
            and the lines that belong to it.
        corpus: Snippets by digest; blocks of others are left out.
    """
    for block in re.split(r"^%%", text, flags=re.M)[1:]:
        head, _, body = block.partition("\n")
        language, _, digest = head.partition(" ")
        at = 0 if body.startswith("> ") else body.index("\n> ") + 1
        region = corpus.get(digest, "") if digest else body[:at]
        if region:
            parts = re.split(r"^> ", body[at:], flags=re.M)[1:]
            requests = [(first, rest) for first, _, rest in (p.partition("\n") for p in parts)]
            yield "python" if language == "corpus" else language, region, requests


def wishes(text: str, corpus: dict[str, str], rng: random.Random) -> Iterator[Row]:
    """Yield functions with their wishes.

    Args:
        text: Blocks (``blocks``) of ``> one wording | another`` before each script.
        corpus: Snippets by digest; blocks of others are left out.
        rng: Chooses which wishes come again where they are done.

    Raises:
        ValueError: A script changes nothing or breaks the code.
    """
    for language, region, requests in blocks(text, corpus):
        edits: list[list[str]] = []
        for asked, script in requests:
            texts = [each.strip() for each in asked.split(" | ")]
            if script.strip() == NOTHING.strip():
                edits += [["done", each, NOTHING] for each in texts]
                continue
            after = fmt.apply(region, script)
            breaks = language == "python" and _parses(region) and not _parses(after)
            if after == region or breaks:
                raise ValueError(f"the script for {texts[0]!r} changes nothing, or breaks the code")
            edits += [["wish", each, "", after] for each in texts]
            if rng.random() < DONE_SHARE:
                done = [["done", texts[0], NOTHING]]
                yield {"region": after, "language": language, "edits": done}
        yield {"region": region, "language": language, "edits": edits}


def questions(text: str, corpus: dict[str, str]) -> Iterator[Row]:
    """Yield functions and diffs with questions and their answers."""
    for language, region, requests in blocks(text, corpus):
        edits = [["question", asked, "", answer.strip()] for asked, answer in requests]
        yield {"region": region, "language": language, "edits": edits}


def files_of(folder: Path, name: str) -> list[Path]:
    """Return the files of a language in a folder, without tests and what was made by programs."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in SUFFIXES[name]
        and path.is_file()
        and ".min." not in path.name
        and not path.name.endswith(".d.ts")
        and "test" not in str(path.relative_to(folder)).lower()
    ]


def by_digest(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the functions of other languages in a folder with the start of their SHA-256."""
    for name in SUFFIXES:
        for path in files_of(folder, name):
            for found in languages.functions(path.read_text("utf-8", "replace"), name):
                margin = found[: len(found) - len(found.lstrip(" \t"))]
                yield digest_of(region := fmt.strip(found.replace("\r", ""), margin)), region


def digest_of(region: str) -> str:
    """Return the start of a region's SHA-256."""
    return hashlib.sha256(region.encode()).hexdigest()[:16]


def corpus_of(snippets: Path) -> dict[str, str]:
    """Return snippets without their margin, by the start of their SHA-256."""
    texts = [fmt.strip(row["text"], fmt.margin_of(row["text"])) for row in read(snippets)]
    return {digest_of(text): text for text in texts}


def by_program(folder: Path, name: str, rng: random.Random) -> Iterator[Row]:
    """Yield functions of a language with small edits that a program can make."""
    files = files_of(folder, name)
    rng.shuffle(files)
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    count = 0
    for path in files:
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
        if script.strip() == "=" or _AGAIN.search(kind) or rng.random() > DONE_SHARE:
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
    commits = [row for row in read(options.commits) if row["repo"] not in HELD_OUT]
    scored = [row for row in commits if row["score"] >= SCORE]
    corpus = corpus_of(options.snippets)
    if options.sources:
        corpus |= by_digest(options.sources)
    wished, outcomes = (
        [
            row
            for path in sorted(TEXTS.glob(f"{name}*.txt"))
            for row in wishes(path.read_text("utf-8"), corpus, rng)
        ]
        for name in ("wishes", "outcomes")
    )
    python = [row for row in wished if row["language"] == "python"]
    others = [row for row in wished if row["language"] != "python"]
    asked = list(questions((TEXTS / "questions.txt").read_text("utf-8"), corpus))
    small = [
        row
        for name in SUFFIXES
        if options.sources
        for row in by_program(options.sources, name, rng)
    ]
    everyday, goals = (
        list(frozen(lzma.decompress((TEXTS / f"{name}.jsonl.xz").read_bytes()).decode(), corpus))
        for name in ("everyday", "goals")
    )
    generated = [row for path in sorted(shards.glob("generated-*.jsonl")) for row in read(path)]
    made = generated + everyday
    counts = {
        "everyday-a": write(shards, "everyday-a", everyday),
        "goals-a": write(shards, "goals-a", goals),
        "commits-a": write(shards, "commits-a", scored),
        "requests-a": write(shards, "requests-a", requested(commits, TEXTS / "requests.tsv", rng)),
        "wishes-a": write(shards, "wishes-a", python),
        "polyglot-a": write(shards, "polyglot-a", others),
        "outcomes-a": write(shards, "outcomes-a", outcomes),
        "languages-a": write(shards, "languages-a", small),
        "questions-a": write(shards, "questions-a", asked),
        "done-a": write(shards, "done-a", done(made, rng)),
        "none-a": write(shards, "none-a", about_nothing(made, rng)),
    }
    print(counts)


if __name__ == "__main__":
    main()
