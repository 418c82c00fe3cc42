"""A method for a class: the model writes only the method, and it lands in the class."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.code.outline import outline
from midstream.edits.additions import AdditionParser
from midstream.edits.documents import SourceText
from midstream.edits.events import NewText, Problem
from midstream.edits.hunk_store import HunkStore
from midstream.edits.proposal import FileProposal
from midstream.pairing.headless import Job, Outcome, run_job
from midstream.pairing.request.additions import ask_for_tests, find_addition, without_tests
from midstream.pairing.request.new_code import find_new_code
from midstream.pairing.request.question import Question
from midstream.pairing.request.target import find_target
from midstream.pairing.turn.modes import RegionMode
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.quirky import Asked, Quirky, Reply
from tests.helpers.reading import answer
from tests.pairing.turn.test_pairing_cut_answers import Quiet

METHODS = "".join(
    f"""
    def step_{number}(self, value):
        first = value + {number}
        second = first * 2
        third = second - 1
        return first + second + third
"""
    for number in range(5)
)
CLASS = f'@final\nclass Steps(Base):\n    """All steps."""\n{METHODS}'
FILE = f"import math\n\n\n{CLASS}\n\ndef other():\n    return 1\n"
PAGE = (
    textwrap.dedent("""\
    export class Page {
      constructor(rows) {
        this.rows = rows;
        this.at = 0;
        this.size = 10;
        this.name = "page";
      }
    """)
    + "".join(
        f"\n  row{number}(at) {{\n    const row = this.rows[at];\n"
        f"    const next = row + {number};\n    const last = next + 1;\n    return last;\n  }}\n"
        for number in range(5)
    )
    + "}\n"
)
NEW = "def total(self, values):\n    return sum(values)\n"
IN_CLASS = textwrap.indent(NEW, "    ")


def addition(instruction: str, text: str = FILE, path: str = "steps.py", line: int | None = None):
    source = SourceText.from_bytes(text.encode())
    target = find_target(source, instruction=instruction, cursor=line, path=path)
    return find_addition(instruction, outline(source.lines, path), target, path)


@pytest.mark.parametrize(
    "instruction",
    [
        "add a method total(self, values) to Steps that returns their sum",
        "Please add a new total method to `Steps`",
        "add a property size to Steps",
        "write a small static method in Steps that parses a number, and raises on errors",
        "add `__repr__` to Steps",
        "give Steps a class method from_text",
        "create a total(values) method in Steps",
    ],
)
def test_a_method_for_a_class_is_an_addition(instruction: str) -> None:
    found = addition(instruction.replace("total method", "`total` method"))
    assert found is not None
    target, where = found
    lines = FILE.split("\n")
    assert (target.symbol, where.margin) == ("Steps", "    ")
    last = target.start + where.line
    assert lines[last - 1] == "        return first + second + third"
    assert last == FILE[: FILE.index("\n\n\ndef other")].count("\n") + 1
    assert lines[target.start + where.first] == "    def step_0(self, value):"


@pytest.mark.parametrize(
    ("instruction", "later"),
    [
        ("add a method total to Steps and a test for it", "a test for it"),
        ("add a total() method to Steps, plus tests in test_a.py.", "tests in test_a.py"),
        ("add a method a to Steps and write unit tests", "unit tests"),
        ("add a method a to Steps and tests for it", "tests for it"),
        ("add a method a to Steps and test the others", ""),
        ("add a method a to Steps that parses a line and tests for None", ""),
        ("add a method a to Steps that reads a line and tests that it ends", ""),
        ("write a test for a and a test for b", ""),
        ("add a method run_tests to Steps that sets up and tears down", ""),
    ],
)
def test_tests_are_left_to_another_instruction(instruction: str, later: str) -> None:
    first, rest = without_tests(instruction)
    assert rest == later
    assert instruction.startswith(first)
    assert (first == instruction) is not bool(later)
    assert not later or addition(first) is not None


@pytest.mark.parametrize(
    "instruction",
    [
        "add a method total to Steps and use it in step_1",
        "add a method total to Steps, then remove step_2",
        "add a method parameter to Steps",
        "add a docstring to every method of Steps",
        "add type hints to Steps",
        "rename the method step_1 of Steps to first",
        "make Steps a dataclass",
        "in Steps, add a limit to each method",
        # What is there already is changed, not added.
        "implement the method step_2 of Steps",
        "implement `step_2` in Steps",
        "add a property decorator to step_2",
        "write a static method called step_2 in Steps",
    ],
)
def test_anything_else_rewrites_the_class(instruction: str) -> None:
    assert addition(instruction) is None


def test_the_verb_of_a_request_is_no_method_that_is_there() -> None:
    text = FILE.replace("step_1", "add")
    assert addition("add a method total to Steps", text) is not None
    assert addition("add a method add to Steps", text) is None


def test_a_short_class_and_a_class_of_fields_are_written_again() -> None:
    short = "class Cart:\n    def add(self):\n        pass\n"
    fields = "class Steps:\n" + "".join(f"    field_{n}: int = {n}\n" for n in range(40))
    assert addition("add a method total to Cart", short) is None
    assert addition("add a method total to Steps", fields) is None


def test_behind_the_method_at_the_cursor() -> None:
    line = FILE.split("\n").index("    def step_1(self, value):") + 2
    found = addition("add a method that sums a list", line=line)
    assert found is not None
    behind = found[0].start + found[1].line
    assert FILE.split("\n")[behind + 1] == "    def step_2(self, value):"


def test_bodies_are_left_out_of_what_is_shown() -> None:
    found = addition("add a method total to Steps")
    assert found is not None
    shown = found[1].outlined
    assert shown.startswith('@final\nclass Steps(Base):\n    """All steps."""\n\n    def step_0(')
    assert shown.count("        ...\n") == 5
    assert "second" not in shown
    paged = addition("add a method total to Page", PAGE, "page.js")
    assert paged is not None
    assert paged[1].outlined.startswith(PAGE[: PAGE.index("  row0(at) {\n") + 13])
    assert paged[1].outlined.count("    ...\n  }\n") == 5
    assert paged[1].outlined.endswith("}\n}\n")


def parsed(
    reply: str,
    text: str = CLASS,
    line: int = -1,
    margin: str = "    ",
    size: int = 9999,
    path: str = "steps.py",
) -> tuple[str, list[Problem]]:
    old = text.split("\n")[:-1]
    first = next(
        (n for n, each in enumerate(old) if re.match(r" +(?:def|constructor)\b", each)), None
    )
    at = len(old) if line < 0 else line
    parser = AdditionParser(old, at, margin, first=first, path=path)
    events = [e for at in range(0, len(reply), size) for e in parser.feed(reply[at : at + size])]
    events += parser.finish()
    problems = [e for e in events if isinstance(e, Problem)]
    return "".join(e.text for e in events if isinstance(e, NewText)), problems


@pytest.mark.parametrize(
    "code",
    [
        NEW,
        IN_CLASS,
        f"\n{NEW}",
        f"class Steps(Base):\n\n{IN_CLASS}",
        f"@final\nclass Steps(Base):\n{IN_CLASS}\n\n",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 9999])
def test_the_method_is_written_at_the_end_of_the_class(code: str, size: int) -> None:
    text, problems = parsed(f"Here it is:\n\n```python\n{code}```\nThat is all.\n", size=size)
    assert (text, problems) == (f"{CLASS}\n{IN_CLASS}", [])


def test_a_decorator_that_the_class_has_too_stays() -> None:
    text, _ = parsed(f"```\n@final\n{NEW}```\n")
    assert text == f"{CLASS}\n    @final\n{IN_CLASS}"


@pytest.mark.parametrize("size", [1, 9999])
@pytest.mark.parametrize("heading", ["", "class Steps(Base):\n"])
@pytest.mark.parametrize("above", ["", "# Counts.\n", "@property\n"])
def test_a_method_that_another_class_has_as_well_is_new(
    above: str, heading: str, size: int
) -> None:
    method = f"{above}def size(self):\n    # all\n    return 2\n\ndef more(self):\n    pass\n"
    inside = textwrap.indent(method, "    ")
    text = f"class Other:\n{inside}\n\n{CLASS}"
    found = addition("add a method to Steps that counts", text)
    assert found is not None
    parser = found[1].parser(CLASS.split("\n")[:-1], "steps.py")
    reply = f"```\n{heading}{inside if heading else method}```\n"
    events = [e for at in range(0, len(reply), size) for e in parser.feed(reply[at : at + size])]
    events += parser.finish()
    written = "".join(e.text for e in events if isinstance(e, NewText))
    assert written == f"{CLASS}\n{inside}"


@pytest.mark.parametrize("heading", ["", "class Steps(Base):\n"])
def test_a_decorator_of_several_lines_is_moved_along(heading: str) -> None:
    above = "@cache(\n    size=[\n        1,\n    ],\n)\n"
    indented = textwrap.indent(above, "    ") + IN_CLASS
    code = heading + (indented if heading else above + NEW)
    assert parsed(f"```\n{code}```\n") == (f"{CLASS}\n{indented}", [])


def test_the_closing_brace_stays_behind_it() -> None:
    method = "total() {\n  return this.rows.length;\n}\n"
    lines = PAGE.count("\n")
    text, _ = parsed(f"```js\n{method}```\n", PAGE, lines - 1, "  ")
    assert text == PAGE.removesuffix("}\n") + "\n" + textwrap.indent(method, "  ") + "}\n"


@pytest.mark.parametrize("code", [NEW, IN_CLASS, IN_CLASS.replace("    ", "\t")])
def test_a_class_with_tabs_gets_tabs(code: str) -> None:
    old = CLASS.replace("    ", "\t")
    text, _ = parsed(f"```\n{code}```\n", old, margin="\t")
    assert text == f"{old}\n{IN_CLASS.replace('    ', chr(9))}"


def test_within_a_class_it_stands_apart_from_the_next_method() -> None:
    text, _ = parsed(
        f"```\n{NEW}```\n", "class A:\n    def a(self): ...\n    def b(self): ...\n", 2
    )
    assert text == f"class A:\n    def a(self): ...\n\n{IN_CLASS}\n    def b(self): ...\n"


def test_a_nested_class_keeps_its_own_margin() -> None:
    nested = textwrap.indent(CLASS, "    ")
    for code in (NEW, f"class Steps(Base):\n{IN_CLASS}", textwrap.indent(NEW, "        ")):
        reply = code if code != f"class Steps(Base):\n{IN_CLASS}" else f"@final\n{code}"
        text, _ = parsed(f"```\n{reply}```\n", nested, margin="        ")
        assert text == f"{nested}\n{textwrap.indent(NEW, '        ')}"


OUTLINED = CLASS[: CLASS.index("        first")] + "        ...\n"


def test_only_the_new_methods_of_a_rewritten_class_count() -> None:
    more = "\n    @property\n    def size(self):\n        return 1\n"
    added = f"{CLASS}\n{IN_CLASS}{more}"
    for again in (OUTLINED, CLASS.replace("first * 2", "first * 3")):
        assert parsed(f"```python\n{again}\n{IN_CLASS}{more}```\nDone.\n") == (added, [])
    lines = PAGE.count("\n")
    again = "export class Page {\n  constructor(rows) {\n  }\n\n  size() {\n  }\n}\n"
    text, problems = parsed(f"```js\n{again}```\n", PAGE, lines - 1, "  ", path="page.js")
    assert (text, problems) == (PAGE.removesuffix("}\n") + "\n  size() {\n  }\n}\n", [])


def test_a_class_that_is_written_again_with_nothing_new_says_so() -> None:
    text, problems = parsed(f"```python\n{OUTLINED}```\n")
    assert text == ""
    assert any(problem.fatal for problem in problems)


def test_a_method_of_javascript_is_no_function() -> None:
    method = "async function total() {\n  return 1;\n}\n"
    text, _ = parsed(f"```js\n{method}```\n", PAGE, PAGE.count("\n") - 1, "  ", path="page.js")
    assert "\n  async total() {\n    return 1;\n  }\n}\n" in text


def test_an_answer_that_is_cut_says_so() -> None:
    text, problems = parsed(f"```python\n{NEW}")
    assert problems
    assert text == f"{CLASS}\n{IN_CLASS}"


@given(
    st.lists(
        st.sampled_from(["x = 1", "    y = 2", "", "  z", "@property", "# a", "def f(self):"])
    ),
    st.integers(1, 30),
)
def test_no_line_of_the_class_is_lost(body: list[str], size: int) -> None:
    code = "".join(f"{line}\n" for line in body)
    text, problems = parsed(f"```python\n{code}```\n", size=size)
    assert problems == []
    filled = [line.strip() for line in body if line.strip()]
    if not filled:
        assert text == ""
        return
    assert text.startswith(CLASS)
    assert [line.strip() for line in text[len(CLASS) :].split("\n") if line.strip()] == filled


async def test_lines_that_come_above_the_class_meanwhile_move_the_place_along() -> None:
    found = addition("add a method total to Steps")
    assert found is not None
    target, where = found
    proposal = FileProposal("steps.py", SourceText.from_bytes(FILE.encode()), HunkStore())
    segment = proposal.begin(target.start, target.stop)
    mode = RegionMode(
        proposal, segment, bare=False, known=frozenset(), by_chat=True, addition=where
    )
    proposal.advance(SourceText.from_bytes(f"# one\n# two\n{FILE}".encode()))
    run = await mode.dry_run(f"```python\n{NEW}```\n", Mock(), correction=False)
    new = FILE.replace(CLASS, f"{CLASS}\n{IN_CLASS}")
    assert "\n".join([*run.after["steps.py"], ""]) == f"# one\n# two\n{new}"


async def carried_out(root: Path, question: Question, code: str) -> tuple[Outcome, str]:
    """The outcome of an instruction for ``steps.py`` that code answers, and the request."""
    sent: list[Asked] = []

    def reply(asked: Asked) -> Reply:
        sent.append(asked)
        return Reply(answer("chat", f"```python\n{code}```\n"))

    (root / "steps.py").write_text(FILE)
    async with Quirky(reply).running() as url:
        endpoint = Endpoint(url, None, "m", "custom", "chat")
        job = Job(root, question, apply=True)
        outcome = await run_job(job, Quiet(), settings=Settings(), endpoint=endpoint)
    (asked,) = (str(a) for a in sent if "messages" in str(a))
    return outcome, asked


async def test_a_session_adds_what_a_chat_model_writes(tmp_path: Path) -> None:
    question = Question("add a method total(self, values) to Steps", "steps.py")
    outcome, asked = await carried_out(tmp_path, question, NEW)
    assert outcome.written
    assert (tmp_path / "steps.py").read_text() == FILE.replace(CLASS, f"{CLASS}\n{IN_CLASS}")
    assert "Answer with the new method alone" in asked


async def test_a_session_says_which_part_it_did_not_ask_for(tmp_path: Path) -> None:
    said = "add a method total(self, values) to Steps and a test for it"
    outcome, asked = await carried_out(tmp_path, Question(said, "steps.py"), NEW)
    assert (tmp_path / "steps.py").read_text() == FILE.replace(CLASS, f"{CLASS}\n{IN_CLASS}")
    assert outcome.later == (
        'Not asked for yet: a test for it. Ask for it next: "write a test for Steps.total".'
    )
    assert "to Steps\\n\\nAnswer" in asked or "to Steps\n\nAnswer" in asked


async def test_a_change_of_a_function_is_asked_for_without_its_test(tmp_path: Path) -> None:
    question = Question("make other return 2 and add a test for that", "steps.py")
    outcome, asked = await carried_out(tmp_path, question, "def other():\n    return 2\n")
    assert (tmp_path / "steps.py").read_text() == FILE.replace("return 1\n", "return 2\n")
    assert outcome.later.endswith('Ask for it next: "write a test for other".')
    assert "a test" not in asked


@pytest.mark.parametrize(
    ("tests", "asked"),
    [
        ("a test for it", "write a test for Steps.total"),
        ("two tests of the new method", "write two tests for Steps.total"),
        ("tests in test_a.py", "write tests for Steps.total in test_a.py"),
        ("a test that total returns 0 for ()", "write a test that total returns 0 for ()"),
        ("unit tests", "write unit tests for Steps.total"),
    ],
)
def test_what_is_left_becomes_an_instruction(tests: str, asked: str) -> None:
    assert ask_for_tests(tests, "Steps.total") == asked
    assert (found := find_new_code(asked)) is not None
    assert found.tests


WHOLE = FILE.replace("import math\n", '"""Steps."""\n\nLIMIT = 3\n\n\ndef first():\n    pass\n')
TOTAL = "total() {\n  return 1;\n}\n"
RUBY = "class Steps < Base\n  attr_reader :at\n" + (
    "\n  def step(at)\n    first = at\n    second = first\n    second\n  end\n" * 6 + "end\n"
)


@pytest.mark.parametrize(
    ("reply", "text", "path", "added"),
    [
        (f"class Steps:\n{IN_CLASS}", FILE, "steps.py", IN_CLASS),
        (f'class Steps(Base):\n    """All steps."""\n\n{IN_CLASS}', FILE, "steps.py", IN_CLASS),
        (f"# steps.py\nimport math\n\nclass Steps(Base):\n{IN_CLASS}", FILE, "steps.py", IN_CLASS),
        (
            f"class Steps(Base):  # all\n{IN_CLASS}",
            FILE.replace("(Base):", "(Base):  # all"),
            "steps.py",
            IN_CLASS,
        ),
        (
            f"export class Page {{\n{textwrap.indent(TOTAL, '  ')}}}\n",
            PAGE,
            "page.js",
            textwrap.indent(TOTAL, "  "),
        ),
        (
            f"class Page {{\n{textwrap.indent(TOTAL, '  ')}}}\n",
            "// Shows rows:\n" + PAGE,
            "page.js",
            textwrap.indent(TOTAL, "  "),
        ),
        ("def sum\n  1\nend\n", RUBY, "steps.rb", "  def sum\n    1\n  end\n"),
        (
            "class Steps < Base\n  def sum\n    1\n  end\nend\n",
            RUBY,
            "steps.rb",
            "  def sum\n    1\n  end\n",
        ),
        (
            f"    @property\n{IN_CLASS}",
            FILE.replace("    def step_0", "    @property\n    def step_0"),
            "steps.py",
            f"    @property\n{IN_CLASS}",
        ),
        (
            f"class Steps(Base):\n    # ... existing methods ...\n\n{IN_CLASS}",
            FILE,
            "steps.py",
            IN_CLASS,
        ),
        (f"class Steps(Base):\n    ...\n\n{IN_CLASS}", FILE, "steps.py", IN_CLASS),
        (f"# ... existing code ...\n\n{IN_CLASS}", FILE, "steps.py", IN_CLASS),
        (f"{IN_CLASS}\n    # ... existing code ...\n", FILE, "steps.py", IN_CLASS),
        (
            f"class Steps(Base):\n    # Kept.\n{IN_CLASS}",
            FILE.replace("    def step_0", "    # Kept.\n    at = 0\n\n    def step_0"),
            "steps.py",
            IN_CLASS,
        ),
        ("# Sums.\n" + IN_CLASS, FILE, "steps.py", f"    # Sums.\n{IN_CLASS}"),
        (WHOLE.replace("\n\ndef other", f"\n{IN_CLASS}\n\ndef other"), WHOLE, "steps.py", IN_CLASS),
    ],
)
def test_the_class_around_it_is_not_written_twice(
    reply: str, text: str, path: str, added: str
) -> None:
    name = "Page" if "Page" in text else "Steps"
    found = addition(f"add a method to {name}", text, path)
    assert found is not None
    target, where = found
    old = text.split("\n")[target.start : target.stop]
    parser = where.parser(old, path)
    events = parser.feed(f"```\n{reply}```\n") + parser.finish()
    assert not [event for event in events if isinstance(event, Problem)]
    new = "".join(event.text for event in events if isinstance(event, NewText))
    lines = [*old[: where.line], "", *added.split("\n")[:-1], *old[where.line :]]
    assert new.split("\n")[:-1] == lines


BOARD = "pub struct Board {\n    at: u32,\n}\n\nimpl Board {\n" + (
    "    pub fn new() -> Self {\n        Board { at: 0 }\n    }\n\n"
    "    pub fn step(&mut self) {\n        self.at += 1;\n    }\n}\n"
)
COUNT = "    pub fn count(&self) -> u32 {\n        self.at\n    }\n"
STEP = "    pub fn step(&mut self) {\n        self.at += 2;\n    }\n"
QUERY = (
    '    def query(self):\n        """Ask.\n\n        All.\n        """\n'
    '        return """\nSELECT 1\n\n  FROM a\n"""\n'
)
BARE_QUERY = textwrap.dedent(QUERY[: QUERY.index("SELECT")]) + QUERY[QUERY.index("SELECT") :]


@pytest.mark.parametrize("size", [1, 9999])
@pytest.mark.parametrize(
    ("blocks", "text", "path", "added"),
    [
        ([f"impl Board {{\n{STEP}\n{COUNT}}}\n"], BOARD, "board.rs", COUNT),
        ([f"impl Board {{\n{COUNT}\n{STEP}}}\n"], BOARD, "board.rs", COUNT),
        ([f"{STEP}\n{COUNT}"], BOARD, "board.rs", COUNT),
        ([textwrap.dedent(f"{COUNT}\n{STEP}")], BOARD, "board.rs", COUNT),
        ([COUNT, BOARD.replace("1;\n    }\n", f"1;\n    }}\n\n{COUNT}")], BOARD, "board.rs", COUNT),
        (
            [f"row2(at) {{\n  return at;\n}}\n\n// All.\n{TOTAL}"],
            PAGE,
            "page.js",
            textwrap.indent(f"// All.\n{TOTAL}", "  "),
        ),
        (
            [f"{TOTAL}\n// Again.\nconstructor(\n  rows,\n) {{\n}}\n"],
            PAGE.replace("constructor(rows) {", "constructor(\n    rows,\n  ) {"),
            "page.js",
            textwrap.indent(TOTAL, "  "),
        ),
        (
            ["  def step(at)\n    at\n  end\n\n  def sum\n    1\n  end\n"],
            RUBY,
            "steps.rb",
            "  def sum\n    1\n  end\n",
        ),
        (
            ["def sum\n  1\nend\n\ndef step(at)\n  at\nend\n"],
            RUBY,
            "steps.rb",
            "  def sum\n    1\n  end\n",
        ),
        ([f"{IN_CLASS}\n{CLASS}"], FILE, "steps.py", IN_CLASS),
        ([IN_CLASS, FILE.replace(CLASS, f"{CLASS}\n{IN_CLASS}")], FILE, "steps.py", IN_CLASS),
        ([NEW, FILE], FILE, "steps.py", IN_CLASS),
        ([QUERY], FILE, "steps.py", QUERY),
        ([f"class Steps(Base):\n{METHODS}\n{QUERY}"], FILE, "steps.py", QUERY),
        ([BARE_QUERY], FILE, "steps.py", QUERY),
        (
            ["    @step_0.setter\n    def step_0(self, value):\n        self.at = value\n"],
            FILE.replace("    def step_0(self, value)", "    @property\n    def step_0(self)"),
            "steps.py",
            "    @step_0.setter\n    def step_0(self, value):\n        self.at = value\n",
        ),
    ],
)
def test_a_method_that_the_class_has_is_left_as_it_is(
    blocks: list[str], text: str, path: str, added: str, size: int
) -> None:
    name = next(each for each in ("Page", "Board", "Steps") if each in text)
    found = addition(f"add a method to {name}", text, path)
    assert found is not None
    target, where = found
    old = text.split("\n")[target.start : target.stop]
    parser = where.parser(old, path)
    reply = "And:\n".join(f"```\n{block}```\n" for block in blocks)
    events = [e for at in range(0, len(reply), size) for e in parser.feed(reply[at : at + size])]
    events += parser.finish()
    assert not [event for event in events if isinstance(event, Problem)]
    new = "".join(event.text for event in events if isinstance(event, NewText))
    lines = [*old[: where.line], "", *added.split("\n")[:-1], *old[where.line :]]
    assert new.split("\n")[:-1] == lines


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"code": "def total(self, values):\\n    return sum(values)\\n"}\n```\n',
        "<region>def total(self, values):\n    return sum(values)</region>",
    ],
)
def test_what_surrounds_it_is_no_part_of_it(reply: str) -> None:
    rest = "    limit = 3\n"
    text, problems = parsed(reply, CLASS + rest, CLASS.count("\n"))
    assert (text, problems) == (f"{CLASS}\n{IN_CLASS}\n{rest}", [])


def test_what_is_left_out_of_the_method_is_not_passed_over() -> None:
    text, _ = parsed("```\ndef total(self):\n    # ... rest of the code\n    return 1\n```\n")
    assert "# ... rest of the code\n" in text


def test_an_answer_of_words_adds_nothing() -> None:
    text, problems = parsed("I cannot do that.\n")
    assert (text, len(problems)) == ("", 1)


def test_a_method_does_not_land_in_a_condition() -> None:
    late = "    if math:\n\n        def late(self):\n            return 1\n"
    found = addition("add a method total to Steps", FILE.replace(CLASS, CLASS + late))
    assert found is not None
    target, where = found
    assert where.margin == "    "
    assert (
        FILE.split("\n")[target.start + where.line - 1] == "        return first + second + third"
    )


def test_names_with_signs_in_ruby_are_found() -> None:
    text = RUBY.replace("def step(at)", "def empty?\n    1\n  end\n\n  def size=(at)", 1)
    assert addition("add a method full? to Steps", text, "steps.rb") is not None
    assert addition("add a method empty? to Steps", text, "steps.rb") is None
    assert addition("add a method size to Steps", text, "steps.rb") is None
    found = addition("add a method total to Steps", text, "steps.rb")
    assert found is not None
    assert text.split("\n")[found[0].start + found[1].first] == "  def empty?"


async def test_a_class_that_is_marked_gets_a_method(tmp_path: Path) -> None:
    start = FILE.split("\n").index("@final")
    lines = (start, start + CLASS.count("\n"))
    question = Question("add a method total to Steps", "steps.py", None, lines)
    await carried_out(tmp_path, question, NEW)
    assert (tmp_path / "steps.py").read_text() == FILE.replace(CLASS, f"{CLASS}\n{IN_CLASS}")
