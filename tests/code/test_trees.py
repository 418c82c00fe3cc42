"""Names and faults of files in the languages that tree-sitter grammars read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.code.languages import LANGUAGES, Language, grammar_of
from midstream.code.syntax import newly_broken
from midstream.code.trees import (
    MAX_DEPTH,
    MAX_LINE_LENGTH,
    MAX_SOURCE_LENGTH,
    faults,
    names,
    new_fault,
)
from tests.helpers.code_samples import SAMPLES

DEFINED = {
    "cart.js": """
        load function 1-2, save function 3-6, LIMIT assignment 7-7, MORE assignment 7-7,
        Cart class 8-13, Cart.add function 9-10, Cart.of function 11-11,
        Cart.hidden assignment 12-12, run function 14-14, fetch function 15-15,
        go function 15-15""",
    "store.ts": """
        Store class 1-6, Store.items assignment 3-3, Store.get function 4-4,
        Store.handler function 5-5, Item class 7-7, Alias class 8-8, Color class 9-9,
        NS.inner function 10-10, A class 11-11, A.g function 11-11, f function 12-12""",
    "server.go": """
        Server class 3-4, A class 7-7, B class 8-8, Limit assignment 11-11,
        Server.Start function 13-17, Map function 19-19""",
    "point.rs": """
        Point class 1-3, Point.new function 6-7, Point.fmt function 9-9,
        tests.works function 10-10, N assignment 11-11, m function 12-12, T class 13-13,
        T.a function 13-13, T.b function 13-13""",
    "Cart.java": """
        Cart class 2-10, Cart.total assignment 5-5, Cart.Cart function 6-6,
        Cart.add function 7-8, Cart.K class 9-9, Cart.K.f function 9-9, P class 11-11""",
    "add.c": """
        MAX function 2-2, N assignment 3-3, point class 4-4, node class 5-5,
        counter assignment 6-6, add function 8-12, name function 13-13""",
    "cart.cpp": """
        shop.deep.Cart class 3-11, shop.deep.Cart.Cart function 6-6,
        shop.deep.Cart.~Cart function 7-7, shop.deep.Cart.add function 8-8,
        shop.deep.Cart.operator== function 10-10, shop.deep.Cart.size function 12-12,
        shop.deep.Cart.name function 13-13, main function 15-15""",
    "shop.rb": """
        Shop class 1-15, Shop.LIMIT assignment 3-3, Shop.Cart class 4-14,
        Shop.Cart.add function 6-10, Shop.Cart.build function 11-11,
        Shop.Cart.empty function 12-12, Shop.Cart.total= function 13-13, A.B class 16-16""",
    "load.sh": """
        LIMIT assignment 2-2, X assignment 3-3, load function 4-8, save function 9-9""",
}


def language(path: str) -> Language:
    found = grammar_of(path)
    assert found is not None
    return found


@pytest.mark.parametrize("path", SAMPLES)
def test_every_definition_is_found_where_it_is(path: str) -> None:
    """Comments, attributes and what is exported around a definition belong to it."""
    found = names(language(path), SAMPLES[path].split("\n")).defined
    told = [f"{d.name} {d.kind} {d.start + 1}-{d.stop}" for d in found]
    assert told == [" ".join(each.split()) for each in DEFINED[path].split(",")]


@pytest.mark.parametrize("path", SAMPLES)
def test_code_in_order_has_no_faults(path: str) -> None:
    assert faults(language(path), SAMPLES[path]) == []


@pytest.mark.parametrize(
    ("path", "name", "lines"),
    [
        ("cart.js", "total", [4]),
        ("cart.js", "x", [3, 11]),
        ("store.ts", "b", [10]),
        ("server.go", "total", [15]),
        ("server.go", "port", [14]),
        ("point.rs", "y", [7]),
        ("Cart.java", "item", [8]),
        ("add.c", "total", [10]),
        ("cart.cpp", "item", [8]),
        ("shop.rb", "key", [7]),
        ("load.sh", "name", [6]),
    ],
)
def test_where_a_local_name_is_bound(path: str, name: str, lines: list[int]) -> None:
    local = names(language(path), SAMPLES[path].split("\n")).local
    assert local is not None
    assert [line + 1 for line in local[name]] == lines


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("a.js", "function f() {\n  return 1\n\nfunction g() {}\n", "line 4: `}` is missing"),
        ("a.ts", "interface A { x: }\n", "line 1: invalid syntax near `:`"),
        ("a.tsx", "const a = <p>\n", "line 1: "),
        ("a.go", "package a\n\nfunc f() {\n\treturn 1\n\nfunc g() {}\n", "line 6: "),
        ("a.rs", "fn f() {\n    let x = 1\n    x\n}\n", "line 2: `;` is missing"),
        ("A.java", "class A {\n  void f() { int x = 1 }\n}\n", "line 2: `;` is missing"),
        ("a.c", "int f(void) {\n  return 1\n}\n", "line 2: `;` is missing"),
        ("a.h", "class A { void f() { x = ; } };\n", "line 1: invalid syntax near `=`"),
        ("Rakefile", "task do\n  if x\n\n", "line "),
        ("a.sh", "if true; then\n  echo 1\n", "line 3: `fi` is missing"),
    ],
)
def test_a_fault_is_told_with_its_line(path: str, text: str, said: str) -> None:
    assert newly_broken(path, "", text).startswith(said)
    assert newly_broken(path, text, text) == ""


def test_only_what_a_change_breaks_is_told() -> None:
    before = "function f( { return 1; }\n\nfunction g() { return 2; }\n"
    after = before.replace("return 2;", "return 2 +;")
    fault = new_fault(language("a.js"), before, after)
    assert fault is not None
    assert fault.line == 2
    moved = f"/* Above. */\n{before}"
    assert new_fault(language("a.js"), before, moved) is None


def test_nothing_is_told_of_a_file_with_macros_that_cannot_be_read() -> None:
    before = "BEGIN_DECLS\nint f (int) THROW ATTRIBUTE (x) y;\nint g(void) { return 2; }\n"
    assert faults(language("a.c"), before)
    assert new_fault(language("a.c"), before, before.replace("2;", "2 +;")) is None
    plain = "int g(void) { return 2; }\n"
    assert new_fault(language("a.c"), plain, plain.replace("2;", "2 +;")) is not None


def test_a_file_with_faults_has_names_around_them() -> None:
    text = SAMPLES["server.go"].replace("return nil", "return (")
    found = [d.name for d in names(language("server.go"), text.split("\n")).defined]
    assert {"Server", "A", "B", "Limit", "Map"} <= set(found)


@pytest.mark.parametrize(
    "text",
    [
        "f()\n" * (MAX_SOURCE_LENGTH // 4 + 1),
        f"f('{' ' * MAX_LINE_LENGTH}'\n",
        "f(\n" * (MAX_DEPTH + 1),
    ],
    ids=["huge", "wide", "deep"],
)
def test_a_text_that_takes_long_to_read_is_left_alone(text: str) -> None:
    text = f"function f() {{ }}\n{text}"
    assert names(language("a.js"), text.split("\n")).defined == ()
    assert faults(language("a.js"), text) == []


def fits(path: str, each: Language) -> bool:
    """Whether a sample is in a language, or in one of its family."""
    return language(path).family == each.family if each.family else grammar_of(path) is each


@pytest.mark.parametrize("each", LANGUAGES, ids=lambda each: each.name)
@given(data=st.data())
def test_any_text_has_names_within_it(each: Language, data: st.DataObject) -> None:
    """Whatever is typed: nothing is raised, and every range lies in the file."""
    sample = next(text for path, text in SAMPLES.items() if fits(path, each))
    cut = data.draw(st.integers(0, len(sample)))
    gone = data.draw(st.integers(0, 40))
    put = data.draw(st.text(max_size=20) | st.sampled_from([*"{}()\"'`;\0\ud800\r", "/*"]))
    text = f"{sample[:cut]}{put}{sample[cut + gone :]}"
    lines = text.split("\n")
    found = names(each, lines)
    for definition in found.defined:
        assert 0 <= definition.start < definition.stop <= len(lines)
        assert definition.name
    assert all(0 <= start < stop <= len(lines) for start, stop in found.statements)
    assert all(0 <= row < len(lines) for rows in (found.local or {}).values() for row in rows)
    assert all(0 <= fault.line < len(lines) for fault in faults(each, text))
    assert new_fault(each, text, text) is None
    if not faults(each, sample):
        assert bool(new_fault(each, sample, text)) == bool(faults(each, text))
