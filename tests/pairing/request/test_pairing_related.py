"""Related code: what a place uses and what uses it, found ahead, and sent along within limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.code.outline import outline
from midstream.codebase import related
from midstream.codebase.related import FileLines, Related, RelatedCode, find_related
from midstream.pairing.request.context import LeftOut
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.workspace.files import Workspace
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo

LONG = 600.0
"""Seconds; a search that gives way to everything else takes long on a busy machine."""
SHOP = '''\
from money import Money, rounded
from outside import hidden


class Cart:
    """What is bought."""

    def __init__(self):
        self.rows = []

    def total(self):
        hidden()
        return rounded(sum(self.rows, Money(0)))
'''
MONEY = '''\
class Money:
    """An amount in cents."""

    def __init__(self, cents):
        self.cents = cents
        self.key = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


def rounded(money):
    """To whole euros."""
    return Money(money.cents // 100 * 100)


def unrelated():
    return None
'''
FILES = {
    "shop.py": SHOP,
    "money.py": MONEY,
    "till.py": "from shop import Cart\n\n\ndef pay(cart: Cart):\n    return cart.total()\n",
    "tests/test_shop.py": "from shop import Cart\n\n\ndef test_it():\n    Cart().total()\n",
    ".gitignore": "outside.py\n",
    "go/main.go": ("package main\n\nfunc main() {\n\tprice := addTax(3)\n\tprintln(price)\n}\n"),
    "go/tax.go": "package main\n\n// addTax adds.\nfunc addTax(n int) int {\n\treturn n * 2\n}\n",
}


@pytest.fixture(autouse=True)
def related_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for here, to the end."""
    monkeypatch.setattr(related, "SECONDS", LONG)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repo(tmp_path / "work", FILES)
    (root / "outside.py").write_text("def hidden():\n    return 'CANARY'\n")
    return root


@pytest.fixture
async def session(hosted: Hosted, url: str, root: Path) -> AsyncIterator[PairingSession]:
    settings = hosted.settings(url, "search-replace")
    async with await PairingSession.open(root, settings=settings, watch=False) as opened:
        yield opened


def place(workspace: Workspace, path: str, symbol: str) -> FileLines:
    text = (workspace.root / path).read_text()
    (found,) = outline(tuple(text.split("\n")), path).named(symbol)
    return FileLines(path, text, found.start, found.stop, symbol)


async def find(workspace: Workspace, path: str, symbol: str) -> Related:
    return await find_related(workspace, place(workspace, path, symbol), LONG)


def names(found: Related) -> list[str]:
    return [f"{each.path}:{each.name}" for each in found.definitions]


def uses(found: Related) -> list[str]:
    return [f"{each.path}:{each.line + 1} {each.name}" for each in found.uses]


async def test_definitions_that_are_used_and_uses(workspace: Workspace) -> None:
    found = await find(workspace, "shop.py", "Cart.total")
    assert names(found) == ["money.py:rounded", "money.py:Money"]
    assert uses(found) == ["till.py:5 pay", "tests/test_shop.py:5 test_it"], "tests come last"
    assert found.uses[0].text == "def pay(cart: Cart):\n    return cart.total()\n"
    assert '"""To whole euros."""' in found.definitions[0].text


async def test_ignored_files_and_credentials_stay_here(workspace: Workspace) -> None:
    found = await find(workspace, "shop.py", "Cart.total")
    sent = "".join(each.text for each in (*found.definitions, *found.uses))
    assert "CANARY" not in sent
    assert "ghp_" in sent
    assert "aB3dE5fG7hI9" not in sent, "credentials are masked"


async def test_links_are_not_followed(root: Path, workspace: Workspace) -> None:
    (root / "app.js").write_text("function go() {\n  return load(1)\n}\n")
    (root / "load.js").write_text("export function load(n) {\n  return n\n}\n")
    assert names(await find(workspace, "app.js", "go")) == ["load.js:load"]
    (root / "load.js").rename(root / "link-target")
    (root / "load.js").symlink_to(root / "link-target")
    assert names(await find(workspace, "app.js", "go")) == [], "a link may lead anywhere"


async def test_a_long_definition_is_told_by_its_head(root: Path, workspace: Workspace) -> None:
    body = "".join(f"        x{n} = {n}\n" for n in range(30))
    text = (
        'class Long:\n    """Has much."""\n\n    size: int = 3\n\n    @property\n'
        f'    def value(self) -> int:\n        """Say it."""\n{body}        return 1\n'
    )
    (root / "long.py").write_text(text)
    (root / "user.py").write_text(
        "from long import Long\n\n\ndef use():\n    return Long().value\n"
    )
    found = await find(workspace, "user.py", "use")
    assert [each.name for each in found.definitions] == ["Long", "Long.value"]
    assert found.definitions[0].text == (
        'class Long:\n    """Has much."""\n    size: int = 3\n    @property\n'
        "    def value(self) -> int:\n    ... (39 lines)\n"
    )


async def test_other_languages_by_their_trees(workspace: Workspace) -> None:
    pytest.importorskip("tree_sitter_go")
    found = await find(workspace, "go/main.go", "main")
    assert names(found) == ["go/tax.go:addTax"]
    found = await find(workspace, "go/tax.go", "addTax")
    assert uses(found) == ["go/main.go:4 main"]


async def test_a_search_that_takes_too_long_ends(workspace: Workspace) -> None:
    found = await find_related(workspace, place(workspace, "shop.py", "Cart.total"), 0.0)
    assert found == Related("Cart.total")


async def test_another_place_ends_the_search_for_the_first(workspace: Workspace) -> None:
    code = RelatedCode(workspace)
    first, second = place(workspace, "shop.py", "Cart.total"), place(workspace, "till.py", "pay")
    code.look(first)
    assert code.is_sought(first)
    code.look(second)
    assert not code.is_sought(first)
    assert await code.settled()
    assert code.of(first) is None
    assert (code.of(second) or Related()).symbol == "pay"
    assert not await code.settled()
    code.look(first)
    await code.close()
    assert code.of(first) is None


async def test_an_instruction_carries_what_was_found_ahead(
    session: PairingSession, hosted: Hosted
) -> None:
    turns = session.turns
    before = await turns.preview(Question("round up", path="shop.py", cursor=11))
    assert [each.name for each in before.left_out] == ["related code"]
    assert await turns.related_found()
    context = await turns.preview(Question("round up", path="shop.py", cursor=11))
    assert not context.left_out
    assert context.summary.endswith("tokens: shop.py, 2 definitions, 2 uses")
    reasons = {part.name: part.why for part in context.parts}
    assert reasons["2 definitions"] == "Cart.total uses rounded, Money"
    assert reasons["2 uses"] == "of Cart.total in till.py:5, tests/test_shop.py:5"
    hosted.say("no")
    hosted.end()
    await turns.instruct(Question("round up", path="shop.py", cursor=11))
    await turns.finished()
    (message,) = [text for role, text in hosted.messages if role == "user"]
    assert "<definitions-used>\nmoney.py:9 in rounded\ndef rounded(money):\n" in message
    assert "<places-of-use>\ntill.py:5 in pay\n" in message
    assert turns.context.parts == context.parts


async def test_an_instruction_does_not_wait_for_it(session: PairingSession, hosted: Hosted) -> None:
    hosted.say("no")
    hosted.end()
    await session.turns.instruct(Question("round up", path="shop.py", cursor=11))
    await session.turns.finished()
    (message,) = [text for role, text in hosted.messages if role == "user"]
    assert "definitions-used" not in message
    assert not session.turns.context.left_out, "nothing was looked for"


async def test_a_question_carries_it_too(session: PairingSession, hosted: Hosted) -> None:
    asked = "what does total return?"
    await session.chat.preview(Question(asked, path="shop.py", cursor=11))
    assert await session.turns.related_found()
    hosted.say("Money.")
    hosted.end()
    await session.chat.ask_question(Question(asked, path="shop.py", cursor=11))
    await session.chat.finished()
    assert "<definitions-used>" in hosted.messages[-1][1]
    assert "<places-of-use>" in hosted.messages[-1][1]


async def test_what_is_sent_anyway_is_not_sent_twice(session: PairingSession) -> None:
    await session.turns.preview(Question("as in @money.py", path="shop.py", cursor=11))
    await session.turns.related_found()
    context = await session.turns.preview(Question("as in @money.py", path="shop.py", cursor=11))
    assert [part.kind for part in context.parts] == ["file", "file", "uses"]


async def test_what_there_is_no_room_for_is_named(
    session: PairingSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from midstream.pairing.request import builder

    monkeypatch.setattr(builder, "RELATED_SHARE", 60 / 24_000)
    await session.turns.preview(Question("round up", path="shop.py", cursor=11))
    await session.turns.related_found()
    context = await session.turns.preview(Question("round up", path="shop.py", cursor=11))
    assert LeftOut("1 more definition", "related code may take 60 tokens") in context.left_out


async def test_the_setting_turns_it_off(hosted: Hosted, url: str, root: Path) -> None:
    settings = replace(hosted.settings(url, "search-replace"), related_code=False)
    async with await PairingSession.open(root, settings=settings, watch=False) as session:
        context = await session.turns.preview(Question("round up", path="shop.py", cursor=11))
        assert not context.left_out
        assert not await session.turns.related_found()


async def test_closing_a_session_ends_the_search(hosted: Hosted, url: str, root: Path) -> None:
    settings = hosted.settings(url, "search-replace")
    session = await PairingSession.open(root, settings=settings, watch=False)
    await session.turns.preview(Question("round up", path="shop.py", cursor=11))
    waiting = asyncio.create_task(session.turns.related_found())
    await session.close()
    await waiting
