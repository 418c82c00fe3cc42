"""Reference pages match the declarations; links in the prose lead somewhere."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import midstream
from midstream import processes
from midstream.agents import acp
from midstream.cli import COMMANDS, screen_parser
from midstream.commands import serve
from midstream.engine import bounded_prompt, chat_template, chat_template_child, model
from midstream.serving import embedded
from midstream.tui.review import screen
from midstream.workspace import repo

ROOT = Path(midstream.__file__).parents[2]
PROSE = (
    "README.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/benchmarks.md",
    "docs/compatibility.md",
    "docs/endpoints.md",
    "docs/guard.md",
    "docs/index.md",
    "docs/library.md",
    "docs/measurements.md",
    "docs/models.md",
    "docs/review.md",
    "docs/server.md",
    "docs/tour.md",
    "docs/troubleshooting.md",
    "docs/wafer.md",
)


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_make", ROOT / "docs" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_reference_page_is_stale(make: ModuleType) -> None:
    assert make.stale() == [], "run docs/make.py"


def test_each_promise_of_safety_names_code_and_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = [row.strip("|").split(" | ") for row in text.splitlines() if row.startswith("| ")]
    promises = [row for row in rows if row[0].strip() != "promise"]
    assert len(promises) > 20
    for _, code, tests in promises:
        for folder, names in (("app/midstream", code), ("tests", tests)):
            named = re.findall(r"`([\w./]+)`", names)
            assert named
            assert [name for name in named if not (ROOT / folder / name).exists()] == []


def test_the_numbers_of_the_promises_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    said = (
        f"takes {processes.CLOSE_S + processes.LEAVE_S:.0f} s at most",
        f"ended after {repo.STUCK_S:.0f} s; elsewhere after {repo.GIT_TIMEOUT_S:.0f} s",
        f"more than {repo.MAX_CONFIG >> 20} MB of configuration",
        f"{acp.BYTES_A_SECOND >> 20} MB a second and {acp.MAX_TURN_BYTES >> 20} MB a turn",
        f"of more than {acp.MAX_MESSAGE_BYTES >> 20} MB or",
        f"a line of more than {acp.MAX_LINE_BYTES >> 20} MB",
        f"chat template within {chat_template.RENDER_S:.0f} s",
        f"its tokenizer within {bounded_prompt.ENCODE_S:.0f} s",
        f"{chat_template.MAX_MEMORY / 1e9:.0f} GB of memory",
        f"{chat_template_child.MAX_LENGTH / 1e6:.0f} million characters",
        f"not loaded after {embedded._START_SECONDS} s",
        f"after {model.YIELD_SECONDS:.0f} s, the run of a prompt",
        f"after {model.READ_SECONDS / 60:.0f} minutes",
        f"a token of {serve._MIN_TOKEN_LENGTH} characters",
        f"for up to {serve.GRACE_S:.0f} s",
    )
    assert [number for number in said if number not in text] == []
    assert (acp.MAX_QUESTIONS, acp.MAX_MESSAGE_VALUES) == (100, 1_000_000)
    assert screen.FACTS_S == 1 / 4  # "four times a second at most"


@pytest.mark.parametrize("name", PROSE)
def test_links_and_named_files_exist(name: str) -> None:
    path = ROOT / name
    text = path.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in link]
    missing = [link for link in links if not (path.parent / link).exists()]
    named = re.findall(r"`((?:app|tests|docs|themes|models|screenshots)/[\w./-]+)`", text)
    created = re.findall(r"<!-- create (\S+) -->", text)
    missing += [file for file in named if not (ROOT / file).exists() and file not in created]
    assert not missing


def blocks(language: str) -> list[tuple[str, str]]:
    """The code blocks of the prose in a language, each with the page it is on."""
    fence = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [(name, one) for name in PROSE for one in fence.findall((ROOT / name).read_text())]


def commands() -> list[tuple[str, list[str]]]:
    """The commands of the prose, without ``midstream``, with the page."""
    found: list[tuple[str, list[str]]] = []
    for name, block in blocks("sh"):
        for part in re.split(r"\n| && ", block):
            words = shlex.split(re.split(r" [<>] ", part)[0], comments=True)
            program = next((word for word in words if "=" not in word), "")
            if Path(program).name == "midstream":
                found.append((name, words[words.index(program) + 1 :]))
    return found


@pytest.mark.parametrize(("name", "block"), blocks("python"))
def test_python_of_the_prose_runs(name: str, block: str) -> None:
    exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize(("name", "block"), blocks("toml"))
def test_toml_of_the_prose_is_read(name: str, block: str) -> None:
    assert tomllib.loads(block)


@pytest.mark.parametrize(("name", "words"), commands())
def test_commands_of_the_prose_are_taken(name: str, words: list[str]) -> None:
    command = next((c for c in COMMANDS if words[:1] == [c.name]), None)
    parser = screen_parser() if command is None else command.parser()
    parser.parse_args(words if command is None else words[1:])


@functools.cache
def defined(path: Path) -> set[str]:
    """Classes, their methods and functions of a module; nothing where there is no such file."""
    names: set[str] = set()
    if not path.exists():
        return names
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            inner = (n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
            names |= {node.name, *(f"{node.name}.{one.name}" for one in inner)}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
    return names


def test_the_architecture_names_what_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"`([\w/]+\.py)`\s+`([\w.]+)`", text)
    assert len(named) > 25
    missing = [
        f"{path}: {name}"
        for path, name in named
        if name not in defined(ROOT / "app" / "midstream" / path)
    ]
    assert not missing


def test_every_row_of_the_compatibility_table_names_its_test() -> None:
    text = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [row.strip("| ").split("|")[-1] for row in rows if not row.endswith("| test |")]
    clients = ROOT / "tests" / "clients"
    tests = {name for path in clients.glob("test_*.py") for name in defined(path)}
    assert len(cells) > 8
    for cell in cells:
        named = re.findall(r"`([\w./]+)`", cell)
        assert named or cell.strip() == "the same"
        for name in named:
            places = (clients / "scripts" / name, ROOT / name)
            assert name in tests or any(place.is_file() for place in places), name


def test_one_change_takes_at_most_25_calls() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert 10 < len(re.findall(r"^\| \d+ \|", text, re.MULTILINE)) <= 25


def test_the_map_of_the_parts_names_every_folder() -> None:
    """AGENTS.md has one line for every package, and none for one that is gone."""
    parts = (ROOT / "AGENTS.md").read_text("utf-8").partition("    app/midstream/\n")[2]
    named = re.findall(r"^ {6}([\w/]+)/ +\S", parts.partition("\n    themes/")[0], re.MULTILINE)
    app = ROOT / "app" / "midstream"
    packages = [file.parent.relative_to(app).as_posix() for file in app.rglob("__init__.py")]
    assert sorted(named) == sorted(set(packages) - {"."} - {p for p in packages if "project" in p})


class _Module(NamedTuple):
    """The facts of a file for the tests of names, read once: to parse all files takes seconds."""

    path: Path
    docstrings: list[tuple[int, str]]
    """The docstrings, each with the line of its owner."""
    classes: dict[str, tuple[list[str], str]]
    """Names of the bases and the text of each class of the file."""
    assigned: list[str]
    at_the_top: set[str]
    """Modules, or names in modules, that are imported at the top."""
    later: set[str]
    """Modules, or names in modules, that functions import."""


@functools.cache
def modules() -> list[_Module]:
    return [_module(file) for file in sorted((ROOT / "app" / "midstream").rglob("*.py"))]


def _module(path: Path) -> _Module:
    text = path.read_text("utf-8")
    tree, lines = ast.parse(text), text.split("\n")
    found = _Module(path, [], {}, [], _imported(tree.body), set())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
            found.classes[node.name] = bases, "\n".join(lines[node.lineno - 1 : node.end_lineno])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.assigned.extend(each.id for each in targets if isinstance(each, ast.Name))
    # Docstrings are in statements, and most nodes of a tree are parts of expressions.
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            docstring := ast.get_docstring(node)
        ):
            found.docstrings.append((getattr(node, "lineno", 1), docstring))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.later.update(_imported(node.body))
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, part, ())
    return found


def _imported(statements: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in statements:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


@functools.cache
def docstrings() -> list[tuple[str, str]]:
    """Every docstring of the application, with the file and line of its owner."""
    return [
        (f"{module.path.relative_to(ROOT)}:{line}", text)
        for module in modules()
        if "demo/project" not in module.path.as_posix()
        for line, text in sorted(module.docstrings)
    ]


def test_docstrings_are_in_one_dialect() -> None:
    """Google style, double backticks without roles, and a capital after the name of a field."""
    single = re.compile(r"(?<![`\w])`[^`\n]+`(?![`_])")
    field = re.compile(r"^ {4}\*{0,2}\w+(?: \([^)]*\))?: [a-z]+(?=[ .,;:]|$)(?!\()", re.MULTILINE)
    wrong = [place for place, text in docstrings() if single.search(text)]
    for place, text in docstrings():
        for section in re.findall(
            r"^(?:Args|Attributes|Raises):\n((?: {4}.*\n?|\n)+)", text, re.MULTILINE
        ):
            wrong += [f"{place}: {hit.strip()}" for hit in field.findall(section)]
    assert not wrong


def test_members_that_docstrings_name_exist() -> None:
    """Of ``Class.member``, where all bases of the class are in the tree."""
    classes = {name: found for module in modules() for name, found in module.classes.items()}

    def has(name: str, member: str) -> bool:
        if name not in classes:
            return name not in ("object", "Protocol", "ABC", "Generic")
        bases, text = classes[name]
        inside = re.search(rf"\b{member}\b", text) is not None
        return inside or any(has(base, member) for base in bases)

    named = re.compile(r"``(_?[A-Z]\w+)\.(\w+)(?:\(\))?``")
    wrong = [
        f"{place}: {match[1]}.{match[2]}"
        for place, text in docstrings()
        for match in named.finditer(text)
        if match[1] in classes and not has(match[1], match[2])
    ]
    assert not wrong


def test_limits_are_named_max_and_min() -> None:
    odd = re.compile(r"^_?(?:MOST|LONGEST|SHORTEST|LEAST|FEW|FEWEST|LARGEST|WIDEST)(?:_|$)")
    named = [
        f"{module.path.relative_to(ROOT)}: {name}"
        for module in modules()
        for name in module.assigned
        if odd.match(name)
    ]
    assert not named


def test_an_import_within_a_function_loads_something() -> None:
    """A module that its own module has loaded by then is imported at the top."""
    app = ROOT / "app"
    names = {".".join(m.path.relative_to(app).with_suffix("").parts): m for m in modules()}

    def loaded(name: str) -> set[str]:
        found, left = set[str](), {name}
        while left:
            news = names[left.pop()].at_the_top & names.keys() - found
            found, left = found | news, left | news
        return found

    needless = [
        f"{name}: {each}"
        for name, module in names.items()
        if module.later
        for each in sorted(module.later & loaded(name))
    ]
    assert not needless
