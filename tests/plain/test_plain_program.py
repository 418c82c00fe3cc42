"""The linear mode as a program: through a pipe and on a pseudo-terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.bench.terminal import TerminalProgram
from tests.helpers.key_server import KeyServer
from tests.helpers.repositories import git
from tests.helpers.waiting import PATIENCE_S

pytestmark = pytest.mark.system

CODE = (
    "def count(items):\n    total = 0\n    for item in items:\n"
    "        total += item\n    return total\n\n\n"
    "def other(things):\n    return things\n"
)
DONE = CODE.replace("total", "found")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "things.py").write_text(CODE)
    edit = [["total", "found"]]
    script = [{"match": "slow", "edit": edit, "rate": 4}, {"match": "", "edit": edit, "rate": 900}]
    (tmp_path / "script.json").write_text(json.dumps(script))
    return tmp_path


def command(folder: Path) -> list[str]:
    script = str(folder / "script.json")
    return [sys.executable, "-m", "midstream", "project", "--plain", "--replay", script]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MIDSTREAM_STATE_DIR": str(folder / "state")}


def run_with(
    folder: Path, words: list[str], *lines: str, at: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder, or in one below it, with some lines as its input."""
    return subprocess.run(
        words,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=folder / at,
        env=environment(folder),
        timeout=PATIENCE_S,
        check=False,
    )


def piped(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    return run_with(folder, command(folder), *lines)


def test_a_repository_that_cannot_be_read_is_told(folder: Path) -> None:
    git(folder / "project", "init", "-q")
    (folder / "project" / ".git" / "HEAD").write_text("nonsense\n")
    run = piped(folder, "commit", "hunks", "quit")
    assert f"The git repository in {folder / 'project'} cannot be read" in run.stdout


def test_the_name_of_a_file_is_one_line(folder: Path) -> None:
    (folder / "project" / "a\nb.py").touch()
    assert "\na\\nb.py\n" in piped(folder, "files", "quit").stdout


def test_what_was_accepted_is_committed(folder: Path) -> None:
    project = folder / "project"
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "First")
    run = piped(folder, "commit", "rename total in count", "accept 1", "commit", "quit")
    assert "Nothing that was accepted is left to commit." in run.stdout + run.stderr
    assert "on main: Rename total in count" in run.stdout, run.stdout + run.stderr
    assert "+    found = 0" in git(project, "show")
    assert git(project, "status", "--porcelain") == ""
    run = piped(
        folder, 'commit "More"', "rename total in count", "accept all", 'commit "More"', "quit"
    )
    assert git(project, "log", "-1", "--format=%s").strip() == "More", run.stdout + run.stderr


def test_a_script_through_a_pipe(folder: Path) -> None:
    run = piped(folder, "rename total in count", "hunks", "diff", "accept 1", "reject 2 no", "quit")
    path = folder / "project" / "things.py"
    out = run.stdout
    assert run.returncode == 0, out + run.stderr
    assert "\x1b" not in out
    assert "\r" not in out
    assert path.read_text() == CODE.replace("total = 0", "found = 0")
    assert out.index("Working on things.py, count, lines 1 to 5.") < out.index("Hunk 1, things.py")
    assert "-     total = 0\n+     found = 0\n" in out
    assert "--- a/things.py\n+++ b/things.py\n@@ -1," in out
    assert "Accepted 1; 1 hunk to decide." in out
    assert out.index("things.py is written.") < out.index("Rejected 2; 0 hunks to decide.")


def test_a_file_whose_name_is_not_utf_8_is_changed(folder: Path) -> None:
    name = b"th\xefngs.py"
    (folder / "project/things.py").rename(folder / "project" / os.fsdecode(name))
    done = subprocess.run(
        command(folder),
        input=b"open %b\nrename total to found\naccept all\n" % name,
        capture_output=True,
        cwd=folder,
        env={**environment(folder), "PYTHONIOENCODING": "utf-8:strict"},
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stdout
    assert (folder / "project" / os.fsdecode(name)).read_text() == DONE


def test_a_line_feed_in_a_name_begins_no_line(folder: Path) -> None:
    name = "a\nHunk 9.py"
    (folder / "project/things.py").rename(folder / "project" / name)
    words = [word if word != "project" else f"project/{name}" for word in command(folder)]
    done = run_with(folder, words, "rename total in count", "accept all")
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("The next instruction is about", "Working on", "Accepted 1, 2; 0 hunks to"):
        assert f"\n{line}" in done.stdout
    assert "\n" r"a\nHunk 9.py is written." in done.stdout
    assert "\nHunk 9" not in done.stdout


def test_the_answer_is_awaited_and_one_undo_takes_all_back(folder: Path) -> None:
    path = folder / "project" / "things.py"
    run = piped(folder, "rename total in count", "accept all")
    assert run.returncode == 0, run.stdout + run.stderr
    assert path.read_text() == DONE
    path.write_text(CODE)
    run = piped(folder, "rename total in count", "accept 1-2", "undo", "show 2")
    assert path.read_text() == CODE
    assert "Hunk 2, things.py line 4, 2 out, 2 in, to decide:" in run.stdout
    assert (
        "2 hunks undecided in things.py; `midstream project --resume` brings them back."
        in run.stdout
    )
    run = piped(folder, "rename total in count", "accept 1")
    assert "1 hunk accepted and written to things.py. The files are in" in run.stdout
    assert (
        "1 hunk undecided in things.py; `midstream project --resume` brings it back." in run.stdout
    )


def test_lines_of_a_hunk_are_decided_by_their_numbers(folder: Path) -> None:
    accept = ["accept 2:1-9", "accept 2:3"]
    run = piped(folder, "rename total in count", "show 2", *accept, "hunks")
    out = run.stdout
    assert run.returncode == 1  # for the lines that are not there
    assert "1 -         total += item\n2 -     return total\n" in out
    assert "3 +         found += item\n4 +     return found\n" in out
    assert "Hunk 2 has lines 1 to 4; show 2 numbers them." in out
    assert "Accepted line 3 of hunk 2; 3 hunks to decide." in out
    text = (folder / "project" / "things.py").read_text()
    old = "        total += item\n"
    assert text == CODE.replace(old, old + old.replace("total", "found"))


def test_new_lines_are_typed_and_a_dot_ends_them(folder: Path) -> None:
    accept = ["accept 1"] * 2  # a line with a dot is no Python: asked once more
    run = piped(folder, "rename total in count", "edit 1", "    # hunks", "", "..", ".", *accept)
    assert "would not parse any more" in run.stdout
    assert "Type the new lines of hunk 1, then a single dot" in run.stdout
    assert "+     # hunks\n+ \n+ .\n" in run.stdout
    text = (folder / "project" / "things.py").read_text()
    assert text == CODE.replace("    total = 0\n", "    # hunks\n\n.\n")


def test_at_a_terminal_a_hunk_is_edited_in_the_editor(folder: Path) -> None:
    editor = folder / "editor"
    code = (
        "import sys, pathlib\n"
        "answer = input('EDITOR ASKS ')\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('found = 0', f'found = {answer}'))\n"
    )
    editor.write_text(f"#!{sys.executable}\n{code}")
    editor.chmod(0o755)
    variables = {**environment(folder), "VISUAL": str(editor)}
    with TerminalProgram(
        command(folder), size=(80, 24), environment=variables, folder=folder
    ) as program:
        program.wait_for("Ready: ", PATIENCE_S)
        program.write("rename of total in count\n")
        program.wait_for("to decide.", PATIENCE_S)
        program.write("edit 1\n")
        program.wait_for("EDITOR ASKS", PATIENCE_S)
        program.write("7\n")
        program.wait_for("+     found = 7", PATIENCE_S)
        program.write("accept 1\n")
        program.wait_for("Accepted 1", PATIENCE_S)
        program.write("quit\n")
        program.wait_for("quit again", PATIENCE_S)  # One hunk is undecided.
        program.write("quit\n")
        assert program.exit_code(PATIENCE_S) == 0
    assert "found = 7" in (folder / "project" / "things.py").read_text()


def test_what_cannot_be_done_is_said_and_counts(folder: Path) -> None:
    run = piped(folder, "accept 7", "open nowhere.py", "show things.py:8-9", "undo")
    assert run.returncode == 1
    assert "There is no hunk 7; hunks lists the undecided ones." in run.stdout
    assert "nowhere.py" in run.stdout
    assert "8  def other(things):\n9      return things\n" in run.stdout
    assert "Nothing to undo." in run.stdout


def test_a_question_is_answered_with_a_number(folder: Path) -> None:
    twice = "class A:\n    def run(self):\n        total = 1\n        return total\n\n\n"
    (folder / "project" / "things.py").write_text(twice + twice.replace("A", "B"))
    run = piped(folder, "open things.py", "rename total in run", "2", "accept all")
    assert "2  B.run" in run.stdout, run.stdout
    text = (folder / "project" / "things.py").read_text()
    assert text == twice + twice.replace("A", "B").replace("total", "found")


def test_at_a_terminal_a_running_answer_is_stopped_and_hunks_decided(folder: Path) -> None:
    with TerminalProgram(
        command(folder), size=(80, 24), environment=environment(folder), folder=folder
    ) as program:
        program.wait_for("Ready: ", PATIENCE_S)
        program.wait_for("> ", PATIENCE_S)
        program.write("slow rename of total in count\n")
        program.wait_for("Hunk 1, things.py line 2", PATIENCE_S)
        program.write("accept 1\n")
        program.wait_for("Accepted 1", PATIENCE_S)
        path = folder / "project" / "things.py"
        assert path.read_text() == CODE.replace("total = 0", "found = 0")
        program.write("\x03")
        program.wait_for("Stopped after", PATIENCE_S)
        program.write("help\n")
        program.wait_for("undo the last decision", PATIENCE_S)
        program.write("\x03")
        program.wait_for("Nothing is running. Ctrl+C again quits", PATIENCE_S)
        since = len(program.output)
        program.write("help\n")
        program.wait_for("undo the last decision", PATIENCE_S, since=since)
        program.write("\x03")
        program.wait_for("Nothing is running", PATIENCE_S, since=since)
        program.write("\x03")
        assert program.exit_code(PATIENCE_S) == 0
        assert b"\x1b[?1049h" not in program.output
        assert b"\x1b[" not in program.output


@pytest.mark.usefixtures("built_in")
def test_the_model_is_chosen_and_asked_about(folder: Path) -> None:
    desk = '[endpoints.desk]\nurl = "http://127.0.0.1:9/v1"\nmodel = "coder"\n'
    deep = '[endpoints.deep]\nurl = "wss://api.example.com/v1"\nmodel = "large"\n'
    deep += 'key_env = "DEEP_KEY"\n'
    (folder / "config.toml").write_text(f"{desk}\n{deep}")
    said = subprocess.run(
        [sys.executable, "-m", "midstream", "project", "--plain"],
        input="model\neffort\neffort high\nsent\nfailures\nmodel large\nmodel none-such\n"
        "model desk/coder\nmodel\n",
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment(folder), "MIDSTREAM_CONFIG": str(folder / "config.toml")},
        timeout=PATIENCE_S,
        check=False,
    ).stdout
    first, last = said.split("answers from the next instruction on.")
    assert "copyist: on this machine, 4,096 tokens, in use" in first
    assert "coder: desk\n" in first
    assert "large: deep, DEEP_KEY is not set" in first
    assert "DEEP_KEY is not set, and deep needs its key from there" in first
    assert "at a terminal, which asks for the key" in first
    assert "There is no model none-such; model lists them." in first
    assert "Effort auto; there are" in first
    assert "Effort high from the next instruction on." in first
    assert "Nothing has been sent yet." in first
    assert "Every edit of this session matched its file." in first
    assert "coder: desk, in use" in last


@pytest.mark.usefixtures("built_in")
def test_a_missing_key_is_typed_at_the_terminal_checked_and_not_shown(folder: Path) -> None:
    keys = {**environment(folder), "MIDSTREAM_CONFIG": str(folder / "config.toml")}
    keys["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    plain = [sys.executable, "-m", "midstream", "project", "--plain"]
    with KeyServer(key="right").running() as server:
        (folder / "config.toml").write_text(
            f'[endpoints.desk]\nurl = "{server.url}"\nmodel = "small-1"\nkey_env = "DESK_KEY"\n'
        )
        with TerminalProgram(plain, size=(80, 24), environment=keys, folder=folder) as program:
            program.wait_for("> ", PATIENCE_S)
            for typed, answer in (
                ("", "No key was typed; the model stays as it is."),
                ("wrong", "127.0.0.1 refused the key"),
                ("right", "small-1 answers from the next instruction on."),
            ):
                since = len(program.output)
                program.write("model small-1\n")
                program.wait_for("Key, or Enter to leave it: ", PATIENCE_S, since=since)
                program.write(f"{typed}\n")
                program.wait_for(answer, PATIENCE_S, since=since)
            program.write("quit\n")
            assert program.exit_code(PATIENCE_S) == 0
            assert b"wrong" not in program.output
            assert b"right" not in program.output
        assert [key for _, key in server.asked][:2] == ["wrong", "right"]
    assert "right" not in (folder / "config.toml").read_text()


def test_what_others_write_is_reviewed_from_a_word_on(folder: Path) -> None:
    said = piped(folder, "review on", "review on", "review off", "putback", "tell").stdout
    assert "Changes by other programs now wait for your decision." in said
    assert "The review of what other programs write is on already." in said
    assert "New changes by other programs are no longer reviewed." in said
    assert "No hunk is waiting to be put back." in said
    assert "No put-back waits to be told to an agent." in said


def test_no_screen_is_imported() -> None:
    code = (
        "import sys, midstream.plain.loop; "
        "print([m for m in sys.modules if m.split('.')[0] in ('textual', 'rich', 'numpy', 'git')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_defect_is_one_sentence(folder: Path) -> None:
    code = (
        "import sys\nfrom midstream.plain.hunk_commands import HunkCommands\n"
        "async def broken(self, rest): raise ZeroDivisionError(rest)\n"
        "HunkCommands.hunks = broken\nfrom midstream.cli import main\n"
        "sys.exit(main(['project', '--plain', '--replay', 'script.json']))"
    )
    run = run_with(folder, [sys.executable, "-c", code], "hunks")
    assert run.returncode == 1
    assert run.stderr.startswith("midstream: Midstream stopped because of a defect: ZeroDivision")
    assert run.stderr.count("\n") == 1


def test_the_tests_run_and_the_model_is_asked_about_a_place(folder: Path) -> None:
    (folder / "project" / "Makefile").write_text(
        "test:\n\t@echo 'things.py:4: error: item is no number'; exit 1\n"
    )
    run = piped(folder, "check", "check yes", "places", "places 1", "mend 1", "accept all", "quit")
    said = run.stdout + run.stderr
    assert "Makefile suggests make test; check yes runs it here." in said
    assert "make test is running; check stop ends it." in said
    assert "make test: failed in 1 place with exit code 2; its output says why." in said
    assert "1  things.py:4: item is no number" in said
    assert "things.py is written." in said, said
    assert (folder / "project" / "things.py").read_text() == DONE


def review(folder: Path, words: str, *lines: str) -> subprocess.CompletedProcess[str]:
    script = str(folder / "script.json")
    called = [sys.executable, "-m", "midstream", "review", "--plain", "--replay", script]
    return run_with(folder, [*called, *words.split()], *lines, at="project")


def test_a_branch_is_reviewed_and_gone_on_with(folder: Path) -> None:
    project = folder / "project"
    git(project, "init", "-q", "-b", "main")
    for text, message in ((CODE, "First"), (DONE, "Second")):
        (project / "things.py").write_text(text)
        (project / "new.py").write_text(text.upper())
        git(project, "add", "-A")
        git(project, "commit", "-qm", message)
    refused = review(folder, "main~1", "hunks", "reject 1", "accept 1", "quit")
    assert "Midstream on main~1..HEAD, read-only." in refused.stdout
    assert "A review of main~1..HEAD is read-only" in refused.stdout
    assert "`midstream review 'main~1..HEAD' --resume` brings them back." in refused.stdout
    resumed = review(folder, "main~1..HEAD --resume", "hunks", "quit")
    left = sum(line.startswith("Hunk ") for line in resumed.stdout.splitlines())
    assert left == sum(line.startswith("Hunk ") for line in refused.stdout.splitlines()) - 1
    assert git(project, "status", "--porcelain") == ""
    assert not [entry for entry in (folder / "state/snapshots").iterdir() if entry.is_dir()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "nope..main",
            "Git knows no revision nope; name commits, branches or tags, as in main..topic.",
        ),
        ("nope", "Git knows no revision nope; name commits, branches or tags, as in main..topic."),
        ("main --staged", "--staged compares with the last commit; leave the revisions out."),
        ("main..main nope", "There is no folder nope; name one that exists."),
        ("main..main --resume", "There is no review of main..main to resume; start one with "),
    ],
)
def test_a_range_that_is_none_is_bad_usage(folder: Path, words: str, message: str) -> None:
    project = folder / "project"
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "First")
    run = review(folder, words, "quit")
    assert run.returncode == 2
    assert run.stderr.startswith(f"midstream: {message}")
    assert run.stderr.count("\n") == 1
