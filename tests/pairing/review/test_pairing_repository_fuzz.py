"""Random repositories, writers and decisions: what is on disk and in git equals a small model."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from midstream.pairing.files import put_backs
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import git, make_repo

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
)
USERS = {"notes.txt": b"hours\nof\nwork\n", "ignored.log": b"1\n", "nested/own.txt": b"o\n"}
"""Files that are no part of the repository; no decision about others may touch them."""
STEPS = int(os.environ.get("MIDSTREAM_FUZZ_STEPS", "60"))


class Model:
    """A few lines that say what is to be on disk and in the last commit."""

    def __init__(self, kept: dict[str, tuple[bytes, bool]]) -> None:
        self.kept = kept
        self.head = dict(kept)
        self.accepted: set[str] = set()


class Play:
    """One repository, and what is done to it."""

    def __init__(self, root: Path, session: PairingSession, rng: random.Random) -> None:
        self.root, self.session, self.rng = root, session, rng
        self.model = Model(self.committed())

    def log(self, words: str) -> None:
        """Say what is done; pytest shows it where a seed fails."""
        print(words)

    def committed(self) -> dict[str, tuple[bytes, bool]]:
        """What the last commit has."""
        found: dict[str, tuple[bytes, bool]] = {}
        for line in git(self.root, "ls-tree", "-r", "-z", "HEAD").split("\0"):
            facts, _, path = line.partition("\t")
            if path and not facts.startswith("160000"):
                command = ["git", "cat-file", "blob", facts.split(" ")[2]]
                data = subprocess.run(command, cwd=self.root, check=True, capture_output=True)
                found[path] = data.stdout, facts.startswith("100755")
        return found

    def on_disk(self, path: str) -> tuple[bytes, bool] | None:
        place = self.root / path
        if place.is_symlink() or not place.is_file():
            return None
        return place.read_bytes(), os.access(place, os.X_OK)

    def content(self, old: bytes) -> bytes:
        choice = self.rng.randrange(6)
        if choice == 0:
            return b""
        if choice == 1:
            return bytes(self.rng.randrange(1, 128) for _ in range(8)) + b"\0x"
        lines = old.split(b"\n") if b"\0" not in old else [b"one", b""]
        lines.insert(self.rng.randrange(len(lines)), b"line %d" % self.rng.randrange(9))
        if choice == 2 and len(lines) > 2:
            del lines[self.rng.randrange(len(lines) - 1)]
        return b"\n".join(lines)

    async def write(self) -> None:
        """Another program changes, makes, removes or moves a file or a folder."""
        path = self.rng.choice(NAMES)
        place = self.root / path
        kind = self.rng.randrange(5)
        touched = {path}
        if kind == 0 and place.exists():
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        elif kind == 1 and (self.root / "d").is_dir() and not (self.root / "moved").exists():
            (self.root / "d").rename(self.root / "moved")
            below = [p for p in (self.root / "moved").rglob("*") if p.is_file()]
            touched = {"d", *(p.relative_to(self.root).as_posix() for p in below)}
        else:
            for above in [*place.parents][::-1]:
                if above.is_file():
                    above.unlink()
                    touched.add(above.relative_to(self.root).as_posix())
            if place.is_dir():
                shutil.rmtree(place)
            place.parent.mkdir(parents=True, exist_ok=True)
            before = self.on_disk(path)
            place.write_bytes(self.content(b"" if before is None else before[0]))
        self.log(f"wrote {sorted(touched)}: {[self.on_disk(p) for p in sorted(touched)]}")
        await self.session.review.changed(touched)
        for hunk in self.session.hunks.waiting():
            self.log(f"  {hunk} {hunk.old} {hunk.new}")

    async def decide(self) -> None:
        """Keep or put back all that waits in one file, with the other half of a move."""
        waiting = self.session.hunks.waiting()
        if not waiting:
            return
        hunk = self.rng.choice(waiting)
        ids = self.session.files.moves.with_partners([h.id for h in waiting if h.path == hunk.path])
        paths = {self.session.hunks.get(i).path for i in ids}
        wanted = {path: self.on_disk(path) for path in paths}
        self.log(f"decide {paths}")
        decisions = self.session.decisions
        if self.rng.random() < 0.5:
            if await decisions.accept_rest(hunk.path, anyway=True):
                for path, state in wanted.items():
                    self.take(path, state)
        elif await decisions.reject_rest(hunk.path):
            for path in paths:
                assert self.on_disk(path) == self.model.kept.get(path), path

    def take(self, path: str, state: tuple[bytes, bool] | None) -> None:
        self.model.accepted.add(path)
        self.model.kept.pop(path, None)
        if state is not None:
            self.model.kept[path] = state

    async def put_all_back(self) -> None:
        """Nothing waits any more, and every file is as it was kept last."""
        for _ in range(3):
            await self.session.decisions.reject_all()
        left = {hunk.path for hunk in self.session.hunks.waiting()}
        for path in {*NAMES, *self.model.kept} - left:
            if not any(
                other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in left
            ):
                assert self.on_disk(path) == self.model.kept.get(path), path

    async def commit(self) -> None:
        """The commit has what was kept, and of everything else what it had."""
        changes = await self.session.commit.look()
        stageable = list(changes.stageable)
        self.log(f"look {[(f.path, str(f.state), f.trouble) for f in changes.files]}")
        if not stageable:
            return
        self.log(f"commit {stageable}")
        await self.session.commit.stage(*stageable)
        await self.session.commit.commit("kept")
        for path in stageable:
            self.model.head.pop(path, None)
            if path in self.model.kept:
                self.model.head[path] = self.model.kept[path]
        found = self.committed()
        assert {p: s[0] for p, s in found.items()} == {p: s[0] for p, s in self.model.head.items()}
        assert git(self.root, "diff", "--cached", "--name-only") == ""

    def check(self) -> None:
        for path, data in USERS.items():
            assert (self.root / path).read_bytes() == data, path
        assert "160000" in git(self.root, "ls-files", "--stage", "sub")
        assert (self.root / "sub" / "s.txt").read_bytes() == b"s\n"


def made(root: Path, rng: random.Random) -> Path:
    """A repository with a submodule, a nested one, and files that git does not know."""
    other = make_repo(root.parent / "other", {"s.txt": "s\n"})
    text = "".join(f"line {n}\n" for n in range(5))
    files = {name: text for name in NAMES if name != "f" and rng.random() < 0.7}
    make_repo(root, {"base.txt": "b\n", ".gitignore": "*.log\n/nested/\n", **files})
    git(root, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(other), "sub")
    git(root, "commit", "-qm", "sub")
    make_repo(root / "nested", {"own.txt": "o\n"})
    for path, data in USERS.items():
        (root / path).write_bytes(data)
    return root


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(int(os.environ.get("MIDSTREAM_FUZZ_SEEDS", "4"))))
async def test_disk_and_commits_equal_the_model(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(put_backs, "QUIET_S", 0.0)
    rng = random.Random(seed)
    root = made(tmp_path / "work", rng)
    async with await PairingSession.open(
        root, settings=Settings(guard=False), endpoint=endpoint, watch=False
    ) as session:
        await session.review.start(since_commit=True)
        play = Play(root, session, rng)
        for number in range(STEPS):
            step = rng.choices(
                (play.write, play.decide, play.put_all_back, play.commit), (6, 6, 1, 1)
            )[0]
            play.log(f"-- {number} {step.__name__}")
            await step()
            play.check()
