"""Added code: a reply with only the new code of a class or file, read as a rewrite of all of it.

Models write a class or a file again although they were asked for what is new, put each definition
into a code block of its own, or show how to call it.  What is there already is never overwritten.
"""

from __future__ import annotations

import re
import textwrap
from abc import abstractmethod
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Final

from midstream.code.imports import imported, is_import, open_brackets
from midstream.code.outline import Definition, declared_names, opens_block, outline
from midstream.code.syntax import NOT_PYTHON, is_python, parse_python
from midstream.edits.elision import is_elision
from midstream.edits.formats.region import ENDLESS, RegionParser
from midstream.edits.indent import indent_of
from midstream.edits.parsing import MARKDOWN_FENCE, OpenFence, Wait, file_name, is_remark

_MAX_TALK: Final = 3
"""Lines between two blocks of code; a block after a longer gap is an example."""
_AGAIN: Final = "the reply is the class again, with nothing new in it"
_NOTHING_NEW: Final = "the reply has nothing that the file lacks"
_CUT_BLOCK: Final = "the reply ended inside its code fence"
_CLASS: Final = re.compile(
    r"\s*(?:[\w.]+(?:\([^)]*\))?\s+)*(?:class|struct|interface|trait|record|enum|module|impl(?:<[^>]*>)?)\s+"
    r"(?:\w+(?:::|\.))*(?P<name>\w+)"
)
_FUNCTION: Final = re.compile(r"(\s*)((?:async\s+)?)function\s+(?=\w+\s*\()")
_ABOVE: Final = re.compile(r"\s*(?:#|//|/\*|\*|@|import\b|from\s)")
"""Begins a comment, a decorator or an import, which may come before a class or a method."""
_DECORATES: Final = re.compile(r"\s*(?:#|//|/\*|\*|@|\[)")
_REMARK: Final = re.compile(r"\s*(?:#|//|/\*|\*)")
_CLOSERS: Final = ("}", "};", "end")
_CONTINUES: Final = re.compile(r"[)\]}]|end\b|else\b|elif\b|except\b|finally\b|catch\b|\{")
"""Begins a line without indentation that belongs to what stands above it."""
_CONTROL: Final = re.compile(r"(?:if|for|while|with|try|do|switch|match|loop)\b")
_RECEIVER: Final = re.compile(r"func\s*\(")
_IMPL: Final = re.compile(r"(?:unsafe\s+)?impl\b(?P<trait>.*\bfor\b)?")
_METHOD: Final = re.compile(r"(?:async\s+)?def\s+\w+\(\s*(?:self|cls)\b")
_ACCESSOR: Final = re.compile(
    r"@\w+\.(setter|deleter)\b|^\s*(?:static\s+)?(get|set)\s+[\w#\[]", re.MULTILINE
)
"""Distinguishes a method from another one of the same name."""
_TEST: Final = re.compile(r"[tT]est")
_PYTHON_QUOTE: Final = re.compile(r'"{3}|\'{3}')
_QUOTE: Final = re.compile("`")


class AddedCodeParser(RegionParser):
    """Base of the parsers of added code: where it ends, and which blocks of a reply are part of it.

    Args:
        old: The lines of what gets the code.
        path: The file's name, which tells its language.
    """

    def __init__(self, old: Sequence[str], path: str) -> None:
        super().__init__(old)
        self._path = path
        self._code: list[str] = []  # the lines of the reply that are code
        self._talk = 0  # lines behind the last block
        self._further: list[str] | None = None  # a block behind the first one
        self._further_fence = OpenFence("```")
        self._sealed = False

    @abstractmethod
    def _take_line(self, line: str, end: str) -> None:
        """Take a line of code."""

    @abstractmethod
    def _begin_block(self) -> None:
        """A further block of code begins."""

    @abstractmethod
    def _end_block(self) -> None:
        """A block of code has ended."""

    @abstractmethod
    def _end_code(self) -> None:
        """All blocks have come."""

    def _start(self, start: str) -> str | Wait:
        return Wait.LINE  # Where a line belongs is known once it is complete.

    def _content(self, text: str) -> None:
        *lines, last = text.split("\n")
        for line in lines:
            self._take_code(line, "\n")
        if last:
            self._take_code(last, "")

    def _take_code(self, line: str, end: str) -> None:
        if self._is_bare and self._code and line.strip() and is_remark(line):
            self._close()
            self._behind(line, end)
        elif self._is_closed:
            self._behind(line, end)
        else:
            self._code.append(line)
            self._take_line(line, end)

    def _write(self, text: str) -> None:
        """Write text of the rewrite."""
        super()._content(text)

    def _end_of_bare(self) -> None:
        if self._code and not _is_whole(self._code, self._path):
            self._cut(ENDLESS)

    def _finish_text(self) -> None:
        self._end_block()  # A further one may follow.

    def _behind(self, line: str, end: str) -> None:
        fence = MARKDOWN_FENCE.match(line)
        if self._further is not None:
            if fence and not self._further_fence.passes(fence):
                self._take_further()
            else:
                self._further.append(line)
        elif fence is not None and not self._sealed:
            self._further, self._further_fence = [], OpenFence(fence[1])
        else:
            self._prose(line + end)
            self._talk += bool(line.strip())
            if self._talk > _MAX_TALK:
                self._seal()

    def _take_further(self) -> None:
        lines, self._further = self._further or [], None
        if not _defines_only(lines, self._path):
            self._prose("".join(f"{line}\n" for line in lines))
            self._seal()
            return
        self._talk = 0
        self._begin_block()
        for line in lines:
            self._take_line(line, "\n")
        self._end_block()

    def _end(self) -> None:
        super()._end()
        if self._code and not self._is_closed:
            self._close()
        if self._further:
            cut = _defines_only(self._further, self._path)
            self._take_further()
            if cut:
                self._cut(_CUT_BLOCK)
        if self._is_closed:
            self._seal()

    def _seal(self) -> None:
        if not self._sealed:
            self._sealed = True
            self._end_code()
            super()._finish_text()


class AdditionParser(AddedCodeParser):
    """Reads what is added to a class; the rewrite is the class with that in it.

    Models write it without the indentation of the class, with it, or below the heading of the
    class and what comes before its first method.  One that repeats that method as well writes the
    whole class again: then only the methods count that the class lacks.
    """

    def __init__(
        self,
        old: Sequence[str],
        line: int,
        margin: str,
        *,
        first: int | None = None,
        path: str = "",
        around: Collection[str] = (),
        apart: bool = False,
    ) -> None:
        """Start a parser.

        Args:
            old: The lines of the class.
            line: The line of these that the new code comes before.
            margin: White space in front of the members of the class.
            first: The line of these that names the first method.
            path: The file's name, which tells its language.
            around: Lines of the file outside of the class, which may come before it, too.
            apart: Whether blocks that are not meant may follow the class (Rust).
        """
        super().__init__(old, path)
        self._before, self._after = old[:line], old[line:]
        self._margin = margin
        filled = [text for text in old if text.strip()]
        self._outer = indent_of(filled[0]) if filled else ""
        self._closed_by_end = bool(filled) and filled[-1].strip() == "end"
        self._class = next((m["name"] for m in map(_CLASS.match, filled) if m is not None), "")
        start = line if first is None else first
        opened = range(start) if not self._closed_by_end else ()
        headed = next((n for n in opened if opens_block(old[n])), 0)
        self._heading = [*old[: headed + 1]]
        self._repeatable = {line.strip() for line in old[:start] if line.strip()}
        self._around = around
        members = _members(old, path, self._class)
        self._there = {
            key for each in members for key in _keys_of(old[each.start : each.stop], each)
        }
        self._added: set[str] = set()  # the same of new methods
        self._preceding: list[str] = []  # all that came before the new code
        self._own: list[str] = []  # what of that belongs to the new code
        self._aside: list[tuple[str, str]] = []  # the file above the class, unless it is new code
        self._held: list[str] = []  # comments and decorators above the next method
        self._blank: list[str] = []  # dropped unless more follows
        self._headed = False
        self._begun = False  # whether there is new code
        self._shift: str | None = None
        self._inner = ""  # white space in front of the first new line
        self._strings = _Strings(path)
        self._again: list[str] = []  # the class, or some of its methods, if written again
        self._again_ended = False
        self._apart = apart
        self._repeats = False  # whether a class was written again with nothing new in it
        self._has_functions = any(map(_FUNCTION.match, old))
        self._ended = True  # whether the last new line has ended
        self._spaces = 0  # that the model writes for a tab of the class

    def _take_line(self, line: str, end: str) -> None:
        if self._again:
            if not self._again_ended:
                self._again.append(line)
            # Of Rust, blocks for traits may follow.
            self._again_ended |= self._apart and self._headed and line.rstrip() == "}"
        elif self._shift is not None:
            self._go_on(line, end)
        else:
            self._take_first(self._with_tabs(line), end)

    def _take_first(self, line: str, end: str) -> None:
        """Take a line that comes before the new code, or begins it."""
        if self._is_aside(line):
            self._aside.append((line, end))
        elif not line.strip():
            self._blank.append("\n")
        elif self._is_there(line, self._own):
            self._take_again([*self._preceding, *self._blank, f"{line}\n"])
        elif not (self._decorates_on(line) or self._precedes(line)):
            if not self._has_functions:  # Methods of JavaScript have no such word.
                line = _FUNCTION.sub(r"\1\2", line)
            self._begin(line)
            self._add(line, end)

    def _go_on(self, line: str, end: str) -> None:
        """Take a line behind the first one of the new code."""
        if self._strings.inside:
            self._add(line, end)
            return
        line = self._with_tabs(line)
        depth = len(indent_of(line)) - len(self._inner)
        if not line.strip():
            self._blank.append("\n")
        elif depth > 0 or _CONTINUES.match(line.lstrip()):
            self._add(line, end)
        elif self._heads(line) or self._is_there(line, self._held):
            above = self._preceding if self._headed else []
            self._headed = self._headed or self._heads(line)
            self._take_again([*above, *self._held, *self._blank, f"{line}\n"])
        elif _DECORATES.match(line) and not self._left_out(line):
            self._held += [*self._blank, f"{line}{end}"]
            self._blank.clear()
        else:
            self._added |= _keys(self._held, line, declared_names(self._path, line))
            self._add(line, end)

    def _is_there(self, line: str, above: Sequence[str]) -> bool:
        """Whether a line begins a method that the class has."""
        return not self._there.isdisjoint(_keys(above, line, declared_names(self._path, line)))

    def _take_again(self, lines: Sequence[str]) -> None:
        """Begin with the lines that the class has; new code may stand among them."""
        self._again = "".join(lines).splitlines()
        self._held.clear()
        self._blank.clear()

    def _is_aside(self, line: str) -> bool:
        """Whether a line may be of the file above the class, which is known once that comes."""
        if self._headed or self._shift is not None or self._heads(line):
            return False
        return bool(self._aside) or (line.strip() in self._around and not _ABOVE.match(line))

    def _heads(self, line: str) -> bool:
        """Whether a line is the heading of the class."""
        found = _CLASS.match(line)
        if self._headed or found is None or found["name"] != self._class:
            return False
        return not self._apart or "impl" in found[0]

    def _precedes(self, line: str) -> bool:
        """Whether a line comes before the new code; then it is kept."""
        heads = self._heads(line)
        again = heads or self._left_out(line)
        again = again or (self._headed and line.strip() in self._repeatable)
        above = _ABOVE.match(line) is not None
        if not again and not above:
            return False
        self._preceding += [*self._blank, f"{line}\n"]
        if heads:
            self._headed = True
            self._own.clear()  # Comments on the file, its imports, decorators of the class.
            self._aside.clear()
        elif above and (not again or line.lstrip().startswith("@")):
            self._own += [*self._blank, f"{line}\n"] if self._own else [f"{line}\n"]
        self._blank.clear()
        return True

    def _decorates_on(self, line: str) -> bool:
        """Whether a line is of the decorator above it; then it is kept with that."""
        above = self._own[-1] if self._own else ""
        deeper = len(indent_of(line)) - len(indent_of(above))
        within = deeper > 0 or (deeper == 0 and _CONTINUES.match(line.lstrip()) is not None)
        is_open = above.lstrip().startswith("@") and above.count("(") > above.count(")")
        if not (within and is_open):
            return False
        self._own[-1] += f"{line}\n"
        self._preceding.append(f"{line}\n")
        return True

    def _left_out(self, line: str) -> bool:
        """Whether a line stands for the other methods ("# ... existing methods")."""
        dots = self._headed and self._shift is None and line.strip() == "..."
        return dots or (is_elision(line) and line.strip() not in self._old)

    def _add_what_is_new(self, again: Sequence[str]) -> None:
        """Add the methods of a class that was written again, if the class lacks them."""
        for each in _members(again, self._path, self._class):
            lines = again[each.start : each.stop]
            if (self._there | self._added).isdisjoint(_keys_of(lines, each)):
                self._own.clear()
                self._begin(lines[0])
                for line in lines:
                    self._add(line, "\n")

    def _begin(self, line: str) -> None:
        self._inner = indent_of(line)
        self._shift = self._shift_of(self._inner)
        if not self._begun:
            self._write("".join(f"{text}\n" for text in self._before))
        if self._begun or (self._before and self._before[-1].strip()):
            self._write("\n")
        self._begun = True
        self._strings = _Strings(self._path)
        self._added |= _keys(self._own, line, declared_names(self._path, line))
        for text in self._own:
            shift = "" if text == "\n" else self._shift_of(indent_of(text))
            self._write("".join(shift + line for line in text.splitlines(keepends=True)))
        if not self._own:
            self._blank.clear()

    def _add(self, line: str, end: str) -> None:
        inside = self._strings.inside
        shift = "" if self._strings.take(line, self._inner) else self._shift
        text = f"{shift}{line}{end}"
        depth = len(indent_of(line)) - len(self._inner)
        closes = self._headed and depth < 0 and line.strip() in _CLOSERS
        if not inside and (closes or (depth <= 0 and self._left_out(line))):
            self._blank.append(text)  # The class has an end and other methods.
            return
        self._write_held()
        self._write("".join([*self._blank, text]))
        self._blank.clear()
        self._ended = bool(end)

    def _write_held(self) -> None:
        self._write(
            "".join(f"{self._shift}{text}" if text.strip() else text for text in self._held)
        )
        self._held.clear()

    def _shift_of(self, indent: str) -> str:
        """The white space that the new lines lack."""
        if indent.startswith(self._margin):
            return ""
        inner = self._margin.removeprefix(self._outer)
        return self._outer if inner and indent.startswith(inner) else self._margin

    def _with_tabs(self, line: str) -> str:
        """A new line with tabs for spaces, if the class has tabs."""
        indent = indent_of(line)
        if not self._margin.startswith("\t") or not indent or indent.strip(" "):
            return line
        self._spaces = self._spaces or len(indent)
        tabs, rest = divmod(len(indent), self._spaces)
        return "\t" * tabs + " " * rest + line[len(indent) :]

    def _begin_block(self) -> None:
        self._shift, self._headed = None, False
        self._preceding.clear()
        self._own.clear()
        self._aside.clear()
        self._blank.clear()
        if not self._ended:
            self._write("\n")
            self._ended = True

    def _end_block(self) -> None:
        if aside := self._aside:  # No class has come.
            self._aside, self._around = [], ()
            for line, end in aside:
                self._take_line(line, end)
        if again := self._again:
            self._again, self._again_ended = [], False
            if not self._headed:
                again = [
                    *self._heading,
                    *_moved(again, self._margin, self._path),
                    *self._after[-1:],
                ]
            self._add_what_is_new(again)
            self._repeats = self._repeats or not self._begun
        if self._shift is None and self._own and not self._headed:
            self._begin(self._own[-1])
        if self._held:
            self._ended = self._held[-1].endswith("\n")
            self._write_held()

    def _end_code(self) -> None:
        if not self._begun:
            if self._repeats:
                self._problem(_AGAIN, fatal=True)
        elif self._after:
            if not self._ended:
                self._write("\n")
            if self._after[0].strip() not in ("", *_CLOSERS):
                self._write("\n")
            self._write("".join(f"{text}\n" for text in self._after))


class FileAdditionParser(AddedCodeParser):
    """Reads what is added to a file; the rewrite is the file with that in it.

    Imports that the file lacks come behind those that it has, definitions behind its last one.
    Of a class that the file has, too, only the new methods count, and of other definitions that it
    has, none.  A test with the name of another one gets a number.
    """

    def __init__(
        self,
        old: Sequence[str],
        imports: int,
        line: int,
        *,
        path: str = "",
        known: Collection[str] = (),
    ) -> None:
        """Start a parser.

        Args:
            old: The lines of the file.
            imports: The line of these that new imports come before.
            line: The line of these that new definitions come before.
            path: The file's name, which tells its language.
            known: Names that the model was shown the definitions of, and may write again.
        """
        super().__init__(old, path)
        self._lines = old
        self._imports_at, self._place = imports, line
        self._known = frozenset(known)
        self._outline = outline(tuple(old), path)
        self._names = {d.name for d in self._outline.definitions}
        self._last_names = {d.own_name for d in self._outline.definitions}
        self._bound = imported("\n".join(old), path) | self._names
        self._python = is_python(path)
        self._at = 0  # the first line of the file that is not written yet
        self._begun = False
        self._above = False  # whether something stands above the next definition
        self._imports: list[str] = []  # new ones
        self._import: list[str] = []  # one that goes on in the next line
        self._above_item: list[str] = []  # comments and decorators above a definition
        self._strings = _Strings(path)
        self._blank = 0  # lines, dropped unless more of a definition follows
        self._item = _Item.NONE
        self._kept: list[str] = []  # a definition that the file may have already
        self._newest: list[str] = []  # one that it lacks
        self._written: list[list[str]] = []  # those that have ended

    def _take_line(self, line: str, end: str) -> None:
        in_string = self._strings.inside
        self._strings.take(line, "")
        if self._import:
            self._take_import(line)
        elif not (in_string or line.strip()):
            self._blank += 1
        elif in_string or line[0].isspace() or _CONTINUES.match(line):
            self._go_on([*[""] * self._blank, line])
            self._blank = 0
        else:
            self._end_item()
            self._blank = 0
            if is_import(line):
                self._take_import(line)
            elif not _DECORATES.match(line):
                self._begin_item(line)
            elif not is_elision(line) and file_name(line) is None:
                self._above_item.append(line)

    def _take_import(self, line: str) -> None:
        self._import.append(line)
        if sum(map(open_brackets, self._import)) > 0:
            return
        names = imported("\n".join(self._import), self._path)
        if not names <= self._bound:
            self._bound |= names
            if self._begun:
                self._write_item(self._import)
            else:
                self._imports += self._import
        self._import, self._above_item = [], []

    def _begin_item(self, line: str) -> None:
        names = declared_names(self._path, line)
        name, lines = next(iter(names), ""), [*self._above_item, line]
        self._above_item = []
        if name in self._known or not (names or self._is_new(line)):
            # The code that a test is for, a line of the file, or a call of the new code.
            self._item = _Item.LEFT_OUT
        elif (
            name in self._names
            or (self._python and _METHOD.match(line))
            or (_RECEIVER.match(line) and name in self._last_names)
            or line in self._lines
            or _IMPL.match(line)
        ):
            self._item, self._kept = _Item.KEPT, lines
        else:
            self._item, self._newest = _Item.NEW, [*lines]
            self._names |= names
            self._write_item(lines)

    def _is_new(self, line: str) -> bool:
        """Whether a line that defines nothing is more than an example or a line of the file."""
        return not self._python and (opens_block(line) or line not in self._lines)

    def _go_on(self, lines: Sequence[str]) -> None:
        """Take lines of the definition that has begun, or of what stands above one."""
        if self._above_item:
            self._above_item += lines
        elif self._item is _Item.KEPT:
            self._kept += lines
        elif self._item is _Item.NEW:
            self._newest += lines
            self._write_lines(lines)

    def _end_item(self) -> None:
        if self._newest:
            self._written.append(self._newest)
        kept, self._kept, self._newest = self._kept, [], []
        self._item = _Item.NONE
        if not kept:
            return
        header = kept[_header(kept)]
        name = next(iter(declared_names(self._path, header)), "")
        if _RECEIVER.match(header):  # Go: other types may have a method of that name.
            name = next((d.name for d in outline(kept, self._path).definitions), name)
        classes = [d for d in self._outline.definitions if d.kind == "class"]
        home = next((d for d in classes if d.name == name), None)
        if home is not None:
            members = [kept[d.start : d.stop] for d in _members(kept, self._path, name)]
            self._write_members(home, members)
        elif _METHOD.match(header) and classes:
            outermost = [d for d in classes if not any(other.encloses(d) for other in classes)]
            self._write_members(outermost[-1], [kept])
        elif (block := _IMPL.match(header)) is not None:
            self._write_block(kept, header, trait=bool(block["trait"]))
        elif name not in self._names:  # Such as a call with tests.
            if "\n".join(["", *kept, ""]) not in "\n".join(["", *self._lines, ""]):
                self._names.update(filter(None, [name]))
                self._write_item(kept)
        elif self._is_other_test(name, kept):
            self._write_item(self._renamed(name, kept, self._names))

    def _write_block(self, lines: Sequence[str], header: str, *, trait: bool) -> None:
        """Write what is new of a block with methods of a type (Rust)."""
        found = outline(lines, self._path).definitions
        new = [d for d in found if d.name not in self._names]
        if trait:
            new = [] if header in self._lines else [*found]
        if len(new) == len(found):
            self._write_item(lines)
        elif new:
            methods = "\n\n".join("\n".join(lines[d.start : d.stop]) for d in new)
            self._write_item([header, *methods.split("\n"), "}"])
        self._names |= {d.name for d in new}

    def _is_other_test(self, name: str, lines: Sequence[str]) -> bool:
        """Whether a definition is a test, and not the one of that name which the file has."""
        there = [[*self._lines[d.start : d.stop]] for d in self._outline.named(name)]
        return _TEST.match(name) is not None and lines not in [*there, *self._written]

    def _renamed(self, name: str, lines: Sequence[str], taken: set[str]) -> list[str]:
        """A definition under its name, or the next one with a number that is free."""
        new, number = name, 2
        while new in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new)
        header = _header(lines)
        renamed = re.sub(rf"\b{re.escape(name)}\b", new, lines[header], count=1)
        return [*lines[:header], renamed, *lines[header + 1 :]]

    def _write_members(self, home: Definition, members: Sequence[Sequence[str]]) -> None:
        """Write what is new of some methods at the end of a class of the file."""
        there = self._outline.members(home)
        place = there[-1].stop if there else home.stop
        margin = indent_of(self._lines[there[-1].start if there else place - 1])
        names = {each.own_name for each in there}
        for member in members:
            lines = _moved(member, "", self._path)
            name = next(iter(declared_names(self._path, lines[_header(lines)])), "")
            known = [self._lines[d.start : d.stop] for d in there if d.own_name == name]
            again = any(_moved(each, "", self._path) == lines for each in known)
            if again or (name in names and not _TEST.match(name)):
                continue
            if place < self._at:
                self._problem(f"`{name}` is left out, which belongs above what came before it")
                continue
            self._begin()
            self._write_to(place)
            lines = self._renamed(name, lines, names)
            self._write_lines(["", *_moved(lines, margin, self._path)])
            self._above = True

    def _write_item(self, lines: Sequence[str]) -> None:
        """Write the first lines of a definition behind the last one of the file."""
        self._begin()
        self._write_to(self._place)
        gap = 2 if self._python else 1
        self._write_lines([*[""] * (gap if self._above else 0), *lines])
        self._above = True

    def _begin(self) -> None:
        """Write the file up to where new imports go, and these."""
        if self._begun:
            return
        self._begun = True
        self._above = self._place > 0 or bool(self._imports)
        if self._imports:
            self._write_to(self._imports_at)
            above = self._lines[self._imports_at - 1] if self._imports_at else ""
            apart = above.strip() and not is_import(above) and above[:1] not in ")}"
            below = "".join(self._lines[self._imports_at : self._imports_at + 1])
            self._write_lines([*[""] * bool(apart), *self._imports, *[""] * bool(below.strip())])

    def _write_to(self, line: int) -> None:
        """Write the lines of the file up to one."""
        if line > self._at:
            self._write_lines(self._lines[self._at : line])
            self._at = line

    def _write_lines(self, lines: Sequence[str]) -> None:
        self._write("".join(f"{line}\n" for line in lines))

    def _begin_block(self) -> None:
        self._blank = 0
        self._above_item = []
        self._strings = _Strings(self._path)

    def _end_block(self) -> None:
        self._end_item()

    def _end_code(self) -> None:
        if not self._begun:
            if self._imports:
                self._begin()
            else:
                self._problem(_NOTHING_NEW, fatal=True)
                return
        rest = self._lines[self._at :]
        gap = 2 if self._python else 1
        apart = self._at >= self._place and bool(rest) and bool(rest[0].strip())
        self._write_lines([*[""] * (gap if apart else 0), *rest])


class _Item(Enum):
    """What is done with a definition in a reply."""

    NONE = "none"
    NEW = "new"
    KEPT = "kept"
    LEFT_OUT = "left out"


def _header(lines: Sequence[str]) -> int:
    """The line of a definition that names it, below its comments and decorators."""
    margin = len(indent_of(lines[0]))
    for number, line in enumerate(lines):
        text = line[margin:]
        if text[:1].strip() and not (_DECORATES.match(text) or _CONTINUES.match(text)):
            return number
    return 0


class _Strings:
    """Follows strings of several lines, whose text may stand at the margin of the code.

    Args:
        path: The file's name, which tells its language.
    """

    def __init__(self, path: str) -> None:
        self._marks = _PYTHON_QUOTE if is_python(path) else _QUOTE
        self._quote = ""
        self._at_margin: bool | None = None  # unknown before there is text

    @property
    def inside(self) -> bool:
        """Whether the next line begins within a string."""
        return bool(self._quote)

    def take(self, line: str, margin: str) -> bool:
        """Take the next line.

        Args:
            line: The line.
            margin: White space in front of the code.

        Returns:
            Whether it is text that does not move with the code.
        """
        inside = self.inside
        if inside or not _REMARK.match(line):
            for mark in self._marks.findall(line):
                self._quote = mark if not self._quote else self._quote.replace(mark, "")
        if not inside:
            self._at_margin = None
            return False
        if self._at_margin is None and line.strip():
            self._at_margin = len(indent_of(line)) <= len(margin)
        return bool(self._at_margin) or not line.strip()


def _moved(lines: Sequence[str], margin: str, path: str) -> list[str]:
    """Lines with another margin than that of the first one; text of strings stays where it is."""
    old, strings, moved = indent_of(lines[0]), _Strings(path), list[str]()
    for line in lines:
        stays = strings.take(line, old) or not line.strip()
        moved.append(line if stays else margin + line.removeprefix(old))
    return moved


def _keys_of(lines: Sequence[str], definition: Definition) -> set[str]:
    """The parts that distinguish a method from others, by its lines."""
    header = _header(lines)
    return _keys(lines[:header], lines[header], {definition.own_name})


def _keys(above: Sequence[str], header: str, names: Collection[str]) -> set[str]:
    """What tells a method from others: what names it, and its names.

    Args:
        above: Its comments and decorators.
        header: The line that names it.
        names: Its names, or those that it may have.
    """
    found = _ACCESSOR.search("\n".join([*above, header]))
    kind = "" if found is None else found[1] or found[2]
    return {f"{kind} {name}" for name in (header.strip(), *names)}


def _is_whole(lines: Sequence[str], path: str) -> bool:
    """Whether code without a fence around it has ended, judging by its structure."""
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    if is_python(path):
        try:
            return bool(parse_python(text).body)
        except NOT_PYTHON:
            return False
    first, last = text.partition("\n")[0], text.rpartition("\n")[2]
    balanced = all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}"))
    return balanced and last.startswith(_CLOSERS) and indent_of(first) == ""


def _defines_only(lines: Sequence[str], path: str) -> bool:
    """Whether a block of code is definitions, and not an example of their use or something else."""
    filled = [line for line in lines if line.strip()]
    margin = min((len(indent_of(line)) for line in filled), default=0)
    headers, strings = 0, _Strings(path)
    for line in (line[margin:] for line in filled):
        in_string = strings.inside
        strings.take(line, "")
        if in_string or line[0].isspace() or _CONTINUES.match(line) or _DECORATES.match(line):
            continue
        if is_import(line):
            continue
        if _CONTROL.match(line) or not opens_block(line) or not declared_names(path, line):
            return False
        headers += 1
    return headers > 0


def _members(lines: Sequence[str], path: str, name: str) -> list[Definition]:
    """Functions and classes right in a class, or that belong to it elsewhere (Rust)."""
    outlined = outline(list(lines), path)
    homes = [d for d in outlined.definitions if d.kind == "class" and d.own_name == name]
    functions = [d for d in outlined.definitions if d.kind == "function"]
    apart = [d for d in functions if d.name.rpartition(".")[0].rpartition(".")[2] == name]
    return (outlined.members(homes[0]) if homes else []) or apart
