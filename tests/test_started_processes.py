"""Every way in which the program starts a process, and that none takes code from the folder."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from midstream import processes
from midstream.agents.hooks import session_meta
from tests.helpers.waiting import until

APP = Path(processes.__file__).parent
OS_FUNCTIONS = {
    *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"),
    *(f"exec{kind}" for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *(f"spawn{kind}" for kind in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
}
MODULES = {
    *("subprocess", "_posixsubprocess", "multiprocessing", "pty", "pexpect", "webbrowser"),
    *("posix", "sh", "plumbum", "invoke"),
}
FUNCTIONS = {
    *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"),
    *("ProcessPoolExecutor", "open_process", "run_process"),
}
# These run `file` or `uname`, and look for them in the working folder, too.
PLATFORM_FUNCTIONS = {"architecture", "platform", "processor", "uname"}

# The files that start programs, through ``processes``, and why that is enough.
STARTS = {
    "agents/acp.py": "the agent that the user has named",
    "codebase/kinds.py": "own module",
    "codebase/references.py": "own module",
    "codebase/related.py": "own module",
    "codebase/syntax_check.py": "own module",
    "commands/doctor.py": "git, found on absolute entries of PATH",
    "commands/web.py": "own module, by a shell command",
    "agents/hooks.py": "own module, by a shell command for the agent",
    "engine/chat_template.py": "own module",
    "editor.py": "the user's editor",
    "guard/ruff.py": "ruff, beside Python or on absolute entries of PATH, in the root folder",
    "pairing/chat/tools.py": "ripgrep, found on absolute entries of PATH",
    "pairing/checks/run.py": "the test command that the user has set or confirmed",
    "pairing/models/downloads.py": "own module",
    "pairing/trial/requests.py": "Python with `-I`, in a folder of its own that holds no file",
    "pairing/turn/checks.py": "ruff, as the guard finds it",
    "pairing/turn/writer.py": "the quick test command of the user's settings",
    "serving/embedded.py": "own module",
    "tui/app.py": "the user's browser, found on absolute entries of PATH",
    "workspace/repo.py": "git, disarmed unless it stages or commits",
}
# Names with which the standard library or a package of ours would be shadowed.
SHADOWS = (
    *("contextlib", "warnings", "types", "typing", "json", "socket", "asyncio", "runpy", "pkgutil"),
    *("sitecustomize", "usercustomize", "msgspec", "platformdirs", "hashlib", "stat", "selectors"),
)


def nodes_of(code: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(code)))


def sources() -> Iterator[tuple[str, list[ast.AST]]]:
    """The files that may start a process: parsing all of them takes many seconds."""
    words = {*OS_FUNCTIONS, *MODULES, *FUNCTIONS, "platform", "processes", "import_module"}
    telling = re.compile(rf"\b(?:{'|'.join(words)}|__import__)\b|from os import")
    for path in sorted(APP.rglob("*.py")):
        name, text = path.relative_to(APP).as_posix(), path.read_text("utf-8")
        if not name.startswith(("bench/", "demo/project/")) and telling.search(text):
            yield name, nodes_of(text)


def starts_by_itself(nodes: list[ast.AST]) -> bool:
    imports = [node for node in nodes if isinstance(node, ast.Import)]
    names_of_os = {
        alias.asname or alias.name for node in imports for alias in node.names if alias.name == "os"
    }
    for node in nodes:
        named: set[str] = set()
        if isinstance(node, ast.Import):
            named = {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.ImportFrom):
            # Other names of asyncio.subprocess are constants for `processes.start`.
            module = "" if node.module == "asyncio.subprocess" else node.module or ""
            named = {*module.split("."), *(alias.name for alias in node.names)}
            if node.module == "os" and named & {*OS_FUNCTIONS, "*"}:
                return True
            if module == "platform" and PLATFORM_FUNCTIONS & {each.name for each in node.names}:
                return True
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in FUNCTIONS or (owner in names_of_os and node.attr in OS_FUNCTIONS):
                return True
            if owner == "platform" and node.attr in PLATFORM_FUNCTIONS:
                return True
        elif isinstance(node, ast.Call) and name_of(node.func) in ("import_module", "__import__"):
            named = {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
        if named & (MODULES | FUNCTIONS):
            return True
    return False


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def starts_by_processes(nodes: list[ast.AST]) -> bool:
    ways = {
        "run",
        "start",
        "start_python",
        "start_answering",
        "AskedProcess",
        "browse",
        "collect",
        "hand_over",
        "shell_command",
    }
    imported = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "midstream.processes"
        for alias in node.names
    }
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return any(
        (isinstance(each, ast.Name) and each.id in ways & imported)
        or (isinstance(each, ast.Attribute) and each.attr in ways and named(each) == "processes")
        for each in called
    )


def named(attribute: ast.Attribute) -> str:
    return attribute.value.id if isinstance(attribute.value, ast.Name) else ""


def test_every_process_is_started_by_one_module() -> None:
    by_itself, by_processes = [], set()
    for name, nodes in sources():
        if starts_by_itself(nodes):
            by_itself.append(name)
        if starts_by_processes(nodes):
            by_processes.add(name)
    assert by_itself == ["processes.py"]
    assert by_processes == STARTS.keys()


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "import subprocess as sp",
        "from subprocess import Popen",
        "from asyncio import subprocess",
        "import asyncio.subprocess",
        "from asyncio.subprocess import PIPE, create_subprocess_exec",
        "import asyncio\nasync def f(): await asyncio.create_subprocess_exec('git')",
        "from asyncio import create_subprocess_shell",
        "async def f(loop): await loop.subprocess_exec(Protocol, 'git')",
        "import os\nos.system('git')",
        "import os as o\ndef f(): o.execvp('git', [])",
        "from os import posix_spawn",
        "from os import *",
        "import pty",
        "from multiprocessing import Process",
        "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
        "from concurrent.futures import ProcessPoolExecutor",
        "import webbrowser",
        "import platform\nplatform.platform()",
        "from platform import uname",
        "import importlib\nimportlib.import_module('subprocess')",
        "__import__('subprocess')",
    ],
)
def test_each_way_to_start_a_process_is_seen(code: str) -> None:
    assert starts_by_itself(nodes_of(code))


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose files note that they were run."""
    folder = tmp_path / "repository"
    folder.mkdir()
    mark = f"open({str(tmp_path / 'RAN')!r}, 'a').write(__name__ + '\\n')\n"
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(mark)
    for package in (
        "midstream",
        "midstream/serving",
        "midstream/codebase",
        "midstream/engine",
        "midstream/guard",
    ):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(mark)
        (folder / package / "__main__.py").write_text(mark)
    for program in ("git", "rg", "ruff", "python", "xdg-open", "www-browser"):
        (folder / program).write_text(f"#!/bin/sh\necho {program} >> {tmp_path}/RAN\n")
        (folder / program).chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


def ran(folder: Path) -> list[str]:
    mark = folder.parent / "RAN"
    return mark.read_text().split() if mark.exists() else []


def python_paths(folder: Path) -> Iterator[str | None]:
    yield from (None, f".{os.pathsep}", str(folder))


MODULES_OF_OUR_OWN = {
    "midstream.codebase.syntax_child": b'{"path": "a.py", "before": "", "after": "x = 1"}',
    "midstream.codebase.references_child": b"",
    "midstream.codebase.related_child": b"",
    "midstream.engine.chat_template_child": b'"{{ 1 }}"\n{}\n',
    "midstream.serving": b"",
}
ARGUMENTS = {
    "midstream.engine.chat_template_child": ["2000000000", "5"],
    "midstream.serving": ["--help"],
}


@pytest.mark.system
@pytest.mark.parametrize("module", MODULES_OF_OUR_OWN)
def test_no_module_of_the_folder_shadows_ours(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    for path in python_paths(hostile):
        with monkeypatch.context() as set_:
            if path is None:
                set_.delenv("PYTHONPATH", raising=False)
            else:
                set_.setenv("PYTHONPATH", path)
            environ = processes.python_environment()
        arguments = ARGUMENTS.get(module, [])
        given = MODULES_OF_OUR_OWN[module]
        processes.run(
            processes.python(module, *arguments), environ=environ, stdin=given, timeout=60
        )
        assert ran(hostile) == [], path


@pytest.mark.system
def test_neither_the_hook_of_an_agent_nor_a_tab_runs_the_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are started by others, in a shell, with the environment that they have."""
    event = {"hook_event_name": "PreToolUse", "cwd": str(hostile), "tool_name": "Write"}
    for path in python_paths(hostile):
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        with monkeypatch.context() as set_:
            set_.delenv("PYTHONPATH", raising=False)
            if path is not None:
                set_.setenv("PYTHONPATH", path)
                environ["PYTHONPATH"] = path
            meta = session_meta("claude")
            tab = processes.shell_command("midstream", "--version")
        assert meta is not None
        settings = meta["claudeCode"]["options"]["settings"]
        hook = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        for command in (hook, tab):
            done = subprocess.run(
                command,
                shell=True,
                env=environ,
                input=json.dumps(event).encode(),
                capture_output=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, b"")
            assert ran(hostile) == [], path


def test_programs_are_not_found_in_the_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, usual = processes.find_program("git"), os.environ["PATH"]
    for path in (".", "", f".{os.pathsep}", "./", "sub/.."):
        monkeypatch.setenv("PATH", os.pathsep.join((path, usual)))
        assert processes.find_program("rg") != str(hostile / "rg")
        assert processes.program("git") == found
        assert Path(processes.program("git")).is_absolute()
    with pytest.raises(FileNotFoundError):
        processes.program("there-is-no-such-program")
    assert processes.find_program("./git") == str(hostile / "git"), "the user has named it"


def test_a_library_that_runs_git_takes_none_from_the_folder(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([processes.program("git"), "init", "-q"], check=True)
    monkeypatch.setenv("PATH", os.pathsep.join((".", os.environ["PATH"])))
    code = "import midstream.workspace.repo as r, pathlib; r.recent_subjects(pathlib.Path())"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    assert ran(hostile) == []


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="Linux")
async def test_the_browser_is_not_taken_from_the_folder(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "bin"
    own.mkdir()
    (own / "xdg-open").write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/shown\n')
    (own / "xdg-open").chmod(0o755)
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("PATH", os.pathsep.join((".", str(own))))
    await processes.browse("http://127.0.0.1/")
    await asyncio.to_thread(until, (tmp_path / "shown").exists)
    assert ran(hostile) == []
