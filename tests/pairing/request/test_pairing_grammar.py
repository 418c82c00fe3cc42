"""The grammar of the patch tool, run by the parser whose notation it is in."""

from __future__ import annotations

import pytest

from midstream.edits.formats import format_spec
from midstream.edits.formats.v4a import V4A_GRAMMAR
from midstream.edits.reply import collect

lark = pytest.importorskip("lark", reason="lark is not installed (it is in the dev extra)")

UPDATE = "*** Begin Patch\n*** Update File: src/a.py\n"
END = "*** End Patch\n"
PATCHES = [
    f"{UPDATE}@@\n-x\n+y\n{END}",
    f"{UPDATE}@@ class Área\n@@     def f(self):\n \tkeep\n-\told\n+\tnew\f\n \n tail\n{END}",
    f"{UPDATE}-x\n+y\n@@\n-z\n*** End of File\n{END}",
    f"{UPDATE}*** Move to: src/b.py\n{END}",
    f"{UPDATE}*** Move to: b c.py\n@@\n x\n+y\n{END}".removesuffix("\n"),
    f"{UPDATE}@@\n-@@ a\n+*** End Patch\n ***\n{END}",
    f"{UPDATE}@@\n+\n-\n{END}".replace("\n", "\r\n"),
    "*** Begin Patch\n*** Add File: n/ü.txt\n+first 😀\n+\n+last\n*** Delete File: gone\n"
    f"*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Update File: c\n@@\n z\n+w\n{END}",
]
BROKEN = [
    "",
    END,
    f"*** Begin Patch\n{END}",
    f"*** Update File: a\n@@\n-x\n+y\n{END}",
    f"{UPDATE}@@\n-x\n+y\n",
    f"{UPDATE}@@\nwhat\n{END}",
    f"{UPDATE}@@ -1 +1 @@\nx\n{END}",
    f"*** Begin Patch\n*** Add File: a\n{END}",
    f"*** Begin Patch\n*** Add File: a\nplain\n{END}",
    f"*** Begin Patch\n*** Delete File: a\n-x\n{END}",
    f"{UPDATE}@@\n-x\n*** End of File\n+y\n{END}",
    f"{UPDATE}@@\n-x\n+y\n{END}and more\n",
    f"Here it is:\n{UPDATE}@@\n-x\n+y\n{END}",
]


@pytest.fixture(scope="module", params=["lalr", "earley"])
def grammar(request: pytest.FixtureRequest):
    return lark.Lark(V4A_GRAMMAR, parser=request.param)


@pytest.mark.parametrize("patch", PATCHES)
def test_what_the_grammar_lets_through_is_a_patch_to_our_parser(grammar, patch: str) -> None:
    grammar.parse(patch)
    parser = format_spec("v4a").parser()
    files, problems = collect([*parser.feed(patch), *parser.finish()])
    assert not problems
    assert len(files) == patch.count(" File: ")


@pytest.mark.parametrize("patch", BROKEN)
def test_broken_patches_are_refused(grammar, patch: str) -> None:
    with pytest.raises(lark.exceptions.LarkError):
        grammar.parse(patch)
