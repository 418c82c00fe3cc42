"""Read-only tools of a model: inside the folder, no ignored files, bounded, no writing."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.pairing.chat import tools
from midstream.pairing.chat.entries import QuestionState, Speech, ToolUse, exchanges
from midstream.pairing.chat.tools import Looked, ReadOnlyTools
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.conversation import ToolCall
from midstream.workspace.files import Workspace
from midstream.workspace.repo import run_git
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness, git, make_repo
from tests.helpers.processes import running
from tests.helpers.property import examples
from tests.helpers.searching import (
    with_configured_search,
    with_reckless_search,
    with_search,
    with_slow_search,
)
from tests.helpers.waiting import until

SECRET = "CANARY-outside-of-the-folder"
FILES = {
    "app.py": (
        "def one():\n    return 1\n\n\nclass Two:\n    def three(self):\n        return one()\n"
    ),
    "pkg/more.py": "from app import one\n\nkey = 'ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5'\n",
    ".gitignore": "secret.txt\n",
    ".env": "TOKEN=1\n",
    "bin.dat": "a\0b",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text(SECRET)
    root = make_repo(tmp_path / "work", FILES)
    (root / "secret.txt").write_text("one hidden thing\n")
    (root / "link").symlink_to(tmp_path / "outside.txt")
    (root / "up").symlink_to(tmp_path)
    return root


@pytest.fixture
def looking(root: Path) -> ReadOnlyTools:
    found = ReadOnlyTools(Workspace(root), set())
    found.begin(tools.MAX_TOTAL_LENGTH)
    return found


async def look(looking: ReadOnlyTools, name: str, given: str = "") -> str:
    looked = await looking.run(ToolCall("c1", name, given))
    return looked.text


async def test_files_are_read_with_numbers(looking: ReadOnlyTools) -> None:
    assert await look(looking, "read_file", "app.py:1-2") == (
        "1 def one():\n2     return 1\n(5 more lines, up to 7)"
    )
    looked = await looking.run(ToolCall("c", "read_file", "pkg/more.py"))
    assert looked.title == "read pkg/more.py"
    assert looked.path == "pkg/more.py"
    assert "ghp_" in looked.text
    assert "aB3dE5fG7hI9" not in looked.text, "credentials are masked"
    assert await look(looking, "read_file", "app.py:90-99") == "(nothing there)"


async def test_definitions_files_and_git(looking: ReadOnlyTools, root: Path) -> None:
    assert await look(looking, "symbols", "app.py") == (
        "1-2 function one\n5-7 class Two\n6-7 function Two.three"
    )
    assert (await look(looking, "list_files")).splitlines() == sorted(
        [".env", ".gitignore", "app.py", "bin.dat", "link", "pkg/more.py", "up"]
    )
    assert await look(looking, "list_files", "pkg") == "pkg/more.py"
    assert ": start" in await look(looking, "git_log", "app.py")
    (root / "app.py").write_text("one = 1\n")
    (root / ".env").write_text("TOKEN=2\n")
    changed = await look(looking, "git_diff")
    assert "+one = 1" in changed
    assert "TOKEN" not in changed
    assert "+one = 1" in await look(looking, "git_diff", "app.py")
    assert await look(looking, "git_diff", "HEAD..HEAD") == "No changes."


@pytest.mark.parametrize("program", [True, False])
async def test_searches(
    looking: ReadOnlyTools, monkeypatch: pytest.MonkeyPatch, program: bool, tmp_path: Path
) -> None:
    if not program:
        monkeypatch.setenv("PATH", str(tmp_path))
    elif shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    found = await look(looking, "search", "one")
    assert "app.py:1:def one():" in found
    assert "hidden" not in found
    assert "TOKEN" not in await look(looking, "search", "TOKEN")
    assert "app.py" not in await look(looking, "search", "one\nin: pkg")
    assert (await look(looking, "search", "nowhere")).startswith("Nothing was found.")


async def test_a_search_follows_no_configuration_of_ripgrep(
    looking: ReadOnlyTools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A configuration may name a program that reads each file."""
    monkeypatch.setenv("PATH", with_configured_search(tmp_path / "programs"))
    (tmp_path / "settings").write_text(f"touch {tmp_path / 'run'}\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "settings"))
    assert await look(looking, "search", "one") == "Nothing was found."
    assert not (tmp_path / "run").exists()


@pytest.fixture(params=["none", "ripgrep", "reckless"])
def program(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that searches, or Midstream itself."""
    if request.param == "ripgrep":
        if shutil.which("rg") is None:
            pytest.skip("ripgrep is not installed")
        return
    programs = tmp_path / "programs"
    if request.param == "reckless":
        monkeypatch.setenv("PATH", with_reckless_search(programs))
        return
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(programs))


@pytest.mark.usefixtures("program")
async def test_a_search_shows_what_may_be_read_and_no_more(
    looking: ReadOnlyTools, root: Path
) -> None:
    (root / "build").mkdir()
    (root / "build" / "made.txt").write_text("one hidden thing\n")
    (root / ".gitignore").write_text("secret.txt\nbuild/\n")
    for where in ("", "\nin: .", "\nin: build", "\nin: ./build/../build"):
        assert "hidden" not in await look(looking, "search", f"one{where}")
        assert "TOKEN" not in await look(looking, "search", f"TOKEN=1{where}")
    for where, why in (
        ("secret.txt", "ignored by git"),
        ("build/made.txt", "ignored by git"),
        (".env", "file with credentials"),
        ("link", "outside"),
    ):
        looked = await looking.run(ToolCall("c", "search", f".\nin: {where}"))
        assert looked.refused
        assert why in looked.text
    assert "app.py:1:def one():" in await look(looking, "search", "def one\nin: app.py")
    allowed = ReadOnlyTools(Workspace(root), {"secret.txt", ".env"})
    allowed.begin(tools.MAX_TOTAL_LENGTH)
    assert "hidden" in await look(allowed, "search", "one\nin: secret.txt")
    assert "TOKEN" in await look(allowed, "search", "TOKEN\nin: .env")


@pytest.mark.parametrize("setting", ["diff.noprefix", "diff.mnemonicPrefix", "core.quotePath"])
async def test_a_diff_shows_no_files_with_credentials(
    looking: ReadOnlyTools, root: Path, setting: str
) -> None:
    names = [".env", "caf\u00e9/.env", 'a "b"/my .key']
    for name in names:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("TOKEN=1\n")
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "more")
    git(root, "config", setting, "true")
    for name in [*names, "app.py"]:
        (root / name).write_text("TOKEN=2\n" if name != "app.py" else "one = 2\n")
    for what in ("", "HEAD"):
        shown = await look(looking, "git_diff", what)
        assert "+one = 2" in shown
        assert "TOKEN" not in shown
    git(root, "mv", "-f", ".env", "plain.txt")
    assert "-TOKEN" not in await look(looking, "git_diff")
    assert "file with credentials" in await look(looking, "git_diff", names[1])


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("read_file", "../outside.txt", "outside"),
        ("read_file", "link", "outside"),
        ("read_file", "up/outside.txt", "outside"),
        ("read_file", "/etc/passwd", "outside"),
        ("read_file", ".git/config", "git"),
        ("read_file", "secret.txt", "ignored by git"),
        ("read_file", ".env", "file with credentials"),
        ("read_file", "bin.dat", "not text"),
        ("read_file", "pkg", "no file"),
        ("read_file", "", "no file"),
        ("symbols", "../outside.txt", "outside"),
        ("list_files", "../", "outside"),
        ("search", "CANARY\nin: ../", "outside"),
        ("git_log", "../", "outside"),
        ("git_diff", "--output=x", "Name a file"),
        ("git_diff", "-O/etc/passwd", "Name a file"),
        ("write_file", "app.py", "no tool"),
    ],
)
async def test_what_is_not_shown(
    looking: ReadOnlyTools, root: Path, name: str, given: str, why: str
) -> None:
    looked = await looking.run(ToolCall("c", name, given))
    assert looked.refused
    assert why in looked.text
    assert SECRET not in looked.text


@examples(120)
@given(
    name=st.sampled_from([*tools.DECLARATIONS]),
    given_=st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(["..", "up", "link", "/", "pkg", "app.py", "outside.txt", "\0"])
        ).map("/".join),
        st.sampled_from(["CANARY", "-e CANARY ..", "CANARY\nin: up", "--no-index ../outside.txt"]),
    ),
)
def test_nothing_outside_is_ever_shown(
    tmp_path_factory: pytest.TempPathFactory, name: dict[str, str], given_: str
) -> None:
    base = tmp_path_factory.mktemp("tools")
    (base / "outside.txt").write_text(SECRET)
    root = base / "work"
    root.mkdir()
    (root / "app.py").write_text("one = 1\n")
    (root / "link").symlink_to(base / "outside.txt")
    (root / "up").symlink_to(base)
    looking = ReadOnlyTools(Workspace(root), set())
    looking.begin(tools.MAX_TOTAL_LENGTH)
    before = sorted(root.iterdir()), (root / "app.py").read_text()
    looked = asyncio.run(looking.run(ToolCall("c", name["name"], given_)))
    assert SECRET not in looked.text
    assert "\x1b" not in looked.text
    assert (sorted(root.iterdir()), (root / "app.py").read_text()) == before


async def test_one_question_may_read_so_much(looking: ReadOnlyTools) -> None:
    for _ in range(tools.MAX_CALLS):
        assert not (await looking.run(ToolCall("c", "read_file", "app.py"))).refused
    looked = await looking.run(ToolCall("c", "read_file", "app.py"))
    assert looked.refused
    assert "No more calls" in looked.text
    looking.begin(60)
    looked = await looking.run(ToolCall("c", "read_file", "app.py"))
    assert looked.text.endswith("(cut; ask for less)")
    assert looking.spent


async def test_a_repositorys_own_programs_do_not_run(
    looking: ReadOnlyTools, root: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "diff.mine.textconv"):
        git(root, "config", key, str(program))
    for key in ("clean", "smudge", "process"):
        git(root, "config", f"filter.mine.{key}", str(program))
    git(root, "config", "filter.mine.required", "true")
    (root / ".gitattributes").write_text("*.py diff=mine filter=mine\n")
    (root / "app.py").write_text("one = 1\n")
    assert "+one = 1" in await look(looking, "git_diff")
    await look(looking, "git_log")
    assert not ran.exists()


# In a conversation


async def test_a_model_looks_once_it_is_allowed(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            hosted.say("Let me see.")
            hosted.call("app.py:1-2", "read_file")
            hosted.end()
            await chat.ask_question(Question("what is one?"))
            await witness.until(lambda: chat.question is not None)
            assert chat.asking
            assert len(hosted.creates) == 1, "nothing was looked at"
            chat.allow(on=True)
            await witness.until(lambda: len(hosted.creates) == 2)
            hosted.call("pkg/more.py", "read_file")
            hosted.end()
            await witness.until(lambda: len(hosted.creates) == 3)
            assert chat.question is None, "it is asked once in a session"
            hosted.say("It is 1.")
            hosted.end()
            await chat.finished()
    assert ("output", "1 def one():\n2     return 1\n(5 more lines, up to 7)") in hosted.messages
    first, *uses = [entry for entry in chat.entries if isinstance(entry, ToolUse)]
    assert first.call.title == "read app.py:1-2"
    assert first.call.paths == ("app.py",)
    assert first.call.status == "completed"
    assert first.question is QuestionState.ALLOWED
    assert [use.call.title for use in uses] == ["read pkg/more.py"]
    assert exchanges(chat.entries)[0].answered == "Let me see.\n\nIt is 1."
    assert "app.py:1-2" not in exchanges(chat.entries)[0].answered, "input of tools is no prose"


async def test_a_model_that_may_not_look_answers_without(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            hosted.call("app.py", "read_file")
            hosted.end()
            await chat.ask_question(Question("what is one?"))
            await witness.until(lambda: chat.question is not None)
            chat.allow(on=False)
            await witness.until(lambda: len(hosted.creates) == 2)
            assert not hosted.creates[1].get("tools"), "it is not offered again"
            hosted.say("I do not know.")
            hosted.end()
            await chat.finished()
    assert "does not want you to look" in dict(hosted.messages)["output"]
    assert exchanges(chat.entries)[0].answered == "I do not know."


async def test_a_stop_while_it_asks(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            hosted.call("app.py", "read_file")
            hosted.end()
            await chat.ask_question(Question("what is one?"))
            await witness.until(lambda: chat.question is not None)
            await chat.stop_answer()
            assert not chat.busy
            assert chat.question is None
            assert len(hosted.creates) == 1
            hosted.call("app.py", "read_file")
            hosted.end()
            await chat.ask_question(Question("again"))
            await witness.until(lambda: chat.question is not None)


async def test_a_stop_ends_what_a_tool_has_started(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setenv("PATH", with_slow_search(tmp_path / "bin", begun))
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            chat.allow(on=True)
            hosted.call("one", "search")
            hosted.end()
            await chat.ask_question(Question("where is one?"))
            await witness.until(begun.exists)
            await chat.stop_answer()
            assert not chat.busy
            await witness.until(lambda: not running(int(begun.read_text())))
            (use,) = [entry for entry in chat.entries if isinstance(entry, ToolUse)]
            assert use.call.status == "failed"
            assert len(hosted.creates) == 1


async def test_endless_calls_come_to_an_end(root: Path) -> None:
    hosted = Hosted()
    async with hosted.running() as url:
        settings = hosted.settings(url)
        async with await PairingSession.open(root, settings=settings, watch=False) as session:
            chat, witness = session.chat, Witness(session)
            chat.allow(on=True)
            for _ in range(tools.MAX_CALLS):
                hosted.call("../outside.txt", "read_file")
                hosted.end()
            await chat.ask_question(Question("read on and on"))
            await witness.until(lambda: len(hosted.creates) == tools.MAX_CALLS + 1)
            assert hosted.creates[-2].get("tools")
            assert not hosted.creates[-1].get("tools"), "it has to answer"
            hosted.say("Enough.")
            hosted.end()
            await chat.finished()
    assert chat.entries[-1] == Speech("agent", "Enough.")
    assert all(SECRET not in text for _, text in hosted.messages)


async def test_neither_links_nor_magic_nor_a_missing_repository_lead_further(
    root: Path, looking: ReadOnlyTools, tmp_path: Path
) -> None:
    (root / "notes.txt").symlink_to(".env")
    git(root, "add", "notes.txt")
    assert "TOKEN" not in await look(looking, "search", "TOKEN")
    for magic in (":(top)", ":/", ":(top)app.py", ":!app.py"):
        assert await look(looking, "git_log", magic) == "No commits."
    plain = tmp_path / "plain"
    (plain / "sub").mkdir(parents=True)
    (plain / "outside.txt").write_text("mine\n")
    there = ReadOnlyTools(Workspace(plain), set())
    there.begin(tools.MAX_TOTAL_LENGTH)
    # Without a repository git would compare any two files.
    said = await look(there, "git_diff", "sub/../../outside.txt")
    assert SECRET not in said
    assert "no git repository" in said


async def test_what_is_read_is_cut_before_it_fills_the_memory(
    root: Path, looking: ReadOnlyTools
) -> None:
    (root / "wide.txt").write_text("x" * 3_000_000)
    assert len(await look(looking, "read_file", "wide.txt")) <= tools.MAX_RESULT_LENGTH + 100
    (root / "big.txt").write_text("line\n" * 1_000_000)
    assert "are read" in await look(looking, "read_file", "big.txt")
    git(root, "add", "big.txt")
    shown = await look(looking, "git_diff")
    assert "Binary files /dev/null and b/big.txt differ" in shown, "git compares in memory"
    (root / "long.txt").write_text("line\n" * 900)
    shown = await look(looking, "read_file", "long.txt:1-900")
    assert shown.endswith(f"{tools.MAX_LINES} line\n(500 more lines, up to 900)")


async def test_what_a_search_writes_is_cut_as_it_comes(
    looking: ReadOnlyTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_search(tmp_path / "bin", f"head -c 3000000 /dev/zero; touch {tmp_path}/ended")
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr(tools, "MAX_BYTES", 100_000)
    await look(looking, "search", "one")
    assert not (tmp_path / "ended").exists(), "it was ended once it had written so much"


async def test_what_git_writes_is_cut_as_it_comes(
    looking: ReadOnlyTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    def counting(*arguments: Any, **options: Any) -> bytes:
        out = run_git(*arguments, **options)
        lengths.append(len(out))
        return out

    monkeypatch.setattr(tools, "run_git", counting)
    monkeypatch.setattr(tools, "MAX_BYTES", 30_000)
    for name in "abcd":
        (root / f"{name}.py").write_text("one = 1\n" * 3_000)
    git(root, "add", ".")
    await look(looking, "git_diff")
    assert max(lengths) == 30_000


async def test_a_look_that_takes_long_is_ended(
    looking: ReadOnlyTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    monkeypatch.setenv("PATH", with_slow_search(tmp_path / "bin", begun))
    limit = asyncio.Timeout(None)
    monkeypatch.setattr(asyncio, "timeout", lambda seconds: limit)
    looks = asyncio.create_task(looking.run(ToolCall("c", "search", "one")))
    await asyncio.to_thread(until, lambda: begun.exists() or looks.done())
    limit.reschedule(0)
    looked = await looks
    assert looked.refused
    assert "took more than" in looked.text
    assert not running(int(begun.read_text()))


async def test_nothing_that_a_terminal_obeys_is_shown(looking: ReadOnlyTools, root: Path) -> None:
    (root / "odd.txt").write_text("a\x1b]0;own\x07b\u202ec\u200bd\n")
    assert await look(looking, "read_file", "odd.txt") == "1 a]0;ownbcd"


async def test_a_no_stands_for_the_question(looking: ReadOnlyTools) -> None:
    asked = await looking.run(ToolCall("c", "read_file", "secret.txt"))
    assert asked.unconfirmed == "is ignored by git"
    looking.confirm("secret.txt", allowed=False)
    refused = await looking.run(ToolCall("c", "read_file", "secret.txt"))
    assert refused.refused
    assert refused.unconfirmed == "", "the user is not asked again"
    assert "does not want you to read it" in refused.text
    looking.begin(tools.MAX_TOTAL_LENGTH)
    assert (await looking.run(ToolCall("c", "read_file", "secret.txt"))).unconfirmed


async def test_a_diff_in_a_subfolder_names_files_from_there(root: Path) -> None:
    (root / "app.py").write_text("one = 1\n")
    (root / "pkg/more.py").write_text("two = 2\n")
    below = ReadOnlyTools(Workspace(root / "pkg"), set())
    below.begin(tools.MAX_TOTAL_LENGTH)
    changed = await look(below, "git_diff")
    assert "+++ b/more.py" in changed
    assert "one = 1" not in changed


async def test_any_tool_is_ended_in_time(
    looking: ReadOnlyTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(given: str) -> Looked:
        await asyncio.Event().wait()
        raise AssertionError(given)

    monkeypatch.setattr(tools, "SECONDS", 0.05)
    monkeypatch.setitem(looking._tools, "symbols", endless)
    assert "That took more than" in await look(looking, "symbols", "app.py")


async def test_git_is_given_no_longer_than_the_tool(
    looking: ReadOnlyTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git runs in a thread, which goes on when the tool ends."""
    given: list[float | None] = []

    def noted(folder: Path, arguments: list[str], **more: Any) -> bytes:
        if "log" in arguments:
            given.append(more.get("timeout"))
        return run_git(folder, arguments, **more)

    monkeypatch.setattr(tools, "run_git", noted)
    assert ": start" in await look(looking, "git_log")
    assert given == [tools.SECONDS]


async def test_a_search_without_ripgrep_is_bounded(
    looking: ReadOnlyTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("midstream.processes.find_program", lambda *_: None)
    (root / "large.txt").write_text("needle\n" * 200_000)
    (root / "small.txt").write_text("needle\n")
    assert "small.txt:1:needle" in await look(looking, "search", "needle")
    assert "large.txt" not in await look(looking, "search", "needle")
    monkeypatch.setattr(tools, "SECONDS", -1.0)
    assert looking._find("needle", "") == []


async def test_the_names_of_very_many_changed_files_are_no_command_line(
    looking: ReadOnlyTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "app.py").write_text("one = 1\n")
    (root / "pkg/more.py").write_text("two = 2\n")
    monkeypatch.setattr(tools, "MAX_BYTES", 30)
    assert "Too many files have changed" in await look(looking, "git_diff")
