"""Shapes of string-built SQL that once went unseen, each beside what looks like it and is safe."""

from __future__ import annotations

import pytest

from midstream.guard.findings import Level
from midstream.guard.scanner import Scanner
from midstream.guard.stream import StreamScan


async def halting_lines(
    scanner: Scanner, text: str, path: str = "m.py", *, runs: bool = False
) -> list[int]:
    found = await scanner.scan(text.split("\n"), path, runs=runs)
    return [finding.line + 1 for finding in found if finding.level is Level.HALT]


@pytest.mark.parametrize(
    "text",
    [
        "def f(r):\n    n = r.POST.get('n')\n    db.execute('select a from t where n = ' + n)",
        "def f(request):\n    db.execute(f\"select a from t where n = '{request.GET['n']}'\")",
        "def f(n):\n    db.execute(\"select a from t where n = '%s'\".format(n))",
        "def f(n):\n    return \"select a from t where n = '[N]'\".replace('[N]', n)",
        "async def f(conn, n):\n    return await conn.fetch(queries.one.format(n))",
        "def f(session, n):\n    return session.query(A).filter(f\"a.name = '{n}'\").all()",
        "def f(n):\n    return A.objects.annotate(v=RawSQL('a = %s' % n, []))",
        "            pass\n\n    def f(self, n):\n"
        '        self.execute("select a from " + self.t + " where n=\'%s\'" % n)',
    ],
)
async def test_python(scanner: Scanner, text: str) -> None:
    assert await halting_lines(scanner, text)


@pytest.mark.parametrize(
    "text",
    [
        "KINDS = {'a': 'x', 'b': 'y'}\n"
        "def f(db, k):\n    db.execute('select a from t order by ' + KINDS[k])",
        "def f(n):\n    print(f\"update t set a = '{n}'\")",
        "def f(n):\n    log.warning(\"delete from t where a = '%s' failed\" % n)",
        "def f(n):\n    raise ValueError(f\"select a from t where a = '{n}' has no rows\")",
        "def f(frame, n):\n    return frame.filter(f'scale={n}')",
        "def f(session, n):\n    return session.query(A).filter(A.name == f'a={n}').all()",
        "def f(db, n):\n    db.execute('select a from t where n = {}'.format(int(n)))",
    ],
)
async def test_python_safe(scanner: Scanner, text: str) -> None:
    assert await halting_lines(scanner, text) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "a.js",
            "function f(n) {\n  let q = 'select a from t where n = '\n  q += n\n  db.query(q)\n}",
        ),
        ("a.js", "const q = 'select a from t where n = '.concat(name)"),
        ("a.js", 'let q = "select a from t where n = \'"\nq = q.concat(req.query.n)\ndb.query(q)'),
        ("a.js", "knex('t').whereRaw('n = ' + name)"),
        ("a.ts", "const q =\n  'select a from t ' +\n  'where n = ' + name"),
        (
            "a.go",
            'func f() {\n\tq := "select a from t where n = " + r.Form("n")\n\tdb.Query(ctx, q)\n}',
        ),
        ("a.go", "db.Query(ctx, fmt.Sprintf(\"select a from t where n = '%s'\", n))"),
        ("a.go", 'db.Where("name = \'" + name + "\'").Find(&users)'),
    ],
)
async def test_scripts(scanner: Scanner, path: str, text: str) -> None:
    assert await halting_lines(scanner, text, path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.js", "console.log(`select a from t where n = '${n}'`)"),
        (
            "a.js",
            "const id = parseInt(req.params.id, 10)\ndb.query('select a from t where n = ' + id)",
        ),
        (
            "a.js",
            "const a = {\n  q: 'select a from t where n = ?',\n  n: name\n}\ndb.query(a.q, [a.n])",
        ),
        ("a.go", 'log.Printf("delete from t where n = " + name)'),
        (
            "a.go",
            'id, err := strconv.Atoi(s)\nq := fmt.Sprintf("select a from t where n = %v", id)',
        ),
        ("a.go", 'db.Where("name = ?", name).Find(&users)'),
    ],
)
async def test_scripts_safe(scanner: Scanner, path: str, text: str) -> None:
    assert await halting_lines(scanner, text, path) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "m.py",
            "def f(db, n):\n    q = \"select a from t where n = '%s'\" % n\n\n    db.execute(q)",
        ),
        (
            "m.js",
            "function f(n) {\n  const q = `select a from t where n = '${n}'`\n\n  db.query(q)\n}",
        ),
    ],
)
async def test_a_review_names_both_places_and_a_stream_the_first(
    scanner: Scanner, path: str, text: str
) -> None:
    assert await halting_lines(scanner, text, path, runs=True) == [2, 4]
    lines = text.split("\n")
    stream = StreamScan(scanner, path, [], [])
    found = [f.line + 1 for n in range(len(lines)) for f in await stream.look(lines[: n + 1])]
    assert found == [2]
