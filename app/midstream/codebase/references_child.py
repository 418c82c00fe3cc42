"""A process that finds the uses of one name in a project, for Python with jedi.

Reads one JSON object from its input (see ``Search``) and prints one JSON object a line: first
``{"looked_at": 3, "of": 20}`` while it works, at the end ``{"uses": [...]}``.  It is a process of
its own because jedi holds the interpreter for seconds; killing it cancels the search.

Every token with the name is a candidate: code, f-strings and ``__all__``.  Candidates that jedi
leads to the same definition belong together, as do definitions in one scope, attributes set in one
class, and methods that override one another.  The group of the definition is the answer.  So are
strings in annotations, and those that name it next to its module, as in
``monkeypatch.setattr(module, "name", ...)`` and ``mock.patch("package.module.name")``; of other
strings none is certain.
"""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from midstream.code.languages import grammar_of
from midstream.codebase.references_trees import search_trees
from midstream.resources import read_text

MODEST: Final = 10
"""How much a search gives way to everything else (``nice``)."""
_LOOKUPS: Final = frozenset({"getattr", "setattr", "hasattr", "delattr", "object"})
"""Functions and methods that take an object and the name of one of its attributes; ``object`` is
that of ``mock.patch``."""
_DEFINITIONS: Final = ("funcdef", "classdef")

# jedi and parso have no types for the parts used here.
_Leaf = Any
_Node = Any


class Spot(NamedTuple):
    """The position of a token: file, 0-based line, 0-based column."""

    path: str
    line: int
    column: int


class Project:
    """The files that have the name, as parso reads them, and what jedi makes of them."""

    def __init__(self, root: Path, name: str, texts: Mapping[str, str], start: str) -> None:
        jedi, parso = cast("Any", import_module("jedi")), cast("Any", import_module("parso"))
        self.root = root
        self.name = name
        word = re.compile(rf"\b{re.escape(name)}\b")
        self.texts = {path: text for path, text in texts.items() if word.search(text)}
        source = root / "src"
        # Files outside of the folder import from a folder above both.
        above = Path(os.path.commonpath([root, *(os.path.normpath(root / p) for p in self.texts)]))
        added = [str(each) for each in dict.fromkeys((root, _outside_of_package(root), above))]
        added += [str(source)] if source.is_dir() else []
        self._jedi = jedi
        # The interpreter of the project is never started: it is code of the project's author.
        self._environment = jedi.InterpreterEnvironment()
        self._project = jedi.Project(root, added_sys_path=added)
        self.trees: dict[str, _Node] = {p: parso.parse(text) for p, text in self.texts.items()}
        self._scripts: dict[str, Any] = {}
        self.script(start)

    def script(self, path: str) -> Any:
        """Jedi's view of a file."""
        if path not in self._scripts:
            made = self._jedi.Script(
                self.texts[path],
                path=os.path.normpath(self.root / path),
                project=self._project,
                environment=self._environment,
            )
            if self._scripts:  # One state for all, so that texts not on disk are seen by others.
                first = next(iter(self._scripts.values()))
                made._inference_state = first._inference_state
            made._get_module()
            self._scripts[path] = made
        return self._scripts[path]

    def leaves(self) -> dict[Spot, _Leaf]:
        """Every token with the name, f-strings included."""
        return {
            Spot(path, leaf.start_pos[0] - 1, leaf.start_pos[1]): leaf
            for path, tree in self.trees.items()
            for leaf in tree.get_used_names().get(self.name, ())
        }

    def definitions(self, spot: Spot) -> list[Spot] | None:
        """Where jedi says a token is defined; ``None`` if it does not know."""
        try:
            found = self.script(spot.path).goto(
                spot.line + 1, spot.column, follow_imports=True, follow_builtin_imports=True
            )
        except Exception:  # jedi fails on some code in many ways; then it does not know.
            return None
        spots: list[Spot] = []
        for each in found:
            if each.module_path is None or each.line is None:
                spots.append(Spot("", 0, 0))
                continue
            path = Path(os.path.relpath(each.module_path, self.root)).as_posix()
            if path.startswith("../") and path not in self.texts:
                path = str(each.module_path)
                if each.type != "module" and not _stands_at(each):
                    continue
            spots.append(Spot(path, each.line - 1, each.column))
        return spots or None

    def module_at(self, path: str, line: int, column: int) -> str | None:
        """The file, as in ``texts``, of the module that a 0-based place names."""
        try:
            found = self.script(path).goto(line + 1, column, follow_imports=True)
        except Exception:  # See above.
            return None
        for each in found:
            if each.type == "module" and each.module_path is not None:
                file = Path(each.module_path)
                return (
                    file.relative_to(self.root).as_posix()
                    if file.is_relative_to(self.root)
                    else None
                )
        return None


def _outside_of_package(folder: Path) -> Path:
    """The folder that imports start from, if a folder is a package or inside of one."""
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def _stands_at(found: Any) -> bool:
    """Whether a definition is where jedi says; members of an enum get the wrong file."""
    try:
        lines = read_text(Path(str(found.module_path)), errors="replace").split("\n")
    except OSError:
        return False
    line, column, name = int(found.line), int(found.column), str(found.name)
    return line <= len(lines) and lines[line - 1].startswith(name, column)


class Groups:
    """Tokens that mean the same thing (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[Spot, Spot] = {}

    def find(self, spot: Spot) -> Spot:
        """The token that stands for the group of a token."""
        while (parent := self._parents.get(spot, spot)) != spot:
            spot = parent
        return spot

    def join(self, one: Spot, other: Spot) -> None:
        """Both tokens mean the same."""
        self._parents[self.find(one)] = self.find(other)


def search(
    root: Path, start: Spot, name: str, texts: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    """Find the uses of what is called ``name`` at ``start``.

    Yields:
        Progress, and at last the uses as ``[path, line, column, certain, defines]``.
    """
    project = Project(root, name, texts, start.path)
    leaves = project.leaves()
    groups, unknown = Groups(), set[Spot]()
    owners: dict[tuple[str, str, int], Spot] = {}
    for count, (spot, leaf) in enumerate(leaves.items()):
        if count % 10 == 0:
            yield {"looked_at": count, "of": len(leaves)}
        if (owner := _owner(spot, leaf)) is not None:
            groups.join(spot, owners.setdefault(owner, spot))
            if owner[0] != "scope" or not _is_imported(leaf):
                continue
        found = project.definitions(spot)
        if found is None:
            unknown.add(spot)
            continue
        for definition in found:
            if definition != spot:
                groups.join(spot, definition)
    for one, other in _overrides(project, leaves):
        groups.join(one, other)
    mine = groups.find(start)
    certain = {spot for spot in leaves if groups.find(spot) == mine}
    # A name that is unique in the project can only be this, if the project defines it.
    others = [s for s, leaf in leaves.items() if s not in certain and _defines(leaf)]
    open_ = {s for s in unknown if s not in certain and groups.find(s) == s}
    attribute = any(_is_attribute(leaves[s]) or _in_class(leaves[s]) for s in certain)
    open_ = {s for s in open_ if _may_be(leaves[s], attribute)}
    if not others and any(_defines(leaves[spot]) for spot in certain):
        others_too = {_kept_in(leaves[spot]) for spot in open_ if _is_handed_on(leaves[spot])}
        handed_on = {spot for spot in open_ if _kept_in(leaves[spot]) in others_too}
        certain |= open_ - handed_on
        open_ = handed_on
    defining = {spot for spot in certain if _defines(leaves[spot])}
    tops = _tops(certain, leaves)
    named, open_names = _named_in_strings(project, tops, attribute)
    certain |= _exported(project, tops) | named
    uses = [[*spot, True, spot in defining] for spot in sorted(certain)]
    uses += [[*spot, False, False] for spot in sorted((open_ | open_names) - certain)]
    yield {"uses": uses}


def _scope(leaf: _Leaf) -> _Node:
    """The function, class or module in which a name is bound."""
    definition = leaf.get_definition(include_setitem=False)
    inside = leaf
    if definition is not None and definition.type in _DEFINITIONS and definition.name is leaf:
        inside = definition
    found = inside.search_ancestor("funcdef", "lambdef", "classdef", "file_input")
    return found if found is not None else inside.get_root_node()


def _owner(spot: Spot, leaf: _Leaf) -> tuple[str, str, int] | None:
    """The owner of a definition: a scope, or the class of ``self``; ``None`` for a use."""
    if not leaf.is_definition():
        return None
    if _is_attribute(leaf):
        return _class_of_self(spot, leaf)
    scope = _scope(leaf)
    if _is_global(scope, leaf.value):
        scope = leaf.get_root_node()
    kind = "class" if scope.type == "classdef" else "scope"
    return kind, spot.path, scope.start_pos[0]


def _class_of_self(spot: Spot, leaf: _Leaf) -> tuple[str, str, int] | None:
    before = leaf.parent.get_previous_sibling() if leaf.parent.type == "trailer" else None
    owner = leaf.search_ancestor("classdef")
    if owner is None or before is None or before.type != "name":
        return None
    if before.value not in ("self", "cls"):
        return None
    return "class", spot.path, owner.start_pos[0]


def _is_global(scope: _Node, name: str) -> bool:
    if scope.type != "funcdef":
        return False
    return re.search(rf"^\s*global\b.*\b{re.escape(name)}\b", scope.get_code(), re.M) is not None


def _is_imported(leaf: _Leaf) -> bool:
    definition = leaf.get_definition(import_name_always=True)
    return definition is not None and definition.type in ("import_from", "import_name")


def _is_attribute(leaf: _Leaf) -> bool:
    before = leaf.get_previous_leaf()
    return before is not None and before.value == "." and not _is_imported(leaf)


def _in_class(leaf: _Leaf) -> bool:
    return bool(leaf.is_definition()) and _scope(leaf).type == "classdef"


def _defines(leaf: _Leaf) -> bool:
    return bool(leaf.is_definition()) and not _is_imported(leaf)


def _is_keyword(leaf: _Leaf) -> bool:
    """Whether it is the name of an argument in a call."""
    return leaf.parent.type == "argument" and leaf.parent.children[0] is leaf


def _may_be(leaf: _Leaf, attribute: bool) -> bool:
    """Whether a token that leads nowhere may be a use of such a name."""
    if attribute:
        return _is_attribute(leaf) or _is_keyword(leaf)
    return not leaf.is_definition() or _is_imported(leaf)


def _is_handed_on(leaf: _Leaf) -> bool:
    """Whether a method calls its namesake of something that its object holds.

    In ``def close(self): self._socket.close()`` the second one is most likely another's.
    """
    method = leaf.search_ancestor("funcdef")
    return method is not None and method.name.value == leaf.value and _kept_in(leaf) != ""


def _kept_in(leaf: _Leaf) -> str:
    """The object of an attribute, as code: ``self._socket``."""
    trailer, chain = leaf.parent, leaf.parent.parent
    if trailer.type != "trailer":
        return ""
    before = [each for each in chain.children if each.end_pos <= trailer.start_pos]
    before = before[1:] if before and before[0].type == "keyword" else before  # ``await``
    code = [each.get_code(include_prefix=False) for each in before]
    return "".join(code) if len(code) > 1 and code[0] in ("self", "cls") else ""


def _overrides(project: Project, leaves: Mapping[Spot, _Leaf]) -> Iterator[tuple[Spot, Spot]]:
    """Members of classes that inherit from one another."""
    members: dict[str, Spot] = {}
    bases: dict[str, set[str]] = {}
    for spot, leaf in leaves.items():
        owner = None
        if _in_class(leaf):
            owner = _scope(leaf)
        elif leaf.is_definition() and _is_attribute(leaf) and _class_of_self(spot, leaf):
            owner = leaf.search_ancestor("classdef")
        if owner is not None:
            members.setdefault(owner.name.value, spot)
    if len(members) < 2:
        return
    for tree in project.trees.values():
        for node in _classes(tree):
            superclasses = node.get_super_arglist()
            code = "" if superclasses is None else superclasses.get_code()
            bases.setdefault(node.name.value, set()).update(re.findall(r"\w+", code))
    for one, spot in members.items():
        seen, todo = set[str](), [one]
        while todo:
            current = todo.pop()
            for base in bases.get(current, ()):
                if base not in seen:
                    seen.add(base)
                    todo.append(base)
        for base in seen & members.keys() - {one}:
            yield spot, members[base]


def _classes(node: _Node) -> Iterator[_Node]:
    for child in getattr(node, "children", ()):
        if child.type == "classdef":
            yield child
        yield from _classes(child)


def _tops(certain: set[Spot], leaves: Mapping[Spot, _Leaf]) -> set[str]:
    """The files of the modules that have the name at their top."""
    tops = {s.path for s in certain if leaves[s].is_definition(include_setitem=True)
            and _scope(leaves[s]).type == "file_input"}  # fmt: skip
    return tops | {s.path for s in certain if _is_imported(leaves[s])}


def _exported(project: Project, tops: set[str]) -> set[Spot]:
    """The name in ``__all__`` of the modules that have it at their top."""
    found: set[Spot] = set()
    for path in tops:
        for node in ast.walk(_parsed(project.texts[path])):
            if _is_all(node):
                found |= {
                    _inside(path, each, project.texts[path], project.name)
                    for each in ast.walk(node)
                    if isinstance(each, ast.Constant) and each.value == project.name
                }
    return found


def _named_in_strings(
    project: Project, tops: set[str], attribute: bool
) -> tuple[set[Spot], set[Spot]]:
    """Strings that are the name, or a dotted path to it.

    Args:
        project: The files.
        tops: Files of the modules that have the name at their top.
        attribute: Whether it is an attribute of objects.

    Returns:
        The strings that certainly mean the name, and those that may: arguments of ``getattr`` and
        the like for an attribute, any string for a private name, as that is no ordinary word.
    """
    name = project.name
    certain, open_, others = set[Spot](), set[Spot](), set[Spot]()
    modules = {path: _dotted(path) for path in tops}
    for path, text in project.texts.items():
        nodes = list(ast.walk(_parsed(text)))
        # Python 3.11 gives parts of an f-string the place of the whole.
        parts = {
            id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values
        }
        if path in tops:
            certain |= {
                Spot(path, said.lineno - 1, column)
                for node in nodes
                for said in (*_annotating(node), *_naming(node, name))
                for column in _columns(said, text, name)
            }
        for node in nodes:
            if isinstance(node, ast.Call):
                looked_up, owner = _looked_up(node, name)
                if looked_up is None or owner is None:
                    continue
                spot = _inside(path, looked_up, text, name)
                module = _module_of(project, path, text, owner)
                if module in tops:
                    certain.add(spot)
                elif module is not None:
                    others.add(spot)
                elif attribute:
                    open_.add(spot)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                home, dot, last = node.value.replace(":", ".").rpartition(".")
                if last != name or node.lineno != node.end_lineno or id(node) in parts:
                    continue
                spot = _inside(path, node, text, name, last=True)
                if dot and any(_is_module(home, module) for module in modules.values()):
                    certain.add(spot)
                elif not dot and name.startswith("_"):
                    open_.add(spot)
    return certain, open_ - others


def _annotating(node: ast.AST) -> Iterator[ast.Constant]:
    """The strings in the annotations of a definition: names that are defined further down."""
    found: list[ast.expr | None] = []
    if isinstance(node, (ast.AnnAssign, ast.arg)):
        found = [node.annotation]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found = [node.returns]
    while found:
        each = found.pop()
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each
        elif each is not None and not _is_literal(each):
            found += [child for child in ast.iter_child_nodes(each) if isinstance(child, ast.expr)]


def _is_literal(node: ast.expr) -> bool:
    """Whether it is ``Literal[...]``, whose strings are values."""
    kind = node.value if isinstance(node, ast.Subscript) else None
    return "Literal" in (getattr(kind, "id", ""), getattr(kind, "attr", ""))


def _naming(node: ast.AST, name: str) -> Iterator[ast.Constant]:
    """The string in which a call such as ``TypeVar("T")`` gets the name of its own result."""
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ):
        for said in node.value.args[:1]:
            if isinstance(said, ast.Constant) and said.value == name:
                yield said


def _columns(node: ast.Constant, text: str, name: str) -> Iterator[int]:
    """Where the name stands in a string of one line, and not as an attribute."""
    if node.lineno == node.end_lineno:
        line = text.split("\n")[node.lineno - 1]
        start, stop = (
            len(line.encode()[:at].decode("utf-8", "replace"))
            for at in (node.col_offset, node.end_col_offset)
        )
        for found in re.finditer(rf"(?<![\w.]){re.escape(name)}\b", line[:stop]):
            if found.start() >= start:
                yield found.start()


def _looked_up(call: ast.Call, name: str) -> tuple[ast.Constant | None, ast.expr | None]:
    """The name as a string in ``getattr`` and its like, and the object that it is looked up in."""
    function = call.func
    called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if called not in _LOOKUPS or len(call.args) < 2:
        return None, None
    owner, said = call.args[:2]
    if isinstance(said, ast.Constant) and said.value == name:
        return said, owner
    return None, None


def _module_of(project: Project, path: str, text: str, owner: ast.expr) -> str | None:
    """The file of the module that an expression such as ``package.module`` is."""
    if not isinstance(owner, (ast.Name, ast.Attribute)):
        return None
    line, stop = (owner.end_lineno or 1) - 1, owner.end_col_offset or 0
    column = len(text.split("\n")[line].encode()[:stop].decode("utf-8", "replace"))
    return project.module_at(path, line, column - 1)


def _dotted(path: str) -> str:
    """The module of a file, with the folders above its package."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_module(dotted: str, module: str) -> bool:
    """Whether a dotted path names a module, perhaps without the folders above its package."""
    return module == dotted or module.endswith(f".{dotted}")


def _is_all(node: ast.AST) -> bool:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        targets = [function.value] if isinstance(function, ast.Attribute) else []
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _inside(path: str, node: ast.Constant, text: str, name: str, *, last: bool = False) -> Spot:
    """Where the name begins in a string of one line; its last place if there are several."""
    line = text.split("\n")[node.lineno - 1].encode()
    column = len(line[: node.col_offset].decode("utf-8", "replace"))
    stop = len(line[: node.end_col_offset].decode("utf-8", "replace"))
    shown = line.decode("utf-8", "replace")
    find = shown.rfind if last else shown.find
    return Spot(path, node.lineno - 1, find(name, column, stop))


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def keep_whole(cache: Any) -> None:
    """Have parso write the files of its cache whole, and read none that is cut off.

    A search is cancelled by killing this process, which would leave half a file behind.  From then
    on jedi would fail on whatever uses that module, and nothing would be certain any more.
    """
    load, place = cache._load_from_file_system, cache._get_hashed_path

    def read(*args: Any, **kwargs: Any) -> object:
        try:
            return load(*args, **kwargs)
        except (EOFError, pickle.UnpicklingError, AttributeError, IndexError, ValueError):
            return None  # It is parsed again, and replaced.

    def write(grammar: str, path: object, item: object, cache_path: object = None) -> None:
        target = Path(place(grammar, path, cache_path=cache_path))
        beside = target.with_suffix(f".{os.getpid()}")
        beside.write_bytes(pickle.dumps(item, pickle.HIGHEST_PROTOCOL))
        beside.replace(target)

    cache._load_from_file_system, cache._save_to_file_system = read, write


def main() -> None:
    """Answer the one request on standard input, at a low priority."""
    if hasattr(os, "nice"):
        os.nice(MODEST)
    asked = cast("dict[str, Any]", json.loads(sys.stdin.buffer.read()))
    cast("Any", import_module("jedi")).settings.cache_directory = asked["cache"]
    keep_whole(cast("Any", import_module("parso.cache")))
    root, start = Path(asked["root"]), Spot(*asked["start"])
    texts: dict[str, str] = {}
    for path in asked["files"]:
        try:
            texts[path] = read_text(root / path)
        except (OSError, ValueError):
            continue
    texts |= asked["texts"]
    if grammar_of(start.path) is not None:
        print(json.dumps({"uses": search_trees(start, asked["name"], texts)}), flush=True)
        return
    for said in search(root, start, asked["name"], texts):
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
