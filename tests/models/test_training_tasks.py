"""The example generators: both sides parse, and every example survives the codec."""

from __future__ import annotations

import ast
import random
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from models.training import corpus, instructions, tasks, templates  # noqa: E402

from midstream.engine.codec import EditCodec, EditRequest  # noqa: E402

FOLDER = next(p.parent for p in sorted((ROOT / "models").glob("*/midstream.toml")))

SNIPPETS = [
    '''    @cached
    def collect(self, items, limit=10, verbose=False):
        """Collect what is new."""
        result = []
        for item in items:
            if item.size < limit:
                print("taking %s" % item)
                result.append(item)
            assert item is not None
        self.total = len(result)
        return result
''',
    """def describe(name, count, kind=None):
    # Names may be empty.
    if kind is None:
        return "{} x {}".format(name, count)
    else:
        label = kind.title()
    unused = 3
    if count > 100:
        raise ValueError("too many")
    return label + name
""",
    """async def fetch(url: Optional[str], retries: int = 3) -> bytes:
    answer = await client.get(url, timeout=30)
    logger.info(f"fetched {url} with {retries}")
    return answer.body
""",
    """    def reset(self, owner):
        self.items.clear()
        self.count = 0
""",
    """timeout = 30
retries = 5
if timeout > 10:
    timeout = 10
""",
]
NAMES = ["limit_value", "count", "path", "file_name", "total_size", "http_client", "node", "user"]


def edits(task: str, tries: int = 40) -> list[tuple[str, tasks.Edit]]:
    found: list[tuple[str, tasks.Edit]] = []
    for seed in range(tries):
        text = textwrap.dedent(SNIPPETS[seed % len(SNIPPETS)])
        edit = tasks.attempt(task, text, NAMES, random.Random(seed))
        if edit is not None:
            found.append((edit.source or text, edit))
    return found


@pytest.mark.parametrize("task", list(tasks.SHARES))
def test_every_task_makes_edits_whose_both_sides_parse(task: str) -> None:
    found = edits(task)
    assert found, f"{task} fits none of the snippets"
    for source, edit in found:
        ast.parse(source)
        ast.parse(edit.target)
        assert edit.target != source
        assert edit.task in templates.TEMPLATES


def test_a_rename_is_the_same_program_under_another_name() -> None:
    for source, edit in edits("rename_parameter"):
        old, new = edit.values["old"], edit.values["new"]

        class Rename(ast.NodeTransformer):
            def __init__(self, old: str, new: str) -> None:
                self.old, self.new = old, new

            def visit_Name(self, node: ast.Name) -> ast.Name:
                node.id = self.new if node.id == self.old else node.id
                return node

            def visit_arg(self, node: ast.arg) -> ast.arg:
                node.arg = self.new if node.arg == self.old else node.arg
                self.generic_visit(node)
                return node

        renamed = Rename(old, new).visit(ast.parse(source))
        assert ast.dump(renamed) == ast.dump(ast.parse(edit.target))


def test_negation_of_a_condition_is_its_opposite() -> None:
    from models.training.code import Code
    from models.training.tasks_text import negated

    for text in ("x < 3", "x is None", "not x", "x", "x in y", "x and y", "x >= y"):
        code = Code(text + "\n", random.Random(0), NAMES)
        statement = code.tree.body[0]
        assert isinstance(statement, ast.Expr)
        other = negated(code, statement.value)
        assert other is not None
        for x in (None, 0, 2, 5):
            for y in ([], [2], [0, 5]):
                values = {"x": x, "y": y}
                try:
                    expected = not eval(text, {}, values)
                except TypeError:
                    continue
                assert bool(eval(other, {}, values)) == expected, (text, other, values)


def test_examples_survive_the_codec_and_kept_lines_begin_the_target() -> None:
    codec = EditCodec.load(FOLDER)
    rng = random.Random(5)
    made = [
        example
        for _ in range(6)
        for text in SNIPPETS
        for example in tasks.examples(
            text, "p", NAMES, rng, list(tasks.SHARES), held_out=False, plain=False
        )
    ]
    assert any(example.kept for example in made)
    assert any(example.region == example.target for example in made)
    for example in made:
        assert example.target.startswith(example.kept)
        request = EditRequest(example.instruction, example.region, kept=example.kept)
        _, ids = codec.encode_target(request, example.target)
        decoder = codec.encode(request).decoder
        text = "".join(decoder.feed(token) for token in ids) + decoder.finish()
        assert example.kept + text == example.target


def test_held_out_families_are_never_used_for_training() -> None:
    for task in templates.TEMPLATES:
        known = set(instructions.families(task, held_out=False))
        new = set(instructions.families(task, held_out=True))
        assert known
        assert new
        assert not known & new


def test_only_permissive_licences_pass() -> None:
    for licence in ("MIT", "BSD-3-Clause", "Apache Software License", "PSF-2.0", "ISC"):
        assert corpus.is_permissive(licence)
    for licence in ("", "GPL-3.0", "LGPL", "MPL-2.0", "BSD License / GNU General Public License"):
        assert not corpus.is_permissive(licence)


def test_snippets_come_with_their_indent_and_without_duplicates() -> None:
    source = "class A:\n    def f(self):\n        return 1\n\n\ndef f(self):\n    return 1\n"
    found = list(corpus.snippets_of(source, "p"))
    assert [snippet.kind for _, snippet in found] == ["function", "method"]
    assert found[0][0] == found[1][0]
    assert found[1][1].text.startswith("    def f")
