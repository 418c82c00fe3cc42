"""The requests of a trial, and the judgement of what became of their files."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from midstream import processes
from midstream.code.outline import outline
from midstream.scratch import scratch_folder

_SETS: Final = ("python", "javascript", "typescript", "go", "rust")
_CHILD: Final = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
program = sys.stdin.read()
def refuse(event, arguments):
    if event.startswith(("socket.", "subprocess.", "shutil.", "ctypes.")):
        raise PermissionError(event)
    if event.startswith("os.") and event not in ("os.listdir", "os.scandir"):
        raise PermissionError(event)
    if event == "open" and any(mark in str(arguments[1]) for mark in "wax+"):
        raise PermissionError(event)
code = compile(program, "answer", "exec")
sys.addaudithook(refuse)
exec(code, {"__name__": "answer"})
"""


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One request.

    Attributes:
        id: Its name.
        kind: ``one`` function, ``two`` places, ``new`` code, another ``file``, or a ``bug``.
        language: Name of the language.
        ask: The instruction.
        file: The file that it is asked in; ``""`` for the whole folder.
        expects: The file that has to change.
        at: Dotted name of the definition at the cursor, ``""`` for no cursor.
        project: The files, by name.
        check: A Python program that runs behind the edited file, ``""`` for none.
        has: Expressions that the edited place has to match, with white space as one space each.
        lacks: Expressions that it must not match.
    """

    id: str
    kind: str
    language: str
    ask: str
    file: str
    expects: str
    at: str
    project: Mapping[str, str]
    check: str
    has: Sequence[str]
    lacks: Sequence[str]

    @property
    def cursor(self) -> int | None:
        """The 0-based line of the cursor."""
        if not self.at:
            return None
        found = outline(self.project[self.file].split("\n"), self.file).named(self.at)
        return found[0].start

    async def fault(self, text: str) -> str:
        """Why the edited file is wrong, ``""`` if it is right."""
        lines = tuple(text.split("\n"))
        found = outline(lines, self.expects).named(self.at) if self.at else []
        part = "\n".join(lines[found[0].start : found[0].stop]) if found else text
        if self.language != "python":
            part = re.sub(r"\s+", " ", part)
        for wanted in self.has:
            if not re.search(wanted, part):
                return f"lacks {wanted}"
        for unwanted in self.lacks:
            if re.search(unwanted, part):
                return f"has {unwanted}"
        return await _run(f"{text}\n{self.check}") if self.check else ""


def load_requests(count: int | None = None) -> list[TrialRequest]:
    """The requests in a fixed order, such that every beginning of it has some of all kinds."""
    found = [request for name in _SETS for request in _read(name)]
    sizes = Counter((r.language, r.kind) for r in found)
    seen: Counter[tuple[str, str]] = Counter()
    placed: list[tuple[float, str, TrialRequest]] = []
    for request in found:
        group = request.language, request.kind
        placed.append(((seen[group] + 0.5) / sizes[group], request.id, request))
        seen[group] += 1
    return [request for _, _, request in sorted(placed, key=lambda each: each[:2])][:count]


def _read(language: str) -> list[TrialRequest]:
    data: dict[str, Any] = tomllib.loads(
        files("midstream.pairing.trial").joinpath(f"{language}.toml").read_text("utf-8")
    )
    texts = {name: text.removeprefix("\n") for name, text in data["files"].items()}
    return [
        TrialRequest(
            id=each["id"],
            kind=each["kind"],
            language=language,
            ask=each["ask"],
            file=each["file"],
            expects=(expects := each.get("expects", each["file"])),
            at=each.get("at", ""),
            project={name: texts[name] for name in each.get("project", (expects,))},
            check=each.get("check", ""),
            has=tuple(each.get("has", ())),
            lacks=tuple(each.get("lacks", ())),
        )
        for each in data["request"]
    ]


async def _run(program: str) -> str:
    """What a program says if it fails, in a child that may neither write nor start anything."""
    with scratch_folder() as folder:
        child = await processes.start(
            sys.executable,
            "-I",
            "-c",
            _CHILD,
            cwd=folder,
            env={},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(20.0):
                _, said = await child.communicate(program.encode())
        except TimeoutError:
            return "it does not end"
        finally:
            await processes.end(child)
    if child.returncode == 0:
        return ""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"it ended with {child.returncode}"
