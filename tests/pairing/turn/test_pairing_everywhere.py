"""A rename that is repeated at every use: on the screen, in plain mode and headless."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

from midstream.codebase.references import Use, find_uses, uses_left, with_name
from midstream.pairing.headless import Job, Outcome, run_job
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness
from tests.helpers.rename_oracle import Package, Symbol, used
from tests.helpers.repositories import git
from tests.helpers.stepped import SteppedModel

UTIL = (
    '__all__ = ["helper"]\n\n\ndef helper(x):\n    return x + 1\n\n\n'
    'print(f"value {helper(2)}")\n\n\ndef other():\n    return helper(3) + helper(4)\n'
)
MAIN = "import util\nfrom util import helper\n\nprint(util.helper(2), helper(3), 'helper')\n"
FILES = {"util.py": UTIL, "main.py": MAIN}


def expected(text: str) -> str:
    return text.replace("helper", "add_one").replace("'add_one'", "'helper'")


async def rename(session: PairingSession, model: SteppedModel) -> int:
    """Have the definition renamed; the id of its hunk."""
    await session.turns.instruct(Question("rename helper to add_one in helper", path="util.py"))
    model.give("def add_one(x):\n    return x + 1\n")
    model.end()
    await session.turns.finished()
    (hunk,) = session.hunks.undecided()
    return hunk.id


@pytest.mark.parametrize("accepted_first", [True, False])
async def test_every_use_gets_a_hunk_without_the_model(
    session: PairingSession, model: SteppedModel, root: Path, accepted_first: bool
) -> None:
    hunk = await rename(session, model)
    if accepted_first:
        await session.decisions.accept(hunk)
    steps: list[tuple[int, int]] = []
    files = await session.background.elsewhere(hunk, progress=lambda at, of: steps.append((at, of)))
    assert files == 2
    assert steps
    await session.background.finished()
    await session.turns.finished()
    assert len(model.requests) == 1, "the model wrote only the definition"
    for path in ("util.py", "main.py"):
        await session.decisions.accept_rest(path)
    assert (root / "util.py").read_text() == expected(UTIL)
    assert (root / "main.py").read_text() == expected(MAIN)


@pytest.mark.system
async def test_exactly_the_listed_uses_are_exchanged(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    """Also where more than the name has changed, and namesakes stand beside them."""
    (root / "own.py").write_text("def helper():\n    return 1\n\n\nprint(helper())\n")
    witness = Witness(session)
    await session.turns.instruct(
        Question("rename helper to add_one in helper, with a step", path="util.py")
    )
    model.give("def add_one(x, step=1):\n    return x + step\n")
    model.end()
    await session.turns.finished()
    ids = [hunk.id for hunk in session.hunks.undecided()]
    assert await session.decisions.accept_rest("util.py") == len(ids)
    await witness.until(lambda: "still used" in witness.notice)
    assert session.status.notices[-1].action == "hunk.elsewhere"
    before = {path: (root / path).read_text() for path in ("util.py", "main.py")}
    left = await uses_left(
        root,
        ["util.py", "main.py", "own.py"],
        {"util.py": UTIL.splitlines()},
        {"util.py": before["util.py"].splitlines()},
    )
    assert {each.new for each in left} == {"add_one"}
    assert await session.background.elsewhere(ids[0]) == 2
    await session.background.finished()
    await session.turns.finished()
    changed = {
        (hunk.path, line)
        for hunk in session.hunks.undecided()
        for line, (old, new) in enumerate(zip(hunk.old, hunk.new, strict=True), hunk.start)
        if old != new
    }
    assert changed == {(each.path, each.line) for each in left}
    for path in ("util.py", "main.py"):
        await session.decisions.accept_rest(path)
        assert (root / path).read_text() == expected(before[path])


PAD = """\
import textwrap


class Pad:
    width: int = 70

    def fill(self, text):
        line = text.strip()
        return textwrap.fill(line, width=self.width)


class Row:
    width: int = 3
"""


@pytest.mark.system
async def test_a_keyword_of_a_library_is_not_taken_for_what_was_renamed(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    (root / "pad.py").write_text(PAD)
    (root / "main.py").write_text("from pad import Pad\n\nprint(Pad().width)\n")
    await session.turns.instruct(Question("rename width to columns in Pad", path="pad.py"))
    model.give(PAD[PAD.index("class Pad") : PAD.index("\n\nclass Row")].replace("width", "columns"))
    model.end()
    await session.turns.finished()
    first, last = [hunk.id for hunk in session.hunks.undecided()]
    await session.decisions.accept(first)
    await session.decisions.accept(last)
    assert await session.background.elsewhere(last) == 1
    await session.background.finished()
    assert await session.decisions.accept_rest("main.py") == 1
    assert "Pad().columns" in (root / "main.py").read_text()
    assert await session.background.elsewhere(last) == 0
    last_word = session.status.notices[-1].text
    assert last_word.startswith("No other place was found"), "Row has its own"


async def test_uncertain_uses_are_flagged(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    cart = "class Cart:\n    def helper(self):\n        return 1\n"
    (root / "cart.py").write_text(cart)
    (root / "odd.py").write_text("def show(thing):\n    return thing.helper()\n")
    await session.turns.instruct(Question("rename helper to count in Cart.helper", path="cart.py"))
    model.give("    def count(self):\n        return 1\n")
    model.end()
    await session.turns.finished()
    (hunk,) = session.hunks.undecided()
    model.give("def show(thing):\n    return thing.count()\n")
    model.end()
    await session.background.elsewhere(hunk.id)
    await session.background.finished()
    await session.turns.finished()
    (odd,) = session.hunks.undecided("odd.py")
    assert session.turns.doubts(odd)
    assert not session.turns.doubts(session.hunks.get(hunk.id))
    assert "means the same in odd.py:2" in session.status.notices[-1].text
    assert [each.id for each in session.hunks.undecided() if session.turns.doubts(each)] == [odd.id]


async def test_the_search_can_be_stopped(session: PairingSession, model: SteppedModel) -> None:
    witness = Witness(session)
    hunk = await rename(session, model)
    began = asyncio.Event()
    searching = asyncio.create_task(
        session.background.elsewhere(hunk, progress=lambda *_: began.set())
    )
    await began.wait()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert "was stopped" in witness.notice
    assert not session.background.waiting


class Report:
    """A sink that keeps the files of the hunks."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def started(self, *_: object) -> None:
        pass

    def reading(self, progress: object) -> None: ...

    def waiting(self, sentence: str) -> None:
        pass

    def disclosed(self, sentence: str) -> None:
        pass

    def text(self, text: str) -> None:
        pass

    def file(self, path: str, base: object) -> None:
        pass

    def hunk(self, hunk: Any) -> None:
        self.paths.append(hunk.path)

    def passed(self, line: int) -> None:
        pass


@pytest.mark.system
async def test_edit_everywhere(
    root: Path, endpoint: Endpoint, model: SteppedModel, settings: Settings
) -> None:
    model.give("def add_one(x):\n    return x + 1\n")
    model.end()
    report = Report()
    job = Job(
        root, Question("rename helper to add_one in helper", "util.py"), apply=True, everywhere=True
    )
    outcome = await run_job(job, report, settings=settings, endpoint=endpoint)
    assert outcome.hunks == len(report.paths)
    assert set(report.paths) == {"util.py", "main.py"}
    assert (root / "util.py").read_text() == expected(UTIL)
    assert (root / "main.py").read_text() == expected(MAIN)


@pytest.mark.system
async def test_edit_writes_no_name_that_is_used_where_it_is_not_changed(
    root: Path, endpoint: Endpoint, model: SteppedModel, settings: Settings
) -> None:
    outcomes: list[Outcome] = []
    for unsure in (False, True):
        model.give("def add_one(x):\n    return x + 1\n")
        model.end()
        asked = Question("rename helper to add_one in helper", "util.py")
        job = Job(root, asked, apply=True, unsure=unsure)
        outcomes.append(await run_job(job, Report(), settings=settings, endpoint=endpoint))
        assert (root / "main.py").read_text() == MAIN
        if not unsure:
            assert (root / "util.py").read_text() == UTIL
    refused, outcome = outcomes
    uses = "`helper` is still used in main.py:2, main.py:4, util.py:1, util.py:8 and 1 more place"
    ways = "--everywhere changes that as well, --unsure writes it as it is"
    assert (refused.written, refused.refused, refused.left) == (False, f"{uses}; {ways}", "")
    assert (outcome.written, outcome.refused, outcome.left) == (True, "", f"{uses}.")


async def test_edit_tells_of_a_name_that_nothing_defines(
    root: Path, endpoint: Endpoint, model: SteppedModel, settings: Settings
) -> None:
    outcomes: list[Outcome] = []
    for unsure in (False, True):
        model.give("@functools.cache\ndef helper(x):\n    return x + 1\n")
        model.end()
        asked = Question("add @functools.cache to helper", "util.py")
        job = Job(root, asked, apply=True, unsure=unsure)
        outcomes.append(await run_job(job, Report(), settings=settings, endpoint=endpoint))
    flagged, outcome = outcomes
    assert not flagged.written
    assert flagged.unsure == (
        "`functools` is neither defined nor imported in util.py. Add it, or ask for that next."
    )
    assert outcome.written
    assert outcome.left == "Nothing defines `functools` (util.py, line 4)."


async def test_plain_mode_repeats_a_change(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    from midstream.plain.commands import PlainCommands
    from midstream.plain.words import understand

    said: list[str] = []
    commands = PlainCommands(session, said.append, terminal=False)
    hunk = await rename(session, model)
    number = commands.hunks.number(hunk)
    await commands.carry_out(understand(f"elsewhere {number}", lambda _: False))
    await session.background.finished()
    await session.turns.finished()
    assert {each.path for each in session.hunks.undecided()} == {"util.py", "main.py"}
    await commands.carry_out(understand("accept all", lambda _: False))
    assert (root / "main.py").read_text() == expected(MAIN)


async def misses(package: Package, symbol: Symbol) -> list[str]:
    """The files in which a rename leaves a use of a name, or breaks the syntax."""
    start = Use(symbol.path, symbol.line, symbol.column)
    uses = await find_uses(package.root, list(package.texts), symbol.name, start)
    wrong: list[str] = []
    for path, text in package.texts.items():
        mine = [use for use in uses if use.path == path]
        new = "\n".join(with_name(text.split("\n"), mine, symbol.name, "renamed_by_oracle"))
        if symbol.name in set(used(ast.parse(new))):
            wrong.append(f"{symbol.name} in {path}")
    return wrong


@pytest.mark.system
@pytest.mark.timeout(300)
async def test_no_use_is_missed_in_a_real_package(tmp_path: Path) -> None:
    package = Package.copied("markdown_it", tmp_path)
    symbols = package.symbols(10)
    assert len(symbols) == 10
    for symbol in symbols:
        assert await misses(package, symbol) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("name", "count"), [("markdown_it", 35), ("httpx", 35), ("tomlkit", 35)])
async def test_no_use_is_missed_in_three_packages(tmp_path: Path, name: str, count: int) -> None:
    package = Package.copied(name, tmp_path)
    symbols = package.symbols(count)
    assert len(symbols) >= count - 5
    wrong = [miss for symbol in symbols for miss in await misses(package, symbol)]
    assert wrong == []


@pytest.mark.system
async def test_uses_outside_of_the_folder_are_told_and_not_written(
    settings: Settings, endpoint: Endpoint, model: SteppedModel, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/util.py").write_text(UTIL)
    (tmp_path / "lib/main.py").write_text(MAIN)
    above = tmp_path / "use.py"
    above.write_text("from lib.util import helper\n\nprint(helper(1))\n")
    async with await PairingSession.open(
        tmp_path / "lib", settings=settings, endpoint=endpoint, watch=False
    ) as session:
        witness = Witness(session)
        hunk = await rename(session, model)
        assert await session.background.elsewhere(hunk) == 2
        told = "outside of this folder, in ../use.py:1, ../use.py:3."
        await witness.until(lambda: told in witness.notice)
        await session.background.finished()
        for each in session.hunks.undecided():
            assert await session.decisions.accept(each.id)
    assert "add_one" in (tmp_path / "lib/main.py").read_text()
    assert above.read_text() == "from lib.util import helper\n\nprint(helper(1))\n"


SCRIPT = "export function load(path) {\n  return path + 1\n}\n\nconsole.log(load(1))\n"
USER = "import { load } from './load.js'\n\nconsole.log(load(2), 'load')\n"


@pytest.mark.parametrize("model", [SteppedModel({"languages": "javascript"})])
async def test_another_language_is_renamed_everywhere_as_well(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    (root / "load.js").write_text(SCRIPT)
    (root / "user.js").write_text(USER)
    witness = Witness(session)
    turn = await session.turns.instruct(Question("rename load to fetchAll in load", path="load.js"))
    assert (turn.symbol, turn.start, turn.stop) == ("load", 0, 3)
    model.give("export function fetchAll(path) {\n  return path + 1\n}\n")
    model.end()
    await session.turns.finished()
    (hunk,) = session.hunks.undecided()
    assert await session.decisions.accept(hunk.id)
    await witness.until(lambda: witness.notice.startswith("`load` is still used"))
    assert witness.notice.startswith("`load` is still used in load.js:5, user.js:1, user.js:3.")
    assert await session.background.elsewhere(hunk.id) == 2
    await session.background.finished()
    await session.turns.finished()
    assert len(model.requests) == 1, "the model wrote only the definition"
    for path in ("load.js", "user.js"):
        await session.decisions.accept_rest(path)
    assert (root / "load.js").read_text() == SCRIPT.replace("load", "fetchAll")
    renamed = USER.replace("{ load }", "{ fetchAll }").replace("load(2)", "fetchAll(2)")
    assert (root / "user.js").read_text() == renamed


@pytest.mark.parametrize("model", [SteppedModel({"languages": "javascript"})])
async def test_a_write_that_breaks_another_language_is_asked_for_twice(
    session: PairingSession, model: SteppedModel, root: Path
) -> None:
    (root / "load.js").write_text(SCRIPT)
    await session.turns.instruct(Question("change it", path="load.js", cursor=1))
    model.give("export function load(path) {\n  return (path + 1\n}\n")
    model.end()
    await session.turns.finished()
    (hunk,) = session.hunks.undecided()
    assert not await session.decisions.accept(hunk.id)
    assert "load.js would not parse any more (line 2: " in "".join(
        notice.text for notice in session.status.notices
    )
    assert (root / "load.js").read_text() == SCRIPT
    assert await session.decisions.accept(hunk.id)
    assert "return (path + 1" in (root / "load.js").read_text()
