"""The generator of edits: both sides parse, and requests say what the edits are."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from dataclasses import asdict

import pytest

from models.training import corpus, generate, instructions, tasks, wordings
from models.training import script_format as fmt
from models.training.code import Code
from models.training.duplicates import NearDuplicates, is_benchmark

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
    """    def send(self, message, options=None, extra=None):
        try:
            packet = encode(message, options)
        except ValueError:
            return None
        if options and self.sent:
            self.sent.append(packet, again=False)
        if self.kind in ("plain", "signed"):
            raise RuntimeError("the channel is closed")
        return self.channel
""",
    """def total(items):
    start = 0
    for item in items:
        start += item
    if start:
        return False
    finish(start)
    return start
""",
    """def newest(entries):
    first = entries[0]
    log(first)
    return first
""",
]
NAMES = ["limit_value", "count", "path", "file_name", "total_size", "http_client", "node", "user"]


def edits(task: str, tries: int = 60) -> list[tuple[str, tasks.Edit]]:
    found: list[tuple[str, tasks.Edit]] = []
    for seed in range(tries):
        text = textwrap.dedent(SNIPPETS[seed % len(SNIPPETS)])
        edit = tasks.attempt(task, Code(text, random.Random(seed), NAMES))
        if edit is not None:
            found.append((edit.source or text, edit))
    return found


@pytest.mark.parametrize("task", list(tasks.TASKS))
def test_every_task_makes_edits_whose_both_sides_parse(task: str) -> None:
    found = edits(task)
    assert found, f"{task} fits none of the snippets"
    for source, edit in found:
        ast.parse(source)
        ast.parse(edit.target)
        assert edit.target != source
        assert edit.task in instructions.KNOWN


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


def snippets(count: int) -> list[dict[str, str]]:
    return [{"package": "p", "text": SNIPPETS[n % len(SNIPPETS)]} for n in range(count)]


def test_rows_have_scripts_that_lead_to_another_program() -> None:
    maker = generate.Maker(NAMES, dict.fromkeys(tasks.TASKS, 1.0))
    rows = maker.rows(("1", snippets(60)))
    assert rows == maker.rows(("1", snippets(60)))
    kinds: set[str] = set()
    for region, edits in rows:
        ast.parse(region)
        for kind, asked, script in edits:
            after = fmt.apply(region, script)
            ast.parse(after)
            assert after != region
            assert asked
            assert not re.search(r"<(why|what|noun)>|\{(noun|atom|ask|one|two|name)\}", asked)
            kinds.add(kind)
    assert len(kinds) > 60


def test_an_evaluation_set_asks_in_the_words_of_its_side() -> None:
    for held_out in (False, True):
        made = generate.evaluation_set(snippets(400), held_out=held_out)
        kinds = {example.task for example in made}
        assert kinds <= {*tasks.TASKS, "beyond"}
        assert len(kinds) > 70
        for example in made:
            assert (example.target is None) == (example.task == "beyond")
            assert example.region != example.target
            assert asdict(example).keys() == {"task", "package", "instruction", "region", "target"}


def test_held_out_families_are_never_used_for_training() -> None:
    for task in tasks.TASKS:
        known = set(instructions.families(task, held_out=False))
        new = set(instructions.families(task, held_out=True))
        assert known
        assert new
        assert not known & new


def test_the_grammar_never_says_what_is_kept_for_measuring() -> None:
    assert instructions.is_held_out("delete_statement", "please eliminate the {statement}")
    assert not instructions.is_held_out("delete_statement", "remove the {statement}")
    values = {
        key: key for key in ("old", "new", "name", "value", "sig", "statement", "cond", "error")
    }
    rng = random.Random(3)
    for task in ("rename_local", "add_parameter", "delete_statement", "guard_raise", "add_first"):
        seen: set[str] = set()
        for _ in range(600):
            template = rng.choice(instructions.FREE[task])
            seen.add(instructions.expand(template, rng))
        assert len(seen) > 250
        for _ in range(300):
            text = instructions.ask(task, values, rng, held_out=False, styled=False)
            assert "{" not in text
            assert "<" not in text


def test_every_word_of_the_grammar_is_in_its_lexicon() -> None:
    for phrases in instructions.FREE.values():
        for phrase in phrases:
            assert set(re.findall(r"<([a-z]+)>", phrase)) <= instructions.WORDS.keys(), phrase
            assert phrase.count("(") == phrase.count(")")
            assert phrase.count("[") == phrase.count("]")


def test_sentences_fit_the_lexicon_and_say_what_the_edit_is_about() -> None:
    for task, phrases in instructions.SENTENCES.items():
        assert task in tasks.TASKS
        for phrase in phrases:
            assert set(re.findall(r"<([a-z]+)>", phrase)) <= instructions.WORDS.keys(), phrase
            assert phrase.count("(") == phrase.count(")"), phrase
            assert phrase.count("[") == phrase.count("]"), phrase
            operands = {name for each in instructions.KNOWN[task] for name in names_in(each)}
            operands |= {n for each in instructions.FREE.get(task, []) for n in names_in(each)}
            assert names_in(phrase) <= operands, phrase


def names_in(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


def test_a_reason_stands_beside_what_is_asked() -> None:
    rng = random.Random(2)
    values = {"name": "n", instructions.NOUN: "socket", instructions.ATOM: "send"}
    texts = [
        instructions.write("remove {name}", values, rng, styled=False, reason=1.0)
        for _ in range(400)
    ]
    assert len(set(texts)) > 300
    assert any("socket" in text for text in texts)
    assert not any(mark in text for text in texts for mark in ("{", "<", "|"))
    assert sum("emove n" in text for text in texts) > 350, "but for typing errors and haste"


def test_wordings_have_every_sort_and_no_empty_line() -> None:
    text = (wordings.TEXTS / "wordings.txt").read_text("utf-8")
    assert "\n\n" not in text
    for sort in ("known", "new", "free", "sentence", "word", "reason", "beyond", "both", "advice"):
        assert all(wordings.table(sort).values())


def test_a_seeded_bug_is_one_token_away_from_its_repair() -> None:
    for task in ("fix_boundary", "fix_sign", "fix_index"):
        for source, edit in edits(task):
            changed = [
                pair
                for pair in zip(source.split("\n"), edit.target.split("\n"), strict=True)
                if pair[0] != pair[1]
            ]
            assert len(changed) == 1
            assert edit.source is not None


def test_unsafe_lines_become_safe_ones() -> None:
    marks = {
        "secure_sql": ("execute(f", '", ('),
        "secure_shell": ("shell=True", "subprocess."),
        "secure_verify": ("verify=False", ""),
        "secure_secret": ("", 'os.environ["'),
    }
    for task, (_, after) in marks.items():
        for source, edit in edits(task):
            assert edit.values["unsafe!"] in source
            assert edit.values["unsafe!"] not in edit.target
            assert after in edit.target
            assert "shell=True" not in edit.target
            assert "verify=False" not in edit.target


def test_near_duplicates_are_found_and_others_are_not() -> None:
    held_out = SNIPPETS[0]
    known = NearDuplicates([held_out])
    assert known.has(held_out.replace("limit=10", "limit=12"))
    assert known.has("class A:\n" + held_out)
    assert not known.has(SNIPPETS[1])
    assert is_benchmark("def has_close_elements(numbers, threshold):\n    return True\n")
    assert not is_benchmark("def load_settings(path):\n    return {}\n")


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
