"""Groups hold equal changes only, and what differs from them stands in front."""

from __future__ import annotations

import ast
import math
import random
import re
from functools import cache

import pytest

from midstream.edits.groups import ReviewWalk, arrange
from midstream.edits.kinds import ChangeKind, HunkFacts
from tests.helpers.changes import facts_between, walked


def group_of(walk: ReviewWalk, hunk_id: int) -> frozenset[int]:
    return frozenset(i for group in walk.groups if hunk_id in group.hunks for i in group.hunks)


def test_a_rename_with_its_uses_is_one_decision() -> None:
    before = {
        "a.py": "def total(x):\n    return x\n",
        "b.py": "import a\n\n\ndef f():\n    return a.total(1) + a.total(2)\n",
        "c.py": "import a\n\nprint(a.total(3))\nprint(a.total(4) > 0)\n",
    }
    after = {path: text.replace("total", "amount") for path, text in before.items()}
    walk, facts = walked(before, after)
    (group,) = walk.groups
    assert group.kind is ChangeKind.RENAME
    assert group.title == "`total` → `amount`"
    assert facts[0].path == "a.py"
    assert group.hunks[0] == facts[0].id
    assert not walk.sections


def test_an_exception_to_a_rename_is_apart_and_says_what_it_does() -> None:
    before = {f"{n}.py": f"print({n}, total({n}) > 0)\n" for n in range(5)}
    after = {path: text.replace("total", "amount") for path, text in before.items()}
    after["3.py"] = after["3.py"].replace(">", ">=")
    walk, facts = walked(before, after)
    (section,) = walk.sections
    (odd,) = section.hunks
    assert facts[odd - 1].path == "3.py"
    assert section.kind is ChangeKind.EXCEPTION
    assert "as 4 others" in walk.evidence[odd][0].why
    assert "adds `=`" in walk.evidence[odd][0].why
    assert walk.order[0] == odd


def test_a_name_that_stays_is_not_the_same_as_one_replaced_everywhere() -> None:
    before = {f"{n}.py": "print(foo(foo))\n" for n in range(3)}
    after = dict.fromkeys(before, "print(bar(bar))\n") | {"1.py": "print(bar(foo))\n"}
    walk, _ = walked(before, after)
    assert [len(group.hunks) for group in walk.groups] == [2]


def test_a_name_in_a_string_is_not_the_name_in_code() -> None:
    before = {
        "a.py": "foo(1)\n",
        "b.py": "foo(2)\n",
        "c.py": "get('foo')\n",
        "d.py": "set('foo')\n",
    }
    after = {path: text.replace("foo", "bar") for path, text in before.items()}
    walk, _ = walked(before, after)
    assert sorted(group.title for group in walk.groups) == [
        "`foo` → `bar`",
        "`foo` → `bar` in strings",
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("f(shell=True)", "f(verify=True)"),
        ("shell = True", "verify = True"),
        ("{'shell': True}", "{'verify': True}"),
        ("shell(True)", "verify(True)"),
        ("f(shell=True)", "f(shell=True); g(shell=True)"),
        ("shell(a(1), True)", "verify(a(1), True)"),
        ("shell(1, True, 2)", "shell(1, 3, True, 2)"),
    ],
)
def test_a_literal_is_the_same_only_where_it_means_the_same(one: str, two: str) -> None:
    before = {"a.py": f"x = 1, {one}\n", "b.py": f"y = 2, {one}\n", "c.py": f"z = 3, {two}\n"}
    after = {path: text.replace("True", "False") for path, text in before.items()}
    walk, facts = walked(before, after)
    assert [group.hunks for group in walk.groups] == [tuple(hunk.id for hunk in facts[:2])]


@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.go"])
@pytest.mark.parametrize(
    ("old", "good", "bad"),
    [
        ("read(key(one))", "read(key(one), limit)", "read(key(one, limit))"),
        ("read(key(one, two), two)", "read(key(one, two))", "read(key(one), two)"),
        ("foo(one).bar(two)", "foo(one).bar(two, limit)", "foo(one, limit).bar(two)"),
        ("read(a, b, c, d)", "read(a, b, limit, c, d)", "read(a, limit, b, c, d)"),
        ("read(1, none, none, 2)", "read(1, limit, none, 2)", "read(1, none, limit, 2)"),
        ("copy(one, one)", "copy(one, two)", "copy(two, one)"),
        ("one = clean(one)", "two = clean(one)", "one = clean(two)"),
        ("foo(one); bar(one)", "foo(two); bar(three)", "foo(three); bar(two)"),
        ("foo(a); bar(b)", "foo(a, one); bar(b, two)", "foo(a, two); bar(b, one)"),
    ],
)
def test_the_same_edit_in_another_place_of_a_line_is_apart(
    path: str, old: str, good: str, bad: str
) -> None:
    before = {f"{n}/{path}": f"{old}\n" for n in range(4)}
    after = dict.fromkeys(before, f"{good}\n") | {f"2/{path}": f"{bad}\n"}
    walk, facts = walked(before, after)
    assert [group.hunks for group in walk.groups] == [
        tuple(hunk.id for hunk in facts if not hunk.path.startswith("2"))
    ]


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        ("a.py", 'sql = """\nfoo\n"""\n', "strings"),
        ("a.py", "f('''\n's' foo\nfoo''', 1)\n", "strings"),
        ("a.ts", "let sql = `\nfoo\n`\n", "strings"),
        ("a.go", "/*\nfoo\n*/\n", "comments"),
    ],
)
def test_a_name_in_a_text_of_several_lines_is_not_the_name_in_code(
    path: str, text: str, place: str
) -> None:
    before = {f"1/{path}": "foo(1)\n", f"2/{path}": "foo(2)\n"}
    before |= {f"{n}/{path}": text for n in (3, 4)}
    walk, _ = walked(before, {path: text.replace("foo", "bar") for path, text in before.items()})
    titles = [(group.title, len(group.hunks)) for group in walk.groups]
    assert sorted(titles) == [("`foo` → `bar`", 2), (f"`foo` → `bar` in {place}", 2)]


BLOCK = "def moved(a):\n    if a:\n        return a + 1\n    return None\n"


@pytest.mark.parametrize(
    ("slip", "says"),
    [("a < 7", "`==` → `<`"), ("a == 8", "`7` → `8,`"), ("a == b[7]", "adds `b[`")],
)
def test_a_change_beside_formatting_stands_in_front(slip: str, says: str) -> None:
    calls = [f"f({n},\n  a == {n}\n);" for n in range(9)]
    calls[2] = "`${g(\n  b\n)}`;"  # in a template, spaces may count
    old = "\n".join(calls)
    new = re.sub(r"\n\)", ",\n)", old)
    before = {"a.md": old, "a.ts": old, "b.ts": old}
    after = {"a.md": new, "a.ts": new, "b.ts": new.replace("a == 7", slip)}
    walk, facts = walked(before, after)
    by_id = {hunk.id: hunk for hunk in facts}
    section = walk.sections[0]
    assert section.kind is ChangeKind.EXCEPTION
    odd = section.hunks[0]
    assert (walk.order[0], by_id[odd].path, by_id[odd].new) == (odd, "b.ts", (f"  {slip},",))
    (why, *_) = (each.why for each in walk.evidence[odd])
    assert why == f"as 7 others of the file (formatting), and also {says}"
    assert [by_id[i].new for i in section.hunks[1:]] == [("  b,",)] * (len(section.hunks) - 1)
    # A comma alone is nothing that the lines of a text could differ from.
    assert {by_id[i].path for i in section.hunks} <= {"a.ts", "b.ts"}


def test_the_title_of_a_rename_in_code_and_comments_says_both() -> None:
    before = {f"{n}.py": f"foo(1)  # as foo\nbar({n})\n# foo\n" for n in range(2)}
    after = {path: text.replace("foo", "far") for path, text in before.items()}
    walk, _ = walked(before, after)
    titles = {group.title for group in walk.groups}
    assert titles == {"`foo` → `far` in code and comments", "`foo` → `far` in comments"}


@pytest.mark.parametrize(
    ("new", "says"),
    [("hide(false)", "`Hidden` → `false`"), ("show(true)", "`setting` → `show`")],
)
def test_another_change_of_the_same_tokens_is_an_exception(new: str, says: str) -> None:
    before = {f"{n}.rs": f"fn f() {{ a{n}.setting(Hidden); }}\n" for n in range(6)}
    after = {path: text.replace("setting(Hidden)", "hide(true)") for path, text in before.items()}
    after["3.rs"] = after["3.rs"].replace("hide(true)", new)
    walk, _ = walked(before, after)
    (section,) = walk.sections
    (odd,) = section.hunks
    assert section.kind is ChangeKind.EXCEPTION
    title = "`setting` → `hide`, `Hidden` → `true`"
    assert walk.evidence[odd][0].why == f"not as 5 others ({title}), but {says}"


def test_the_title_of_a_comma_names_its_line() -> None:
    before = {f"{n}.md": "eager: true\n" for n in range(2)}
    walk, _ = walked(before, dict.fromkeys(before, "eager: true,\n"))
    assert [group.title for group in walk.groups] == ["adds `,` in `eager: true,`"]


def test_a_block_that_moved_is_one_decision_and_takes_nothing_away() -> None:
    before = {"a.py": f"x = 1\n\n\n{BLOCK}", "b.py": "y = 2\n"}
    after = {"a.py": "x = 1\n", "b.py": f"y = 2\n\n\n{BLOCK}"}
    walk, facts = walked(before, after)
    (group,) = walk.groups
    assert group.kind is ChangeKind.MOVED
    assert set(group.hunks) == {hunk.id for hunk in facts}


def test_a_block_that_differs_in_one_character_says_so() -> None:
    body = "".join(f"    step_{n} = work({n})\n" for n in range(12))
    before = {"a.py": f"x = 1\n\n\ndef moved():\n{body}", "b.py": "y = 2\n"}
    after = {"a.py": "x = 1\n", "b.py": f"y = 2\n\n\ndef moved():\n{body.replace('(7)', '(8)')}"}
    walk, facts = walked(before, after)
    assert not walk.groups
    assert walk.sections[0].kind is ChangeKind.EXCEPTION
    assert any("work(8)" in why for hunk in facts for _, why in walk.evidence[hunk.id])


@pytest.mark.parametrize(
    ("gone", "come"),
    [
        (("@guarded\n", "def kept(a):\n    pass\n"), ("", "")),
        (("", ""), ("@guarded\n", "def kept(a):\n    pass\n")),
        (("", ""), ('text = """\n', '"""\n')),
        (('text = """\n', '"""\n'), ("", "")),
    ],
)
def test_a_block_that_is_something_else_in_its_place_has_not_moved(
    gone: tuple[str, str], come: tuple[str, str]
) -> None:
    before = {"a.py": BLOCK.join(gone) + "x = 1\n", "b.py": "".join(come) + "y = 1\n"}
    after = {"a.py": "".join(gone) + "x = 1\n", "b.py": BLOCK.join(come) + "y = 1\n"}
    walk, _ = walked(before, after)
    assert not walk.groups


def test_statements_that_change_places_within_a_file_are_no_decision_in_passing() -> None:
    lines = "first = load('one')\nsecond = load('two')\n"
    walk, _ = walked(
        {"a.py": f"{lines}start()\nrun()\nstop()\n"}, {"a.py": f"start()\nrun()\nstop()\n{lines}"}
    )
    assert not walk.groups


# One semantic edit in a mechanical change

PLACES = 500
PER_FILE = 25
MECHANICAL = ("rename", "argument", "formatting", "moved", "lines", "insert", "literal")


@cache
def _place(how: str, number: int) -> tuple[str, str]:
    """A function before and after the change."""
    rest = f"    if value > {number}:\n        return names[{number}]\n    return load(value - 1)\n"
    head = f"\n\ndef f{number}(value, names):\n"
    if how == "rename":
        line = f"    value = old_name(value, {number})\n"
        return head + line + rest, head + line.replace("old_name", "new_name") + rest
    if how == "argument":
        line = f"    value = read{number}(value)\n"
        return head + line + rest, head + line.replace("(value)", "(value, timeout=5)") + rest
    if how == "literal":
        line = f"    value = read{number}(value, cache=True)\n"
        rest = f"    trace(names)\n    names = read{number}(names, verify=True)\n{rest}"
        return head + line + rest, head + line.replace("True", "False") + rest
    if how == "formatting":
        line = f"    value = {{'n':{number},'v':value}}['v']\n"
        new = f'    value = {{"n": {number}, "v": value}}["v"]\n'
        return head + line + rest, head + new + rest
    if how == "lines":
        return (
            head + "    check(value)\n    trace(names)\n" + rest,
            head + "    trace(names)\n" + rest,
        )
    if how == "insert":
        head, call, end = (
            head + rest[: rest.index("    return load")],
            "    log(value)\n",
            "    return load(value)\n",
        )
        return head + end, head + call + end
    return head + rest, ""


@cache
def _file(how: str, number: int) -> tuple[str, str]:
    pairs = [_place(how, n) for n in range(number * PER_FILE, (number + 1) * PER_FILE)]
    old, new = "".join(old for old, _ in pairs), "".join(new for _, new in pairs)
    return (f"x = {number}\n" + old, f"x = {number}\n" + new) if how == "moved" else (old, new)


def _moved_to(number: int) -> str:
    return "".join(_place("moved", n)[0] for n in range(number * PER_FILE, (number + 1) * PER_FILE))


@cache
def _unchanged_facts(how: str, number: int) -> list[HunkFacts]:
    old, new = _file(how, number)
    facts = facts_between(f"pkg/part{number}.py", old, new, number * 1000 + 1)
    if how == "moved":
        facts += facts_between(f"new/part{number}.py", "", _moved_to(number), number * 1000 + 500)
    return facts


EDITS = (
    ("    log", "        log"),
    ("log(", "trace("),
    (">", ">="),
    ("- 1", "+ 1"),
    ("return load", "return store"),
    ("names[", "value["),
    ("    return load(value - 1)\n", ""),
    ("    if value", "    if not value"),
    ("        return names", "        names"),
    ("return names", "pass\n        return names"),
    ("(value", "(names"),
    ("def ", "async def "),
    ("value, names):", "value, names=None):"),
    ("True", "False"),
)


def plant(how: str, chance: random.Random) -> tuple[ReviewWalk, set[int], set[int]]:
    """One semantic edit in one place of a mechanical change; the walk, and the hunks with it."""
    number = chance.randrange(PLACES // PER_FILE)
    place = chance.randrange(number * PER_FILE, (number + 1) * PER_FILE)
    good = _place(how, place)[0 if how == "moved" else 1]
    while True:
        one, two = chance.choice(EDITS)
        spots = [at for at in range(len(good)) if good.startswith(one, at)]
        if not spots:
            continue
        at = chance.choice(spots)
        bad = good[:at] + two + good[at + len(one) :]
        if ast.dump(ast.parse(bad)) != ast.dump(ast.parse(good)):
            break
    facts: list[HunkFacts] = []
    odd: set[int] = set()
    for part in range(PLACES // PER_FILE):
        known = _unchanged_facts(how, part)
        if part != number:
            facts += known
            continue
        old, new = _file(how, part)
        if how == "moved":
            mine = facts_between(f"pkg/part{part}.py", old, new, part * 1000 + 1)
            mine += facts_between(
                f"new/part{part}.py", "", _moved_to(part).replace(good, bad), part * 1000 + 500
            )
        else:
            mine = facts_between(f"pkg/part{part}.py", old, new.replace(good, bad), part * 1000 + 1)
        seen = {(hunk.old, hunk.new) for hunk in known}
        lines = {line for line in set(bad.split("\n")) ^ set(good.split("\n")) if line.strip()}
        odd = {
            hunk.id
            for hunk in mine
            if (hunk.old, hunk.new) not in seen and lines & {*hunk.old, *hunk.new}
        }
        facts += mine
    return arrange(facts), odd, {hunk.id for hunk in facts}


def assert_apart(how: str, seed: int) -> None:
    walk, odd, everything = plant(how, random.Random(f"{how} {seed}"))
    assert odd, (how, seed)
    assert sorted(walk.order) == sorted(everything)  # nothing is hidden
    for hunk_id in odd:
        assert group_of(walk, hunk_id) <= odd, (how, seed)
    single = {i for section in walk.sections for i in section.hunks}
    assert odd <= single, (how, seed)


@pytest.mark.parametrize("how", MECHANICAL)
def test_one_semantic_edit_is_never_in_a_group(how: str) -> None:
    for seed in range(3):
        assert_apart(how, seed)


@pytest.mark.system
@pytest.mark.parametrize("how", MECHANICAL)
def test_two_hundred_semantic_edits_are_never_in_a_group(how: str) -> None:
    for seed in range(math.ceil(200 / len(MECHANICAL))):
        assert_apart(how, seed)


@pytest.mark.slow
@pytest.mark.parametrize("how", MECHANICAL)
def test_a_thousand_semantic_edits_are_never_in_a_group(how: str) -> None:
    for seed in range(math.ceil(1000 / len(MECHANICAL))):
        assert_apart(how, seed)
