"""What kind of change a hunk is: proven by its text, and said only where it holds."""

from __future__ import annotations

import ast
import random

import pytest

from midstream.edits.kinds import ChangeKind
from tests.helpers.changes import facts_between

SHOP = """\
import os
from decimal import (
    Decimal,
)


class Shop:
    \"\"\"A shop.\"\"\"

    def price(self, net, rate):
        # with tax
        total = {'net': net,
                 'tax': net*rate}
        if net < 0:
            raise ValueError("negative")
        return total['net']+total['tax']


def _round(x):
    return round(x, 2)
"""


def kinds(old: str, new: str, path: str = "shop.py") -> list[list[ChangeKind]]:
    return [[each.kind for each in hunk.kinds] for hunk in facts_between(path, old, new)]


def changed(old: str, new: str, path: str = "shop.py") -> list[list[ChangeKind]]:
    assert old in SHOP
    return kinds(SHOP, SHOP.replace(old, new), path)


TAX = """        total = {'net': net,
                 'tax': net*rate}"""


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (TAX, '        total = {"net": net, "tax": net * rate}', ChangeKind.FORMATTING),
        (TAX, '        total = {"net": net, "tax": net / rate}', None),
        ("total['net']+total", "(total['net'] + total", ChangeKind.EXCEPTION),  # does not parse
        ("return round(x, 2)", "return round(x, 2,)", ChangeKind.FORMATTING),
        ("return round(x, 2)", "return (round(x, 2),)", ChangeKind.EXCEPTION),
        ("# with tax", "# and tax", ChangeKind.COMMENTS),
        ("        # with tax\n", "", ChangeKind.COMMENTS),
        ("# with tax", "# type: ignore", ChangeKind.PLAIN),
        ('"""A shop."""', '"""The shop."""', ChangeKind.COMMENTS),
        ('"""A shop."""', '"""A shop.\n\n    >>> Shop()\n    """', ChangeKind.PLAIN),
        ('"negative"', '" negative"', ChangeKind.EXCEPTION),
        ("import os\n", "import os\nimport sys\n", ChangeKind.IMPORTS),
        ("    Decimal,\n", "    Context,\n    Decimal,\n", ChangeKind.IMPORTS),
        ("net, rate):", "net, rate=0):", ChangeKind.INTERFACE),
        ("def price", "def cost", ChangeKind.INTERFACE),
        ("def _round(x)", "def _round(y)", None),
        (
            '        if net < 0:\n            raise ValueError("negative")\n',
            "",
            ChangeKind.DELETION,
        ),
    ],
)
def test_the_kind_of_a_change(old: str, new: str, kind: ChangeKind | None) -> None:
    found = changed(old, new)
    assert [kinds[0] if kinds else None for kinds in found] == [kind]


def test_a_line_that_leaves_its_branch_is_no_formatting() -> None:
    old = "def f(a):\n    if a:\n        b()\n        c()\n"
    assert kinds(old, old.replace("        c()", "    c()")) == [[ChangeKind.EXCEPTION]]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("function f(a){return a}\n", "function f(a) {\n  return a\n}\n", ChangeKind.FORMATTING),
        ("let s = `a  b`\n", "let s = `a b`\n", ChangeKind.EXCEPTION),
        ("let s = 1 // one\n", "let s = 1 // first\n", ChangeKind.COMMENTS),
        ("let s = 1\n", "let s = 1 // eslint-disable-line\n", ChangeKind.PLAIN),
        ("return_\n(a)\n", "return_(a)\n", ChangeKind.FORMATTING),
        (
            "function f() {\n  return (\n  a)\n}\n",
            "function f() {\n  return\n  (a)\n}\n",
            ChangeKind.EXCEPTION,
        ),
    ],
)
def test_languages_with_a_grammar(old: str, new: str, kind: ChangeKind) -> None:
    assert kinds(old, new, "a.js")[0][0] is kind


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.go", '// int f;\nimport "C"\n', '// int f = system("x");\nimport "C"\n'),
        ("a.go", '/*\nint f;\n*/\nimport "C"\n', '/*\nint g;\n*/\nimport "C"\n'),
        ("A.java", "// one\nclass A {}\n", "// one \\u000a class B {}\nclass A {}\n"),
        ("a.c", "int a;\n// one\nint b;\n", "int a;\n// one ??/\nint b;\n"),
        ("a.ts", "// one\nlet a = 1\n", '/// <reference path="b.d.ts" />\nlet a = 1\n'),
        ("a.py", "x = 1\n", "x = 1  # midstream: ignore\n"),
        ("a.py", "x = 1\n", "x = 1  # nosemgrep\n"),
        ("A.java", "class A {}\n", "class A {} // NOSONAR\n"),
        ("a.py", "x = 1\ny = 2  # nosec\n", "x = 1  # nosec\ny = 2\n"),
        ("a.py", '"""Usage: a."""\nprint(__doc__)\n', '"""Usage: b."""\nprint(__doc__)\n'),
        ("a.sh", "if [ $a = b ]; then c; fi\n", "if [ $a=b ]; then c; fi\n"),
        ("a.sh", "[ -f a ] && b\n", "[-f a ] && b\n"),
        ("a.ts", "let a = 1\n", "// @ts-ignore\nlet a = 1\n"),
        ("a.ts", "let a = f()\n", "let a = /*#__PURE__*/ f()\n"),
        ("a.ts", "let a = 1\n", "// deno-lint-ignore no-var\nlet a = 1\n"),
        ("a.go", "var a = 1\n", "//lint:ignore U1000 kept\nvar a = 1\n"),
        ("a.go", "func ExampleF() {\n\tf()\n}\n", "func ExampleF() {\n\tf()\n\t// Output: 1\n}\n"),
        ("a.py", "# /// script\n# ///\nx = 1\n", '# /// script\n#   "evil",\n# ///\nx = 1\n'),
    ],
)
def test_a_comment_that_does_something_is_no_comment(path: str, old: str, new: str) -> None:
    if path.endswith(".go"):
        old, new = f"package a\n\n{old}", f"package a\n\n{new}"
    (found,) = kinds(old, new, path)
    assert not {ChangeKind.COMMENTS, ChangeKind.FORMATTING} & {*found}


TS = "import {\n  a,\n} from 'a'\nlet x = 1\n"
GO = 'package a\n\nimport (\n\t"fmt"\n\n\tb "x.org/b"\n)\n\nvar x = 1\n'


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.go", GO, GO.replace('\t"fmt"\n', '\t"fmt"\n\t_ "os"\n')),
        ("a.go", GO, GO.replace("x.org/b", "x.org/c")),
        ("a.ts", TS, TS.replace("a,\n", "a,\n  type B,\n")),
        ("a.ts", TS, "import c, { d as e } from 'c'; // why\n" + TS),
        ("a.ts", TS, TS + "const { p } = require('p')\n"),
        ("a.rs", "use a::{\n    b,\n};\n", "use a::{\n    b,\n    c::{D, E},\n};\n"),
        ("A.java", "import a.B;\nclass A {}\n", "import static a.C.*;\nclass A {}\n"),
        ("a.c", "int a;\n", "#include <stdio.h> /* puts */\nint a;\n"),
    ],
)
def test_imports_in_each_language(path: str, old: str, new: str) -> None:
    assert kinds(old, new, path) == [[ChangeKind.IMPORTS]]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.py", "import os\n", "import os; run()\n"),
        ("a.py", "from a import (\n    b,\n)\n", "from a import (\n    b,\n); run()\n"),
        ("a.ts", TS, "import b from 'b'; run()\n" + TS),
        ("a.ts", TS, "import('b').then(run)\n" + TS),
        ("a.ts", TS, "import.meta.hot = run\n" + TS),
        ("a.ts", TS, TS.replace("'a'\n", "'a'\nrun()\n")),
        ("a.ts", TS, TS.replace("'a'\n", "'a'; run()\n")),
        ("a.ts", TS, TS + "const p = require('p')(run())\n"),
    ],
)
def test_a_line_that_does_more_than_import(path: str, old: str, new: str) -> None:
    assert [each for each in kinds(old, new, path) if ChangeKind.IMPORTS in each] == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.ts", "router.get('/a', one)\n", "router.get('/b', one)\n"),
        ("a.ts", "  @Get('a')\n  one() {}\n", "  @Get('b')\n  one() {}\n"),
        ("a.go", '\tmux.HandleFunc("GET /a", one)\n', ""),
        ("a.go", '\tr.POST("/a", one)\n', '\tr.PUT("/a", one)\n'),
        ("a.rs", '        .route("/a", get(one))\n', '        .route("/b", get(one))\n'),
        ("A.java", '  @GetMapping("/a")\n', '  @GetMapping("/b")\n'),
        ("a.py", '    path("a/", one),\n', ""),
        ("a.ts", "export * from './a'\nlet b = 1\n", "let b = 1\n"),
        ("a.ts", "export const LIMIT = 5\nlet b = 1\n", "let b = 1\n"),
        (
            "a.ts",
            "export interface A {\n  b: string\n}\n",
            "export interface A {\n  b: number\n}\n",
        ),
        ("a.ts", "export enum A {\n  B = 1,\n}\n", "export enum A {\n  B = 2,\n}\n"),
        ("a.go", "type A interface {\n\tB() int\n}\n", "type A interface {\n\tB() error\n}\n"),
        ("a.go", "type A struct {\n\tB int\n}\n", "type A struct {\n\tB string\n}\n"),
        ("a.go", "func A(\n\tb int,\n) {\n}\n", "func A(\n\tb string,\n) {\n}\n"),
        ("requirements/base.txt", "a==1\n", "a==2\n"),
        ("api/openapi.yaml", "a: 1\n", "a: 2\n"),
        ("config/production.yml", "a: 1\n", "a: 2\n"),
    ],
)
def test_an_interface_in_each_language(path: str, old: str, new: str) -> None:
    assert kinds(old, new, path)[0][:1] == [ChangeKind.INTERFACE]


def test_the_interface_of_a_long_file() -> None:
    text = "".join(f"def f{n}(a):\n    return a\n\n\n" for n in range(1000))
    assert kinds(text, text.replace("f900(a)", "f900(a, b)")) == [[ChangeKind.INTERFACE]]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.ts", "let a = await client.get('/a')\n", "let a = await client.get('/b')\n"),
        ("a.py", 'x = Path("/a")\n', 'x = Path("/b")\n'),
        ("a.go", "type A struct {\n\tb int\n}\n", "type A struct {\n\tb string\n}\n"),
        ("app.ts", "let a = 1\n", "let a = 2\n"),
    ],
)
def test_what_no_one_else_relies_on(path: str, old: str, new: str) -> None:
    assert ChangeKind.INTERFACE not in kinds(old, new, path)[0]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.ts", "let a = user.isAdmin && b\n", "let a = b\n"),
        ("a.go", "\tok := b && user.IsAdmin()\n", "\tok := b\n"),
        ("a.py", 'ok = b and user.has_perm("c")\n', "ok = b\n"),
        ("a.ts", "let a = b ? c : d\n", "let a = c\n"),
        ("a.rs", "    let a = b()?;\n", "    let a = b().unwrap();\n"),
        ("a.go", "\tdefer file.Close()\n", ""),
        ("a_test.go", "\trequire.Equal(t, 1, a)\n", ""),
        ("a_test.go", '\tt.Fatalf("a")\n', ""),
    ],
)
def test_behaviour_that_goes_in_each_language(path: str, old: str, new: str) -> None:
    assert kinds(old, new, path)[0][0] is ChangeKind.DELETION


def test_formatting_of_a_shell_script() -> None:
    old = "if a; then\nb  c # d\nfi\n"
    assert kinds(old, old.replace("b  c", "  b c"), "a.sh") == [[ChangeKind.FORMATTING]]
    assert kinds(old, old.replace("# d", "# e f"), "a.sh") == [[ChangeKind.COMMENTS]]


@pytest.mark.parametrize("path", ["notes.md", "data.csv"])
def test_nothing_is_proven_without_a_grammar(path: str) -> None:
    assert kinds("a  b\n", "a b\n", path) == [[]]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("package-lock.json", ChangeKind.GENERATED),
        ("tests/helpers.py", ChangeKind.TESTS),
        ("pkg/a_test.go", ChangeKind.TESTS),
        ("api_pb2.py", ChangeKind.GENERATED),
        ("pyproject.toml", ChangeKind.INTERFACE),
        ("db/migrations/0001.sql", ChangeKind.INTERFACE),
        ("db/migrations/0001_first.py", ChangeKind.INTERFACE),
        ("shop/settings.py", ChangeKind.INTERFACE),
        ("setup.py", ChangeKind.INTERFACE),
    ],
)
def test_files_that_say_what_they_are(path: str, kind: ChangeKind) -> None:
    assert kind in kinds("a = 1\n", "b = 2\n", path)[0]


def test_formatting_is_never_said_of_another_program() -> None:
    """Any hunk set that is called formatting leaves the module as Python reads it."""
    chance = random.Random(4)
    rows = ["x = f(1, 2)", "if x:", "    y = (x, 3)", "    z = [x]", "w = 'a  b'", "v = x - -1"]
    called = 0
    for _ in range(300):
        lines = list(rows)
        for _ in range(chance.randint(1, 4)):
            row = chance.randrange(len(lines))
            text = lines[row]
            at = chance.randrange(len(text) + 1)
            new = chance.choice([" ", "(", ")", ",", "'", '"', "\n", "    "])
            drop = chance.randint(0, 1)
            lines[row] = text[:at] + new + text[at + drop :]
        old, new = "\n".join(rows) + "\n", "\n".join(lines) + "\n"
        facts = facts_between("a.py", old, new)
        if facts and all(hunk.is_equal for hunk in facts):
            called += 1
            assert ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    assert called >= 10
