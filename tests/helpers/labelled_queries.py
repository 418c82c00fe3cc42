# ruff: noqa: E501 (a table of code: one shape a line)
"""Pairs of functions that build SQL from strings, and the same with parameters, made by a program.

Every pair is one shape of code with names of its own, set in one of several frames: a whole module,
a method that was cut from its class, a function without its imports, Python 2.
"""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Pair:
    """Code that is open to injection, and the same code mended."""

    name: str
    path: str
    bad: str
    good: str


TABLES: Final = (
    "users",
    "orders",
    "invoices",
    "sessions",
    "articles",
    "payments",
    "devices",
    "tags",
)
COLUMNS: Final = ("name", "email", "owner_id", "status", "title", "slug", "region", "token_id")
VALUES: Final = (
    "name",
    "user_id",
    "key",
    "value",
    "email",
    "term",
    "ident",
    "uid",
    "search",
    "owner",
)
CURSORS: Final = (
    "cursor",
    "cur",
    "self.cursor",
    "self.db",
    "conn",
    "self.conn.cursor()",
    "db",
    "c",
)

# bad, good; {c} cursor, {t} table, {a} and {b} columns, {x} and {y} values
PYTHON: Final = {
    "percent": (
        "{c}.execute(\"SELECT * FROM {t} WHERE {a} = '%s'\" % {x})",
        '{c}.execute("SELECT * FROM {t} WHERE {a} = %s", ({x},))',
    ),
    "percent tuple": (
        "{c}.execute(\"UPDATE {t} SET {a} = '%s' WHERE {b} = '%s'\" % ({x}, {y}))",
        '{c}.execute("UPDATE {t} SET {a} = %s WHERE {b} = %s", ({x}, {y}))',
    ),
    "percent dict": (
        "{c}.execute(\"DELETE FROM {t} WHERE {a} = '%(v)s'\" % dict(v={x}))",
        '{c}.execute("DELETE FROM {t} WHERE {a} = %(v)s", dict(v={x}))',
    ),
    "percent locals": (
        '{c}.execute("SELECT {a} FROM {t} WHERE {b} = %({x})s" % locals())',
        '{c}.execute("SELECT {a} FROM {t} WHERE {b} = %({x})s", {{"{x}": {x}}})',
    ),
    "format": (
        "{c}.execute(\"SELECT {a} FROM {t} WHERE {b} = '{{}}'\".format({x}))",
        '{c}.execute("SELECT {a} FROM {t} WHERE {b} = ?", [{x}])',
    ),
    "format named": (
        '{c}.execute("SELECT {a} FROM {t} WHERE {b} = {{v}}".format(v={x}))',
        '{c}.execute("SELECT {a} FROM {t} WHERE {b} = :v", {{"v": {x}}})',
    ),
    "f-string": (
        "{c}.execute(f\"SELECT * FROM {t} WHERE {a} LIKE '%{{{x}}}%'\")",
        '{c}.execute("SELECT * FROM {t} WHERE {a} LIKE ?", (f"%{{{x}}}%",))',
    ),
    "plus": (
        '{c}.execute("SELECT * FROM {t} WHERE {a} = \'" + {x} + "\'")',
        '{c}.execute("SELECT * FROM {t} WHERE {a} = ?", ({x},))',
    ),
    "plus str": (
        '{c}.execute("SELECT COUNT(*) FROM {t} WHERE {a} = " + str({x}) + " LIMIT 1")',
        '{c}.execute("SELECT COUNT(*) FROM {t} WHERE {a} = %s LIMIT 1", [{x}])',
    ),
    "variable": (
        "sql = \"SELECT * FROM {t} WHERE {a} = '%s' AND {b} = %s\" % ({x}, {y})\n{c}.execute(sql)",
        'sql = "SELECT * FROM {t} WHERE {a} = %s AND {b} = %s"\n{c}.execute(sql, ({x}, {y}))',
    ),
    "late percent": (
        'query = "SELECT {a} FROM {t} WHERE {b} = %s"\nlog.debug(query)\n{c}.execute(query % {x})',
        'query = "SELECT {a} FROM {t} WHERE {b} = %s"\nlog.debug(query)\n{c}.execute(query, ({x},))',
    ),
    "late format": (
        'query = "SELECT {a} FROM {t} WHERE {b} = {{}}"\nrows = {c}.execute(query.format({x}))',
        'query = "SELECT {a} FROM {t} WHERE {b} = ?"\nrows = {c}.execute(query, ({x},))',
    ),
    "augmented": (
        'sql = "SELECT * FROM {t}"\nif {x}:\n    sql += " WHERE {a} = \'" + {x} + "\'"\n{c}.execute(sql)',
        'sql, args = "SELECT * FROM {t}", []\nif {x}:\n    sql += " WHERE {a} = ?"\n'
        "    args.append({x})\n{c}.execute(sql, args)",
    ),
    "augmented format": (
        'sql = "SELECT * FROM {t} WHERE 1 = 1"\nsql += " AND {a} = {{0}} ".format({x})\n'
        "{c}.execute(sql)",
        'sql = "SELECT * FROM {t} WHERE 1 = 1"\nsql += " AND {a} = %s "\n{c}.execute(sql, ({x},))',
    ),
    "join": (
        'parts = ["SELECT * FROM {t}", "WHERE {a} = \'" + {x} + "\'"]\n{c}.execute(" ".join(parts))',
        'parts = ["SELECT * FROM {t}", "WHERE {a} = ?"]\n{c}.execute(" ".join(parts), ({x},))',
    ),
    "join of conditions": (
        "where = []\nfor k, v in {x}.items():\n    where.append(\"%s = '%s'\" % (k, v))\n"
        '{c}.execute("SELECT * FROM {t} WHERE " + " AND ".join(where))',
        'where, args = [], []\nif {x}:\n    where.append("{a} = %s")\n    args.append({x})\n'
        '{c}.execute("SELECT * FROM {t} WHERE " + " AND ".join(where), args)',
    ),
    "in list": (
        '{c}.execute("SELECT * FROM {t} WHERE {a} IN (%s)" % ",".join({x}))',
        '{c}.execute(\n    "SELECT * FROM {t} WHERE {a} IN (%s)" % ",".join(["%s"] * len({x})), {x}\n)',
    ),
    "multi-line triple": (
        '{c}.execute(\n    """\n    SELECT {a}, {b}\n    FROM {t}\n    WHERE {a} = \'%s\'\n    """ % {x}\n)',
        '{c}.execute(\n    """\n    SELECT {a}, {b}\n    FROM {t}\n    WHERE {a} = %s\n    """, ({x},)\n)',
    ),
    "multi-line implicit": (
        "{c}.execute(\n    \"INSERT INTO {t} ({a}, {b}) \"\n    \"VALUES ('%s', '%s')\"\n    % ({x}, {y})\n)",
        '{c}.execute(\n    "INSERT INTO {t} ({a}, {b}) "\n    "VALUES (%s, %s)",\n    ({x}, {y}),\n)',
    ),
    "multi-line f": (
        '{c}.execute(f"""\n    UPDATE {t}\n    SET {a} = \'{{{x}}}\'\n    WHERE {b} = {{{y}}}\n""")',
        '{c}.execute("""\n    UPDATE {t}\n    SET {a} = ?\n    WHERE {b} = ?\n""", ({x}, {y}))',
    ),
    "backslash": (
        'sql = "SELECT {a} FROM {t} " \\\n    "WHERE {b} = \'" + {x} + "\' ORDER BY {a}"\n{c}.execute(sql)',
        'sql = "SELECT {a} FROM {t} " \\\n    "WHERE {b} = ? ORDER BY {a}"\n{c}.execute(sql, ({x},))',
    ),
    "executemany": (
        "for row in {x}:\n    {c}.executemany(\"INSERT INTO {t} VALUES ('%s')\" % row, [])",
        '{c}.executemany("INSERT INTO {t} VALUES (?)", [(row,) for row in {x}])',
    ),
    "executescript": (
        '{c}.executescript("UPDATE {t} SET {a} = \'" + {x} + "\';")',
        '{c}.execute("UPDATE {t} SET {a} = ?", ({x},))',
    ),
    "order by": (
        '{c}.execute("SELECT * FROM {t} ORDER BY " + {x})',
        'if {x} not in ("{a}", "{b}"):\n    raise ValueError({x})\n'
        '{c}.execute("SELECT * FROM {t} ORDER BY " + {x})',
    ),
    "limit": (
        '{c}.execute("SELECT * FROM {t} LIMIT %s OFFSET %s" % ({x}, {y}))',
        '{c}.execute("SELECT * FROM {t} LIMIT %d OFFSET %d" % (int({x}), int({y})))',
    ),
    "text": (
        'session.execute(text("SELECT * FROM {t} WHERE {a} = \'" + {x} + "\'"))',
        'session.execute(text("SELECT * FROM {t} WHERE {a} = :v"), {{"v": {x}}})',
    ),
    "raw": (
        "return {T}.objects.raw(\"SELECT * FROM {t} WHERE {a} = '%s'\" % {x})",
        'return {T}.objects.raw("SELECT * FROM {t} WHERE {a} = %s", [{x}])',
    ),
    "extra": (
        "return {T}.objects.extra(where=[\"{a} = '%s'\" % {x}])",
        'return {T}.objects.extra(where=["{a} = %s"], params=[{x}])',
    ),
    "read_sql": (
        "frame = pd.read_sql(f\"select * from {t} where {a} = '{{{x}}}'\", engine)",
        'frame = pd.read_sql("select * from {t} where {a} = %s", engine, params=[{x}])',
    ),
    "read_sql variable": (
        'q = "select {a} from {t} where {b} = " + str({x})\nframe = pd.read_sql_query(q, con=conn)',
        'q = "select {a} from {t} where {b} = ?"\nframe = pd.read_sql_query(q, con=conn, params=({x},))',
    ),
    "asyncpg": (
        "row = await pool.fetchrow(f\"SELECT * FROM {t} WHERE {a} = '{{{x}}}'\")",
        'row = await pool.fetchrow("SELECT * FROM {t} WHERE {a} = $1", {x})',
    ),
    "wrapped": (
        "stmt = \"SELECT * FROM {t} WHERE {a} = '{{0}}'\"\nstmt = stmt.format({x}.strip())\n"
        "with engine.connect() as link:\n    link.execute(stmt)",
        'stmt = "SELECT * FROM {t} WHERE {a} = %s"\n'
        "with engine.connect() as link:\n    link.execute(stmt, ({x}.strip(),))",
    ),
    "ternary": (
        'order = "DESC" if {y} else "ASC"\n'
        "{c}.execute(\"SELECT * FROM {t} WHERE {a} = '%s' ORDER BY {b} %s\" % ({x}, order))",
        'order = "DESC" if {y} else "ASC"\n'
        '{c}.execute("SELECT * FROM {t} WHERE {a} = ? ORDER BY {b} %s" % order, ({x},))',
    ),
    "unknown template": (
        "{c}.execute(query % {x})",
        "{c}.execute(query, ({x},))",
    ),
    "template": (
        "sql = Template(\"SELECT * FROM {t} WHERE {a} = '$v'\").substitute(v={x})\n{c}.execute(sql)",
        'sql = "SELECT * FROM {t} WHERE {a} = ?"\n{c}.execute(sql, ({x},))',
    ),
    "replace": (
        'sql = "SELECT * FROM {t} WHERE {a} = \'@v\'".replace("@v", {x})\n{c}.execute(sql)',
        'sql = "SELECT * FROM {t} WHERE {a} = ?"\n{c}.execute(sql, [{x}])',
    ),
    "returned": (
        "return \"SELECT {a} FROM {t} WHERE {b} = '%s'\" % {x}",
        'return "SELECT {a} FROM {t} WHERE {b} = %s", ({x},)',
    ),
    "composed": (
        '{c}.execute("SELECT {a} FROM " + {y} + " WHERE {b} = \'" + {x} + "\'")',
        '{c}.execute(sql.SQL("SELECT {a} FROM {{}} WHERE {b} = %s").format(sql.Identifier({y})), [{x}])',
    ),
}

SCRIPT: Final = {
    "template literal": (
        "db.query(`SELECT * FROM {t} WHERE {a} = '${{{x}}}'`, done);",
        "db.query('SELECT * FROM {t} WHERE {a} = ?', [{x}], done);",
    ),
    "plus": (
        'connection.query("SELECT * FROM {t} WHERE {a} = \'" + {x} + "\'", done);',
        'connection.query("SELECT * FROM {t} WHERE {a} = ?", [{x}], done);',
    ),
    "multi-line template": (
        "const rows = await pool.query(`\n  SELECT {a}, {b}\n  FROM {t}\n  WHERE {a} = ${{req.params.{x}}}\n`);",
        "const rows = await pool.query(`\n  SELECT {a}, {b}\n  FROM {t}\n  WHERE {a} = $1\n`, [req.params.{x}]);",
    ),
    "multi-line plus": (
        "const sql = 'SELECT {a} ' +\n  'FROM {t} ' +\n  'WHERE {b} = ' + req.body.{x};\ndb.all(sql, done);",
        "const sql = 'SELECT {a} ' +\n  'FROM {t} ' +\n  'WHERE {b} = ?';\ndb.all(sql, [req.body.{x}], done);",
    ),
    "augmented": (
        "let sql = 'SELECT * FROM {t}';\nif ({x}) {{\n  sql += \" WHERE {a} = '\" + {x} + \"'\";\n}}\ndb.all(sql);",
        "let sql = 'SELECT * FROM {t}';\nif ({x}) {{\n  sql += ' WHERE {a} = ?';\n}}\ndb.all(sql, [{x}]);",
    ),
    "sequelize": (
        "await sequelize.query(`UPDATE {t} SET {a} = '${{{x}}}' WHERE {b} = ${{{y}}}`);",
        "await sequelize.query('UPDATE {t} SET {a} = ? WHERE {b} = ?', {{ replacements: [{x}, {y}] }});",
    ),
}
GO: Final = {
    "sprintf": (
        "q := fmt.Sprintf(\"SELECT {a} FROM {t} WHERE {b} = '%s'\", {x})\nrows, err := db.Query(q)",
        'rows, err := db.Query("SELECT {a} FROM {t} WHERE {b} = ?", {x})',
    ),
    "plus": (
        'rows, err := db.Query("SELECT {a} FROM {t} WHERE {b} = \'" + {x} + "\'")',
        'rows, err := db.Query("SELECT {a} FROM {t} WHERE {b} = $1", {x})',
    ),
    "raw string": (
        "_, err := tx.Exec(fmt.Sprintf(`\n\tDELETE FROM {t}\n\tWHERE {a} = '%s'\n`, {x}))",
        "_, err := tx.Exec(`\n\tDELETE FROM {t}\n\tWHERE {a} = $1\n`, {x})",
    ),
    "multi-line plus": (
        'sql := "SELECT {a} FROM {t} " +\n\t"WHERE {b} = \'" + {x} + "\'"\nrow := db.QueryRow(sql)',
        'sql := "SELECT {a} FROM {t} " +\n\t"WHERE {b} = ?"\nrow := db.QueryRow(sql, {x})',
    ),
}


def python_pairs(seed: int = 1, rounds: int = 4) -> list[Pair]:
    """Every shape some times, with names and in frames drawn at random."""
    rng = random.Random(seed)
    frames = (_module, _method, _bare, _python2)
    pairs: list[Pair] = []
    for number in range(rounds):
        for kind, (bad, good) in PYTHON.items():
            names = _names(rng)
            frame = frames[(number + len(pairs)) % len(frames)]
            if "await " in bad or 'f"' in bad:
                frame = _module if number % 2 else _method
            made = [frame(shape.format(**names), names) for shape in (bad, good)]
            pairs.append(Pair(f"{kind} {frame.__name__[1:]} {number}", "m.py", *made))
    return pairs


def other_pairs(seed: int = 2, rounds: int = 4) -> list[Pair]:
    """The same for JavaScript, TypeScript and Go."""
    rng = random.Random(seed)
    pairs: list[Pair] = []
    for number in range(rounds):
        for kind, (bad, good) in SCRIPT.items():
            names = _names(rng)
            made = [_function(shape.format(**names), names) for shape in (bad, good)]
            pairs.append(Pair(f"js {kind} {number}", ("m.js", "m.ts")[number % 2], *made))
        for kind, (bad, good) in GO.items():
            names = _names(rng)
            made = [_go(shape.format(**names), names) for shape in (bad, good)]
            pairs.append(Pair(f"go {kind} {number}", "m.go", *made))
    return pairs


def _names(rng: random.Random) -> dict[str, str]:
    a, b = rng.sample(COLUMNS, 2)
    x, y = rng.sample(VALUES, 2)
    table = rng.choice(TABLES)
    names = {"c": rng.choice(CURSORS), "t": table, "T": table.title()[:-1]}
    return {**names, "a": a, "b": b, "x": x, "y": y}


def _head(body: str, names: dict[str, str]) -> str:
    kind = "async def" if "await " in body else "def"
    extra = ", query" if "query %" in body or ("query," in body and "query =" not in body) else ""
    return f"{kind} load(self, {names['x']}, {names['y']}{extra}):"


def _module(body: str, names: dict[str, str]) -> str:
    inner = textwrap.indent(body, "    ")
    return f"import logging\nimport sqlite3\n\nlog = logging.getLogger()\n\n\n{_head(body, names)}\n{inner}\n"


def _method(body: str, names: dict[str, str]) -> str:
    inner = textwrap.indent(body, "        ")
    return f'    {_head(body, names)}\n        """Load them."""\n{inner}\n        return None\n'


def _bare(body: str, names: dict[str, str]) -> str:
    return f"{_head(body, names)}\n  try:\n{textwrap.indent(body, '    ')}\n  finally:\n    self.close()\n"


def _python2(body: str, names: dict[str, str]) -> str:
    inner = textwrap.indent(body, "            ")
    return (
        f'    {_head(body, names)}\n        print "loading", {names["x"]}\n        try:\n{inner}\n'
        '        except Error, e:\n            print >>sys.stderr, "failed: %s" % e\n'
        '            raise ValueError, "no"\n'
    )


def _function(body: str, names: dict[str, str]) -> str:
    inner = textwrap.indent(body, "  ")
    return f"async function load(req, {names['x']}, {names['y']}, done) {{\n{inner}\n}}\n"


def _go(body: str, names: dict[str, str]) -> str:
    inner = textwrap.indent(body, "\t")
    return f"func load(db *sql.DB, {names['x']} string) error {{\n{inner}\n\treturn err\n}}\n"
