"""Reference pages match the declarations; links in the prose lead somewhere."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import midstream

ROOT = Path(midstream.__file__).parents[2]
PROSE = (
    "README.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/benchmarks.md",
    "docs/compatibility.md",
)


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_make", ROOT / "docs" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_reference_page_is_stale(make: ModuleType) -> None:
    assert make.stale() == [], "run docs/make.py"


@pytest.mark.parametrize("name", PROSE)
def test_links_and_named_files_exist(name: str) -> None:
    path = ROOT / name
    text = path.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in link]
    missing = [link for link in links if not (path.parent / link).exists()]
    named = re.findall(r"`((?:app|tests|docs|themes|models|screenshots)/[\w./-]+)`", text)
    missing += [file for file in named if not (ROOT / file).exists()]
    assert not missing


def defined(path: Path) -> set[str]:
    """Classes, their methods and functions of a module; nothing where there is no such file."""
    names: set[str] = set()
    if not path.exists():
        return names
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            inner = (n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
            names |= {node.name, *(f"{node.name}.{one.name}" for one in inner)}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
    return names


def test_the_architecture_names_what_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`([\w/]+\.py)`\s+`([\w.]+)`", text)
    assert len(named) > 25
    missing = [
        f"{path}: {name}"
        for path, name in named
        if name not in defined(ROOT / "app" / "midstream" / path)
    ]
    assert not missing


def test_every_row_of_the_compatibility_table_names_its_test() -> None:
    text = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [row.strip("| ").split("|")[-1] for row in rows if not row.endswith("| test |")]
    clients = ROOT / "tests" / "clients"
    tests = {name for path in clients.glob("test_*.py") for name in defined(path)}
    assert len(cells) > 8
    for cell in cells:
        named = re.findall(r"`([\w./]+)`", cell)
        assert named or cell.strip() == "the same"
        for name in named:
            places = (clients / "scripts" / name, ROOT / name)
            assert name in tests or any(place.is_file() for place in places), name


def test_one_change_takes_at_most_25_calls() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert 10 < len(re.findall(r"^\| \d+ \|", text, re.MULTILINE)) <= 25
