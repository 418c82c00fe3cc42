"""The recipe's data and vocabulary, and how a folder is measured."""

from __future__ import annotations

import json
import lzma
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from models.training import data, evaluate
from models.training.items import Item
from models.training.vocabulary import SPECIAL, chosen, smaller
from models.training.wordings import TEXTS
from tests.helpers.folders import make_tokenizer

WISHES = """\
%%python
def half(x):
    return x / 2
> integers | whole numbers
2|    return x // 2
> docstring
1+|    \"\"\"Return the half.\"\"\"
%%go
func Half(x int) int {
> rename it to Divide
1|func Divide(x int) int {
%%corpus 0000000000000000
> never seen
1-
"""


def test_wishes_are_read_with_all_their_wordings() -> None:
    rows = [row for row in data.wishes(WISHES, {}, random.Random(1)) if len(row["edits"][0]) > 3]
    assert [row["language"] for row in rows] == ["python", "go"]
    assert [(text, after) for _, text, _, after in rows[0]["edits"]] == [
        ("integers", "def half(x):\n    return x // 2\n"),
        ("whole numbers", "def half(x):\n    return x // 2\n"),
        ("docstring", 'def half(x):\n    """Return the half."""\n    return x / 2\n'),
    ]


def test_a_wish_that_breaks_the_code_is_refused() -> None:
    with pytest.raises(ValueError, match="breaks"):
        list(data.wishes("%%python\nx = 1\n> worse\n1|x = (\n", {}, random.Random(1)))


def test_the_wishes_that_are_kept_here_can_all_be_carried_out() -> None:
    text = (TEXTS / "wishes.txt").read_text("utf-8")
    rows = list(data.wishes(text, {}, random.Random(1)))
    assert {"python", "javascript", "typescript", "go", "rust", "java"} <= {
        row["language"] for row in rows
    }
    assert all(edit[3] != row["region"] for row in rows for edit in row["edits"] if len(edit) > 3)


def test_edits_that_were_made_once_come_back_for_the_snippets_that_are_there() -> None:
    known = "x = 1\ny = 2\n"
    lines = [
        [data.digest_of(known), "1|x = 0\n", ["lost", "x is one", "1|x = 1\n"]],
        [data.digest_of("z = 3\n"), "", ["other", "four", "1|z = 4\n"]],
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert list(data.frozen(text, {data.digest_of(known): known})) == [
        {"region": "x = 0\ny = 2\n", "edits": [["lost", "x is one", "1|x = 1\n"]]}
    ]


@pytest.mark.parametrize(("name", "rows", "kinds"), [("everyday", 4068, 87), ("goals", 1262, 45)])
def test_the_edits_that_are_kept_here_ask_for_something(name: str, rows: int, kinds: int) -> None:
    text = lzma.decompress((TEXTS / f"{name}.jsonl.xz").read_bytes()).decode()
    found = [json.loads(line) for line in text.splitlines()]
    assert len(found) == rows
    edits = [edit for _, _, *edits in found for edit in edits]
    assert len({kind for kind, _, _ in edits}) == kinds
    assert all(asked.strip() for _, asked, _ in edits)
    assert all((script == "=\n") == kind.endswith("_done") for kind, _, script in edits)


def test_requests_are_joined_to_their_commits(tmp_path: Path) -> None:
    table = tmp_path / "requests.tsv"
    table.write_text("# head\na/b\t12ab\tmake it two\ttwo please\n")
    commits = [
        {"repo": "a/b", "sha": sha, "region": "x = 1\n", "edits": [["commit", "Two", "1|x = 2\n"]]}
        for sha in ("12ab", "ffff")
    ]
    rows = [r for r in data.requested(commits, table, random.Random(2)) if len(r["edits"]) == 2]
    assert rows == [
        {
            "region": "x = 1\n",
            "edits": [["commit", text, "", "x = 2\n"] for text in ("make it two", "two please")],
        }
    ]


def test_requests_about_nothing_name_nothing_of_the_region() -> None:
    filler = "    # some words so that it is long enough to be taken for a region of its own\n"
    kinds = [("rename_local", "b0 -> c"), ("remove_prints", "no prints")]
    rows: list[dict[str, Any]] = [
        {"region": f"def a{n}(b{n}):\n{filler}    return b{n}\n", "edits": [[kind, text, "1-\n"]]}
        for n, (kind, text) in enumerate(kinds)
    ]
    for row in data.about_nothing(rows, random.Random(3)):
        assert row["edits"][0][2] == data.NOTHING
        assert row["edits"][0][1] != "b0 -> c" or "b0" not in row["region"]


def test_what_has_been_done_is_asked_again() -> None:
    row = {"region": "x = 1\n", "edits": [["add_docstring", "document it", '0+|"""X."""\n']]}
    found = [r for seed in range(20) for r in data.done([row], random.Random(seed))]
    assert found
    assert found[0] == {
        "region": '"""X."""\nx = 1\n',
        "edits": [["done", "document it", data.NOTHING]],
    }


BASE: dict[str, Any] = json.loads(make_tokenizer(list(SPECIAL)).to_str())
BASE["model"]["merges"] = [list(pair) for pair in BASE["model"]["merges"]]


@given(st.text(max_size=40), st.integers(0, 40))
def test_every_text_comes_back_from_a_smaller_vocabulary(text: str, more: int) -> None:
    named = Counter(BASE["model"]["vocab"].keys())
    contents, rows = smaller(BASE, chosen(BASE, named, len(SPECIAL) + 256 + more))
    tokenizer = Tokenizer.from_str(json.dumps(contents))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    known = BASE["model"]["vocab"]
    back = {number: token for token, number in known.items()}
    assert [back[rows[i]] for i in ids] == [tokenizer.id_to_token(i) for i in ids]


def test_a_folder_is_measured_as_the_product_runs_it(copyist: Path) -> None:
    before = "def half(item):\n    return item / 2\n"
    after = before.replace("item", "entry")
    asked = Item("1", "rename", "", before, "rename `item` to `entry`", (after,), False)
    left = Item("2", "nothing to do", "", before, "rename `items` to `entries`", (before,), True)
    rows = evaluate.answers(copyist, [asked, left], "python", 1)
    assert rows[0]["text"] == after
    found = evaluate.figures(rows)
    assert (found["n"], found["right"]) == (1, 1)
    assert found["left_alone"] == "1 of 1"
