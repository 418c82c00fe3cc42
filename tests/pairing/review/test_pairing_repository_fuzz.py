"""Random repositories, writers and decisions: what is on disk and in git equals a small model.

The repository has a submodule, a nested repository, a linked work tree, a file in conflict (some of
them), files that git does not know, a filter, line endings that attributes ask for, and a hook that
refuses commits now and then.
"""

from __future__ import annotations

import codecs
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from midstream.edits.hunks import Hunk
from midstream.pairing.files import put_backs
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from midstream.workspace.errors import GitError
from tests.helpers.pairing import git, make_repo
from tests.helpers.property import thorough

NAMES = (
    "a.txt",
    "naïve name.txt",
    "d/x.txt",
    "d/e/y.txt",
    "d/e/.keep",
    "f/z",
    "f",
    "-odd",
    "e.bin",
    "secret.rot",
    "win.crlf",
    "link",
)
USERS = {"notes.txt": b"hours\nof\nwork\n", "ignored.log": b"1\n", "nested/own.txt": b"o\n"}
"""Files that are no part of the repository; no decision about others may touch them."""
OTHERS = {"sub/s.txt": b"s\n", "inner/base.txt": b"b\n"}
"""Files of other repositories in the folder; they are written to, and never reviewed."""
CONFLICT = b"<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
ATTRIBUTES = "*.rot filter=rot\n*.crlf text eol=crlf\n"
ROT = "tr a-zA-Z n-za-mN-ZA-M"
HOOK = '#!/bin/sh\n! test -e "$(git rev-parse --git-dir)/refuse"\n'
STEPS = int(os.environ.get("MIDSTREAM_FUZZ_STEPS", "60" if thorough() else "20"))


class State(NamedTuple):
    """A file: its bytes, or where a link points; and its mode, as git writes it."""

    data: bytes
    mode: str = "100644"


class Play:
    """One repository, random actions on it, and a small model of the expected result.

    Attributes:
        kept: The content of every file without undecided changes.
        head: What the last commit is to have: the ids of contents.
    """

    def __init__(self, root: Path, session: PairingSession, rng: random.Random) -> None:
        self.root, self.session, self.rng = root, session, rng
        self.head = self.committed()
        self.kept = {path: state for path in self.head if (state := self.on_disk(path))}
        if state := self.on_disk("conflict.txt"):
            self.kept["conflict.txt"] = state
        self.others = dict(OTHERS)
        self.partly: set[str] = set()
        self.trusted = "rot" not in (root / ".git" / "config").read_text()

    def log(self, words: str) -> None:
        """Say what is done; pytest shows it where a seed fails."""
        print(words)

    # The oracle

    def on_disk(self, path: str) -> State | None:
        place = self.root / path
        if place.is_symlink():
            return State(os.fsencode(place.readlink()), "120000")
        if not place.is_file():
            return None
        return State(place.read_bytes(), "100755" if os.access(place, os.X_OK) else "100644")

    def committed(self) -> dict[str, tuple[str, str]]:
        """Mode and content's id of every file of the last commit."""
        found: dict[str, tuple[str, str]] = {}
        for line in git(self.root, "ls-tree", "-r", "-z", "HEAD").split("\0"):
            facts, _, path = line.partition("\t")
            if path and not facts.startswith("160000"):
                mode, _, blob = facts.split(" ")
                found[path] = mode, blob
        return found

    def stored(self, path: str, state: State) -> tuple[str, str]:
        """Mode and id that git gives a file."""
        filters = ["--no-filters"] if state.mode == "120000" else [f"--path={path}"]
        command = ["git", "hash-object", "--stdin", *filters]
        done = subprocess.run(
            command, cwd=self.root, input=state.data, check=True, capture_output=True
        )
        return state.mode, done.stdout.decode().strip()

    def without(self, path: str, waiting: Sequence[Hunk]) -> bytes:
        """A text on disk with the old lines of the hunks that wait."""
        state = self.on_disk(path)
        lines = [] if state is None else state.data.decode().split("\n")[:-1]
        shift = 0
        for hunk in self.session.hunks.for_path(path):  # decided hunks are on disk already
            start = hunk.start + shift
            if hunk in waiting:
                assert tuple(lines[start : start + hunk.added]) == hunk.new
                lines[start : start + hunk.added] = hunk.old
                shift += hunk.deleted - hunk.added
            elif (edit := hunk.edit()) is not None:
                shift += len(edit.lines) - (edit.stop - edit.start)
        return "".join(f"{line}\n" for line in lines).encode()

    # What others do

    def content(self, path: str, old: bytes) -> bytes:
        choice = self.rng.randrange(6)
        if choice == 0:
            return b""
        if choice == 1 and not path.endswith((".rot", ".crlf")):
            return bytes(self.rng.randrange(1, 128) for _ in range(8)) + b"\0x"
        end = b"\r\n" if path.endswith(".crlf") else b"\n"
        lines = old.split(end) if b"\0" not in old and old.endswith(end) else [b"one", b""]
        lines.insert(self.rng.randrange(len(lines)), b"line %d" % self.rng.randrange(9))
        if choice == 2 and len(lines) > 2:
            del lines[self.rng.randrange(len(lines) - 1)]
        if choice == 3 and len(lines) > 5:
            lines[0], lines[4] = b"first %d" % self.rng.randrange(9), b"fifth"
        return end.join(lines)

    async def write(self) -> None:
        """Another program changes, makes, removes or moves a file or a folder."""
        path = self.rng.choice(NAMES)
        place = self.root / path
        kind = self.rng.randrange(6)
        touched = {path}
        if kind == 0 and (place.is_symlink() or place.exists()):
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        elif kind == 1 and (self.root / "d").is_dir() and not (self.root / "moved").exists():
            (self.root / "d").rename(self.root / "moved")
            below = [p for p in (self.root / "moved").rglob("*") if p.is_file()]
            touched = {"d", *(p.relative_to(self.root).as_posix() for p in below)}
        elif kind == 2 and self.on_disk(path) and not place.is_symlink():
            self.reform(place)
        else:
            for above in [*place.parents][::-1]:
                if above.is_file():
                    above.unlink()
                    touched.add(above.relative_to(self.root).as_posix())
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            place.parent.mkdir(parents=True, exist_ok=True)
            before = self.on_disk(path)
            if path == "link":
                place.unlink(missing_ok=True)
                place.symlink_to(self.rng.choice(("a.txt", "d", "../outside", "nowhere")))
            else:
                place.write_bytes(self.content(path, b"" if before is None else before.data))
        await self.tell(touched)

    def reform(self, place: Path) -> None:
        """Change a property of a file that is in no line: mode, line ends, mark or last newline."""
        data = place.read_bytes()
        kind = self.rng.randrange(4)
        if kind == 0 or place.suffix != ".txt" or b"\0" in data:
            place.chmod(place.stat().st_mode ^ 0o111)
        elif kind == 1:
            crlf = b"\r\n" in data
            place.write_bytes(
                data.replace(b"\r\n", b"\n") if crlf else data.replace(b"\n", b"\r\n")
            )
        elif kind == 2:
            mark = codecs.BOM_UTF8
            place.write_bytes(data.removeprefix(mark) if data.startswith(mark) else mark + data)
        else:
            place.write_bytes(data[:-1] if data.endswith(b"\n") else data + b"\n")

    async def write_elsewhere(self) -> None:
        """Another program writes into another repository, or into the file in conflict."""
        path = self.rng.choice([*OTHERS, "conflict.txt"])
        if path in OTHERS:
            self.others[path] = b"line %d\n" % self.rng.randrange(9)
            (self.root / path).write_bytes(self.others[path])
        elif path in self.kept:
            (self.root / path).write_bytes(CONFLICT + b"line %d\n" % self.rng.randrange(9))
        await self.tell({path})

    async def tell(self, touched: set[str]) -> None:
        self.log(f"wrote {[(path, self.on_disk(path)) for path in sorted(touched)]}")
        self.partly -= {p for p in touched if not self.session.hunks.waiting(p)}
        await self.session.review.changed(touched)
        if not self.trusted and "secret.rot" not in self.session.files:
            # The repository's filter does not run, so the former content is unknown.
            self.take("secret.rot", self.on_disk("secret.rot"))
        for hunk in self.session.hunks.waiting():
            self.log(f"  {hunk} {hunk.old} {hunk.new}")

    # Decisions

    async def decide(self) -> None:
        """Keep or put back all that waits in one file, with the other half of a move."""
        waiting = self.session.hunks.waiting()
        if not waiting:
            return
        hunk = self.rng.choice(waiting)
        ids = self.session.files.moves.with_partners([h.id for h in waiting if h.path == hunk.path])
        paths = {self.session.hunks.get(i).path for i in ids}
        before = {path: self.on_disk(path) for path in paths}
        keep = self.rng.random() < 0.5
        decisions = self.session.decisions
        self.log(f"{'keep' if keep else 'put back'} {paths}")
        if keep:
            done = await decisions.accept_rest(hunk.path, anyway=True)
        else:
            done = await decisions.reject_rest(hunk.path)
        if not done:
            return
        if self.rng.random() < 0.15:
            self.log("undo")
            assert await decisions.undo()
            assert {path: self.on_disk(path) for path in paths} == before
            return
        for path in paths:
            if keep:
                self.take(path, before[path])
            else:
                self.check_put_back(path)

    def check_put_back(self, path: str) -> None:
        """Where some lines were kept, the properties that are in no line stay as well."""
        now, kept = self.on_disk(path), self.kept.get(path)
        if path in self.partly and now and kept and plain(now.data) == plain(kept.data):
            self.kept[path] = now
        assert self.on_disk(path) == self.kept.get(path), path

    async def decide_some(self) -> None:
        """Keep or put back one hunk of a text, or some lines of it."""
        waiting = [
            h
            for h in self.session.hunks.waiting()
            if (before := self.kept.get(h.path)) is not None
            and (now := self.on_disk(h.path)) is not None
            and before.mode == now.mode != "120000"
            and all(
                d.endswith(b"\n")
                and not d.startswith(codecs.BOM_UTF8)
                and d.isascii()
                and b"\0" not in d
                and b"\r" not in d
                for d in (before.data, now.data)
            )
        ]
        if not waiting:
            return
        hunk = self.rng.choice(waiting)
        path = hunk.path
        assert self.without(path, self.session.hunks.waiting(path)) == self.kept[path].data, path
        keep = self.rng.random() < 0.5
        start = self.rng.randrange(hunk.deleted + hunk.added)
        stop = self.rng.randrange(start, hunk.deleted + hunk.added) + 1
        self.log(f"{'keep' if keep else 'put back'} {start}-{stop} of {hunk}")
        if await self.session.decisions.decide_lines(hunk.id, start, stop, keep):
            left = self.without(path, self.session.hunks.waiting(path))
            if keep:
                self.partly.add(path)
                self.take(path, State(left, self.kept[path].mode))
            else:
                assert left == self.kept[path].data, path

    def take(self, path: str, state: State | None) -> None:
        self.kept.pop(path, None)
        if state is not None:
            self.kept[path] = state

    async def put_all_back(self) -> None:
        """Nothing waits any more, and every file is as it was kept last."""
        for _ in range(3):
            await self.session.decisions.reject_all()
        left = {hunk.path for hunk in self.session.hunks.waiting()}
        self.log(f"left {left}")
        for path in left:  # Only where a kept file has the place.
            assert any(in_the_way(path, other) for other in self.kept), path
        for path in {*NAMES, *self.kept} - left:
            if not any(in_the_way(path, other) for other in left):
                self.check_put_back(path)

    async def commit(self) -> None:
        """The commit has the kept changes, and everything else as before."""
        changes = await self.session.commit.look()
        stageable = list(changes.stageable)
        self.log(f"look {[(f.path, str(f.state), f.trouble) for f in changes.files]}")
        if not changes.staged and not stageable:
            return
        await self.session.commit.stage(*stageable)
        taken = [f.path for f in changes.files if f.path in stageable or f.state == "staged"]
        refuse = self.root / ".git" / "refuse"
        refused = "conflict.txt" in self.kept
        if self.rng.random() < 0.2:
            refuse.touch()
            refused = True
        self.log(f"commit {taken}{', refused' * refused}")
        if refused:
            with pytest.raises(GitError):
                await self.session.commit.commit("kept")
            refuse.unlink(missing_ok=True)
        else:
            await self.session.commit.commit("kept")
            for path in taken:
                self.head.pop(path, None)
                if path in self.kept:
                    self.head[path] = self.stored(path, self.kept[path])
            assert git(self.root, "diff", "--cached", "--name-only") == ""
        found = self.committed()
        if not self.trusted:  # What the file held before its first change is in no commit of ours.
            for files in (found, self.head):
                files.pop("secret.rot", None)
        assert found == self.head

    def check(self) -> None:
        for path, data in (USERS | self.others).items():
            assert (self.root / path).read_bytes() == data, path
        assert "160000" in git(self.root, "ls-files", "--stage", "sub")
        assert not any(hunk.path.startswith(("sub/", "inner/")) for hunk in self.session.hunks)


def in_the_way(path: str, other: str) -> bool:
    """Whether one of two files would have to be a folder."""
    return other.startswith(f"{path}/") or path.startswith(f"{other}/")


def plain(data: bytes) -> bytes:
    """The lines of a text, without mark, CR and last newline."""
    return data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").removesuffix(b"\n")


def made(root: Path, rng: random.Random) -> Path:
    """Fill the repository."""
    other = make_repo(root.parent / "other", {"s.txt": "s\n"})
    text = "".join(f"line {n}\n" for n in range(5))
    files = {name: text for name in NAMES if name not in ("f", "link") and rng.random() < 0.7}
    ignored = "*.log\n/nested/\n/inner/\n"
    first = {"base.txt": "b\n", ".gitignore": ignored, ".gitattributes": ATTRIBUTES}
    for name, content in first.items():
        (root / name).write_bytes(content.encode())
    git(root, "add", ".")
    git(root, "commit", "-qm", "start")
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        end = "\r\n" if name.endswith(".crlf") else "\n"
        (root / name).write_bytes(content.replace("\n", end).encode())
    git(root, "add", ".")
    git(root, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(other), "sub")
    git(root, "commit", "-qm", "sub")
    git(root, "worktree", "add", "-q", "inner", "-b", "inner")
    (root / "inner" / "base.txt").write_bytes(b"b\n")
    make_repo(root / "nested", {"own.txt": "o\n"})
    for path, data in USERS.items():
        (root / path).write_bytes(data)
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
    if rng.random() < 0.15:
        conflict(root)
    return root


def conflict(root: Path) -> None:
    """Leave a file in conflict, as a merge does."""
    blobs = [
        subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            cwd=root,
            input=text,
            check=True,
            capture_output=True,
        ).stdout.decode()[:-1]
        for text in (b"", b"a\n", b"b\n")
    ]
    index = "".join(f"100644 {blob} {n}\tconflict.txt\n" for n, blob in enumerate(blobs, 1))
    command = ["git", "update-index", "--index-info"]
    subprocess.run(command, cwd=root, input=index.encode(), check=True)
    (root / "conflict.txt").write_bytes(CONFLICT)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(int(os.environ.get("MIDSTREAM_FUZZ_SEEDS", "4"))))
async def test_disk_and_commits_equal_the_model(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    rng = random.Random(seed)
    config = tmp_path / "gitconfig"
    config.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    where = rng.choice((["--global"], []))
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "-q", "-b", "main")
    for which in ("clean", "smudge"):
        git(tmp_path / "work", "config", *where, f"filter.rot.{which}", ROT)
    for key in ("name", "email"):
        git(tmp_path / "work", "config", f"user.{key}", "t@example.org")
    root = made(tmp_path / "work", rng)
    async with await PairingSession.open(
        root, settings=Settings(guard=False), endpoint=endpoint, watch=False
    ) as session:
        await session.review.switch_on(since_commit=True)
        play = Play(root, session, rng)
        steps = (
            play.write,
            play.decide,
            play.decide_some,
            play.write_elsewhere,
            play.put_all_back,
            play.commit,
        )
        for number in range(STEPS):
            step = rng.choices(steps, (8, 5, 4, 1, 1, 1))[0]
            play.log(f"-- {number} {step.__name__}")
            await step()
            play.check()
