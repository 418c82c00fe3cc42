"""Code of a conversation becomes hunks: by its names, as a patch, as a file, or by the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.errors import UserError
from midstream.pairing.chat.code_blocks import CodeBlock, as_edits, code_blocks
from midstream.pairing.session import PairingSession
from tests.helpers.property import examples
from tests.helpers.stepped import SteppedModel

SHOP = '''\
"""A shop."""


def total(rows):
    return sum(rows)


class Cart:
    def __init__(self):
        self.rows = []

    def add(self, row):
        self.rows.append(row)


def names(rows):
    return [row.name for row in rows]
'''
FILES = {"shop.py": SHOP}


@pytest.fixture
def model() -> SteppedModel:
    return SteppedModel({"prompt": "chat", "languages": ""})


def fenced(code: str, info: str = "python") -> str:
    return f"Like this:\n\n```{info}\n{code}```\n\nDone."


@pytest.mark.parametrize(
    ("info", "path", "language"),
    [
        ("python", "", "python"),
        ("", "", ""),
        ("python shop/cart.py", "shop/cart.py", "python"),
        ("py:shop/cart.py", "shop/cart.py", "py"),
        ('python title="cart.py"', "cart.py", "python"),
        ("ts path=src/a-b.test.ts", "src/a-b.test.ts", "ts"),
        ("shop/cart.py", "shop/cart.py", ""),
        ("c++", "", "c++"),
    ],
)
def test_a_block_may_name_its_file(info: str, path: str, language: str) -> None:
    (block,) = code_blocks(fenced("x = 1\n", info))
    assert (block.path, block.text) == (path, "x = 1\n")
    assert block.language == language


@pytest.mark.parametrize("comment", ["# shop/cart.py", "// src/cart.ts", "<!-- a/b.html -->"])
def test_a_first_comment_may_name_the_file(comment: str) -> None:
    (block,) = code_blocks(fenced(f"{comment}\nx = 1\n"))
    assert block.path == comment.split()[1]
    assert block.text == "x = 1\n"


def test_what_is_run_or_printed_is_no_part_of_a_file() -> None:
    said = fenced("pip install x\n", "sh") + fenced("Traceback\n", "text") + fenced("\n", "python")
    assert code_blocks(said) == []
    assert len(code_blocks(fenced("set -e\n", "sh bin/run.sh"))) == 1


async def take(session: PairingSession, block: CodeBlock, path: str | None) -> None:
    await session.turns.propose(block, path=path)
    await session.turns.finished()
    await session.decisions.accept_all({hunk.id for hunk in session.hunks.undecided()})


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (
            "def total(rows):\n    return sum(rows) or 0\n",
            SHOP.replace("return sum(rows)\n", "return sum(rows) or 0\n"),
        ),
        (
            "class Cart:\n    def __init__(self):\n        self.rows = ()\n",
            SHOP.replace("self.rows = []", "self.rows = ()"),
        ),
        (
            "class Cart:\n    # ... other methods ...\n    def add(self, row):\n        pass\n\n"
            "    def size(self):\n        return 1\n",
            SHOP.replace(
                "        self.rows.append(row)\n",
                "        pass\n\n    def size(self):\n        return 1\n",
            ),
        ),
        (
            "class Cart:\n    limit = 3\n\n    def __init__(self):\n        pass\n\n"
            "    def add(self, row):\n        pass\n",
            SHOP.replace(
                "    def __init__(self):\n        self.rows = []",
                "    limit = 3\n\n    def __init__(self):\n        pass",
            ).replace("self.rows.append(row)", "pass"),
        ),
        (
            "# only these\ndef total(rows):\n    return 1\n\n\ndef names(rows):\n    return 2\n",
            SHOP.replace("return sum(rows)", "return 1").replace(
                "return [row.name for row in rows]", "return 2"
            ),
        ),
        (
            "def total(rows):\n    return sum(rows)\n\n\ndef fresh():\n    return 3\n",
            SHOP.replace(
                "return sum(rows)\n", "return sum(rows)\n\n\ndef fresh():\n    return 3\n"
            ),
        ),
    ],
)
async def test_definitions_replace_those_of_their_names(
    session: PairingSession, root: Path, model: SteppedModel, code: str, after: str
) -> None:
    (block,) = code_blocks(fenced(code))
    await take(session, block, "shop.py")
    assert (root / "shop.py").read_text() == after
    assert not model.requests, "no model was needed"


async def test_a_method_is_found_by_its_own_name(session: PairingSession, root: Path) -> None:
    (block,) = code_blocks(fenced("def add(self, row):\n    self.rows = [*self.rows, row]\n"))
    await take(session, block, "shop.py")
    after = SHOP.replace("self.rows.append(row)", "self.rows = [*self.rows, row]")
    assert (root / "shop.py").read_text() == after


async def test_a_patch_is_taken_as_it_is(session: PairingSession, root: Path) -> None:
    patch = (
        "--- a/shop.py\n+++ b/shop.py\n@@ -4,2 +4,2 @@\n def total(rows):\n"
        "-    return sum(rows)\n+    return 0\n"
    )
    (block,) = code_blocks(fenced(patch, "diff"))
    assert block.is_patch
    await take(session, block, None)
    assert (root / "shop.py").read_text() == SHOP.replace("return sum(rows)\n", "return 0\n")


@pytest.mark.parametrize(
    "patch",
    [
        "shop.py\n<<<<<<< SEARCH\n    return sum(rows)\n=======\n    return 0\n>>>>>>> REPLACE\n",
        "*** Begin Patch\n*** Update File: shop.py\n@@\n-    return sum(rows)\n+    return 0\n"
        "*** End Patch\n",
    ],
)
async def test_a_patch_without_a_fence_is_taken_too(
    session: PairingSession, root: Path, patch: str
) -> None:
    (block,) = code_blocks(f"I would write:\n\n{patch}\nThat is all.\n")
    await session.turns.propose(block, path="shop.py")
    await session.turns.finished()
    (hunk,) = session.hunks.undecided()
    assert (hunk.old, hunk.new) == (("    return sum(rows)",), ("    return 0",))
    assert (root / "shop.py").read_text() == SHOP


async def test_a_new_file(session: PairingSession, root: Path) -> None:
    (block,) = code_blocks(fenced("def new():\n    return 1\n", "python pkg/new.py"))
    await take(session, block, "shop.py")
    assert (root / "pkg/new.py").read_text() == "def new():\n    return 1\n"
    assert (root / "shop.py").read_text() == SHOP


async def test_the_model_is_asked_where_code_goes_that_does_not_say(
    session: PairingSession, model: SteppedModel
) -> None:
    (block,) = code_blocks(fenced("rows = [row for row in rows if row]\n"))
    model.give(
        "shop.py\n<<<<<<< SEARCH\n    return sum(rows)\n=======\n"
        "    rows = [row for row in rows if row]\n    return sum(rows)\n>>>>>>> REPLACE\n"
    )
    model.end()
    await session.turns.propose(block, path="shop.py")
    await session.turns.finished()
    (request,) = model.requests
    assert "rows = [row for row in rows if row]" in request.messages[-1].text
    assert len(session.hunks) == 1
    assert session.turns[-1].instruction.startswith("put in the code")


async def test_a_class_without_some_of_its_methods_loses_none(
    session: PairingSession, model: SteppedModel
) -> None:
    code = "class Cart:\n    limit = 3\n\n    def add(self, row):\n        pass\n"
    (block,) = code_blocks(fenced(code))
    assert as_edits(block, SHOP.splitlines(), "shop.py") is None, "the model has to be asked"


async def test_code_outside_of_the_folder_is_refused(
    session: PairingSession, root: Path, model: SteppedModel
) -> None:
    with pytest.raises(UserError):
        await session.turns.propose(CodeBlock("python", "../out.py", "x = 1\n"), path="shop.py")
    assert not (root.parent / "out.py").exists()
    assert not model.requests


async def test_what_is_there_already_is_told(session: PairingSession) -> None:
    with pytest.raises(UserError, match="already"):
        await session.turns.propose(CodeBlock("python", "", SHOP), path="shop.py")


@examples(150)
@given(st.text(alphabet="`~ \n#/abc.py=<>-+", max_size=200))
def test_any_answer_is_read(said: str) -> None:
    for block in code_blocks(said):
        assert block.text.strip()
        as_edits(block, SHOP.splitlines(), "shop.py")
