"""Reference pages match the declarations; links in the prose lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import midstream

ROOT = Path(midstream.__file__).parents[2]
PROSE = ("README.md", "AGENTS.md", "SECURITY.md")


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
