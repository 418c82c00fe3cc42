"""The scanner with a real ruff server: what halts, what warns, and what a dead ruff means."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from midstream.guard.findings import Level
from midstream.guard.ruff import find_ruff
from midstream.guard.scanner import Scanner
from midstream.guard.stream import StreamScan
from tests.helpers.broken_ruff import BROKEN, BrokenRuff


async def halts(scanner: Scanner, text: str) -> list[str]:
    found = await scanner.scan(text.split("\n"), "module.py")
    return [finding.rule for finding in found if finding.level is Level.HALT]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("def f(db, name):\n    db.execute(\"select * from t where a = '%s'\" % name)", "S608"),
        ("def f(db, name):\n    db.execute(f'select * from t where a = {name}')", "S608"),
        ("def f(name):\n    q = 'delete from t where a = ' + name\n    return q", "S608"),
        ("import subprocess\ndef f(cmd):\n    subprocess.run(cmd, shell=True)", "S602"),
        ("import os\ndef f(name):\n    os.system('rm ' + name)", "S605"),
        ("def f(text):\n    return eval(text)", "S307"),
        ("import yaml\ndef f(text):\n    return yaml.load(text)", "S506"),
        ("import pickle\ndef f(request):\n    return pickle.loads(request.body)", "S301"),
        ("import requests\ndef f(u):\n    return requests.get(u, verify=False)", "S501"),
    ],
)
async def test_halts(scanner: Scanner, text: str, rule: str) -> None:
    assert await halts(scanner, text) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "def f(db, name):\n    db.execute('select * from t where a = ?', (name,))",
        "TABLE = 't'\ndef f(db):\n    db.execute(f'select * from {TABLE}')",
        "def f(d, i):\n    d.execute('select * from t where a in(%s)' % ','.join('?' * len(i)), i)",
        "import subprocess\nsubprocess.run('ls -l', shell=True)",
        "import subprocess\ndef f(cmd):\n    subprocess.run([cmd, '-l'])",
        "def f():\n    return eval('1 + 1')",
        "import yaml\ndef f(text):\n    return yaml.safe_load(text)",
        "import pickle\ndef f(data):\n    return pickle.loads(data)",
        "assert True",
        "import hashlib\nhashlib.md5(b'')",
    ],
)
async def test_does_not_halt(scanner: Scanner, text: str) -> None:
    assert await halts(scanner, text) == []


async def test_no_finding_shows_a_credential(scanner: Scanner) -> None:
    key = "AKIA" + "QX7ZL2MWPNV4RT6B"
    line = f'rows = db.execute(f"select {{a}}"), eval(a), connect("{key}")'
    findings = await scanner.scan([line], "a.py")
    assert len({finding.rule for finding in findings}) == 3
    assert not any(key in finding.evidence for finding in findings)


async def test_inline_ignores(scanner: Scanner) -> None:
    text = "def f(t):\n    eval(t)  # noqa: S307\n    eval(t)  # nosec\n    eval(t)  # noqa: E501"
    found = await scanner.scan(text.split("\n"), "module.py")
    assert [finding.line for finding in found] == [3]


async def test_other_languages_are_scanned_for_secrets_only(scanner: Scanner) -> None:
    line = "password = 'kX9#" + "mP2$vL5q'"
    found = await scanner.scan(["eval(x)", line], "app.rb")
    assert [(finding.rule, finding.line) for finding in found] == [("secret-keyword", 1)]
    assert not scanner.guards("app.rb")


async def test_what_to_write_instead_is_said_once(scanner: Scanner) -> None:
    (found,) = await scanner.scan(["def f(t):", "    return eval(t)"], "app.py")
    assert found.idiom.startswith("use ast.literal_eval")
    assert found.message == "Use of possibly insecure function"


async def test_a_killed_ruff_is_started_again(scanner: Scanner) -> None:
    text = "def f(t):\n    return eval(t)"
    assert await halts(scanner, text) == ["S307"]
    pid = scanner.ruff.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert await halts(scanner, text) == ["S307"]
    assert scanner.ruff.pid not in (None, pid)
    assert scanner.guards("module.py")


async def test_without_ruff_python_is_unguarded(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("midstream.guard.ruff.find_ruff", lambda: None)
    line = "password = 'kX9#" + "mP2$vL5q'"
    found = await scanner.scan(["eval(x)", line], "m.py")
    assert [finding.rule for finding in found] == ["secret-keyword"]
    assert "ruff is not installed" in scanner.problem
    assert not scanner.guards("m.py")


async def test_garbage_and_long_lines(scanner: Scanner) -> None:
    for lines in (
        ["\x00\x01\x02"],
        ["x" * 1_000_000],
        ["(" * 5_000],
        ["é = 1; eval(é)"],
        ['"' * 999],
    ):
        await scanner.scan(lines, "m.py")
    assert await halts(scanner, "def f(é):\n    x = 'ü'; return eval(é)") == ["S307"]


def fake_ruff(folder: Path, body: str) -> str:
    """A program that behaves badly as a server and is ruff otherwise."""
    path = folder / "ruff"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = server ]; then {body}; fi\nexec "{find_ruff()}" "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "body",
    [
        "exit 1",
        "head -c 10 >/dev/null; kill -9 $$",
        "echo garbage; cat",
        "printf 'Content-Length: 4\\r\\n\\r\\nnull'; cat >/dev/null",
        "printf 'Content-Length: -7\\r\\n\\r\\n'; cat >/dev/null",
        "head -c 3000000 /dev/zero; exit",
    ],
)
async def test_a_server_that_does_not_work_is_replaced_by_the_command(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str
) -> None:
    program = fake_ruff(tmp_path, body)
    monkeypatch.setattr("midstream.guard.ruff.find_ruff", lambda: program)
    assert await halts(scanner, "def f(t):\n    return eval(t)") == ["S307"]
    assert scanner.guards("m.py")
    assert await halts(scanner, "import os\ndef f(t):\n    os.system(t)") == ["S605"]


@pytest.mark.parametrize("body", BROKEN)
async def test_a_ruff_that_does_nothing_right_leaves_python_unguarded(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str
) -> None:
    ruff = BrokenRuff(tmp_path, body, monkeypatch)
    assert await scanner.scan(["eval(x)"], "m.py") == []
    assert scanner.problem.startswith("ruff does not work (")
    assert not scanner.guards("m.py")
    assert not scanner.guards("m.py", unread=0)
    ruff.mend()
    await scanner.scan([], "m.py")
    assert scanner.guards("m.py")
    assert not scanner.guards("m.py", unread=0), "what was not read counts as read"


async def test_a_ruff_that_never_stops_is_not_read_to_the_end(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it prints within the time that it is given would fill the memory."""
    BrokenRuff(tmp_path, "exec cat /dev/zero", monkeypatch)
    assert await scanner.scan(["eval(x)"], "m.py") == []
    assert scanner.problem == "ruff does not work (its answer cannot be read)."


async def test_a_ruff_that_hangs_leaves_python_unguarded(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    BrokenRuff(tmp_path, "exec sleep 600", monkeypatch)
    monkeypatch.setattr("midstream.guard.ruff._TIMEOUT_S", 0.1)
    assert await scanner.scan(["eval(x)"], "m.py") == []
    assert scanner.problem == "ruff does not work (it does not answer)."


@pytest.mark.parametrize("server", ["true", "exit 1"])
async def test_no_configuration_of_ruff_hides_a_finding(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: str
) -> None:
    """Neither one of the project nor one of the user."""
    settings = 'exclude = ["*"]\n[lint]\nignore = ["S307"]\nper-file-ignores = { "*" = ["S"] }\n'
    for folder in (tmp_path, tmp_path / "ruff"):
        folder.mkdir(exist_ok=True)
        (folder / "ruff.toml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    program = fake_ruff(tmp_path / "ruff", server)
    monkeypatch.setattr("midstream.guard.ruff.find_ruff", lambda: program)
    assert await halts(scanner, "def f(t):\n    return eval(t)") == ["S307"]


async def test_lines_that_ruff_has_not_looked_at_stay_unguarded(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stream = StreamScan(scanner, "m.py", [], [])
    ruff = BrokenRuff(tmp_path, "exit 1", monkeypatch)
    assert await stream.look(["eval(x)"]) == []
    ruff.mend()
    found = await stream.look(["eval(x)", "eval(y)"])
    assert [finding.line for finding in found] == [1]
    assert not scanner.problem
    assert stream.unread
    assert stream.problem == "ruff has not looked at some lines"


async def test_text_that_does_not_parse_is_scanned_statement_by_statement(
    scanner: Scanner,
) -> None:
    text = (
        "    def get(self, name):\n"
        '        print "looking for", name\n'
        "        ??? what\n"
        "        try:\n"
        "            os.system(name)\n"
        "        except OSError, e:\n"
        "            return eval(name)\n"
        "        pickle.loads(request.body)\n"
        "        requests.get(name, verify=False)\n"
    )
    assert await halts(scanner, text) == ["S605", "S307", "S301", "S501"]
