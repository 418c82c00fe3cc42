"""The git repository around a workspace: running git, where the repository is, state, history.

Everything blocks; callers on an event loop use a thread.  Without git or outside a repository the
state is ``None`` and the history is empty.

A repository's configuration can name programs, and a folder from elsewhere may bring one along.
Git is therefore run disarmed (``run_git``): no hook, file system monitor, filter, external
diff, text conversion, signing program or transport that the repository names runs.  Only staging
and committing, which the user asks for, run git as the user would.

Why the command and not GitPython, measured on this repository (1,000 files, median of 7 runs):

    =====================================  ========  =========
    question                               command   GitPython
    =====================================  ========  =========
    status (branch, changed, untracked)    16 ms     59 ms
    staged files                           4 ms      11 ms
    one entry of the index                 4 ms      33 ms
    a file as the last commit has it       6 ms      7 ms
    subjects of the last 8 commits         7 ms      26 ms
    =====================================  ========  =========

GitPython also holds the interpreter lock, which the screen shares, while it parses the index; takes
345 ms to import; and fails for an index of version 4 (``feature.manyFiles``).  Staging needs git's
filters, and commits need hooks and signing, which only the command runs.  Recent commits come from
GitPython (``recent_subjects``): they are read once for the commit
page, and its commit objects need no output format to be parsed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from midstream import processes
from midstream.workspace.content import Entry, LinkTarget
from midstream.workspace.paths import shown

GIT_TIMEOUT_S = 30.0
"""How long a command of git may take, unless its caller says otherwise."""
STUCK_S = 3.0
"""How long git may sleep without being woken, when no program of others can keep it waiting."""
_stuck: Final[set[Path]] = set()
"""Work trees in which git is stuck, and would be again."""

# Set by git for hooks and aliases, or to have paths read in another way: they would point commands
# at another repository, at other files, or a program at the terminal.
_FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GPG_TTY",  # by which a program that asks for a passphrase finds the terminal of the screen
)
_STUCK: Final = (
    "git waits for something, maybe a pipe among the files of the folder; it is not asked again "
    "until Midstream is started again"
)
_READ_FILES: Final = (
    *("config", "config.worktree", "HEAD", "index", "packed-refs", "shallow", "commondir"),
    *("info/exclude", "info/attributes", "info/sparse-checkout", "objects/info/alternates"),
)
"""Files of a repository that most commands of git read."""
MAX_OUTPUT: Final = 256 << 20
"""Bytes of git's output."""
MAX_CONFIG: Final = 4 << 20
"""Bytes of a repository's configuration, which every command of git reads."""
_DISARMED: Final = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("log.showSignature", "false"),
    ("diff.orderFile", os.devnull),  # It may name a device, which git reads until memory ends.
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
)
_OFFLINE: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Objects that a partial clone lacks are not fetched: a transport is a program, too."""
_COMPARING: Final = {
    # A submodule has a configuration of its own.
    "status": ("--ignore-submodules=dirty",),
    "diff": (
        *("--no-ext-diff", "--no-textconv"),
        *("--ignore-submodules=dirty", "--submodule=short"),
    ),
}
"""Commands that compare files, with what keeps them from running programs."""
_FILTERING: Final = {*_COMPARING, "add", "cat-file", "grep", "hash-object", "update-index"}
"""Commands that may run filters."""
_UNFILTERED: Final = (
    ["cat-file", "blob"],
    ["hash-object", "--no-filters"],
    ["diff", "--cached"],  # Index and commit are both as git stores them.
)
"""How commands begin that run none all the same: it takes a process to know the filters."""
_STATUS: Final = ("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z")
_BEGUN: Final = (
    ("rebase-merge", "rebasing"),
    ("rebase-apply/applying", "applying patches"),
    ("rebase-apply", "rebasing"),
    ("MERGE_HEAD", "merging"),
    ("CHERRY_PICK_HEAD", "cherry-picking"),
    ("REVERT_HEAD", "reverting"),
    ("BISECT_LOG", "bisecting"),
)
"""Files that git keeps during an operation; as in git's prompt script, the first found counts."""


_PLACES: Final = {b"1 ": 8, b"2 ": 9, b"u ": 10, b"? ": 1}
"""Spaces before the path of an entry of the status, by how the entry begins."""


_FILTER_FAILED: Final = re.compile(r": (?:clean|smudge) filter ('?)(.+)\1 failed$")
"""What git says where a filter is required; it stands behind the file's name."""


class GitStoppedError(Exception):
    """Git was ended because it was no longer wanted."""


class GitFailedError(Exception):
    """Git is missing, took too long or failed; the message is the line that says why."""

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output
        """Everything git wrote to its error stream."""


class FilterSkippedError(GitFailedError):
    """Git needs a filter that only the repository's configuration names, so that it did not run."""


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """Where a workspace root lies in a repository (all real paths)."""

    top: Path
    """Top of the work tree."""
    git_dir: Path
    """This work tree's own folder: HEAD and index."""
    common_dir: Path
    """Refs and objects, shared by all work trees."""


def run_git(
    folder: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    programs: bool = False,
    timeout: float = GIT_TIMEOUT_S,
    limit: int = MAX_OUTPUT,
    stop: threading.Event | None = None,
) -> bytes:
    """Standard output of ``git <arguments>`` run in ``folder``.

    Git never prompts on the terminal, takes no optional locks and answers in English.

    Args:
        folder: Where.
        arguments: The command and its arguments.
        stdin: Its input.
        environment: Variables to set besides.
        programs: Whether git may run what the repository's configuration names.
        timeout: Seconds after which it is ended.
        limit: Bytes of output that are read; more are cut off.
        stop: Ends git, and what it runs, once it is set.

    Raises:
        GitFailedError: See there.
        FilterSkippedError: See there.
        GitStoppedError: ``stop`` was set before git had ended.
    """
    env = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    env |= environment or {}
    command = list(arguments)
    _require_regular(folder)
    if not programs:
        env, command = _disarmed(folder, env, command)
    stuck_after = None if programs else STUCK_S
    done = _run(folder, command, env, stdin, timeout, limit, stuck_after, stop)
    if done.code != 0 and not done.cut:
        output = done.errors.decode(errors="replace").strip()
        reason = _reason(output, done.code)
        failed = None if programs else _FILTER_FAILED.search(reason)
        if failed and (why := _why_no_filter(folder, env, failed[2])):
            raise FilterSkippedError(why, output)
        raise GitFailedError(reason, output)
    return done.output


def _why_no_filter(folder: Path, env: Mapping[str, str], driver: str) -> str:
    """Why a filter was not run, ``""`` if it was."""
    found = _local_filters(folder, env).get(driver)
    if found is None or found.runs:
        return ""
    setup = "`git lfs install`" if driver == "lfs" else "`git config --global`"
    return (
        f"its filter {shown(driver)} is set up in this repository alone, whose programs do not run "
        f"for a look; {setup} sets it up for you"
    )


def _run(
    folder: Path,
    command: Sequence[str],
    env: Mapping[str, str],
    stdin: bytes,
    timeout: float,
    limit: int,
    stuck_after: float | None,
    stop: threading.Event | None = None,
) -> processes.EndedProcess:
    try:
        return processes.run(
            ["git", *command],
            cwd=folder,
            environ=env,
            stdin=stdin,
            timeout=timeout,
            stuck_after=stuck_after,
            limit=limit,
            stop=stop,
        )
    except processes.UnwantedError as error:
        raise GitStoppedError from error
    except FileNotFoundError as error:
        missing = "git is not installed" if folder.is_dir() else f"{folder} is gone"
        raise GitFailedError(missing) from error
    except processes.StuckError as error:
        _stuck.add(_around(folder))
        raise GitFailedError(_STUCK) from error
    except TimeoutError as error:
        raise GitFailedError(f"git took longer than {timeout:.0f} s") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise GitFailedError(f"git could not be started ({why})") from error


def _require_regular(folder: Path) -> None:
    """Refuse a repository in which git would wait for a pipe, or read for long or without end.

    Raises:
        GitFailedError: See there.
    """
    top = _around(folder)
    if top in _stuck:
        raise GitFailedError(_STUCK)
    entry = top / ".git"
    for path in (entry, *(entry / name for name in _READ_FILES)):
        try:
            status = path.stat()
        except (OSError, ValueError):
            continue
        is_folder = path is entry and stat.S_ISDIR(status.st_mode)
        if not (stat.S_ISREG(status.st_mode) or is_folder):
            raise GitFailedError(f"{shown(path)} is no regular file")
        if path.name.startswith("config") and status.st_size > MAX_CONFIG:
            raise GitFailedError(
                f"{shown(path)} has {status.st_size / 1e6:.0f} MB, which every command of git "
                "would read"
            )


def _around(folder: Path) -> Path:
    """The nearest folder with a ``.git``; the folder itself without one."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place / ".git"):
            return place
    return folder


def _disarmed(
    folder: Path, env: Mapping[str, str], command: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """An environment and a command in which git runs nothing that the repository names."""
    at = _subcommand(command)
    name = command[at] if at < len(command) else ""
    settings = [*_DISARMED]
    if name in _FILTERING and command[at : at + 2] not in _UNFILTERED:
        # The output of a filter is not known without running it, but a difference of the input is.
        needed = str(name not in _COMPARING).lower()
        for driver, found in _local_filters(folder, env).items():
            values = found.disarmed(needed).items()
            settings += [(f"filter.{driver}.{what}", value) for what, value in values]
    flags = _COMPARING.get(name, ())
    return _with_settings(env, settings), [*command[: at + 1], *flags, *command[at + 1 :]]


def _subcommand(command: Sequence[str]) -> int:
    """Index of the command of git, behind the options of git itself."""
    at = 0
    while at < len(command) and command[at].startswith("-"):
        at += 2 if command[at] in ("-c", "-C") else 1
    return at


def _with_settings(env: Mapping[str, str], settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """An environment with git settings that override those of files; names may hold anything."""
    count = env.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    found = {**env, **_OFFLINE, "GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings, first):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


@dataclass(slots=True)
class _LocalFilter:
    """A filter that the repository's configuration names.

    Attributes:
        own: What the user's or the system's configuration says about a filter of that name.
        has_process: Whether the repository's names a process, which cannot be taken back: an empty
            one keeps git from running the other two programs.
    """

    own: dict[str, str] = field(default_factory=dict[str, str])
    has_process: bool = False

    @property
    def runs(self) -> bool:
        """Whether the user's own programs are run."""
        one_by_one = self.own.get("clean") or self.own.get("smudge")
        return bool(self.own.get("process") or (one_by_one and not self.has_process))

    def disarmed(self, needed: str) -> dict[str, str]:
        """The settings with which none of the repository's programs runs.

        Args:
            needed: Whether the filter is required where the user's own does not run.
        """
        programs = {"clean": "", "smudge": "", **self.own}
        if self.has_process:
            programs.setdefault("process", "")
        return programs if self.runs else {**programs, "required": needed}


def _local_filters(folder: Path, env: Mapping[str, str]) -> dict[str, _LocalFilter]:
    """Filters that the repository's configuration names.

    Raises:
        GitFailedError: Not all of them are known, so that some would run.
    """
    listing = ("config", "--show-scope", "-z", "--list")
    disarmed, most = _with_settings(env, _DISARMED), 2 * MAX_CONFIG  # It may include other files.
    done = _run(folder, listing, disarmed, b"", GIT_TIMEOUT_S, most, STUCK_S)
    if done.cut:
        raise GitFailedError(f"its configuration is listed as more than {most / 1e6:.0f} MB")
    if done.code != 0:
        raise GitFailedError(_reason(done.errors.decode(errors="replace").strip(), done.code))
    fields = os.fsdecode(done.output).split("\0")
    named: dict[str, _LocalFilter] = {}
    trusted: dict[str, dict[str, str]] = {}
    for scope, field_ in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = field_.partition("\n")
        driver, _, what = key.removeprefix("filter.").rpartition(".")
        if not key.startswith("filter."):
            continue
        if scope in ("local", "worktree"):
            named.setdefault(driver, _LocalFilter()).has_process |= what == "process"
        else:
            trusted.setdefault(driver, {})[what] = value
    for driver, found in named.items():
        found.own = trusted.get(driver, {})
    return dict(sorted(named.items()))


def _reason(output: str, status: int) -> str:
    """Git's own message, or the last line of the program that it ran."""
    lines = output.splitlines()
    for line in lines:
        if line.startswith("fatal: "):
            return line.removeprefix("fatal: ")
    return lines[-1] if lines else f"git ended with status {status}"


def find_repository(root: Path) -> RepositoryPlace | None:
    """The repository whose work tree holds ``root``; None without one, or if git fails."""
    asked = ["rev-parse", "--path-format=absolute"]
    places = ["--show-toplevel", "--git-dir", "--git-common-dir"]
    try:
        lines = os.fsdecode(run_git(root, [*asked, *places])).removesuffix("\n").split("\n")
        if len(lines) != len(places):  # A path has a line break.
            lines = [
                os.fsdecode(run_git(root, [*asked, place])).removesuffix("\n") for place in places
            ]
    except GitFailedError:
        return None
    return RepositoryPlace(*map(Path, lines))


def repository_trouble(root: Path) -> str:
    """Why the repository around ``root`` cannot be read, in one sentence; ``""`` if it can be.

    Also ``""`` where there is none.  Git itself takes a repository with a damaged ``HEAD`` for
    none, and goes on to one further up.
    """
    if not root.is_dir():
        return f"{shown(root)} is gone; open the folder where it is now."
    holder = _holder(root)
    if holder is None:
        return ""
    try:
        top = os.fsdecode(run_git(root, ["rev-parse", "--show-toplevel"])).rstrip("\n")
        if not holder.samefile(top):
            raise GitFailedError("git does not take its .git for a repository")
        run_git(root, [*_STATUS, "--untracked-files=no"])
    except (GitFailedError, OSError) as error:
        said = error.output if isinstance(error, GitFailedError) else ""
        if "dubious ownership" in said:
            return (
                f"The git repository in {shown(holder)} belongs to another user, so git refuses "
                "to read it: what is on disk counts as what was there before; if you trust it, "
                f"`git config --global --add safe.directory {shown(holder)}` says so."
            )
        return (
            f"The git repository in {shown(holder)} cannot be read ({shown(str(error))}): what is "
            "on disk counts as what was there before, and nothing can be staged or committed."
        )
    return ""


def _holder(root: Path) -> Path | None:
    """The nearest folder that holds ``root`` and has a ``.git`` with something in it."""
    device = root.stat().st_dev
    if ".git" in root.parts:
        return None
    for folder in (root, *root.parents):
        git = folder / ".git"
        try:
            if folder.stat().st_dev != device:
                return None  # Git does not look there either.
            if stat.S_ISDIR(git.lstat().st_mode) and not any(git.iterdir()):
                continue
        except FileNotFoundError:
            continue
        except OSError:
            return folder
        return folder
    return None


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """State of the work tree that holds a workspace."""

    branch: str
    """Branch name; the first 8 digits of the commit when ``detached``."""
    detached: bool
    dirty: int
    """Tracked paths that differ from HEAD, staged or not, conflicts included."""
    untracked: int
    """Untracked paths, a wholly untracked folder counting as one."""
    head: str
    """Full commit id; empty before the first commit."""
    begun: str = ""
    """The operation git is in the middle of, such as ``merging``."""
    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    """What differs below the workspace root, by path from there: ``M`` changed, ``A`` added, ``R``
    renamed, ``D`` deleted, ``?`` untracked (a folder ends with a slash), ``!`` in conflict."""


def repo_status(root: Path) -> RepoStatus | None:
    """Status of the repository around ``root``, or None when there is none (or no git)."""
    try:
        answer = run_git(root, [*_STATUS, "--untracked-files=normal"])
        place = run_git(root, ["rev-parse", "--absolute-git-dir", "--show-prefix"])
    except GitFailedError:
        return None
    git_dir, prefix, *_ = [*os.fsdecode(place).split("\n"), ""]
    begun = next((word for name, word in _BEGUN if (Path(git_dir) / name).exists()), "")
    return replace(parse_status(answer, prefix), begun=begun)


class WorkTreeChanges(NamedTuple):
    """The differences from the last commit below a folder, as paths relative to that folder.

    Attributes:
        head: The commit, ``""`` before the first one.
        tracked: Files that the index has and that differ from it, or in it from the commit.
        new: Untracked files that are not ignored.
        inner: Untracked folders that are repositories of their own.
    """

    head: str
    tracked: frozenset[str]
    new: frozenset[str]
    inner: frozenset[str] = frozenset()


def work_tree_changes(root: Path, place: RepositoryPlace | None = None) -> WorkTreeChanges:
    """Look at the work tree below a folder; submodules and nested repositories are left out.

    One process: comparing the work tree with the index and looking for new files apart takes as
    long for each (10,000 files: 40 and 70 ms, together 75 ms).

    Args:
        root: The folder.
        place: Its repository, if that was looked up already.

    Returns:
        The changes; nothing where there is no repository.

    Raises:
        GitFailedError: There is one, and git cannot tell.
    """
    place = place or find_repository(root)
    if place is None:
        return WorkTreeChanges("", frozenset(), frozenset())
    options = ["--untracked-files=all", "--no-renames", "--ignore-submodules=all", "--", "."]
    answer = run_git(root, [*_STATUS, *options])
    head = ""
    tracked: list[str] = []
    new: list[str] = []
    inner: list[str] = []
    for entry in os.fsdecode(answer).split("\0"):
        match entry[:2]:
            case "1 ":
                tracked.append(entry.split(" ", 8)[8])
            case "u ":
                tracked.append(entry.split(" ", 10)[10])
            case "? ":
                (inner if entry.endswith("/") else new).append(entry[2:].rstrip("/"))
            case "# " if entry.startswith("# branch.oid ") and not entry.endswith(" (initial)"):
                head = entry.removeprefix("# branch.oid ")
            case _:
                pass
    prefix = _below_top(root, place)
    return WorkTreeChanges(
        head,
        frozenset(path.removeprefix(prefix) for path in tracked),
        frozenset(path.removeprefix(prefix) for path in new),
        frozenset(path.removeprefix(prefix) for path in inner),
    )


def _below_top(root: Path, place: RepositoryPlace) -> str:
    """The prefix, in its repository, of the names of files below a folder."""
    above = os.path.relpath(os.path.realpath(root), os.path.realpath(place.top))
    return "" if above == "." else f"{above}/"


class RecordedFiles(NamedTuple):
    """The files that git has recorded, in the index or a commit.

    Attributes:
        modes: The mode of each, by path; ``"160000"`` is a repository of its own (a submodule).
        trusted: Whether git takes from the disk which files may be run (``core.fileMode``).
        links: Whether symbolic links are made as such (``core.symlinks``).
        unmerged: Files that are in conflict, of which the index has several versions.
    """

    modes: Mapping[str, str]
    trusted: bool = True
    links: bool = True
    unmerged: frozenset[str] = frozenset()

    def entry(self, rel: str, data: bytes) -> Entry:
        """A file that git has recorded with this content."""
        if self.links and self.modes.get(rel) == "120000":
            return Entry(LinkTarget(data), False)
        return Entry(data, self.executable(rel) if self.trusted else None)

    def regular(self, paths: Iterable[str]) -> list[str]:
        """Those of the paths that are recorded as files, not as links or repositories."""
        return [path for path in paths if self.modes.get(path, "").startswith("100")]

    def executable(self, rel: str) -> bool:
        """Whether it is recorded as a program."""
        return self.modes.get(rel) == "100755"


def recorded_files(root: Path, tree: str = "") -> RecordedFiles:
    """The recorded files below a folder, by path from there.

    Args:
        root: The folder.
        tree: A commit; the index if ``""``.

    Raises:
        GitFailedError: Git cannot tell.
    """
    listing = ["ls-tree", "-r", "-z", tree] if tree else ["ls-files", "--stage", "-z"]
    answer = run_git(root, listing)
    settings = ""
    with contextlib.suppress(GitFailedError):  # Neither is set.
        pattern = r"^core\.(filemode|symlinks)$"
        settings = os.fsdecode(run_git(root, ["config", "--type=bool", "--get-regexp", pattern]))
    modes: dict[str, str] = {}
    unmerged: set[str] = set()
    for line in os.fsdecode(answer).split("\0"):
        facts, _, path = line.partition("\t")
        if path:
            modes[path] = facts[:6]
            if not tree and not facts.endswith(" 0"):
                unmerged.add(path)
    return RecordedFiles(
        modes,
        "core.filemode false" not in settings,
        "core.symlinks false" not in settings,
        frozenset(unmerged),
    )


def checked_out_files(
    root: Path,
    tree: str,
    paths: Iterable[str],
    *,
    limit: int,
    place: RepositoryPlace | None = None,
) -> dict[str, bytes]:
    """Regular files as git would check them out; one process for all of them.

    Git reports the size of a file before its filters, not after them.  So each file is followed by
    a random name, which git reports as missing: this line marks the end of the file.

    Args:
        root: A folder.
        tree: The commit; the index if ``""``.
        paths: Regular files below the folder; those that are not there are left out, and so are
            names with white space.
        limit: Bytes to read at most; files that do not fit are left out, too.
        place: Its repository, if that was looked up already.

    Raises:
        GitFailedError: Git cannot tell; a filter that fails is enough.
    """
    place = place or find_repository(root)
    asked = [path for path in paths if not any(space in path for space in " \t\n")]
    if place is None or not asked:
        return {}
    above, end = _below_top(root, place), f"end-{secrets.token_hex(16)}"
    names = "".join(f"{tree}:./{path} {above}{path}\n{end}\n" for path in asked)
    command = ["cat-file", "--batch", "--filters"]
    answer = run_git(root, command, stdin=os.fsencode(names), limit=limit)
    found: dict[str, bytes] = {}
    at, behind = 0, f"\n{end} missing\n".encode()
    for path in asked:
        start = answer.find(b"\n", at)
        stop = answer.find(behind, start)
        if start < 0 or stop < 0:
            break  # Cut off.
        if answer[at:start].split(b" ")[1:2] == [b"blob"]:
            found[path] = answer[start + 1 : stop]
        at = stop + len(behind)
    return found


def passed_over_files(root: Path) -> frozenset[str]:
    """Existing files that git is configured to skip in comparisons, by path from a folder.

    Raises:
        GitFailedError: Git cannot tell.
    """
    answer = os.fsdecode(run_git(root, ["ls-files", "-v", "-z"]))
    marked = {line[2:] for line in answer.split("\0") if line[:1] == "S" or line[:1].islower()}
    return frozenset(path for path in marked if os.path.lexists(Path(root, path)))


def unmerged_files(root: Path) -> frozenset[str]:
    """Files that are in conflict, by path from a folder.

    Raises:
        GitFailedError: Git cannot tell.
    """
    answer = os.fsdecode(run_git(root, ["ls-files", "--unmerged", "-z"]))
    return frozenset(line.partition("\t")[2] for line in answer.split("\0")) - {""}


def sparse_files(root: Path) -> frozenset[str]:
    """Files that git knows and does not check out here (a sparse checkout); none if git fails."""
    with contextlib.suppress(GitFailedError):
        answer = os.fsdecode(run_git(root, ["ls-files", "-t", "-z"]))
        return frozenset(line[2:] for line in answer.split("\0") if line.startswith("S "))
    return frozenset()


def ignored_paths(root: Path) -> frozenset[str]:
    """Files and folders below a folder that git ignores; of an ignored folder only itself.

    Raises:
        GitFailedError: Git cannot tell.
    """
    listing = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"]
    answer = os.fsdecode(run_git(root, listing))
    return frozenset(path.rstrip("/") for path in answer.split("\0") if path)


def files_diff(root: Path, paths: Sequence[str]) -> str:
    """The uncommitted changes of files as a patch, ``""`` if there are none."""
    options = ["--no-color", "--no-ext-diff", "--relative", "HEAD"]
    try:
        answer = run_git(root, ["--literal-pathspecs", "diff", *options, "--", *paths])
    except GitFailedError:
        return ""  # No repository, or no commit yet.
    return answer.decode("utf-8", "replace")


def parse_status(answer: bytes, prefix: str = "") -> RepoStatus:
    """Parse ``git status --porcelain=v2 --branch -z`` (see git-status(1)).

    Args:
        answer: What git wrote.
        prefix: The workspace root below the top of the work tree, as ``src/`` or ``""``.
    """
    head = branch = ""
    dirty = untracked = 0
    marks: dict[str, str] = {}
    entries = iter(answer.split(b"\0"))
    for entry in entries:
        kind = entry[:2]
        if entry.startswith(b"# branch.oid "):
            head = entry[13:].decode()
        elif entry.startswith(b"# branch.head "):
            branch = os.fsdecode(entry[14:])
        elif kind in _PLACES:
            dirty += kind != b"? "
            untracked += kind == b"? "
            path = os.fsdecode(entry.split(b" ", _PLACES[kind])[-1])
            if path.startswith(prefix):
                marks[path.removeprefix(prefix)] = _mark(kind, entry[2:4])
            elif prefix.startswith(path) and path.endswith("/"):
                marks[""] = "?"  # all that is below the root
            if kind == b"2 ":
                next(entries, None)  # a renamed entry is followed by its old path
    head = "" if head == "(initial)" else head
    detached = branch == "(detached)"
    name = head[:8] if detached else branch
    return RepoStatus(name, detached, dirty, untracked, head, marks=marks)


def _mark(kind: bytes, change: bytes) -> str:
    """The letter of an entry of the status; ``change`` is what happened in index and work tree."""
    if kind in (b"u ", b"? "):
        return "!" if kind == b"u " else "?"
    return next((letter for letter in "DAR" if letter.encode() in change), "M")


def recent_subjects(root: Path, limit: int = 8) -> list[str]:
    """First lines of the newest commits of the current branch, newest first, without merges."""
    try:
        # By itself GitPython would take one from the folder, if PATH has a relative entry.
        os.environ.setdefault("GIT_PYTHON_GIT_EXECUTABLE", processes.program("git"))
        import git

        _require_regular(root)
        with git.Repo(root, search_parent_directories=True) as repo:
            repo.git.update_environment(**_with_settings({}, _DISARMED))
            commits = repo.iter_commits(max_count=limit, no_merges=True)
            return [str(commit.summary) for commit in commits]
    except Exception:
        # GitPython has no common error: its own classes, ImportError where git is missing,
        # ValueError for a branch without commits or a format that it cannot read.
        return []
