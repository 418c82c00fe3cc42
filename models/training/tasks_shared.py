"""What several kinds of edits need: sentences, made-up lines, blocks one level deeper."""

from __future__ import annotations

import ast
import re

from models.training.code import Code, Edit
from models.training.wordings import table

COMPARISONS, CONDITIONS, INSTANCES = map(table, ("comparison", "condition", "instance"))
WORDS = [
    "Return the sum of all values",
    "Load the settings from disk",
    "Parse one line",
    "Send the message to the server",
    "Check that the input is valid",
    "Compute the checksum of a file",
    "Build the index",
    "Open a connection and keep it alive",
    "Convert a value to a string",
    "Find the first match",
    "Close everything that is still open",
    "Write the report",
    "Collect the results of all workers",
    "Remove old entries from the cache",
    "Say hello",
    "Run the job once",
    "Read the header",
    "Split the text into words",
    "Update the counters",
    "Fetch a page by its address",
    "Sort the items by name",
    "Merge two sorted lists",
    "Wait until the queue is empty",
    "Render the template with the given context",
    "Start the timer",
    "Validate the user's name",
    "Return True if the path exists",
    "Yield pairs of keys and values",
    "Retry the request a few times",
    "Format a date for humans",
    "Compare two versions",
    "Save the state",
]

LOGGERS = [
    "logger.info",
    "logger.debug",
    "logging.info",
    "log.info",
    "log.debug",
    "logger.warning",
    "logging.debug",
    "self.log",
    "logger.error",
]


def sentence(code: Code) -> str:
    """Return a made-up sentence for a docstring, comment or message."""
    rng = code.rng
    if rng.random() < 0.5:
        text = rng.choice(WORDS)
    else:
        text = " ".join(
            rng.choice(code.names).replace("_", " ").strip() for _ in range(rng.randint(2, 5))
        )
        text = re.sub(r"\s+", " ", text).strip().capitalize() or "Do it"
    if rng.random() < 0.2:
        text += f" {rng.choice(['for', 'of', 'with', 'from'])} {rng.choice(code.names)}"
    return text + ("." if rng.random() < 0.6 else "")


def made_up_condition(code: Code, name: str) -> tuple[str, str]:
    """Return a condition on a variable, and how a person may say it (`{x}` is the variable)."""
    rng = code.rng
    if rng.random() < 0.25:
        sign, said = rng.choice(sorted(COMPARISONS.items()))
        number = rng.choice([rng.randint(1, 12), rng.randint(1, 12), rng.randint(13, 999)])
        return f"{name} {sign} {number}", f"{{x}} {rng.choice(said)} {number}"
    if rng.random() < 0.12:
        kind, said = rng.choice(sorted(INSTANCES.items()))
        return f"not isinstance({name}, {kind})", f"{{x}} {rng.choice(said)}"
    shape = rng.choice([*CONDITIONS, "{x} is None", "{x} is None", "not {x}", "not {x}"])
    return shape.format(x=name), rng.choice(CONDITIONS[shape])


def described_parameter(code: Code, name: str) -> str:
    """Return which of the parameters a name is, in words."""
    names = [a.arg for a in code.parameters()]
    place, count = names.index(name), len(names)
    nouns = ("parameter", "parameter", "argument", "param", "arg")
    if count == 1:
        words = ("only", "single", "", "first")
    elif place == count - 1:
        words = ("last", "last", "final", "second" if count == 2 else "last")
    else:
        words = (("first", "second", "third", "fourth", "fifth", "sixth")[min(place, 5)],)
    return f"{code.rng.choice(words)} {code.rng.choice(nouns)}".strip()


def insertion_place(code: Code) -> tuple[int, str]:
    """Return the offset and the indent of a random line of code that a statement may precede.

    Raises:
        ValueError: there is none.
    """
    places = [
        n
        for n in code.nodes
        if isinstance(n, ast.Assign | ast.Expr | ast.Return | ast.AugAssign | ast.If | ast.For)
        and code.own_line(n)
        and n is not code.docstring()
    ]
    if not places:
        raise ValueError("no place for a line")
    node = code.rng.choice(places)
    return code.line_start(node.lineno), code.indent_of(node)


def made_up_line(
    code: Code, source: str, target: str, task: str, values: dict[str, str]
) -> Edit | None:
    """Put one line into a body, before the edit and after it."""
    at, pad = insertion_place(code)
    before = code.splice([(at, at, f"{pad}{source}\n")])
    after = code.splice([(at, at, f"{pad}{target}\n")])
    return Edit(task, values, after, before)


def assignments(code: Code) -> list[ast.Assign]:
    """Return one-line assignments to a plain name that have their line to themselves."""
    return [
        n
        for n in code.all(ast.Assign)
        if len(n.targets) == 1
        and isinstance(n.targets[0], ast.Name)
        and n.lineno == n.end_lineno
        and code.own_line(n)
    ]


def indented(code: Code, begin: int, end: int) -> str | None:
    """Return a span of text one level deeper, None where a string or line goes on over lines."""
    block = code.text[begin:end]
    if '"""' in block or "'''" in block or "\\\n" in block:
        return None
    return "\n".join("    " + row if row.strip() else row for row in block.split("\n"))
