"""Our reading of ignore files against git's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.workspace import listing
from midstream.workspace.listing import IgnoreRules, files_of_folder, list_files
from midstream.workspace.repo import find_repository
from tests.helpers.property import examples
from tests.helpers.repositories import git

NAMES = ["a", "b", "build", "a.log", "x.py", "é"]
PATTERNS = [
    "a", "/a", "a/", "build/", "*.log", "!a.log", "!/a.log", "**/a", "a/**", "a/*", "!a/b", "a/b",
    "/b/*", "!/b/a", "a/**/b", "# comment", "", "\\!a", "[ab]", "*", "!*/", "x.py ", "x.py\\ ",
    "b*d", "?", "é", "!x.py", "/*", "!/build", "**/build/**",
    "[!a]", "[^ab]", "[]a]", "[a", "[[:alpha:]]", "[a-c]", "a**b", "**",
    "**/", "/**", "***",
    "\\a",
    "a\\", " ", "a/**/", "**/*.py", "[a-]", "a.l[no]g", "\\#", "!", "/", "//",
    "a//b", "[[:digit:]a]*",
]  # fmt: skip
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
patterns = st.lists(st.sampled_from(PATTERNS), max_size=4).map("\n".join)


def ignored_by_git(top: Path, candidates: list[str]) -> set[str]:
    done = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin", "--no-index"],
        cwd=top,
        input="\0".join(candidates).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, 1}
    return set(filter(None, os.fsdecode(done.stdout).split("\0")))


@examples(25)
@given(patterns, patterns, patterns, st.lists(paths, min_size=1, max_size=30, unique=True))
def test_the_same_verdicts_as_git(
    tmp_path_factory: pytest.TempPathFactory,
    top_rules: str,
    inner_rules: str,
    exclude: str,
    candidates: list[str],
) -> None:
    top = tmp_path_factory.mktemp("rules")
    git(top, "init", "-q")
    (top / ".git/info").mkdir(exist_ok=True)
    (top / ".git/info/exclude").write_text(exclude)
    (top / ".gitignore").write_text(top_rules)
    for candidate in candidates:
        path = top / candidate
        # A name may be wanted both as a file and as a folder; the first wish wins.
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        except OSError:
            continue
    if (top / "a").is_dir():
        (top / "a/.gitignore").write_text(inner_rules)
    real = [candidate for candidate in candidates if (top / candidate).is_file()]
    rules = IgnoreRules(top, find_repository(top))
    assert {name for name in real if rules.ignores(name)} == ignored_by_git(top, real)


def test_rules_from_above_the_root_and_from_the_user(repository: Path, tmp_path: Path) -> None:
    config = tmp_path / "home/config/git"
    config.mkdir(parents=True)
    (config / "ignore").write_text("*.swp\n")
    (repository / ".gitignore").write_text("src/gen/\n")
    rules = IgnoreRules(repository / "src", find_repository(repository / "src"))
    assert rules.ignores("gen/deep/file")
    assert rules.ignores("b.swp")
    assert not rules.ignores("gen")
    assert rules.ignores("gen", folder=True)
    git(repository, "config", "core.excludesFile", str(tmp_path / "mine"))
    (tmp_path / "mine").write_text("b.py\n")
    assert not rules.ignores("b.py")
    rules.forget()
    assert rules.ignores("b.py")
    assert not rules.ignores("b.swp")


def test_without_a_repository_the_roots_own_files_count(root: Path) -> None:
    (root / ".gitignore").write_bytes(b"\xef\xbb\xbfout\r\n*.o\n")
    rules = IgnoreRules(root, None)
    assert rules.ignores("out/x")
    assert rules.ignores("a/b.o")
    assert not rules.ignores("a/b.c")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 200),
        ("*?" * 30 + "b", "a" * 200),
        ("*[ab]" * 30 + "c", "ab" * 100),
        ("**/a/" * 30 + "b", "a/" * 80 + "c"),
        ("**/*a*/*/" * 12 + "b", "a/" * 80 + "c"),
        ("x*a" * 3 + "/" + "*a" * 20 + "/b", "xaxaxa/" + "a" * 200 + "/c"),
    ],
)
def test_no_pattern_takes_for_ever(root: Path, pattern: str, path: str) -> None:
    """Each place of one asterisk with each of another is more than there is time for."""
    (root / ".gitignore").write_text(f"{pattern}\n")
    assert not IgnoreRules(root, None).ignores(path)


def test_folders_in_folders_without_end_are_not_looked_into(root: Path) -> None:
    """Deeper than Python can recurse; with the rules of each folder for all that is below it."""
    (root / "f").touch()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    assert list_files(root) == (["f"], False)
    assert IgnoreRules(root, None).ignores("d/" * listing.MAX_DEPTH + "f")
    found, left_out = files_of_folder(root)
    assert found == ["f"]
    assert len(left_out) == 1, "and that is said"
    subprocess.run(["rm", "-rf", root / "d"], check=True)  # too deep for Python
