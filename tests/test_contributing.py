"""The worked examples of CONTRIBUTING.md, executed word by word.

A comment above a code block says where the block goes.  All blocks are put into one copy of the
sources, and processes of its own try the results.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import midstream
from tests.helpers.stage import CODE

pytestmark = pytest.mark.system

ROOT = Path(midstream.__file__).parents[2]
BLOCK = re.compile(
    r"<!-- (?P<how>insert into|append to|create) (?P<file>\S+)"
    r"(?: (?P<side>before|after): (?P<anchor>.+?))? -->\n"
    r"(?P<indent> *)```python\n(?P<code>.*?)\n(?P=indent)```",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with every code block of the worked examples in it."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("app", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "__snapshots__")
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    for name in ("models", "themes", "pyproject.toml"):
        (tree / name).symlink_to(ROOT / name)
    for block in BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        insert(tree, block)
    return tree


def insert(tree: Path, block: re.Match[str]) -> None:
    file = tree / block["file"]
    code = textwrap.dedent(block["code"] + "\n")
    if block["how"] == "create":
        assert not file.exists()
        file.write_text(code, "utf-8")
        return
    text = file.read_text("utf-8")
    if block["how"] == "append to":
        file.write_text(text + code, "utf-8")
        return
    lines = text.splitlines(keepends=True)
    places = [at for at, line in enumerate(lines) if line.strip().startswith(block["anchor"])]
    assert len(places) == 1, f"{block['anchor']} is not one line of {block['file']}"
    at = places[0]
    line = lines[at + 1] if block["side"] == "after" else lines[at]
    indent = line[: len(line) - len(line.lstrip())]
    lines.insert(at + (block["side"] == "after"), textwrap.indent(code, indent))
    file.write_text("".join(lines), "utf-8")


def run(tree: Path, *arguments: str) -> str:
    """Standard output of a Python with the changed sources."""
    path = os.pathsep.join([str(tree / "app"), str(tree)])
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_every_code_block_says_where_it_goes() -> None:
    examples = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Worked examples")[2]
    assert len(BLOCK.findall(examples)) == examples.count("```python")


def test_the_changed_sources_are_clean(tree: Path) -> None:
    """Formatted by hand in places, as the tables are; but no unknown name, no unused import."""
    changed = {block["file"] for block in BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text())}
    run(tree, "-m", "ruff", "check", "--no-cache", *sorted(changed))


def test_a_setting_and_a_test_of_a_session(tree: Path) -> None:
    out = run(tree, "-m", "midstream", "config", "closing")
    assert "A sentence that is added to every instruction." in out
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/pairing/turn/test_closing.py")


def test_a_theme_role_has_a_colour_in_every_theme(tree: Path) -> None:
    run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/tui/test_tui_themes.py")
    code = "from midstream.theme_files import ROLES; print([r.name for r in ROLES])"
    assert "'moved'" in run(tree, "-c", code)


def test_an_endpoint_kind_is_known_by_its_address(tree: Path) -> None:
    code = (
        "from midstream.responses.dialect import DIALECTS, kind_of\n"
        "assert kind_of('https://api.example.com/v1') == 'example'\n"
        "assert DIALECTS['example'].key_env == 'EXAMPLE_API_KEY'\n"
        "from midstream.settings.endpoints import read_profiles\n"
        "profile = read_profiles({'mine': {'kind': 'example', 'model': 'm'}}, 'c')['mine']\n"
        "assert profile.url == 'https://api.example.com/v1', profile\n"
    )
    run(tree, "-c", code)


def test_an_edit_format_is_detected_and_applied(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    code = (
        "import io, sys; sys.stdin = io.TextIOWrapper(io.BytesIO(b'Sure.\\n!swap a.py|two|2\\n'))\n"
        "from midstream.cli import main; sys.exit(main(['apply', '--root', sys.argv[1]]))"
    )
    run(tree, "-c", code, str(tmp_path))
    assert (tmp_path / "a.py").read_text() == "one\n2\n"


def test_a_guard_rule_halts(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("package a\n\nfunc f(p string) {\n\tos.Chmod(p, 0o777)\n}\n")
    code = "import sys; from midstream.cli import main; print(main(['guard', sys.argv[1]]))"
    out = run(tree, "-c", code, str(tmp_path / "a.go"))
    assert "go-chmod" in out
    assert out.rstrip().endswith("1")


SCREEN = """
import asyncio, sys
from operator import attrgetter
from pathlib import Path

from midstream.actions import ACTIONS
from midstream.pairing.session import PairingSession
from midstream.plain.commands import PlainCommands
from midstream.plain.words import help_lines, understand
from midstream.tui.pages.help import HelpScreen
from midstream.tui.pages.picker import PickerScreen
from tests.helpers.pages import answered
from tests.helpers.stage import on_stage

async def main():
    async with on_stage(Path(sys.argv[1]), size=(200, 60)) as stage:
        await answered(stage)
        await stage.press("alt+c")
        await stage.until(lambda: stage.app.clipboard == "pkg/things.py", "the name is copied")
        first, second = stage.session.hunks.undecided()
        assert stage.pane.hunk is first
        assert "alt+s shout" in stage.keys
        await stage.press("alt+s")
        await stage.until(lambda: first.new == ("    FOUND = 0",), "the key")
        assert any("FOUND = 0" in row for row in stage.rows)
        await stage.press("question_mark")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen), "help")
        await stage.pilot.pause()
        shown = "\\n".join(strip.text for strip in stage.app.screen._compositor.render_strips())
        assert "alt+s Write the hunk in capitals" in shown, shown
        await stage.press("escape", "]", "colon")
        await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "palette")
        await stage.type("in capitals")
        await stage.press("enter")
        await stage.until(lambda: any("FOUND += 1" in line for line in second.new), "palette")
        await stage.session.decisions.undo()
        said = []
        commands = PlainCommands(stage.session, said.append)
        number = commands.hunks.number(second.id)
        await commands.carry_out(understand(f"shout {number}", commands.is_file))
        assert any("FOUND += 1" in line for line in second.new)
        assert said[0].startswith(f"Hunk {number}, pkg/things.py"), said
        assert any(line.startswith("shout 3 ") and "in capitals" in line for line in help_lines())
        for name in (a.hunk.method for a in ACTIONS if a.hunk is not None and a.hunk.method):
            assert callable(attrgetter(name)(stage.session)), name

asyncio.run(main())
"""


def test_actions_are_offered_everywhere(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "things.py").write_text(CODE)
    run(tree, "-c", SCREEN, str(tmp_path))
    run(
        tree,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/tui/test_tui_keymap.py",
        "-k",
        "clash",
    )
