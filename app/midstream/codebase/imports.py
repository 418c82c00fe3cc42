"""Imports that lead nowhere: a module that the project lacks, or a name that its module lacks."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from midstream.code.syntax import NOT_PYTHON, parse_python

_MAX_BYTES: Final = 1_000_000
"""Larger files count as having every name."""

_PACKAGES: Final = {
    "bs4": "beautifulsoup4",
    "corsheaders": "django-cors-headers",
    "cv2": "opencv",
    "fitz": "pymupdf",
    "gi": "pygobject",
    "MySQLdb": "mysqlclient",
    "mpl_toolkits": "matplotlib",
    "pkg_resources": "setuptools",
    "pylab": "matplotlib",
    "rest_framework": "djangorestframework",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
}
"""Packages whose name does not hold that of their module; none of them need be installed here."""


def lost_imports(
    root: Path, list_files: Callable[[], Sequence[str]], path: str, before: str, after: str
) -> list[str]:
    """New imports of a Python file that lead nowhere, as ``module`` or ``module.name`` (blocking).

    A module that is neither the project's nor of the standard library counts as there if another
    file of the project imports it or a list of dependencies names it.

    Args:
        root: The folder.
        list_files: Lists its files; called only if there are new imports.
        path: The file, relative to the root.
        before: Its text as it was.
        after: Its text as it would be.
    """
    try:
        known = {ast.dump(node) for node in _imports(parse_python(before))}
        new = [n for n in _imports(parse_python(after)) if ast.dump(n) not in known]
    except NOT_PYTHON:
        return []
    if not new:
        return []
    files = list_files()
    modules = _modules(files, path)
    found: list[str] = []
    for node in new:
        for module, name in _parts(node, path):
            top = module.partition(".")[0]
            if top in sys.stdlib_module_names or (not module and name):
                continue
            if module in modules:
                if name and not _has(root, modules, module, name):
                    found.append(f"{module}.{name}")
            elif any(each == top or each.startswith(f"{top}.") for each in modules):
                found.append(module)
            elif not _is_imported(root, files, path, top):
                found.append(top)
    return list(dict.fromkeys(found))


def _imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top of a module; those in blocks may be guarded."""
    return [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]


def _parts(node: ast.Import | ast.ImportFrom, path: str) -> Iterator[tuple[str, str]]:
    """The modules that an import names, each with the name that is taken from it."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif not node.level:
        yield from ((node.module or "", alias.name) for alias in node.names)
    else:
        folders = PurePosixPath(path).parent.parts
        folders = folders[: len(folders) - node.level + 1]
        module = ".".join([*folders, *filter(None, [node.module])])
        yield from ((module, alias.name) for alias in node.names)


def _modules(files: Sequence[str], path: str) -> dict[str, str]:
    """The modules of a project by each name that they may be imported under."""
    found: dict[str, str] = {}
    for file in files:
        if not file.endswith((".py", ".pyi")):
            continue
        parts = list(PurePosixPath(file).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        for start in range(len(parts)):
            found.setdefault(".".join(parts[start:]), file)
        for start in range(len(parts)):  # Folders without an __init__.py are packages, too.
            for stop in range(start + 1, len(parts)):
                found.setdefault(".".join(parts[start:stop]), "")
    return found


def _has(root: Path, modules: dict[str, str], module: str, name: str) -> bool:
    if name == "*" or f"{module}.{name}" in modules or not modules[module]:
        return True
    try:
        file = root / modules[module]
        if file.stat().st_size > _MAX_BYTES:
            return True
        text = file.read_text("utf-8", "replace")
    except OSError:
        return True
    # A module may make its names in many ways; one that has the word nowhere does not have it.
    return re.search(rf"\b{re.escape(name)}\b|\bimport \*|__getattr__", text) is not None


def _is_imported(root: Path, files: Sequence[str], path: str, top: str) -> bool:
    """Whether another file of the project imports a package, or names it as a dependency."""
    word = re.compile(rf"^\s*(?:import|from)\s+{re.escape(top)}\b", re.MULTILINE)
    # A package may have a longer name than its module: PyYAML, python-dotenv.
    names = (re.escape(name).replace("_", "[-_.]?") for name in {top, _PACKAGES.get(top, top)})
    named = re.compile("|".join(names), re.IGNORECASE)
    for file in files:
        name = PurePosixPath(file).name
        lists = name == "pyproject.toml" or name.endswith((".cfg", ".txt", ".lock"))
        if file == path or not (lists or file.endswith(".py")):
            continue
        try:
            if (root / file).stat().st_size > _MAX_BYTES:
                continue
            text = (root / file).read_text("utf-8", "replace")
        except OSError:
            continue
        if (named if lists else word).search(text):
            return True
    return False
