"""A format is declared in one place: the contents of a new module, and its readers."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.commands import apply as apply_command
from midstream.edits import formats
from midstream.edits.apply import apply_reply
from midstream.edits.documents import SourceText
from midstream.edits.events import (
    FileOp,
    FileSectionClosed,
    FileSectionOpened,
    HunkClosed,
    HunkOpened,
    NewText,
    OldLine,
)
from midstream.edits.formats import FormatSpec, Sniff, format_spec, format_specs, names, register
from midstream.edits.hunk_store import HunkStore
from midstream.edits.live import LiveReply
from midstream.edits.parsing import LineParser, Wait
from midstream.edits.proposal import FileProposal
from midstream.edits.sniffing import SniffingParser, sniff
from midstream.pairing.request.context import Context
from midstream.pairing.request.prompts import block_prompt
from midstream.responses.profiles import Profile
from midstream.settings.endpoints import read_profiles

REPLY = "Sure.\n!swap a.py|two|zwei\n"


class SwapParser(LineParser):
    """Reads lines ``!swap FILE|OLD|NEW``."""

    def _start(self, start: str) -> Wait:
        return Wait.LINE

    def _line(self, line: str, *, ended: bool) -> None:
        if line.startswith("!swap "):
            path, old, new = line.removeprefix("!swap ").split("|")
            hunk = self._begin_hunk()
            self._events += (
                FileSectionOpened(FileOp.UPDATE, path),
                HunkOpened(hunk, old_first=True),
            )
            self._events += (OldLine(hunk, old), NewText(hunk, f"{new}\n"))
            self._events += (HunkClosed(hunk), FileSectionClosed(path))
        else:
            self._prose(line + "\n" * ended)

    def _end(self) -> None:
        if not self.next_hunk:
            self._problem("the reply has no line '!swap'", fatal=True)


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> FormatSpec:
    monkeypatch.setattr(formats, "_registry", dict(formats._registry))
    marker = Sniff(lambda line: line.startswith("!swap "))
    spec = FormatSpec("swap", SwapParser, sniff=marker, prompt="Write !swap FILE|OLD|NEW.\n")
    register(spec)
    return spec


def test_a_new_format_is_sniffed_and_applied(swap: FormatSpec) -> None:
    assert sniff(REPLY) == "swap"
    files = {"a.py": b"one\ntwo\nthree\n"}
    for asked in ("auto", "swap"):
        result = apply_reply(REPLY, files.get, asked)
        assert (result.ok, result.format) == (True, "swap")
        assert result.changes == {"a.py": b"one\nzwei\nthree\n"}


def test_a_new_format_streams_into_hunks(swap: FormatSpec) -> None:
    proposal = FileProposal("a.py", SourceText.from_text("one\ntwo\nthree\n"), HunkStore())
    live = LiveReply(SniffingParser("whole"), lambda path, op: proposal)
    for char in REPLY:
        live.feed(char)
    live.finish()
    (hunk,) = proposal.hunks
    assert (hunk.old, hunk.new) == (("two",), ("zwei",))


def test_a_new_format_is_asked_for_and_offered(swap: FormatSpec) -> None:
    assert block_prompt("do it", Context(), "swap").system.endswith("\nWrite !swap FILE|OLD|NEW.\n")
    parser = argparse.ArgumentParser()
    apply_command.add_arguments(parser)
    assert parser.parse_args(["--format", "swap"]).format == "swap"
    assert "swap" in names()


def test_every_module_registers_the_format_of_its_name() -> None:
    folder = Path(formats.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {name.replace("-", "_") for name in names()} >= modules
    assert [spec.name for spec in format_specs()] == list(names())


@pytest.mark.parametrize("name", ["auto", *names()])
def test_every_format_can_be_set_for_an_endpoint(name: str) -> None:
    table = {"mine": {"kind": "openai", "model": "m", "edit_format": name}}
    profile = read_profiles(table, "config.toml")["mine"]
    assert isinstance(profile, Profile)
    assert profile.edit_format == name


def test_naming_the_formats_imports_none_of_them() -> None:
    code = (
        "import sys; from midstream.edits.formats import names; print(len(names())); "
        "print([m for m in sys.modules if m.startswith('midstream.edits.')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == [str(len(names())), "['midstream.edits.formats']"]


def test_an_unknown_format_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r'no edit format "v5a"; known are .*region, .*v4a'):
        format_spec("v5a")
