"""One random edit in a mechanical change of TypeScript and Go is never in a group."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from tree_sitter import Node

from midstream.code.languages import grammar_of
from midstream.code.trees import parse
from midstream.edits.groups import arrange
from midstream.edits.kinds import ChangeKind
from tests.helpers.changes import facts_between

PLACES = 200
TOKEN = re.compile(r"\"[^\"]*\"|//[^\n]*|\w+|[^\S\n]+|\n|[^\w\s]")
PUT_IN = ("!", "-", "value", "(", ")", "{", "}", ",", "\n", "0", "return ", "await ", "// ", ".x")
HEADS = {
    "a.ts": "export function f{0}(value: number, names: string[]): number {{\n",
    "a.go": "func F{0}(value int, names []string) int {{\n",
}
MECHANICAL = {
    "rename": ("old_name(value, {0}) + old_name(1, value)", "fresh(value, {0}) + fresh(1, value)"),
    "argument": ("read{0}(key(value), names)", "read{0}(key(value), names, limit)"),
    "wrap": ("read{0}(key(value)) + names[0]", "strict(read{0}(key(value))) + names[0]"),
    "literal": ("read{0}(value, true, names, true)", "read{0}(value, false, names, true)"),
    "formatting": (
        "read{0}(value,names[ {0} ])+1",
        "read{0}(\n        value, names[{0}],\n    ) + 1",
    ),
    "comment": ('read{0}("a b") // old', 'read{0}("a b") // new words'),
}


def _place(path: str, how: str, number: int) -> tuple[str, str]:
    """A function before and after the change."""
    begin = f"\n{HEADS[path].format(number)}    total = "
    brackets = "({0})" if path == "a.ts" else "{0}"
    check = brackets.format(f"value > {number}")
    end = f"\n    if {check} {{\n        return names[{number}]\n    }}\n    return total - 1\n}}\n"
    old, new = (text.format(number) for text in MECHANICAL[how])
    return begin + old + end, begin + new + end


def _mutated(text: str, chance: random.Random) -> str:
    tokens = TOKEN.findall(text)
    at, to = chance.randrange(len(tokens)), chance.randrange(len(tokens))
    how = chance.randrange(5)
    if how == 0:
        del tokens[at]
    elif how == 1:
        tokens.insert(at, chance.choice(PUT_IN))
    elif how == 2:
        tokens[at], tokens[to] = tokens[to], tokens[at]
    elif how == 3:  # a few tokens move a little
        run, tokens[at : at + 3] = tokens[at : at + 3], []
        at += chance.randint(-5, 5)
        tokens[max(0, at) : max(0, at)] = run
    else:
        tokens[at] = chance.choice((tokens[at].upper(), tokens[at] * 2, "names", "7", "<"))
    return "".join(tokens)


def _leaves(node: Node) -> Iterator[bytes | str]:
    """The tree without comments."""
    yield node.type
    parts = [child for child in node.children if not child.type.endswith("comment")]
    if not parts or "string" in node.type:
        yield node.text or b""
    for part in parts:
        yield from _leaves(part)
    yield ")"


def _tree(path: str, text: str) -> list[bytes | str]:
    language = grammar_of(path)
    assert language is not None
    root = parse(language, f"package a\n{text}" if path == "a.go" else text).root_node
    return [*_leaves(root)]


@pytest.mark.system
@pytest.mark.parametrize("how", MECHANICAL)
@pytest.mark.parametrize("path", HEADS)
def test_one_random_edit_is_never_in_a_group(path: str, how: str) -> None:
    usual = [_place(path, how, number) for number in range(PLACES)]
    package = "package a\n" if path == "a.go" else ""
    facts = [
        facts_between(f"{n}/{path}", package + old, package + new, n * 10)
        for n, (old, new) in enumerate(usual)
    ]
    for seed in range(25):
        chance = random.Random(f"{path} {how} {seed}")
        number = chance.randrange(PLACES)
        old, new = usual[number]
        bad = _mutated(new, chance)
        while _tree(path, bad) == _tree(path, new):
            bad = _mutated(new, chance)
        mine = facts_between(f"{number}/{path}", package + old, package + bad, number * 10)
        known = {(hunk.old, hunk.new) for hunk in facts[number]}
        odd = {hunk.id for hunk in mine if (hunk.old, hunk.new) not in known}
        rest = [*facts[:number], mine, *facts[number + 1 :]]
        walk = arrange([hunk for of_file in rest for hunk in of_file])
        for group in walk.groups:
            inside = odd & {*group.hunks}
            # A hunk of its own may be formatting: a blank line, say, beside what was planted.
            if group.kind is not ChangeKind.FORMATTING:
                assert not inside or odd >= {*group.hunks}, (seed, bad)
        grouped = {hunk_id for group in walk.groups for hunk_id in group.hunks}
        assert old == bad or odd - grouped or not odd, (seed, bad)
