"""The scan of a region that streams in: new findings only, at their line, in any chunking."""

from __future__ import annotations

import os
import signal

import pytest

from midstream.guard.findings import Level
from midstream.guard.scanner import Scanner
from midstream.guard.stream import StreamScan

KEY = "AKIA" + "QX7ZL2MWPNV4RT6B"


async def run(scan: StreamScan, lines: list[str], step: int = 1) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for count in range(step, len(lines) + step, step):
        found += [(f.rule, f.line) for f in await scan.look(lines[:count])]
    return found


SQL = [
    "def find(db, name):",
    "    db.execute(",
    "        \"select * from users where name = '%s'\"",
    "        % name",
    "    )",
    "    return db",
]


@pytest.mark.parametrize("step", [1, 2, 3, 6])
async def test_the_offending_line_is_reported_however_lines_come(
    scanner: Scanner, step: int
) -> None:
    scan = StreamScan(scanner, "m.py", ["import os", ""], ["def find(db, name):", "    pass"])
    assert await run(scan, SQL, step) == [("S608", 2)]
    assert scan.statement_at(2) == 1
    assert scan.statement_at(5) == 5
    assert scan.seen == 6


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 8])
async def test_what_parses_is_guarded_however_lines_come(scanner: Scanner, step: int) -> None:
    region = [
        "def join(state):",
        '    """',
        "    Clean up tokens.",
        "",
        "    Merge those that are text.",
        '    """',
        "    while state.more:",
        "        if state.here:",
        "            state.level += 1",
        "",
        "        if (",
        "            state.text",
        "            and state.more",
        "        ):",
        "            # Collapse a run",
        "            # of them.",
        "            os.system(state.text)",
        "",
        "    # The rest.",
        "    return state.format(",
        "        state.text,",
        "    )",
    ]
    scan = StreamScan(scanner, "m.py", ["import os", ""], [])
    assert await run(scan, region, step) == [("S605", 16)]
    assert scan.problem == ""


async def test_what_was_there_before_is_not_new(scanner: Scanner) -> None:
    scan = StreamScan(scanner, "m.py", [], SQL)
    assert await run(scan, ["import os", "", *SQL, "", *SQL]) == [("S608", 11)]


async def test_imports_far_above_are_known(scanner: Scanner) -> None:
    bodies = [line for n in range(300) for line in (f"def f{n}(a):", f"    return eval(a + {n})")]
    above = ["import subprocess as sp", "", *bodies]
    scan = StreamScan(scanner, "m.py", above, ["x = 1"])
    found = await run(scan, ["def go(command):", "    sp.run(command, shell=True)"])
    assert found == [("S602", 1)]


async def test_a_region_inside_a_class(scanner: Scanner) -> None:
    above = ["import os", *[""] * 130, "class A:", "    def a(self):", "        return 1", ""]
    scan = StreamScan(scanner, "m.py", above, ["    def b(self):", "        return 2"])
    lines = ["    def b(self, x):", "        os.system(x)", "        return 2"]
    assert await run(scan, lines) == [("S605", 1)]


async def test_a_region_that_begins_inside_a_statement(scanner: Scanner) -> None:
    scan = StreamScan(scanner, "m.py", ["x = ("], ["1)"])
    assert await scan.look([]) == []
    assert await run(scan, ["1,", "2)", "eval(x[0])"]) == [("S307", 2)]
    assert scan.problem == ""


async def test_secrets_are_seen_in_unfinished_statements(scanner: Scanner) -> None:
    scan = StreamScan(scanner, "m.py", [], [])
    assert await run(scan, ["call(", f'    "{KEY}",']) == [("secret-aws-key", 1)]


async def test_an_own_excuse_of_the_model_only_softens(scanner: Scanner) -> None:
    scan = StreamScan(scanner, "m.py", [], [])
    found = await scan.look(["def f(t):", "    return eval(t)  # noqa: S307"])
    assert [(f.rule, f.level) for f in found] == [("S307", Level.WARN)]


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("a.ts", "db.query(`select * from users where id = ${id}`);", "js-sql"),
        ("a.js", "const q = 'SELECT * FROM t WHERE a = ' + name;", "js-sql"),
        ("a.js", "child_process.exec(`rm ${name}`);", "js-shell"),
        ("a.js", "return eval(text);", "js-eval"),
        ("a.go", "q := fmt.Sprintf(\"select * from t where a = '%s'\", name)", "go-sql"),
        ("a.go", 'cmd := exec.Command("sh", "-c", line)', "go-shell"),
        ("a.sh", 'eval "$1"', "sh-eval"),
        ("a.sh", "curl -s https://example.org/x.sh | sudo bash", "sh-pipe"),
        ("a.sh", 'bash -c "ls $1"', "sh-shell"),
        ("a.sh", 'sudo sh -ec "rm -r ${dir}"', "sh-shell"),
        ("a.sh", "sh -c $command", "sh-shell"),
        ("a.sh", "mysql -e \"SELECT a FROM t WHERE n = '$1'\"", "sh-sql"),
        ("a.sh", 'psql -c "delete from t where n = $(id)"', "sh-sql"),
    ],
)
async def test_other_languages(scanner: Scanner, path: str, line: str, rule: str) -> None:
    scan = StreamScan(scanner, path, [], [])
    assert await run(scan, ["", line]) == [(rule, 1)]
    assert scanner.guards(path)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.ts", "db.query('select * from users where id = ?', [id]);"),
        ("a.ts", "db.query(sql`select * from users where id = ${id}`);"),
        ("a.js", "const match = pattern.exec(text + suffix);"),
        ("a.js", "const q = 'select * from ' + TABLE;"),
        ("a.js", "execFile('rm', [name]);"),
        ("a.js", "log('please select a name from ' + list);"),
        ("a.go", 'db.Query("select * from t where a = $1", name)'),
        ("a.go", 'exec.Command("ls", name)'),
        ("a.sh", 'eval "$(ssh-agent -s)"'),
        ("a.sh", "# eval $x"),
        ("a.sh", 'bash -c "ls -l"'),
        ("a.sh", 'bash -c \'ls "$1"\' bash "$name"'),
        ("a.sh", './publish.sh -c "$config"'),
        ("a.sh", 'bash "$script" -c'),
        ("a.sh", 'mysql -e "SELECT a FROM t" "$database"'),
    ],
)
async def test_other_languages_safe(scanner: Scanner, path: str, line: str) -> None:
    assert await run(StreamScan(scanner, path, [], []), [line]) == []


async def test_levels_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = Scanner({"S307": Level.OFF, "S602": Level.WARN, "js-eval": Level.OFF})
    try:
        text = ["import subprocess", "eval(x)", "subprocess.run(x, shell=True)"]
        found = await StreamScan(scanner, "m.py", [], []).look(text)
        assert [(f.rule, f.level) for f in found] == [("S602", Level.WARN)]
        assert await StreamScan(scanner, "m.js", [], []).look(["eval(x)"]) == []
    finally:
        await scanner.close()


async def test_garbage_goes_on_and_says_so(scanner: Scanner) -> None:
    scan = StreamScan(scanner, "m.py", [], [])
    await scan.look(["x = 1"])
    assert scan.problem == ""
    lines = ["x = 1", "\x00\x01 ) = ="]
    await scan.look(lines)
    assert "does not parse" in scan.problem
    lines += ["(", *["x,"] * 200]
    await scan.look(lines)
    assert "at line 3 does not end" in scan.problem
    lines += ["(" * 1_000_000, f'k = "{KEY}"']
    assert [f.rule for f in await scan.look(lines)] == ["secret-aws-key"]
    assert "too long" in scan.problem
    assert scan.seen == len(lines)


async def test_ruff_killed_in_the_middle(scanner: Scanner) -> None:
    scan = StreamScan(scanner, "m.py", [], [])
    await scan.look(["def f(t):"])
    pid = scanner.ruff.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert [f.rule for f in await scan.look(["def f(t):", "    eval(t)"])] == ["S307"]
    assert not scan.problem
