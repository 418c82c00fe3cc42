"""Edits that make a line safe: the rewrites that the guard asks for.

The unsafe line is put into real code. Half of the time it is not there yet (`tasks.corrected`): the
model was asked to add it and is told, while it writes, to write it in another way.
"""

from __future__ import annotations

import random

from models.training.code import Code, Edit
from models.training.tasks_shared import insertion_place

_TABLES = [
    "users",
    "orders",
    "items",
    "accounts",
    "events",
    "sessions",
    "products",
    "posts",
    "tags",
    "jobs",
]
_COLUMNS = ["id", "name", "email", "status", "owner", "key", "title", "kind", "day", "state"]
_PROGRAMS = [
    ("ls", "-l"),
    ("rm", "-rf"),
    ("git", "log"),
    ("git", "clone"),
    ("ping", "-c1"),
    ("cat",),
    ("tar", "-xf"),
    ("cp", "-r"),
    ("convert",),
    ("grep", "-n"),
    ("mkdir", "-p"),
    ("pip", "install"),
    ("curl", "-O"),
    ("touch",),
    ("chmod", "+x"),
    ("docker", "run"),
    ("make",),
    ("open",),
    ("unzip",),
    ("ssh",),
]
_SECRET_NAMES = [
    "password",
    "api_key",
    "token",
    "secret",
    "API_KEY",
    "SECRET_KEY",
    "TOKEN",
    "PASSWORD",
    "db_password",
    "auth_token",
    "secret_key",
    "DB_PASSWORD",
    "access_token",
    "AWS_SECRET",
    "client_secret",
    "self.password",
    "self.token",
    "self.api_key",
    "ACCESS_KEY",
    "private_key",
]


def _line_edit(code: Code, task: str, bad: str, good: str) -> Edit:
    """Put a line into the snippet, unsafe before the edit and safe after it."""
    at, pad = insertion_place(code)
    before = code.splice([(at, at, f"{pad}{bad}\n")])
    after = code.splice([(at, at, f"{pad}{good}\n")])
    line = before[: before.index(bad)].count("\n") + 1
    return Edit(task, {"unsafe!": bad, "line": str(line)}, after, before)


def _assigned(rng: random.Random, code: Code, call: str) -> str:
    """Return a prefix such as `rows = ` or "" for a call."""
    shape = rng.random()
    if shape < 0.5:
        return ""
    return f"{rng.choice(code.names)} = " if shape < 0.85 else "return "


def secure_sql(code: Code) -> Edit | None:
    """A query built from strings becomes one with parameters."""
    rng = code.rng
    table, column, other = rng.choice(_TABLES), rng.choice(_COLUMNS), rng.choice(_COLUMNS)
    value = rng.choice(code.names)
    if rng.random() < 0.25:
        value = rng.choice([f"self.{value}", f"{value}.id", f"{value}[0]"])
    second = rng.choice(code.names)
    two = rng.random() < 0.25 and other != column
    heads = [
        f"SELECT * FROM {table} WHERE {column} = ",
        f"SELECT {other} FROM {table} WHERE {column} = ",
        f"DELETE FROM {table} WHERE {column} = ",
        f"UPDATE {table} SET {other} = 1 WHERE {column} = ",
        f"SELECT count(*) FROM {table} WHERE {column} > ",
        f"INSERT INTO {table} ({column}) VALUES (",
    ]
    head = rng.choice(heads)
    tail = ")" if head.endswith("(") else rng.choice(["", "", "", " ORDER BY id", " LIMIT 1"])
    values = [value]
    marks = "\0"
    if two and tail != ")":
        marks, values = f"\0 AND {other} = \0", [value, second]
    query = head + marks + tail
    style = rng.choice(("f", "f", "percent", "format", "plus"))
    if style == "plus" and len(values) > 1:
        style = "f"

    def filled(mark: str) -> str:
        text = query
        for each in values:
            text = text.replace("\0", mark.replace("*", each), 1)
        return text

    listed = ", ".join(values) + ("," if len(values) == 1 else "")
    safe = f'"{filled("?")}"'
    if style == "f":
        text = f'f"{filled("{*}")}"'
    elif style == "percent":
        text, safe = f'"{filled("%s")}" % ', f'"{filled("%s")}"'
        text += values[0] if len(values) == 1 and rng.random() < 0.6 else f"({listed})"
    elif style == "format":
        text = f'"{filled("{}")}".format({", ".join(values)})'
    else:
        begin, end = query.split("\0")
        text = f'"{begin}" + {values[0]}' + (f' + "{end}"' if end else "")
    cursor = rng.choice(
        ["cursor", "cur", "db", "conn", "self.db", "connection", "self.cursor", "c", "session"]
    )
    call = f"{cursor}.{rng.choice(('execute', 'execute', 'execute', 'fetch'))}("
    lead = _assigned(rng, code, call)
    end = rng.choice([")", ")", ")", ").fetchall()", ").fetchone()"]) if lead else ")"
    return _line_edit(
        code, "secure_sql", f"{lead}{call}{text}{end}", f"{lead}{call}{safe}, ({listed}){end}"
    )


def secure_shell(code: Code) -> Edit | None:
    """A command line for a shell becomes a list of arguments."""
    rng = code.rng
    words = list(rng.choice(_PROGRAMS))
    value = rng.choice(code.names)
    if rng.random() < 0.2:
        value = f"self.{value}"
    listed = "[" + ", ".join(f'"{word}"' for word in words) + f", {value}]"
    plain = " ".join(words)
    text = rng.choice(
        [f'f"{plain} {{{value}}}"', f'"{plain} " + {value}', f'"{plain} %s" % {value}']
    )
    call = rng.choice(["run", "run", "call", "check_call", "check_output", "Popen"])
    chance = rng.random()
    if chance < 0.25:
        bad, good = f"os.system({text})", f"subprocess.run({listed})"
    elif chance < 0.45:
        bad = f"subprocess.{call}({value}, shell=True)"
        good = f"subprocess.{call}(shlex.split({value}))"
    else:
        extra = rng.choice(["", "", ", check=True", ", cwd=path", ", timeout=10"])
        bad = f"subprocess.{call}({text}, shell=True{extra})"
        good = f"subprocess.{call}({listed}{extra})"
    lead = _assigned(rng, code, bad)
    return _line_edit(code, "secure_shell", lead + bad, lead + good)


def secure_call(code: Code) -> Edit | None:
    """A dangerous function becomes its safe twin."""
    rng = code.rng
    value = rng.choice(code.names)
    inner = rng.choice(
        [
            value,
            f"self.{value}",
            f"{value}.encode()",
            f"open({value})",
            f"{value}.read()",
            f"{value}[0]",
        ]
    )
    old, new, about = rng.choice(
        [
            (f"yaml.load({inner})", f"yaml.safe_load({inner})", "yaml"),
            (f"yaml.load({inner}, Loader=yaml.Loader)", f"yaml.safe_load({inner})", "yaml"),
            (f"yaml.load({inner}, Loader=yaml.FullLoader)", f"yaml.safe_load({inner})", "yaml"),
            (f"eval({inner})", f"ast.literal_eval({inner})", "eval"),
            (f"eval({inner})", f"ast.literal_eval({inner})", "eval"),
            (f"hashlib.md5({inner})", f"hashlib.sha256({inner})", "hash"),
            (f"hashlib.sha1({inner})", f"hashlib.sha256({inner})", "hash"),
            (f"hashlib.md5({inner}).hexdigest()", f"hashlib.sha256({inner}).hexdigest()", "hash"),
            (f"pickle.loads({inner})", f"json.loads({inner})", "pickle"),
            (f"pickle.load({inner})", f"json.load({inner})", "pickle"),
            ("tempfile.mktemp()", "tempfile.NamedTemporaryFile()", "mktemp"),
            ("ssl._create_unverified_context()", "ssl.create_default_context()", "ssl"),
            (
                f"Environment(loader={value})",
                f"Environment(loader={value}, autoescape=True)",
                "autoescape",
            ),
            (
                f"Environment(loader={value}, autoescape=False)",
                f"Environment(loader={value}, autoescape=True)",
                "autoescape",
            ),
        ]
    )
    lead = rng.choice(
        [f"{rng.choice(code.names)} = ", f"self.{rng.choice(code.names)} = ", "return "]
    )
    edit = _line_edit(code, "secure_call", lead + old, lead + new)
    edit.values["about"] = about
    return edit


def secure_verify(code: Code) -> Edit | None:
    """A certificate check is not switched off any more."""
    rng = code.rng
    where = rng.choice(code.names)
    call = rng.choice(
        [
            "requests.get",
            "requests.post",
            "session.get",
            "requests.put",
            "self.session.get",
            "httpx.get",
        ]
    )
    before = rng.choice(
        ["", "", "", f", json={rng.choice(code.names)}", ", timeout=10", f", data={where}"]
    )
    after = rng.choice(["", "", "", ", timeout=30", ", stream=True"])
    lead = _assigned(rng, code, call) or f"{rng.choice(code.names)} = "
    bad = f"{lead}{call}({where}{before}, verify=False{after})"
    return _line_edit(code, "secure_verify", bad, f"{lead}{call}({where}{before}{after})")


def secure_secret(code: Code) -> Edit | None:
    """A secret in the source is read from the environment instead."""
    rng = code.rng
    name = rng.choice(_SECRET_NAMES)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    secret = rng.choice(["", "", "sk-", "ghp_", "AKIA", "xox-"]) + "".join(
        rng.choices(letters, k=rng.randint(6, 30))
    )
    if rng.random() < 0.3:
        secret = rng.choice(
            ["hunter2", "secret", "admin123", "letmein", "s3cr3t", "changeme", "passw0rd"]
        )
    quote = rng.choice('""\'')
    variable = name.split(".")[-1]
    return _line_edit(
        code,
        "secure_secret",
        f"{name} = {quote}{secret}{quote}",
        f'{name} = os.environ["{variable}"]',
    )
