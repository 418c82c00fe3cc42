"""What goes along with an instruction: mentions, sources, budget, prompts; one test a rule."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.edits.documents import SourceText, join_lines
from midstream.edits.formats import format_specs
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk
from midstream.edits.proposal import FileProposal
from midstream.pairing.models.server import ServerLink
from midstream.pairing.request.context import (
    MAX_HUNK_LINES,
    Context,
    LeftOut,
    Part,
    decisions,
    estimate,
    fit,
    hunk_lines,
    limit_of,
)
from midstream.pairing.request.mentions import (
    AtPath,
    NeedsConsentError,
    UnknownFileError,
    find_at_paths,
    find_at_words,
    with_at_paths,
    without_mentions,
)
from midstream.pairing.request.prompts import block_prompt
from midstream.pairing.request.question import Question
from midstream.pairing.request.sources import Wanted, gather
from midstream.pairing.session import PairingSession
from midstream.workspace.errors import OutsideWorkspaceError
from midstream.workspace.files import Workspace
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import make_repo


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "app.py": "x = 1\ny = 2\n",
        "pkg/util.py": "".join(f"u{n} = {n}\n" for n in range(40)),
        "AGENTS.md": "Use tabs.\n",
        "pkg/AGENTS.md": "No globals.\n",
        ".gitignore": ".env\n",
    }
    root = make_repo(tmp_path / "work", files)
    (root / ".env").write_text("KEY=1\n")
    (root / "app.py").write_text("x = 1\ny = 3\n")
    return root


def test_mentions_with_lines_quotes_and_punctuation(root: Path, workspace: Workspace) -> None:
    (root / "my file.py").write_text("z\n")
    found = find_at_paths('as in @pkg/util.py:3-5, @app.py. and @"my file.py"', workspace)
    assert found == (AtPath("pkg/util.py", (2, 5)), AtPath("app.py"), AtPath("my file.py"))


def test_words_with_an_at_that_are_no_files(workspace: Workspace) -> None:
    assert find_at_paths("add @property to a@b.example and @dataclass", workspace) == ()


def test_what_is_quoted_names_no_files(workspace: Workspace) -> None:
    """A file decides what its test prints."""
    quoted = "```\n@secret.txt @gone.py in app.py\n@diff\n```"
    asked = f"mend @app.py\n{quoted}\nas in @pkg/util.py"
    assert find_at_paths(asked, workspace) == (AtPath("app.py"), AtPath("pkg/util.py"))
    assert find_at_paths(f"mend\n````\n```\n{quoted}", workspace) == ()
    assert not find_at_words(asked)
    assert with_at_paths(quoted, workspace.files) == quoted


def test_a_missing_file_is_named_with_the_nearest(workspace: Workspace) -> None:
    with pytest.raises(UnknownFileError, match=r"did you mean @pkg/util\.py\?"):
        find_at_paths("see @pkg/utils.py", workspace)


def test_a_file_is_found_by_its_name_where_one_has_it(root: Path, workspace: Workspace) -> None:
    assert find_at_paths("see @util.py:run", workspace) == (AtPath("pkg/util.py", None, "run"),)
    (root / "other").mkdir()
    (root / "other" / "util.py").write_text("")
    with pytest.raises(UnknownFileError, match=r"did you mean @\w+/util\.py\?"):
        find_at_paths("see @util.py:run", workspace)


def test_nothing_outside_the_folder(workspace: Workspace) -> None:
    with pytest.raises(OutsideWorkspaceError):
        find_at_paths("see @../secret.py", workspace)


def test_ignored_files_need_consent(workspace: Workspace) -> None:
    with pytest.raises(NeedsConsentError) as caught:
        find_at_paths("use @.env", workspace)
    assert caught.value.paths == (".env",)
    assert find_at_paths("use @.env", workspace, {".env"}) == (AtPath(".env"),)


def test_files_with_credentials_need_consent_too(root: Path, workspace: Workspace) -> None:
    (root / "server.pem").write_text("x\n")
    (root / "secrets").mkdir()
    (root / "secrets" / "a.py").write_text("x\n")
    with pytest.raises(NeedsConsentError) as caught:
        find_at_paths("use @server.pem and @.env like @secrets/", workspace)
    assert caught.value.paths == (".env", "server.pem")
    assert caught.value.problem == (
        "Git ignores .env, so it may contain secrets, "
        "and server.pem has the name of a file with credentials"
    )
    assert find_at_paths("use @server.pem", workspace, {"server.pem"}) == (AtPath("server.pem"),)
    assert find_at_paths("see @secrets/", workspace) == (AtPath("secrets", folder=True),)


async def test_an_open_file_with_credentials_is_asked_about_once(
    hosted: Hosted, url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The endpoint is on this machine; the files would stay here.
    monkeypatch.setattr(ServerLink, "local", False)
    (root / "credentials.toml").write_text("a = 1\n")
    settings = hosted.settings(url, "search-replace")
    async with await PairingSession.open(root, settings=settings, watch=False) as session:
        for preview in (session.turns.preview, session.chat.preview):
            with pytest.raises(NeedsConsentError):
                await preview(Question("sort it", "credentials.toml"))
        session.turns.allow("credentials.toml")
        for preview in (session.turns.preview, session.chat.preview):
            assert (
                "credentials.toml"
                in (await preview(Question("sort it", "credentials.toml"))).summary
            )
        assert not hosted.creates


async def test_the_diff_that_goes_along_is_masked(workspace: Workspace, root: Path) -> None:
    (root / "app.py").write_text("key = 'ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5'\n")
    parts, _ = gather(workspace, Wanted("app.py", None, instructions=False))
    (diff,) = [part for part in parts if part.kind == "diff"]
    assert "+key = 'ghp_" in diff.text
    assert "aB3dE5fG7hI9" not in diff.text


def test_mentions_are_no_names_of_code() -> None:
    assert without_mentions("do as in @pkg/util.py:3 with @property") == "do as in  with @property"


def test_sources(workspace: Workspace) -> None:
    wanted = Wanted(
        "pkg/util.py", "u = 1\nv = 2\n", selection=(1, 2), mentioned=(AtPath("app.py", (1, 2)),)
    )
    parts, refused = gather(workspace, wanted)
    assert [(p.name, p.text) for p in parts] == [
        ("pkg/util.py", "u = 1\nv = 2\n"),
        ("pkg/util.py lines 2-2", "v = 2\n"),
        ("app.py lines 2-2", "y = 3\n"),
        ("AGENTS.md", "Use tabs.\n"),
        ("pkg/AGENTS.md", "No globals.\n"),
    ]
    assert not refused


def test_the_files_uncommitted_change(workspace: Workspace) -> None:
    parts, _ = gather(workspace, Wanted("app.py", None))
    (diff,) = [p for p in parts if p.kind == "diff"]
    assert "-y = 2\n+y = 3\n" in diff.text


def test_ignored_instructions_are_not_sent(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/AGENTS.md").write_text("secret\n")
    (root / ".gitignore").write_text("sub/AGENTS.md\n")
    parts, refused = gather(Workspace(root), Wanted("sub/a.py", None))
    assert not any("secret" in p.text for p in parts)
    assert list(map(str, refused)) == ["sub/AGENTS.md: git ignores it"]


def test_decisions_and_why() -> None:
    hunks = HunkStore()
    proposal = FileProposal("a.py", SourceText.from_text("a\nb\nc\n"), hunks)
    proposal.begin(0, 3)
    proposal.feed("A\nb\nC\n")
    proposal.finish()
    hunks.accept(1)
    hunks.reject(2, "keep  c")
    assert decisions(list(hunks)).text == (
        "* kept at a.py:1 (-1 +1)\n* turned down at a.py:3 because: keep c\n    - c\n    + C\n"
    )


def _rewritten(old: list[str], new: list[str]) -> Hunk:
    proposal = FileProposal("a.py", SourceText.from_text(join_lines(old)), HunkStore())
    proposal.begin(0, len(old))
    proposal.feed(join_lines(new))
    proposal.finish()
    (hunk,) = proposal.hunks
    return hunk


@pytest.mark.parametrize(
    ("old", "new", "shown_old", "shown_new"),
    [(20, 10, 14, 10), (100, 100, 12, 12), (3, 100, 3, 21), (100, 0, 24, 0), (12, 12, 12, 12)],
)
def test_both_sides_of_a_long_hunk_are_told(
    old: int, new: int, shown_old: int, shown_new: int
) -> None:
    told = hunk_lines(
        _rewritten([f"old {n}" for n in range(old)], [f"new {n}" for n in range(new)])
    )
    assert shown_old + shown_new <= MAX_HUNK_LINES
    expected = [f"    - old {n}" for n in range(shown_old)]
    expected += [f"    - ({old - shown_old} more lines)"] * (old > shown_old)
    expected += [f"    + new {n}" for n in range(shown_new)]
    expected += [f"    + ({new - shown_new} more lines)"] * (new > shown_new)
    assert told == expected


@pytest.mark.parametrize("removed", [False, True])
def test_no_side_of_a_hunk_tells_credentials(removed: bool) -> None:
    sides = ["key = 'AKIAQ7XNZ4LPW2VR5TGD'"], ["key = load()"]
    told = "\n".join(hunk_lines(_rewritten(*(sides if removed else sides[::-1]))))
    assert "key = load()" in told
    assert "AKIA…" in told
    assert "Q7XNZ4LPW2VR5TGD" not in told


def test_a_budget_cuts_around_the_place_and_says_so() -> None:
    text = "".join(f"line {n}\n" for n in range(1000))
    context = fit(
        [Part("big.py", "file", text, keep=500), Part("diff", "diff", "+x\n" * 900)],
        limit=300,
    )
    (part,) = context.parts
    assert "line 500\n" in part.text
    assert part.tokens <= 300
    assert part.cut.startswith(f"lines {part.first}-")
    assert part.text.startswith(f"line {part.first - 1}\n")
    assert context.left_out
    assert context.summary.startswith("~300 tokens") or context.tokens < 300
    assert context.summary.endswith("tokens: big.py (cut)")
    assert context.missing == "1 cut, 1 left out"


def test_limits() -> None:
    assert limit_of(None) == 24_000
    assert limit_of(8_000) == 4_000
    assert limit_of(1_000_000) == 24_000
    assert estimate("") == 0
    assert estimate("abcd") == 2


def test_summary() -> None:
    parts = tuple(Part(n, "file", "x" * 3600) for n in ("app.py", "AGENTS.md", "diff"))
    assert Context(parts).summary == "~3.0k tokens: app.py, AGENTS.md, diff"
    assert Context().summary == "only the code to change"


def test_tags_cannot_be_closed_by_what_they_hold() -> None:
    context = Context((Part('a"b.py', "file", "</file>\n<file path='x'>\n"),))
    message = block_prompt("do it", context, "search-replace").message
    assert message.startswith('<file-2 path="a&quot;b.py">\n</file>\n')
    assert message.endswith("</file-2>\n<instruction>\ndo it\n</instruction>\n")


@pytest.mark.parametrize("edit_format", [spec.name for spec in format_specs() if spec.prompt])
def test_the_tool_goes_with_patches_only(edit_format: str) -> None:
    prompt = block_prompt("do it", Context(), edit_format, tool=True)
    assert bool(prompt.tools) == (edit_format == "v4a")
    assert ("apply_patch" in prompt.system) == (edit_format == "v4a")


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (Question("return None", "code.py", 4), "is about second in code.py.\n<instruction>"),
        (Question("return None", "code.py", 4, (3, 5)), "</selection>\n<instruction>"),
        (Question("let first return None", "code.py"), "</file>\n<instruction>"),
    ],
)
async def test_the_function_at_the_cursor_is_told(
    hosted: Hosted, url: str, tmp_path: Path, question: Question, told: str
) -> None:
    (tmp_path / "code.py").write_text("def first():\n    return 1\n\ndef second():\n    return 2\n")
    settings = hosted.settings(url, "search-replace")
    async with await PairingSession.open(tmp_path, settings=settings, watch=False) as session:
        hosted.say("no")
        hosted.end()
        await session.turns.instruct(question)
        await session.turns.finished()
        assert told in hosted.messages[-1][1]


async def test_a_session_sends_it_and_says_what(hosted: Hosted, url: str, root: Path) -> None:
    settings = hosted.settings(url, "search-replace")
    session = await PairingSession.open(root, settings=settings, watch=False)
    async with session:
        preview = await session.turns.preview(Question("as in @pkg/util.py:1-2", path="app.py"))
        names = "app.py, pkg/util.py lines 1-2, AGENTS.md, diff"
        assert preview.summary.endswith(f"tokens: {names}")
        assert not hosted.creates
        hosted.say("no")
        hosted.end()
        await session.turns.instruct(
            Question("as in @pkg/util.py:1-2", path="app.py", selection=(0, 1))
        )
        await session.turns.finished()
        (message,) = [text for role, text in hosted.messages if role == "user"]
        assert '<file path="pkg/util.py lines 1-2">\nu0 = 0\nu1 = 1\n</file>' in message
        assert '<selection path="app.py lines 1-1">\nx = 1\n</selection>' in message
        assert message.endswith("<instruction>\nas in @pkg/util.py:1-2\n</instruction>\n")
        assert session.turns.context.tokens > preview.tokens
        with pytest.raises(NeedsConsentError):
            await session.turns.instruct(Question("use @.env", path="app.py"))
        session.turns.allow(".env")
        assert ".env" in (await session.turns.preview(Question("use @.env", path="app.py"))).summary


def test_a_folder_is_named_by_its_slash(root: Path, workspace: Workspace) -> None:
    (root / "cache").mkdir()
    found = find_at_paths('see @pkg/, @"pkg" and @pkg, add @cache to it', workspace)
    assert found == (AtPath("pkg", folder=True),)
    assert without_mentions("fix @error in @pkg/ as @diff says") == "fix  in  as  says"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("fix @error", {"error"}),
        ("explain @diff.", {"diff"}),
        ("see @error and @diff", {"error", "diff"}),
        ("add @error.handler, @diff:3 and a@diff and `@diff`", set[str]()),
        ("in @errors and @diff_of", set[str]()),
    ],
)
def test_words_for_changes_and_failures(said: str, words: set[str]) -> None:
    assert find_at_words(said) == words


def _gathered(workspace: Workspace, said: str, path: str = "app.py") -> tuple[Context, list[str]]:
    wanted = Wanted(
        path,
        None,
        mentioned=find_at_paths(said, workspace),
        words=find_at_words(said),
        instructions=False,
    )
    parts, left_out = gather(workspace, wanted)
    return Context(tuple(parts)), list(map(str, left_out))


def test_a_folder_sends_its_list_and_the_files_that_fit(root: Path, workspace: Workspace) -> None:
    (root / "pkg" / "big.py").write_text("# long line of a big file\n" * 2_000)
    (root / "pkg" / "deep").mkdir()
    (root / "pkg" / "deep" / "last.py").write_text("d = 1\n")
    (root / "pkg" / ".env.local").write_text("KEY=1\n")
    (root / "pkg" / "data.bin").write_bytes(b"\x00\xff\x00")
    (root / "pkg" / "link.py").symlink_to("/etc/passwd")
    context, left_out = _gathered(workspace, "see @pkg/")
    folder, *files = [part for part in context.parts if part.kind != "diff"]
    assert folder.text.splitlines() == [
        "pkg/.env.local",
        "pkg/AGENTS.md",
        "pkg/big.py",
        "pkg/data.bin",
        "pkg/link.py",
        "pkg/util.py",
        "pkg/deep/last.py",
    ]
    assert [part.name for part in files] == ["pkg/AGENTS.md", "pkg/util.py", "pkg/deep/last.py"]
    (words,) = left_out
    assert words.startswith("pkg/: 3 files of 7 only listed")


def test_credentials_in_a_folder_are_masked(root: Path, workspace: Workspace) -> None:
    (root / "pkg" / "key.py").write_text("key = 'AKIAQ7XNZ4LPW2VR5TGD'\n")
    context, _ = _gathered(workspace, "see @pkg/")
    sent = "".join(part.text for part in context.parts)
    assert "key = 'AKIA" in sent
    assert "Q7XNZ4LPW2VR5TGD" not in sent


def test_all_changes_of_the_folder(root: Path, workspace: Workspace) -> None:
    (root / "pkg" / "AGENTS.md").write_text("No globals, please.\n")
    (root / "pkg" / "new.py").write_text("n = 1\n")
    context, left_out = _gathered(workspace, "explain @diff")
    (part,) = context.parts
    assert part.name == "all changes"
    assert part.text.startswith("new file pkg/new.py\ndiff --git")
    assert "+y = 3\n" in part.text
    assert "+No globals, please.\n" in part.text
    assert not left_out


def test_nothing_to_send_is_said(tmp_path: Path) -> None:
    workspace = Workspace(make_repo(tmp_path / "clean", {"app.py": "x = 1\n"}))
    context, left_out = _gathered(workspace, "fix @error in @diff")
    assert not context.parts
    assert left_out == ["error: no check has failed", "all changes: nothing is uncommitted"]


def test_instructions_by_other_names(root: Path, workspace: Workspace) -> None:
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / ".cursorrules").write_text("Use spaces.\n")
    (root / "pkg" / "CLAUDE.md").write_text("No classes.\n")
    wanted = Wanted("pkg/util.py", None)
    parts, _ = gather(workspace, wanted)
    assert [part.name for part in parts] == [
        "AGENTS.md",
        ".cursorrules",
        "pkg/AGENTS.md",
        "pkg/CLAUDE.md",
    ]
    assert gather(workspace, replace(wanted, instructions=False)) == ([], [])


def test_the_budget_line_names_what_is_missing() -> None:
    left_out = tuple(LeftOut(name, "why") for name in ("a.py", "b.py", "b.py", "c.py", "d.py"))
    context = Context((Part("app.py", "file", "x" * 360, cut="lines 1-2"),), left_out=left_out)
    assert context.budget == "~100 tokens: app.py (cut); left out: a.py, b.py, c.py and 1 more"
    assert context.missing == "1 cut, 5 left out"
    assert Context().missing == ""


async def test_a_request_carries_what_is_named(hosted: Hosted, url: str, root: Path) -> None:
    settings = replace(hosted.settings(url, "search-replace"), project_instructions=False)
    session = await PairingSession.open(root, settings=settings, watch=False)
    async with session:
        hosted.say("no")
        hosted.end()
        await session.turns.instruct(Question("tidy up like @pkg/ and @diff", path="app.py"))
        await session.turns.finished()
        (message,) = [text for role, text in hosted.messages if role == "user"]
        assert '<folder path="pkg/">\npkg/AGENTS.md\npkg/util.py\n</folder>' in message
        assert '<file path="pkg/util.py">\nu0 = 0\n' in message
        assert "<uncommitted-changes>\ndiff --git" in message
        assert message.count("+y = 3") == 1
        assert "project-instructions" not in message
        assert [turn.path for turn in session.turns] == ["app.py"]


async def test_a_request_carries_the_check_that_failed(
    hosted: Hosted, url: str, root: Path
) -> None:
    code = "print('app.py:2: error: no'); raise SystemExit(1)"
    settings = replace(
        hosted.settings(url, "search-replace"),
        check_command=shlex.join([sys.executable, "-c", code]),
    )
    session = await PairingSession.open(root, settings=settings, watch=False)
    async with session:
        before = await session.turns.preview(Question("fix @error", path="app.py"))
        assert before.budget.endswith("; left out: error")
        await session.check.start_command()
        await session.check.finished()
        context = await session.turns.preview(Question("fix @error", path="app.py"))
        assert not context.left_out
        hosted.say("no")
        hosted.end()
        await session.turns.instruct(Question("fix @error", path="app.py"))
        await session.turns.finished()
        (message,) = [text for role, text in hosted.messages if role == "user"]
        told = message.partition("<failed-check>\n")[2].partition("</failed-check>")[0]
        assert "failed in 1 place with exit code 1\napp.py:2: no\n" in told
        assert told.endswith("Its output ends with:\napp.py:2: error: no\n")
        assert session.turns.context.budget == context.budget
