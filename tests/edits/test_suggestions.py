"""Edits that would do a file good: each kind is found, and what would be wrong is not."""

from __future__ import annotations

import pytest

from midstream.edits.suggestions import suggestions


def found(text: str) -> dict[str, str]:
    return {s.title: s.instruction for s in suggestions("a.py", text)}


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("def add(x, seen=[]):\n    seen.append(x)\n", "fix the mutable default of seen in add"),
        (
            "def add(x, *, seen={}):\n    seen[x] = 1\n",
            "fix the mutable default of seen in add",
        ),
        (
            "def known(x):\n    if x == None:\n        print(x)\n",
            "use is None instead of == None in known",
        ),
        (
            "def known(x):\n    return x != None\n",
            "use is not None instead of != None in known",
        ),
        (
            "def load(f):\n    try:\n        f()\n    except:\n        pass\n",
            "the bare except should catch Exception in load",
        ),
        (
            "def sign(x):\n    if x < 0:\n        return -1\n    else:\n        return 1\n",
            "remove the else after return in sign",
        ),
        (
            "class A:\n    def run(self):\n        res = self.go()\n        print(res)\n",
            "rename `res` to `result` in run",
        ),
        (
            "def fetch(url):\n    get(url, timeout=30)\n",
            "extract `30` to a constant `TIMEOUT` in fetch",
        ),
        (
            "def big(x: int):\n    if x > 9:\n        return True\n    return False\n",
            "add return type bool in big",
        ),
    ],
)
def test_each_kind_is_found(text: str, instruction: str) -> None:
    assert instruction in found(text).values()


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, seen=None):\n    return x is None\n",
        "def f():\n    res = 1\n    result = 2\n    return res, result\n",  # it would be taken
        "def f():\n    global res\n    res = 1\n",  # others read it
        "def f(path):\n    path.mkdir(mode=0o700)\n",  # not written as a decimal number
        "def f(x):\n    if x:\n        return 1\n    elif x is None:\n        return 2\n",
        "def f(x: int):\n    if x:\n        return True\n",  # it returns None as well
        "def f(x: int):\n    yield 1\n    return True\n",
        "not python at all (",
        "def f(seen=[]):\n" + "    x = 1\n" * 40,  # longer than the model does well
        "def f(seen=[]):\n    pass\n\ndef f(seen=[]):\n    pass\n",  # which one?
    ],
)
def test_what_would_be_wrong_is_not_suggested(text: str) -> None:
    assert not found(text)


def test_each_kind_is_suggested_once_per_file() -> None:
    text = "".join(f"def f{n}(seen=[]):\n    return seen\n\n" for n in range(5))
    assert list(found(text).values()) == ["fix the mutable default of seen in f0"]
