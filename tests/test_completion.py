"""`midstream completion`: the completions of a real bash that has read the script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from midstream.cli import COMMANDS, main

BASH = shutil.which("bash")

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
COMP_TYPE=9
_shtab_midstream midstream "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "completion.bash"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("mo", {"models"}),
        ("serve --ho", {"--host"}),
        ("--transport w", {"websocket"}),
        ("--pacing re", {"replay"}),
        ("config endpoint.tr", {"endpoint.transport"}),
        ("models re", {"remove"}),
        ("wafer va", {"validate"}),
        ("edit shap", {"shapes.py", "shapes"}),
        ("models add shap", {"shapes"}),
        ("completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes(script: Path, tmp_path: Path, typed: str, offered: set[str]) -> None:
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes.py").touch()
    assert BASH is not None
    words = ["midstream", *typed.split(" ")]
    done = subprocess.run(
        [BASH, "--norc", "-c", ASK, "bash", script, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {word.rstrip(" /") for word in done.stdout.split("\n")} - {""} == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(command.name in text for command in COMMANDS)
    assert "--token-file" in text
