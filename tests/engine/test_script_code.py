"""Which characters a line of an edit script may go on with."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import midstream.edits
from midstream.engine.edit_script import ScriptGrammar, ScriptRegion
from midstream.engine.script_code import LineRules, read_prefix

REGION = """def newest(self, orders, count):
    seen = [order.total for order in orders]
    result = sorted(
        orders,
        key=lambda each: each.created,
    )
    return result[:count]
""".splitlines()


def written(script: str, instruction: str = "newest first", rows: list[str] = REGION) -> str:
    """Return as much of a script as the grammar takes, with a full stop where it may end there."""
    region = ScriptRegion.of(rows)
    grammar = ScriptGrammar(region, rules=LineRules(region.rows, instruction))
    for at, char in enumerate(script):
        state = grammar.after(char)
        if state is None:
            return script[:at]
        grammar.state = state
    return script + ("." if grammar.may_end() else "")


@pytest.mark.parametrize(
    ("script", "taken"),
    [
        pytest.param("7|    return order[:count]", "7|    return order", id="comprehension's"),
        pytest.param("7|    return max(order, count)", "7|    return max(order", id="argument"),
        pytest.param("7|    return resul", "7|    return resul", id="cut off"),
        pytest.param(
            "7|    return max(result[:count)", "7|    return max(result[:count", id="bracket"
        ),
        pytest.param("7|    return max(result", "7|    return max(result", id="open at the end"),
        pytest.param("0+|    newest.sort()", "0+|    newest.sort().", id="its own name"),
        pytest.param("0+|    first.sort()", "0+|    first", id="plain word of the request"),
    ],
)
def test_a_slip_that_can_be_seen_is_not_written(script: str, taken: str) -> None:
    assert written(script) == taken


@pytest.mark.parametrize(
    "line",
    [
        "7|    return [found.total for found in result]",
        "7|    return max(result, key=lambda found: found.total)",
        "7|    return max(found(x) for found, x in result)",
        "7|    return self.cached(limit=count)",
        "7|    return f'{count} order' + r'(' + rows('[')".replace("rows(", "str("),
        "7|    return result[:count]  # the first (of them",
        "6+|    first, other = result[:2]",
        "6+|    first = result[0]\n7|    return first",
        "6+|    for first in result:\n6+|        print(first)",
        "6+|    with open(count) as file:\n6+|        file.close()",
        "6+|    from shop import ordered\n7|    return ordered(result)",
        "1|def newest(self, orders, count, most=None):\n7|    return result[:most]",
        "1|@functools.cache\n1+|def newest(self, orders):",
        '1+|    """Return (some of the newest."""',
        "4|        order[0],",  # a row within brackets may go on anyhow
        "6+|    if not isinstance(orders, (list, tuple)):\n6+|        raise OrderError(orders)",
    ],
)
def test_what_may_be_right_is_written(line: str) -> None:
    assert written(line) == line + "."


def test_names_of_the_request_are_known() -> None:
    line = "7|    return limited(result)"
    assert written(line, "wrap it in `limited`") == line + "."
    assert written(line, "return limited(result)") == line + "."
    assert written("7|    return parse_all(result)", "use parse_all") == (
        "7|    return parse_all(result)."
    )


def test_code_of_this_project_can_be_written_as_it_is() -> None:
    """Each line of each function replaces itself."""
    refused: list[str] = []
    count = 0
    for path in Path(midstream.edits.__file__).parent.glob("*.py"):
        lines = path.read_text("utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.FunctionDef):
                continue
            region = ScriptRegion.of(lines[node.lineno - 1 : node.end_lineno])
            rules = LineRules(region.rows, "")
            for number, row in enumerate(region.rows, 1):
                grammar = ScriptGrammar(region, rules=rules)
                state = grammar.after(f"{number}|{row}")
                if state is not None:
                    grammar.state = state
                count += 1
                if state is None or not grammar.may_end():
                    refused.append(f"{path.name}:{node.lineno + number - 1}: {row}")
    assert count > 2000
    assert refused == []


def test_the_start_of_a_line() -> None:
    assert read_prefix("a = f([x").stack == "(["
    assert read_prefix("a = '(").quoted
    assert read_prefix("a = '\\'' + b").name == "b"
    assert read_prefix("for a, (b) in c").bound == {"a", "b"}
    assert read_prefix("x  # (").comment


@pytest.mark.parametrize(
    ("line", "mended"),
    [
        ("    return max(order", "s"),
        ("    return result[:coun", "t"),
        ("    return max(result[:count", "]"),
        ("    return max(result", ")"),
        ("    return resulting", None),
        ("    return max(se", None),  # `self` or `seen`
    ],
)
def test_the_rest_of_a_name_or_a_bracket_mends_a_slip(line: str, mended: str | None) -> None:
    assert LineRules(REGION, "newest first").repair(line, frozenset()) == mended
