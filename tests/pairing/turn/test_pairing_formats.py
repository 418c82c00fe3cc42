"""Every edit format live in a session, from a scripted hosted endpoint on loopback."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.commands.edit import DiffSink
from midstream.edits.hunks import HunkState
from midstream.pairing.headless import Job, run_job
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession, SessionState, TurnStatus
from midstream.pairing.status import TurnFinished, TurnStarted
from midstream.pairing.turn.factory import NotReviewedError
from midstream.settings import Settings
from tests.helpers.hosted import Hosted
from tests.helpers.pairing import Witness

LINES = [f"line_{n:02d} = {n}\n" for n in range(30)]
BEFORE = "".join(LINES)
COMMITTED = {"run.py": BEFORE, "other.py": "x = 1\n"}

FIRST = ("line_03 = 3\n", "first = 3\n")
SECOND = ("line_20 = 20\n", "second = 20\n")


def changed(*changes: tuple[str, str]) -> str:
    text = BEFORE
    for old, new in changes:
        text = text.replace(old, new)
    return text


def pieces(edit_format: str) -> tuple[str, str, str]:
    """An answer with two edits: up to where the first is certain, to the middle of the second,
    and the rest."""
    (old, new), (old2, new2) = FIRST, SECOND
    if edit_format in ("v4a", "udiff"):
        head = "*** Begin Patch\n*** Update File: run.py\n@@\n"
        tail = "*** End Patch\n"
        if edit_format == "udiff":
            head, tail = "--- a/run.py\n+++ b/run.py\n@@ -3,3 +3,3 @@\n", ""
        middle = "@@\n" if edit_format == "v4a" else "@@ -20,3 +20,3 @@\n"
        return (
            f"{head} {LINES[2]}-{old}+{new} {LINES[4]}",
            f"{middle} {LINES[19]}-{old2}+{new2[:5]}",
            f"{new2[5:]} {LINES[21]}{tail}",
        )
    if edit_format == "search-replace":
        block = "run.py\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n"
        second = block.format(old2, new2)
        cut = second.index(new2) + 5
        return "I do it:\n\n" + block.format(old, new), second[:cut], second[cut:]
    if edit_format == "str-replace":
        edits = [
            {"path": "run.py", "old_str": old.strip(), "new_str": new.strip()},
            {"path": "run.py", "old_str": old2.strip(), "new_str": new2.strip()},
        ]
        text = json.dumps({"edits": edits})
        first, cut = text.index("}") + 1, text.index("second") + 3
        return text[:first], text[first:cut], text[cut:]
    body = changed(FIRST, SECOND)
    start, end = {
        "whole": ("run.py\n```python\n", "```\n"),
        "region": ("Here it is:\n<region>\n", "</region>\n"),
    }[edit_format]
    text = start + body + end
    first, cut = text.index(LINES[12]), text.index(new2) + 5
    return text[:first], text[first:cut], text[cut:]


FORMATS = ["v4a", "udiff", "search-replace", "str-replace", "whole", "region"]


def opened(root: Path, settings: Settings, **more: object):
    return PairingSession.open(root, settings=settings, watch=False, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("edit_format", FORMATS)
async def test_hunks_are_decided_while_the_answer_streams(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    first, second, rest = pieces(edit_format)
    session = await opened(root, hosted.settings(url, edit_format))
    async with session:
        witness = Witness(session)
        hosted.say(first)
        turn = await session.turns.instruct(
            Question("rename two", path="run.py", selection=(0, 30))
        )
        (hunk_id,) = await witness.decidable(1)
        assert session.status.state is SessionState.STREAMING
        assert await session.decisions.accept(hunk_id)
        assert (root / "run.py").read_text() == changed(FIRST), "while the rest still streams"
        hosted.say(second)
        await witness.until(
            lambda: session.turns.writing is not None and session.turns.writing[1] > 15
        )
        assert session.turns.writing is not None
        assert session.turns.writing[0] == "run.py"
        hosted.say(rest)
        hosted.end()
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert [h.state for h in session.hunks] == [HunkState.ACCEPTED, HunkState.SETTLED]
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == changed(FIRST, SECOND)
        await session.decisions.undo()
        await session.decisions.undo()
        assert (root / "run.py").read_text() == BEFORE


@pytest.mark.parametrize("edit_format", FORMATS)
async def test_stop_keeps_what_is_complete(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    first, second, _ = pieces(edit_format)
    session = await opened(root, hosted.settings(url, edit_format))
    async with session:
        witness = Witness(session)
        hosted.say(first + second)
        turn = await session.turns.instruct(
            Question("rename two", path="run.py", selection=(0, 30))
        )
        await witness.until(
            lambda: session.turns.writing is not None and session.turns.writing[1] > 15
        )
        await session.turns.stop_turn()
        assert turn.status is TurnStatus.STOPPED
        assert hosted.interrupts == 1
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == changed(FIRST), "no unread line is touched"


@pytest.mark.parametrize("edit_format", FORMATS)
async def test_redirect_goes_on_from_what_was_kept(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    first, second, _ = pieces(edit_format)
    session = await opened(root, hosted.settings(url, edit_format))
    async with session:
        witness = Witness(session)
        hosted.say(first + second)
        old = await session.turns.instruct(Question("rename two", path="run.py", selection=(0, 30)))
        await witness.until(
            lambda: session.turns.writing is not None and session.turns.writing[1] > 15
        )
        (kept,) = await witness.decidable(1)
        turn = await session.turns.redirect("the last line instead")
        assert (turn.redirected_from, old.status) == (old.id, TurnStatus.STOPPED)
        if edit_format == "region":
            text = changed(FIRST, ("line_29 = 29\n", "last = 29\n"))
            hosted.say("```\n" + text + "```\n")
        else:
            hosted.say(
                "run.py\n<<<<<<< SEARCH\nline_29 = 29\n=======\nlast = 29\n>>>>>>> REPLACE\n"
            )
        hosted.end()
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        roles = [role for role, _ in hosted.messages]
        assert roles[-2:] == ["assistant", "user"]
        assert "the last line instead" in hosted.messages[-1][1]
        state = HunkState.SUPERSEDED if edit_format == "region" else HunkState.SETTLED
        assert session.hunks.get(kept).state is state, "a region is written anew"
        assert await session.decisions.accept_rest("run.py") == 2
        assert (root / "run.py").read_text() == changed(FIRST, ("line_29 = 29\n", "last = 29\n"))


async def test_a_patch_comes_as_input_of_a_custom_tool(
    hosted: Hosted, url: str, root: Path
) -> None:
    first, second, rest = pieces("v4a")
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        witness = Witness(session)
        hosted.say("I rename both.")  # a message item without a newline at its end
        hosted.call(first)
        turn = await session.turns.instruct(Question("rename two", path="run.py"))
        await witness.until(lambda: bool(hosted.creates))
        tool, *_ = hosted.creates[0]["tools"]
        assert (tool["type"], tool["name"]) == ("custom", "apply_patch")
        assert tool["format"]["syntax"] == "lark"
        await witness.decidable(1)
        hosted.call(second + rest)
        hosted.end()
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert await session.decisions.accept_rest("run.py") == 2
        assert (root / "run.py").read_text() == changed(FIRST, SECOND)
        hosted.say("fine")
        hosted.end()
        await session.turns.instruct(Question("thanks", path="run.py"))
        await session.turns.finished()
        assert "previous_response_id" not in hosted.creates[-1], "a conversation of its own"


MISPLACED = (
    "*** Begin Patch\n*** Update File: run.py\n@@\n-line_03 = 3\n+first = 3\n"
    "@@\n-no such line\n+second\n*** End Patch\n"
)
CORRECTED = "*** Begin Patch\n*** Update File: run.py\n@@\n-line_16 = 16\n+second\n*** End Patch\n"


@pytest.mark.parametrize("server", ["keeps", "forgets", "terse"])
async def test_what_became_of_a_patch_is_the_tools_output(
    server: str, hosted: Hosted, url: str, root: Path
) -> None:
    hosted.forgets, hosted.terse = server == "forgets", server == "terse"
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        witness = Witness(session)
        hosted.call(MISPLACED)
        turn = await session.turns.instruct(Question("rename two", path="run.py"))
        (hunk_id,) = await witness.decidable(1)
        await session.decisions.accept(hunk_id)
        hosted.end()
        hosted.say("Corrected:")
        hosted.call(CORRECTED)
        hosted.end()
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE
        assert [t.status for t in session.turns] == [TurnStatus.DONE, TurnStatus.DONE]
        assert session.turns[-1].redirected_from == turn.id
        roles = [role for role, _ in hosted.messages]
        assert roles == ["user", "call", "output"]
        assert hosted.messages[1][1] == MISPLACED
        told = hosted.messages[2][1]
        assert "no such line" in told or "Hunk 2" in told
        assert "kept at run.py:4" in told, "with what the person decided meanwhile"
        chained = [c for c in hosted.creates if "previous_response_id" in c]
        assert [[i["type"] for i in c["input"]] for c in chained] == [["custom_tool_call_output"]]
        whole = hosted.creates[-1]
        if server == "forgets":
            types = [i["type"] for i in whole["input"]]
            assert types == ["message", "custom_tool_call", "custom_tool_call_output"]
            assert "id" not in whole["input"][1], "its reasoning is not kept either"
        else:
            assert whole is chained[0]
        assert whole["tools"] == hosted.creates[0]["tools"]
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == changed(
            ("line_03 = 3\n", "first = 3\n"), ("line_16 = 16\n", "second\n")
        )


async def test_an_answer_about_several_files(hosted: Hosted, url: str, root: Path) -> None:
    (root / ".gitignore").write_text("secret.py\n")
    (root / "secret.py").write_text("token = 1\n")
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        hosted.say(
            "*** Begin Patch\n"
            "*** Update File: run.py\n@@\n-line_03 = 3\n+first = 3\n"
            "*** Add File: pkg/new.py\n+fresh = True\n"
            "*** Delete File: other.py\n"
            "*** Update File: secret.py\n@@\n-token = 1\n+token = 2\n"
            "*** Update File: ../outside.py\n@@\n-a\n+b\n"
            "*** End Patch\n"
        )
        hosted.end()
        hosted.say("*** Begin Patch\n*** End Patch\n")
        hosted.end()
        await session.turns.instruct(Question("rework it", path="run.py"))
        await session.turns.finished()
        assert set(session.files) == {"run.py", "pkg/new.py", "other.py"}
        assert not (root / "pkg").exists()
        assert (root / "other.py").exists()
        for path in list(session.files):
            assert await session.decisions.accept_rest(path) == 1
        assert (root / "pkg/new.py").read_text() == "fresh = True\n"
        assert not (root / "other.py").exists()
        assert (root / "secret.py").read_text() == "token = 1\n"
        refused = [n.text for n in session.status.notices if "secret.py" in n.text]
        assert refused
        sent = [text for role, text in hosted.messages if role == "user"]
        assert not any("token" in text for text in sent), "nothing of it is sent"
        await session.decisions.undo()
        await session.decisions.undo()
        assert (root / "other.py").read_text() == "x = 1\n"
        assert not (root / "pkg/new.py").exists()


async def test_a_move_is_a_new_file_and_a_deletion(hosted: Hosted, url: str, root: Path) -> None:
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        hosted.say(
            "*** Begin Patch\n*** Update File: other.py\n*** Move to: moved.py\n@@\n-x = 1\n"
            "+x = 2\n*** End Patch\n"
        )
        hosted.end()
        await session.turns.instruct(Question("move it", path="other.py"))
        await session.turns.finished()
        assert await session.decisions.accept_rest("moved.py") == 1
        assert await session.decisions.accept_rest("other.py") == 1
        assert (root / "moved.py").read_text() == "x = 2\n"
        assert not (root / "other.py").exists()


async def test_a_block_without_a_place_is_shown_and_asked_for_once_more(
    hosted: Hosted, url: str, root: Path
) -> None:
    good = "run.py\n<<<<<<< SEARCH\nline_03 = 3\n=======\nfirst = 3\n>>>>>>> REPLACE\n"
    bad = "run.py\n<<<<<<< SEARCH\nline_20 = twenty\n=======\nsecond = 20\n>>>>>>> REPLACE\n"
    session = await opened(root, hosted.settings(url, "search-replace"))
    async with session:
        witness = Witness(session)
        for _ in range(2):
            hosted.say(good + bad)
            hosted.end()
        turn = await session.turns.instruct(Question("rename two", path="run.py"))
        await session.turns.finished()
        assert len(hosted.creates) == 2, "once, not for ever"
        assert hosted.messages[-2] == ("assistant", good + bad)
        said = hosted.messages[-1][1]
        assert "Hunk 1 applied; do not send it again." in said
        assert "expected: line_20 = twenty" in said
        assert "found:    line_20 = 20" in said
        assert turn.failures
        assert "are not in run.py" in turn.failures[0]
        shown = [n.text for n in session.status.notices]
        assert "Asking the model once to fix it." in shown[0]
        assert shown[-1].startswith("An edit did not match the file")
        assert session.turns.last is not None
        assert session.turns.last.redirected_from == turn.id
        assert witness.count(TurnStarted) == witness.count(TurnFinished) == 2
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == changed(FIRST)


async def test_a_session_with_blocks_is_resumed(
    hosted: Hosted, url: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first, second, _ = pieces("v4a")
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        witness = Witness(session)
        hosted.say(first)
        await session.turns.instruct(Question("rename two", path="run.py"))
        (hunk_id,) = await witness.decidable(1)
        assert await session.decisions.accept(hunk_id)
        hosted.say(second + "d = 20\n line_21 = 21\n*** Add File: new.py\n+fresh = 1\n")
        await witness.until(
            lambda: any(
                s.new_lines for p in session.files.values() for s in p.segments if not p.base.lines
            )
        )
        await session.turns.stop_turn()
        journal = session.journal.path
        before = [(h.id, h.path, h.state, h.new) for h in session.hunks]
    again = await opened(root, hosted.settings(url, "v4a"), resume=journal)
    async with again:
        assert [(h.id, h.path, h.state, h.new) for h in again.hunks] == before
        for path in ("run.py", "new.py"):
            assert await again.decisions.accept_rest(path) == 1, again.status.notices
        assert (root / "run.py").read_text() == changed(FIRST, SECOND)
        assert (root / "new.py").read_text() == "fresh = 1\n"


async def test_blocks_are_recognised_where_a_region_was_asked_for(
    hosted: Hosted, url: str, root: Path
) -> None:
    session = await opened(root, hosted.settings(url, "region"))
    async with session:
        hosted.say("Sure, here is the patch:\n\n```diff\n--- a/run.py\n+++ b/run.py\n@@ @@\n")
        hosted.say("-line_03 = 3\n+first = 3\n line_04 = 4\n```\n")
        hosted.end()
        turn = await session.turns.instruct(Question("rename it", path="run.py", selection=(0, 10)))
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert await session.decisions.accept_rest("run.py") == 1
        assert (root / "run.py").read_text() == changed(FIRST)


async def test_an_answer_without_an_edit_is_quoted(hosted: Hosted, url: str, root: Path) -> None:
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        hosted.say("Which line do you mean?")
        hosted.end()
        turn = await session.turns.instruct(Question("rename it", path="run.py"))
        await session.turns.finished()
        assert turn.status is TurnStatus.FAILED
        assert "Which line do you mean?" in turn.error


async def test_effort_is_passed_on(hosted: Hosted, url: str, root: Path) -> None:
    session = await opened(root, hosted.settings(url, "v4a", effort="high"))
    async with session:
        for effort in ("high", None, "low"):
            session.turns.effort = effort or "auto"
            hosted.say("no")
            hosted.end()
            await session.turns.instruct(Question("do it", path="run.py"))
            await session.turns.finished()
            assert hosted.creates[-1].get("reasoning") == ({"effort": effort} if effort else None)


async def test_a_level_that_the_model_does_not_have_becomes_the_nearest(
    hosted: Hosted, url: str, root: Path
) -> None:
    settings = hosted.settings(url, "v4a", effort="max")
    (profile,) = settings.endpoints
    settings = replace(settings, endpoints=(replace(profile, efforts=("low", "high")),))
    session = await opened(root, settings)
    async with session:
        for effort, sent in (("max", "high"), ("none", "low"), ("high", "high")):
            session.turns.effort = effort
            hosted.say("no")
            hosted.end()
            await session.turns.instruct(Question("do it", path="run.py"))
            await session.turns.finished()
            assert hosted.creates[-1]["reasoning"] == {"effort": sent}


async def test_one_instruction_without_a_screen(
    hosted: Hosted, url: str, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hosted.say("".join(pieces("v4a")).replace("*** End Patch\n", ""))
    hosted.say("*** Update File: other.py\n@@\n-x = 1\n+x = 2\n*** End Patch\n")
    hosted.end()
    sink = DiffSink()
    job = Job(root, Question("rename", "run.py"), apply=True)
    outcome = await run_job(job, sink, settings=hosted.settings(url, "v4a"))
    sink.ended(outcome)
    assert (outcome.hunks, outcome.written) == (3, True)
    assert (root / "run.py").read_text() == changed(FIRST, SECOND)
    assert (root / "other.py").read_text() == "x = 2\n"
    patch = capfd.readouterr().out
    assert patch.index("--- a/run.py") < patch.index("+second = 20") < patch.index("--- a/other.py")
    assert patch.endswith("-x = 1\n+x = 2\n")


KEY = "AKIA" + "QX7ZL2MWPNV4RT6B"
BAD = (SECOND[0], f'second = "{KEY}"\n')
BLOCKS = [name for name in FORMATS if name != "region"]


def edit_of(edit_format: str, change: tuple[str, str]) -> str:
    """An answer with the second edit alone, or with the whole file where that is the format."""
    old, new = change
    if edit_format == "whole":
        return "run.py\n```python\n" + changed(FIRST, change) + "```\n"
    if edit_format == "v4a":
        body = f"@@\n {LINES[19]}-{old}+{new} {LINES[21]}"
        return f"*** Begin Patch\n*** Update File: run.py\n{body}*** End Patch\n"
    if edit_format == "udiff":
        body = f"@@ -20,3 +20,3 @@\n {LINES[19]}-{old}+{new} {LINES[21]}"
        return f"--- a/run.py\n+++ b/run.py\n{body}"
    if edit_format == "search-replace":
        return f"run.py\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    edit = {"path": "run.py", "old_str": old.strip(), "new_str": new.strip()}
    return json.dumps({"edits": [edit]})


def both_of(edit_format: str, change: tuple[str, str]) -> str:
    """An answer with the first edit and then this one."""
    first = pieces(edit_format)[0]
    alone = edit_of(edit_format, change)
    if edit_format == "whole":
        return alone
    if edit_format in ("v4a", "udiff"):
        return first + alone[alone.index("@@") :]
    if edit_format == "str-replace":
        return first + ", " + alone.removeprefix('{"edits": [')
    return first + alone


@pytest.mark.parametrize("edit_format", BLOCKS)
async def test_an_edit_of_lines_that_nobody_has_reviewed_is_left_out(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    """The lines of the other program still wait, and the answer's other edit is proposed."""
    theirs = ("line_20 = 20\n", "theirs = 20\n")
    session = await opened(root, hosted.settings(url, edit_format))
    async with session:
        (root / "run.py").write_text(changed(theirs))
        await session.review.switch_on(since_commit=True)
        (other,) = session.hunks.undecided()
        ask = session.turns.instruct(Question("rename two", path="run.py"))
        if edit_format == "whole":
            with pytest.raises(NotReviewedError, match=r"1 change of other programs in lines 1-30"):
                await ask
        else:
            answer = both_of(edit_format, (theirs[1], SECOND[1]))
            hosted.say(answer if edit_format != "str-replace" else answer + "\n")
            hosted.end()
            await ask
            await session.turns.finished()
            (said,) = [n.text for n in session.status.notices if "left out" in n.text]
            assert said == (
                "An edit was left out: 1 change of other programs in line 21 of run.py waits for "
                "you; decide first, then ask again."
            )
            assert len(hosted.creates) == 1, "the model is not asked again"
            mine = [hunk for hunk in session.hunks.undecided() if hunk is not other]
            assert [hunk.new for hunk in mine] == [(FIRST[1].strip(),)]
            assert await session.decisions.reject(mine[0].id)
        assert session.hunks.undecided() == [other]
        assert await session.decisions.reject(other.id)
        assert (root / "run.py").read_text() == BEFORE


async def test_a_file_that_nobody_has_reviewed_is_neither_deleted_nor_moved(
    hosted: Hosted, url: str, root: Path
) -> None:
    session = await opened(root, hosted.settings(url, "v4a"))
    async with session:
        (root / "run.py").write_text(changed(SECOND))
        (root / "other.py").write_text("x = 3\n")
        await session.review.switch_on(since_commit=True)
        hosted.say(
            "*** Begin Patch\n*** Delete File: run.py\n*** Update File: other.py\n"
            "*** Move to: moved.py\n@@\n-x = 3\n+x = 4\n*** End Patch\n"
        )
        hosted.end()
        await session.turns.instruct(Question("tidy up", path="run.py"))
        await session.turns.finished()
        assert [hunk.external for hunk in session.hunks.undecided()] == [True, True]
        said = [n.text for n in session.status.notices if "may not" in n.text]
        assert [text.partition(":")[0] for text in said] == [
            "The answer may not delete run.py",
            "The answer may not move other.py to moved.py",
        ]


@pytest.mark.parametrize("edit_format", BLOCKS)
async def test_the_guard_has_a_dangerous_edit_written_again(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    session = await opened(root, replace(hosted.settings(url, edit_format), guard=True))
    async with session:
        witness = Witness(session)
        hosted.say(both_of(edit_format, BAD))
        turn = await session.turns.instruct(Question("rename two", path="run.py"))
        await witness.until(lambda: len(hosted.creates) == 2)
        assert turn.status is TurnStatus.STOPPED
        (first,) = session.hunks.undecided()
        assert first.new == ("first = 3",)
        role, said = hosted.messages[-1]
        assert role == "user"
        assert said.startswith("<instruction>\nrename two\nLine 21 must not be written like that:")
        assert "the complete ones before it stand" in said
        assert KEY not in json.dumps(hosted.messages)
        hosted.say(edit_of(edit_format, SECOND))
        hosted.end()
        await session.turns.finished()
        assert session.turns.last is not None
        assert session.turns.last.status is TurnStatus.DONE, session.turns.last.error
        assert session.turns.last.redirected_from == turn.id
        await session.decisions.accept_rest("run.py")
        assert (root / "run.py").read_text() == changed(FIRST, SECOND)
        assert len(hosted.creates) == 2


@pytest.mark.parametrize("edit_format", BLOCKS)
async def test_after_two_corrections_of_an_edit_the_person_decides(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    session = await opened(root, replace(hosted.settings(url, edit_format), guard=True))
    async with session:
        witness = Witness(session)
        hosted.say(both_of(edit_format, BAD))
        await session.turns.instruct(Question("rename two", path="run.py"))
        for count in (2, 3):
            await witness.until(lambda count=count: len(hosted.creates) == count)
            hosted.say(edit_of(edit_format, BAD))
        await session.turns.finished()
        assert len(hosted.creates) == 3
        assert session.turns.last is not None
        assert session.turns.last.status is TurnStatus.STOPPED
        assert "it is held back" in session.status.notices[-1].text
        held = [hunk for hunk in session.hunks if hunk.state is HunkState.HELD]
        assert held
        await session.decisions.accept_rest("run.py")
        assert (root / "run.py").read_text() == changed(FIRST), "the rest of the answer stands"
        await session.decisions.release(held[-1].id, "a key of the tests")
        assert await session.decisions.accept(held[-1].id)
        assert (root / "run.py").read_text() == changed(FIRST, BAD)


async def test_a_copy_leaves_the_old_file(hosted: Hosted, url: str, root: Path) -> None:
    session = await opened(root, hosted.settings(url, "udiff"))
    async with session:
        hosted.say(
            "diff --git a/run.py b/copy.py\nsimilarity index 90%\ncopy from run.py\n"
            "copy to copy.py\n--- a/run.py\n+++ b/copy.py\n@@ -3,3 +3,3 @@\n"
            f" {LINES[2]}-{FIRST[0]}+{FIRST[1]} {LINES[4]}"
            f"@@ -20,3 +20,3 @@\n {LINES[19]}-{SECOND[0]}+{SECOND[1]} {LINES[21]}"
        )
        hosted.end()
        await session.turns.instruct(Question("copy it", path="run.py"))
        await session.turns.finished()
        assert await session.decisions.accept_rest("copy.py") == 1
        assert await session.decisions.accept_rest("run.py") == 0
        assert (root / "copy.py").read_text() == changed(FIRST, SECOND)
        assert (root / "run.py").read_text() == BEFORE


RAMBLE = "And then there is one more thing that should be said about lines and numbers. " * 500


@pytest.mark.parametrize("edit_format", ["search-replace", "region"])
async def test_an_answer_that_goes_on_and_on_is_cut_off(
    edit_format: str, hosted: Hosted, url: str, root: Path
) -> None:
    first, _, _ = pieces(edit_format)
    session = await opened(root, hosted.settings(url, edit_format))
    async with session:
        witness = Witness(session)
        hosted.say(first + RAMBLE)
        turn = await session.turns.instruct(
            Question("rename two", path="run.py", selection=(0, 30))
        )
        await session.turns.finished()
        assert turn.status is TurnStatus.FAILED
        rest = "the rest of lines 1-30" if edit_format == "region" else "everything else"
        assert turn.error == (
            "The model was stopped (it wrote far more than this change can need) after 1 change; "
            f"{rest} stays as it was."
        )
        assert witness.notice == turn.error
        assert hosted.interrupts == 1, "the server writes no further"
        await session.decisions.accept_rest("run.py")
        text = (root / "run.py").read_text()
        assert "first = 3\n" in text, "what had come before can be accepted"
        assert text.endswith("".join(LINES[20:])), "what was not reached stays"


async def test_talk_behind_a_complete_region_does_no_harm(
    hosted: Hosted, url: str, root: Path
) -> None:
    session = await opened(root, hosted.settings(url, "region"))
    async with session:
        hosted.say("".join(pieces("region")) + RAMBLE)
        turn = await session.turns.instruct(
            Question("rename two", path="run.py", selection=(0, 30))
        )
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        assert hosted.interrupts == 1
        await session.decisions.accept_rest("run.py")
        assert (root / "run.py").read_text() == changed(FIRST, SECOND)


async def test_an_answer_may_be_much_longer_than_its_region(
    hosted: Hosted, url: str, root: Path
) -> None:
    added = "".join(f"added_{n:03d} = work({n})\n" for n in range(200))
    session = await opened(root, hosted.settings(url, "region"))
    async with session:
        hosted.say(f"<region>\n{added}</region>\n")
        hosted.end()
        turn = await session.turns.instruct(
            Question("write 200 lines", path="run.py", selection=(0, 1))
        )
        await session.turns.finished()
        assert turn.status is TurnStatus.DONE, turn.error
        await session.decisions.accept_rest("run.py")
        assert (root / "run.py").read_text() == added + "".join(LINES[1:])
