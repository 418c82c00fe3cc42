"""Imports of a rewrite that lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.codebase.imports import lost_imports

FILES = {
    "src/shop/__init__.py": "from .money import parse\n",
    "src/shop/money.py": "def parse(text):\n    return 0\n",
    "src/shop/lazy.py": "def __getattr__(name):\n    return name\n",
    "src/shop/every.py": "from shop.money import *\n",
    "tests/helpers/make.py": "import httpx\n\nLIMIT = 3\n",
    "tests/test_money.py": "import math\n",
    "pyproject.toml": "[project]\ndependencies = ["
    '"msgspec>=0.18", "PyYAML", "beautifulsoup4", "typing-extensions"]\n',
}


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("from shop.money import parse", []),
        ("from shop import parse, money", []),
        ("import shop.money", []),
        ("from helpers.make import LIMIT", []),
        ("from tests.helpers import make", []),
        ("from .helpers.make import LIMIT", []),
        ("import os, collections.abc", []),
        ("import httpx", []),
        ("import msgspec", []),
        ("import yaml", []),
        ("from bs4 import BeautifulSoup", []),
        ("import typing_extensions", []),
        ("import sklearn.svm", ["sklearn"]),
        ("from shop.lazy import anything", []),
        ("from shop.every import parse", []),
        ("from shop.money import *", []),
        ("try:\n    import speedups\nexcept ImportError:\n    pass", []),
        ("from shop.money import Purse", ["shop.money.Purse"]),
        ("from shop.coins import parse", ["shop.coins"]),
        ("from .missing import parse", ["tests.missing"]),
        ("from your_module import parse", ["your_module"]),
        ("import your_module", ["your_module"]),
        ("def broken(", []),
    ],
)
def test_new_imports_that_lead_nowhere(tmp_path: Path, line: str, lost: list[str]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = "tests/test_money.py"
    before = FILES[path]
    assert lost_imports(tmp_path, lambda: list(FILES), path, before, f"{before}{line}\n") == lost
    again = f"{before}{line}\n"
    assert lost_imports(tmp_path, lambda: list(FILES), path, again, again) == []
