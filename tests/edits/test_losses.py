"""What a rewrite loses: definitions, names of the request, a value."""

from __future__ import annotations

import pytest

from midstream.edits.doubt.losses import losses
from tests.helpers.judged import rewrite

RUST = "impl Board {\n    pub fn len(&self) -> usize {\n        self.scores.len()\n    }\n}\n"
GO = "package a\n\nfunc Count(n string) error {\n\tprintln(n)\n\treturn ErrNotFound\n}\n"
JS = "function total(items) {\n  return items.length * (1 + TAX); // gross\n}\n"
PYTHON = "def get(key):\n    return load_all(key)\n\n\ndef put(key):\n    return 1\n"


def found(asked: str, before: str, after: str, path: str) -> list[str]:
    return losses(rewrite(asked, before, after, path=path))


@pytest.mark.parametrize(
    ("asked", "before", "old", "new", "path", "said"),
    [
        ("its methods are slow", PYTHON, "def get", "def log", "a.py", "renamed `get` to `log`"),
        ("it returns the worst", RUST, "fn len", "fn worst", "a.rs", "renamed `Board.len` to"),
        ("wrap ErrNotFound with it", GO, "ErrNotFound", "nil", "a.go", "took `ErrNotFound` away"),
        ("tidy the return", RUST, "len()\n", "len();\n", "a.rs", "ends `Board.len` with a semi"),
        ("cache load_all per key", PYTHON, "load_all", "read", "a.py", "took `load_all` away"),
        ("count the quantity", JS, " * (1 + TAX)", "", "a.js", "only takes code away (`TAX`)"),
    ],
)
def test_a_loss_is_said(asked: str, before: str, old: str, new: str, path: str, said: str) -> None:
    (fault,) = found(asked, before, before.replace(old, new, 1), path)
    assert said in fault


@pytest.mark.parametrize(
    ("asked", "before", "old", "new", "path"),
    [
        ("rename it to size", RUST, "fn len", "fn size", "a.rs"),
        ("remove get", PYTHON, PYTHON[: PYTHON.index("def put")], "", "a.py"),
        ("return nil instead of ErrNotFound", GO, "ErrNotFound", "nil", "a.go"),
        ("return early", RUST, "self.scores.len()", "return self.scores.len();", "a.rs"),
        ("split it into two", PYTHON, "def get", "def one():\n    pass\n\n\ndef two", "a.py"),
        ("it is slow", PYTHON, "load_all(key)", "read(key)", "a.py"),
        ("without the tax", JS, " * (1 + TAX)", "", "a.js"),
        ("it counts only one", JS, "items.length * (1 + TAX)", "1 + items.length", "a.js"),
        ("needless comment", JS, " // gross", "", "a.js"),
        ("smallest first", "x = sorted(y, reverse=True)\n", ", reverse=True", "", "a.py"),
        (
            "it prints too much",
            RUST,
            "-> usize {\n        self.scores.len()",
            "{\n        a();",
            "a.rs",
        ),
    ],
)
def test_what_was_asked_for_is_no_loss(
    asked: str, before: str, old: str, new: str, path: str
) -> None:
    assert found(asked, before, before.replace(old, new, 1), path) == []


def test_code_that_is_only_taken_away_is_found_without_the_margin() -> None:
    loop = "  for (item of items) {\n    sum += item;\n  }\n  return sum * (1 + TAX);\n"
    dedented = loop.replace("\n  ", "\n")[2:].replace(" * (1 + TAX)", "")
    assert found("count the quantity", loop, dedented, "a.js") == ["only takes code away (`TAX`)"]
