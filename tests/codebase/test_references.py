"""All uses of a name across a project, found without a model."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest

from midstream.codebase.references import (
    Use,
    UseLeft,
    find_uses,
    listed,
    uses_left,
    with_name,
)
from midstream.codebase.similar_edits import first_use
from midstream.workspace.files import Workspace
from tests.helpers.repositories import git

pytestmark = pytest.mark.system  # each asks a child process that reads a package

FILES = {
    "shop/__init__.py": 'from .util import helper\n\n__all__ = ["LIMIT", "helper"]\nLIMIT = 3\n',
    "shop/util.py": (
        "class Cart:\n"
        "    size: int = 0\n\n"
        "    def add(self, item, count=1):\n"
        "        self.last = item\n"
        "        return count\n\n\n"
        "class BigCart(Cart):\n"
        "    def add(self, item, count=2):\n"
        "        return super().add(item, count=count)\n\n\n"
        "def helper(x):\n"
        "    return x + 1\n\n\n"
        'print(f"value {helper(x=2)} helper")  # helper\n'
    ),
    "main.py": (
        "import shop\n"
        "from shop import util, LIMIT\n"
        "from shop.util import Cart\n\n\n"
        "def show(helper):\n"
        "    return helper + LIMIT\n\n\n"
        "def fill(cart: Cart, seen: set) -> None:\n"
        "    cart.add(1, count=2)\n"
        "    seen.add(cart.last)\n"
        "    print(cart.size, util.helper(2), shop.helper(3))\n"
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


async def renamed(root: Path, path: str, old: str, new: str, nth: int = 1) -> dict[str, str]:
    """The files after a rename of what is called ``old`` at its ``nth`` place in ``path``."""
    lines = FILES[path].split("\n")
    at = -1
    for _ in range(nth):
        spot = first_use(lines, old, range(at + 1, len(lines)))
        assert spot is not None
        at = spot[0]
    uses = await find_uses(root, list(FILES), old, Use(path, *spot))
    assert all(use.certain for use in uses)
    return {
        name: "\n".join(with_name(text.split("\n"), [u for u in uses if u.path == name], old, new))
        for name, text in FILES.items()
    }


async def test_a_function_is_found_in_f_strings_imports_and_behind_modules(root: Path) -> None:
    after = await renamed(root, "shop/util.py", "helper", "add_one")
    util, main = after["shop/util.py"], after["main.py"]
    assert after["shop/__init__.py"] == FILES["shop/__init__.py"].replace("helper", "add_one")
    assert "def add_one(x)" in util
    assert 'print(f"value {add_one(x=2)} helper")  # helper' in util
    assert "util.add_one(2), shop.add_one(3)" in main
    assert "def show(helper):\n    return helper + LIMIT" in main, "a parameter of that name"


async def test_a_search_that_was_killed_leaves_no_half_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, project = tmp_path / "state", tmp_path / "project"
    monkeypatch.setenv("MIDSTREAM_STATE_DIR", str(state))
    project.mkdir()
    (project / "pad.py").write_text(
        "import textwrap\n\n\ndef pad(text, width):\n    return textwrap.fill(text, width=width)\n"
    )

    async def search() -> list[Use]:
        return await find_uses(project, ["pad.py"], "width", Use("pad.py", 3, 14))

    before = await search()
    assert [(use.line, use.column) for use in before if use.certain] == [(3, 14), (4, 37)]
    kept = list((state / "jedi").rglob("*.pkl"))
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert await search() == before
    assert all(pickle.loads(path.read_bytes()) for path in kept), "they are whole again"


async def test_a_method_is_found_with_its_overrides_and_not_its_namesakes(root: Path) -> None:
    after = await renamed(root, "shop/util.py", "add", "put")
    assert after["shop/util.py"].count("def put(") == 2
    assert "super().put(" in after["shop/util.py"]
    assert "cart.put(1" in after["main.py"]
    assert "seen.add(" in after["main.py"]


async def test_attributes_constants_classes_and_parameters(root: Path) -> None:
    after = await renamed(root, "shop/util.py", "last", "latest")
    assert "self.latest = item" in after["shop/util.py"]
    assert "cart.latest" in after["main.py"]
    after = await renamed(root, "shop/util.py", "size", "room")
    assert "    room: int = 0" in after["shop/util.py"]
    assert "cart.room" in after["main.py"]
    after = await renamed(root, "shop/__init__.py", "LIMIT", "MOST")
    assert '__all__ = ["MOST", "helper"]\nMOST = 3' in after["shop/__init__.py"]
    assert after["main.py"].count("MOST") == 2
    after = await renamed(root, "shop/util.py", "Cart", "Basket")
    assert "class BigCart(Basket):" in after["shop/util.py"]
    assert after["main.py"].count("Basket") == 2
    after = await renamed(root, "shop/util.py", "x", "number")
    assert "def helper(number):\n    return number + 1" in after["shop/util.py"]
    assert "{helper(number=2)}" in after["shop/util.py"]


async def test_strings_that_name_it_next_to_its_module(tmp_path: Path) -> None:
    files = {
        "src/shop/util.py": "_limit = 3\n\n\ndef total():\n    return _limit\n",
        "src/shop/other.py": "_limit = 4\n",
        "tests/test_util.py": (
            "from unittest import mock\n"
            "import shop.util\n"
            "from shop import other, util\n\n"
            "def test(monkeypatch):\n"
            '    monkeypatch.setattr(util, "_limit", 1)\n'
            '    monkeypatch.setattr("shop.util._limit", 1)\n'
            '    monkeypatch.setattr(other, "_limit", 1)\n'
            '    with mock.patch.object(shop.util, "_limit", 2), mock.patch("shop.other._limit"):\n'
            '        assert getattr(util, "_limit") == 2\n'
            '    names = ["_limit", "the _limit"]\n'
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    uses = await find_uses(tmp_path, list(files), "_limit", Use("src/shop/util.py", 0, 0))
    lines = files["tests/test_util.py"].split("\n")
    for use in uses:
        if use.path.startswith("tests"):
            assert lines[use.line][use.column :].startswith("_limit")
    sure = [use.line for use in uses if use.certain and use.path.startswith("tests")]
    assert sure == [5, 6, 8, 9]
    assert [use.line for use in uses if not use.certain] == [10]
    assert not any(use.path.endswith("other.py") for use in uses)


async def test_strings_in_annotations_and_names_of_types(tmp_path: Path) -> None:
    text = (
        "from typing import Iterator, Literal, TypeVar\n\n"
        'Entry = TypeVar("Entry")\n'
        "def walk(first: 'Entry', kind: Literal['Entry']) -> Iterator['Entry | list[Entry]']:\n"
        "    seen: 'other.Entry' = 'Entry'\n"
        "    return [first, seen, kind]\n"
    )
    (tmp_path / "tree.py").write_text(text)
    uses = await find_uses(tmp_path, ["tree.py"], "Entry", Use("tree.py", 2, 0))
    assert all(use.certain for use in uses)
    after = "\n".join(with_name(text.split("\n"), uses, "Entry", "Node"))
    assert after == (
        "from typing import Iterator, Literal, TypeVar\n\n"
        'Node = TypeVar("Node")\n'
        "def walk(first: 'Node', kind: Literal['Entry']) -> Iterator['Node | list[Node]']:\n"
        "    seen: 'other.Entry' = 'Entry'\n"
        "    return [first, seen, kind]\n"
    )


async def test_a_text_that_is_not_on_disk_is_what_others_import(root: Path) -> None:
    lines = FILES["shop/util.py"].split("\n")
    gone = FILES["shop/util.py"].replace("helper", "add_one")
    (root / "shop/util.py").write_text(gone)
    uses = await find_uses(
        root, list(FILES), "helper", Use("shop/util.py", 13, 4), texts={"shop/util.py": lines}
    )
    assert {use.path for use in uses} == set(FILES)


async def test_a_property_of_an_enum_of_strings(tmp_path: Path) -> None:
    text = (
        "from enum import Enum\n\n\nclass Kind(str, Enum):\n    A = 'a'\n\n    @property\n"
        "    def escapes(self) -> int:\n        return 1\n\n\n"
        "def show(kind: Kind) -> int:\n    return kind.escapes\n"
    )
    (tmp_path / "kinds.py").write_text(text)
    uses = await find_uses(tmp_path, ["kinds.py"], "escapes", Use("kinds.py", 7, 8))
    assert [use.line for use in uses] == [7, 12]


async def test_a_search_can_be_cancelled(root: Path) -> None:
    searching = asyncio.create_task(
        find_uses(root, list(FILES), "helper", Use("shop/util.py", 13, 4))
    )
    await asyncio.sleep(0)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching


async def test_what_a_rename_or_a_deletion_leaves_behind(root: Path) -> None:
    path = "shop/util.py"
    before = FILES[path].split("\n")
    after = FILES[path].replace("def helper", "def add_one").split("\n")
    left = await uses_left(root, list(FILES), {path: before}, {path: after})
    assert {(each.path, each.line) for each in left} == {
        (path, 17), ("main.py", 12), ("shop/__init__.py", 0), ("shop/__init__.py", 2),
    }  # fmt: skip
    assert left[0] == UseLeft("helper", "add_one", *where(left[0]))
    deleted = [*before[:13], *before[15:]]
    left = await uses_left(root, list(FILES), {path: before}, {path: deleted})
    assert (path, 15) in {(each.path, each.line) for each in left}
    assert {each.new for each in left} == {""}
    changed = FILES[path].replace("x + 1", "x + 2").split("\n")
    assert await uses_left(root, list(FILES), {path: before}, {path: changed}) == ()


async def test_files_that_lose_the_same_name_share_the_search_for_it(tmp_path: Path) -> None:
    texts = {f"{name}.py": f"def old():\n    return {name!r}\n" for name in "abc"}
    now = {path: text.replace("old", "new") for path, text in texts.items()}
    for path, text in now.items():
        (tmp_path / path).write_text(text)
    absent: set[tuple[str, str]] = set()

    async def left(path: str) -> tuple[UseLeft, ...]:
        before, after = texts[path].split("\n"), now[path].split("\n")
        changes = {path: before}, {path: after}
        return await uses_left(tmp_path, list(texts), *changes, absent=absent)

    assert await left("a.py") == ()
    assert absent == {("old", ".py")}
    (tmp_path / "c.py").write_text("from b import old\n")
    assert await left("b.py") == (), "not looked for again"
    absent.clear()
    assert [(use.name, use.path) for use in await left("b.py")] == [("old", "c.py")]


async def test_a_file_that_a_change_empties_has_no_uses_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def old(): ...\n")
    (tmp_path / "b.py").write_text("from a import old\n")
    before = {"a.py": ("def old(): ...",), "b.py": ("from a import old",)}
    after: dict[str, tuple[str, ...]] = {"a.py": ("def new(): ...",), "b.py": ()}
    absent = set[tuple[str, str]]()
    assert await uses_left(tmp_path, ["a.py", "b.py"], before, after, absent=absent) == ()
    assert absent == {("old", ".py")}


async def test_an_attribute_of_self_that_is_renamed_only_where_it_is_set(root: Path) -> None:
    path = "shop/util.py"
    before = FILES[path].split("\n")
    after = FILES[path].replace("self.last", "self.latest").split("\n")
    left = await uses_left(root, list(FILES), {path: before}, {path: after})
    assert [(use.name, use.new, use.path, use.line) for use in left] == [
        ("last", "latest", "main.py", 11)
    ]
    after = FILES[path].replace("self.last", "self.helper").split("\n")
    left = await uses_left(root, list(FILES), {path: before}, {path: after})
    assert [(use.path, use.line) for use in left] == [("main.py", 11)], "a namesake of a function"


async def test_a_parameter_of_the_attributes_name_is_no_use_of_it(tmp_path: Path) -> None:
    text = (
        "class Square:\n    def __init__(self, size):\n        self.size = size\n\n"
        "    def area(self):\n        return self.size * 2\n"
    )
    (tmp_path / "a.py").write_text(text)
    before, after = text.split("\n"), text.replace("self.size", "self.side").split("\n")
    assert await uses_left(tmp_path, ["a.py"], {"a.py": before}, {"a.py": after}) == ()
    after[5] = before[5]
    (left,) = await uses_left(tmp_path, ["a.py"], {"a.py": before}, {"a.py": after})
    assert left.line == 5


async def test_a_method_that_is_renamed_together_with_its_variable(tmp_path: Path) -> None:
    texts = {
        "cart.py": (
            "class Cart:\n    def total(self):\n        total = 0\n        return total\n\n"
            "    def mean(self):\n        return self.total() / 2\n"
        ),
        "test_cart.py": "from cart import Cart\n\ncart = Cart()\nassert cart.total() == 0\n",
    }
    for path, text in texts.items():
        (tmp_path / path).write_text(text)
    before = texts["cart.py"].split("\n")
    after = [*texts["cart.py"].replace("total", "amount").split("\n")[:4], *before[4:]]
    left = await uses_left(tmp_path, list(texts), {"cart.py": before}, {"cart.py": after})
    assert [(use.new, use.path, use.line, use.certain) for use in left] == [
        ("amount", "cart.py", 6, True), ("amount", "test_cart.py", 3, True),
    ]  # fmt: skip


def where(use: UseLeft) -> tuple[str, int, str]:
    return use.path, use.line, use.text


async def test_a_name_that_is_renamed_only_where_it_is_used(root: Path) -> None:
    path = "main.py"
    before = FILES[path].split("\n")

    async def left(old: str, new: str) -> list[tuple[str, int]]:
        after = FILES[path].replace(old, new).split("\n")
        found = await uses_left(root, list(FILES), {path: before}, {path: after})
        assert {(use.name, use.new) for use in found} <= {(old.split(".")[1], new.split(".")[1])}
        return [(use.path, use.line) for use in found]

    assert await left("util.helper", "util.add_one") == [
        ("main.py", 12), ("shop/__init__.py", 0), ("shop/__init__.py", 2),
        ("shop/util.py", 13), ("shop/util.py", 17),
    ]  # fmt: skip
    assert await left("cart.last", "cart.latest") == [("shop/util.py", 4)]
    assert await left("util.helper", "util.count"), "what is called so there is another thing"
    assert await left("util.helper", "util.Cart") == [], "another that there is"
    assert await left("seen.add", "seen.discard") == [], "of no file of the project"


async def test_uses_outside_of_the_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    files = {
        "src/shop/__init__.py": "",
        "src/shop/types.py": "def helper():\n    return 1\n",
        "src/shop/main.py": "from .types import helper\n\nprint(helper())\n",
        "tests/test_types.py": "from shop.types import helper\n\nassert helper() == 1\n",
        "tests/test_other.py": "def helper():\n    return 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "add", "src")
    workspace = Workspace(tmp_path / "src/shop", state=tmp_path / "state")
    assert workspace.files_outside("helper") == [
        "../../tests/test_other.py", "../../tests/test_types.py",
    ]  # fmt: skip
    assert workspace.files_outside("nowhere") == []
    before = files["src/shop/types.py"].split("\n")
    after = [before[0].replace("helper", "one"), *before[1:]]
    left = await uses_left(
        workspace.root,
        workspace.files(),
        {"types.py": before},
        {"types.py": after},
        outside=workspace.files_outside,
    )
    assert [(use.path, use.line) for use in left] == [
        ("../../tests/test_types.py", 0), ("../../tests/test_types.py", 2),
        ("main.py", 0), ("main.py", 2),
    ]  # fmt: skip


async def test_an_attribute_that_is_called_like_a_parameter(tmp_path: Path) -> None:
    before = (
        "class Box:\n    def __init__(self, size):\n        self.size = size\n\n"
        "    def area(self):\n        return self.size ** 2\n"
    )
    after = before.replace("size", "edge").replace("self.edge **", "self.size **")
    (tmp_path / "box.py").write_text(before)
    left = await uses_left(
        tmp_path, ["box.py"], {"box.py": before.split("\n")}, {"box.py": after.split("\n")}
    )
    assert [(use.name, use.new, use.line) for use in left] == [("size", "edge", 5)]


async def test_a_namesake_that_a_method_calls_of_what_it_holds_is_uncertain(tmp_path: Path) -> None:
    text = (
        "class Log:\n    def __init__(self, inner, parts):\n        self._inner = inner\n"
        "        self.parts = parts\n\n    def child(self, name):\n"
        "        for part in self.parts:\n            part.child(name)\n"
        "        return self._inner.child(name)\n\n"
        "    def alias(self, name):\n        return self._inner.child(name)\n\n\n"
        "def use(log):\n    return log.child(1)\n"
    )
    (tmp_path / "log.py").write_text(text)
    uses = await find_uses(tmp_path, ["log.py"], "child", Use("log.py", 5, 8))
    assert {use.line: use.certain for use in uses} == {
        5: True,
        7: True,
        8: False,
        11: False,
        15: True,
    }
    after = text.replace("def child", "def sub").replace("part.child", "part.sub")
    before = {"log.py": text.split("\n")}
    now = {"log.py": after.replace("log.child", "log.sub").split("\n")}
    left = await uses_left(tmp_path, ["log.py"], before, now)
    assert listed(left) == "Nothing says whether `child` means the same in log.py:9"
    now = {"log.py": after.split("\n")}
    left = await uses_left(tmp_path, ["log.py"], before, now)
    assert listed(left).startswith("`child` is still used in log.py:16. Nothing says whether")
