"""The walk through a large change: groups that are decided at once, and an order to read in.

Groups are exact.  In one are hunks that replace the same names by the same names, change the same
tokens in the same way, have the same lines, are equal blocks that moved, or leave the syntax tree
as it is.  Whatever differs in one token is listed apart, with what it has beyond the others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from midstream.code.syntax import is_python
from midstream.counting import counted
from midstream.edits.kinds import (
    DOC_INDENTED,
    EQUAL,
    UNPROVEN,
    ChangeKind,
    Evidence,
    HunkFacts,
    TokenChange,
    deletion,
)
from midstream.edits.reading_order import definitions_first, reading_order

MIN_MOVED_WORDS: Final = 20
"""Letters and digits of the smallest block that counts as moved, as in git."""
MIN_RUN: Final = 4
"""Lines of the smallest moved run within a hunk that does more."""
MIN_FORMATTED: Final = 3
"""Number of hunks with formatting only from which on another hunk of the file stands out."""
MAX_BESIDE: Final = 3
"""Number of other changes up to which such a hunk stands out; with more it is no slip."""
MOSTLY: Final = 0.8
"""Share of moved lines in a hunk at which only its other lines need to be read."""
_DEFINITION: Final = re.compile(
    r"^\s*(?:@|(?:export |public |pub |private |async |static |abstract )*"
    r"(?:def|class|function|func|fn|interface|enum|struct|trait|impl|type|module)\b)"
)


@dataclass(frozen=True, slots=True)
class HunkGroup:
    """Hunks that are one decision.

    Attributes:
        key: Names the group, also after further hunks have joined it.
        kind: What they are.
        title: What they do, in a few words.
        why: What shows that they are the same.
        hunks: Their ids in reading order; the first is the example to read.
    """

    key: str
    kind: ChangeKind
    title: str
    why: str
    hunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HunkSection:
    """Hunks of one kind that are decided one by one, in reading order."""

    kind: ChangeKind
    hunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReviewWalk:
    """A change in the order to read it.

    Attributes:
        sections: The hunks to decide one by one, the most demanding kind first.
        groups: The hunks to decide together.
        evidence: The kinds of each hunk, by id.
        order: The ids of all hunks, in reading order: tests stand behind the code that they test.
    """

    sections: tuple[HunkSection, ...] = ()
    groups: tuple[HunkGroup, ...] = ()
    evidence: Mapping[int, tuple[Evidence, ...]] = field(
        default_factory=dict[int, tuple[Evidence, ...]]
    )
    order: tuple[int, ...] = ()


def arrange(facts: Iterable[HunkFacts]) -> ReviewWalk:
    """Find the groups among hunks, and the order to read them in.

    Args:
        facts: The hunks of all files, by file and position.
    """
    hunks = list(facts)
    evidence = {hunk.id: list(hunk.kinds) for hunk in hunks}
    groups: list[HunkGroup] = []
    for key, title, why in (
        ("formatting", "formatting", EQUAL),
        ("docstrings", "indentation of docstrings", DOC_INDENTED),
    ):
        if equal := [hunk for hunk in hunks if Evidence(ChangeKind.FORMATTING, why) in hunk.kinds]:
            ids = tuple(hunk.id for hunk in equal)
            groups.append(HunkGroup(key, ChangeKind.FORMATTING, title, f"{why} {_in(equal)}", ids))
    left = [hunk for hunk in hunks if not hunk.is_equal]
    moved = _moved(left, evidence)
    if moved:
        pairs = counted(len(moved) // 2, "block")
        groups.append(
            HunkGroup(
                key="moved",
                kind=ChangeKind.MOVED,
                title="moved blocks",
                why=f"{pairs}, equal line by line {_in(moved)}",
                hunks=tuple(hunk.id for hunk in moved),
            )
        )
    gone = {hunk.id for hunk in moved}
    left = [hunk for hunk in left if hunk.id not in gone]
    same = _same(left)
    groups += same
    grouped = {hunk_id for group in groups for hunk_id in group.hunks}
    left = [hunk for hunk in left if hunk.id not in grouped]
    _mark_exceptions(left, same, {hunk.id: hunk for hunk in hunks}, evidence)
    _mark_more_than_formatting(left, Counter(h.path for h in hunks if h.is_equal), evidence)
    for group in groups:
        for hunk_id in group.hunks:
            evidence[hunk_id].insert(0, Evidence(group.kind, f"{group.title}: {group.why}"))
    sections = _sections(left, evidence)
    groups.sort(key=lambda group: (_PLACE[group.kind], -len(group.hunks)))
    return ReviewWalk(
        sections,
        tuple(groups),
        {hunk_id: tuple(dict.fromkeys(kinds)) for hunk_id, kinds in evidence.items()},
        (*_order(sections, left), *(hunk_id for group in groups for hunk_id in group.hunks)),
    )


def _order(sections: Sequence[HunkSection], hunks: Iterable[HunkFacts]) -> list[int]:
    """The hunks that are decided one by one, in reading order."""
    facts = {hunk.id: hunk for hunk in hunks}
    code: list[int] = []
    tests: list[int] = []
    rest: list[int] = []
    for section in sections:
        place = _PLACE[section.kind] - _PLACE[ChangeKind.TESTS]
        (code if place < 0 else rest if place else tests).extend(section.hunks)
    return [*reading_order(code, tests, facts), *rest]


_PLACE: Final = {kind: place for place, kind in enumerate(ChangeKind)}


def _sections(
    hunks: Sequence[HunkFacts], evidence: Mapping[int, list[Evidence]]
) -> tuple[HunkSection, ...]:
    by_kind: dict[ChangeKind, list[int]] = defaultdict(list)
    for hunk in hunks:
        kinds = evidence[hunk.id]
        kinds.sort(key=lambda each: _PLACE[each.kind])
        by_kind[kinds[0].kind if kinds else ChangeKind.PLAIN].append(hunk.id)
    facts = {hunk.id: hunk for hunk in hunks}
    by_kind = {kind: definitions_first(ids, facts) for kind, ids in by_kind.items()}
    # Changes that may be a formatter's come last among them; in Python, spaces are code.
    layout = {h.id for h in hunks if not is_python(h.path) and _UNPROVEN in h.kinds}
    by_kind.get(ChangeKind.EXCEPTION, []).sort(key=layout.__contains__)
    return tuple(HunkSection(kind, tuple(by_kind[kind])) for kind in ChangeKind if kind in by_kind)


_UNPROVEN: Final = Evidence(ChangeKind.EXCEPTION, UNPROVEN)


def _in(hunks: Sequence[HunkFacts]) -> str:
    files = len({hunk.path for hunk in hunks})
    return f"in {counted(len(hunks), 'hunk')} of {counted(files, 'file')}"


# The same edit


def _same(hunks: Sequence[HunkFacts]) -> list[HunkGroup]:
    found: dict[str, list[HunkFacts]] = defaultdict(list)
    for hunk in hunks:
        if key := _key(hunk):
            found[key].append(hunk)
    return [_group(key, same) for key, same in found.items() if len(same) > 1]


def _key(hunk: HunkFacts) -> str:
    """The property that hunks of one group share; ``""`` for a hunk that can be in no group."""
    changes = hunk.changes
    if _renames(hunk):
        return repr(("names", sorted({(c.removed, c.added, c.place) for c in changes})))
    if changes and all(map(_says_something, changes)):
        return repr(("edit", [(c.removed, c.added, c.around, c.place) for c in changes]))
    lines = _at_one_margin(hunk.old, hunk.new)
    return repr(("lines", lines)) if any(map(_WORD.search, (*hunk.old, *hunk.new))) else ""


def _renames(hunk: HunkFacts) -> bool:
    """Whether all that changes are names, each of them everywhere and in one way."""
    names = {(change.removed, change.added) for change in hunk.changes}
    whole = not hunk.partial and len({removed for removed, _ in names}) == len(names)
    return bool(names) and whole and all(change.names for change in hunk.changes)


def _at_one_margin(
    old: Sequence[str], new: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both sides without the indentation of the old one.

    Lines that only come keep theirs: it says what they belong to.
    """
    margins = [line[: len(line) - len(line.lstrip())] for line in old if line.strip()]
    indent = min(margins, key=len, default="")
    return (
        tuple(line.removeprefix(indent) for line in old),
        tuple(line.removeprefix(indent) for line in new),
    )


_WORD: Final = re.compile(r"\w\w")
_NAME: Final = re.compile(r"[^\W\d]\w{2,}")


def _says_something(change: TokenChange) -> bool:
    """Whether a change is more than an operator or a number, which mean nothing by themselves."""
    return _NAME.search(change.removed + " " + change.added) is not None


def _group(key: str, hunks: Sequence[HunkFacts]) -> HunkGroup:
    first = next((h for h in hunks if any(c.defines for c in h.changes)), None)
    renames = hunks[0].changes and all(change.names for change in hunks[0].changes)
    example = first or hunks[0]
    ids = tuple(hunk.id for hunk in (example, *(h for h in hunks if h is not example)))
    title = _title(hunks[0])
    if renames and first is not None and not example.partial:
        why = f"defined in {first.path}, renamed {_in(hunks)}"
        return HunkGroup(key, ChangeKind.RENAME, title, why, ids)
    how = "the same names are replaced" if renames else "the same tokens change"
    if not hunks[0].changes:
        how = "the same lines"
    if renames and example.partial:
        how += ", and not everywhere"
    return HunkGroup(key, ChangeKind.SAME_EDIT, title, f"{how} {_in(hunks)}", ids)


def _title(hunk: HunkFacts) -> str:
    if hunk.changes:
        words = list(dict.fromkeys(map(str, hunk.changes)))
        places = sorted({change.place for change in hunk.changes})
        named = [place if place == "code" else f"{place}s" for place in places]
        where = f" in {' and '.join(named)}" if named != ["code"] else ""
        if not _means_something(hunk):
            where = f" in `{_line(hunk)}`"
        more = f" and {len(words) - 2} more" if len(words) > 2 else ""
        return " ".join(f"{', '.join(words[:2])}{more}{where}".split())
    does = "adds" if not hunk.old else "removes" if not hunk.new else "writes"
    more = max(len(hunk.old), len(hunk.new)) - 1
    return f"{does} `{_line(hunk)}`" + (f" and {counted(more, 'line')}" if more else "")


def _line(hunk: HunkFacts) -> str:
    lines = (line.strip()[:60] for line in (*hunk.new, *hunk.old) if line.strip())
    return next(lines, "")


def _means_something(hunk: HunkFacts) -> bool:
    """Whether its changes mean something without their lines, unlike a comma or a number."""
    return any(change.names or _says_something(change) for change in hunk.changes)


def _mark_exceptions(
    hunks: Sequence[HunkFacts],
    groups: Sequence[HunkGroup],
    by_id: Mapping[int, HunkFacts],
    evidence: Mapping[int, list[Evidence]],
) -> None:
    """Add evidence to hunks that make the changes of a group and more, or other changes of the
    same tokens.
    """
    whole: dict[tuple[str, str], list[tuple[HunkGroup, Counter[tuple[str, str]]]]] = defaultdict(
        list
    )
    instead: dict[tuple[str, ...], HunkGroup] = {}
    for group in sorted(groups, key=lambda each: -len(each.hunks)):
        example = by_id[group.hunks[0]]
        changes = _pairs(example)
        # A group that only adds a comma is no pattern that other hunks should follow.
        if len(group.hunks) > 2 and _means_something(example):
            whole[min(changes)].append((group, changes))
            instead.setdefault(_taken(example), group)
    if not whole:
        return
    for hunk in hunks:
        mine = _pairs(hunk)
        like = [
            (group, changes)
            for pair in mine
            for group, changes in whole.get(pair, ())
            if set(changes) <= set(mine)
        ]
        if not like:
            if (taken := _taken(hunk)) and (other := instead.get(taken)):
                theirs = _pairs(by_id[other.hunks[0]])
                here = [c for c in hunk.changes if (c.removed, c.added) not in theirs]
                why = f"not as {len(other.hunks)} others ({other.title}), but {_also(here)}"
                evidence[hunk.id].append(Evidence(ChangeKind.EXCEPTION, why))
            continue
        group, changes = max(like, key=lambda each: (len(each[1]), len(each[0].hunks)))
        more = [c for c in hunk.changes if (c.removed, c.added) not in changes]
        why = f"as {len(group.hunks)} others ({group.title}), and also {_also(more)}"
        evidence[hunk.id].append(Evidence(ChangeKind.EXCEPTION, " ".join(why.split())))


def _taken(hunk: HunkFacts) -> tuple[str, ...]:
    """The words that changes take away, in order."""
    return tuple(change.removed for change in hunk.changes if _NAME.search(change.removed))


def _also(changes: Sequence[TokenChange]) -> str:
    words = ", ".join(dict.fromkeys(map(str, changes[:2]))) or "in another place"
    return words + (f" and {len(changes) - 2} more" if len(changes) > 2 else "")


def _mark_more_than_formatting(
    hunks: Sequence[HunkFacts], formatted: Counter[str], evidence: Mapping[int, list[Evidence]]
) -> None:
    """Add evidence to hunks with few changes beside formatting in files that are mostly formatted.

    Args:
        hunks: Hunks that are decided one by one.
        formatted: How many hunks of each file are formatting only.
        evidence: Takes the evidence.
    """
    lists = {ChangeKind.IMPORTS, ChangeKind.COMMENTS, ChangeKind.GENERATED}
    for hunk in hunks:
        others = formatted[hunk.path]
        more = [change for change in hunk.changes if not change.is_layout]
        if (
            others >= MIN_FORMATTED
            and 0 < len(more) <= MAX_BESIDE
            and any(change.has_layout for change in hunk.changes)
            and lists.isdisjoint(each.kind for each in evidence[hunk.id])
        ):
            why = f"as {others} others of the file (formatting), and also {_also(more)}"
            evidence[hunk.id].append(Evidence(ChangeKind.EXCEPTION, why))


def _pairs(hunk: HunkFacts) -> Counter[tuple[str, str]]:
    return Counter((change.removed, change.added) for change in hunk.changes)


# Moves


def _moved(hunks: Sequence[HunkFacts], evidence: Mapping[int, list[Evidence]]) -> list[HunkFacts]:
    """The hunks that take a block away or bring it again, both in full; notes what moved partly."""
    gone: dict[tuple[str, ...], list[HunkFacts]] = defaultdict(list)
    for hunk in hunks:
        if hunk.old and not hunk.new and not hunk.bound and _is_block(hunk.old):
            gone[_trimmed(hunk.old)].append(hunk)
    moved: list[HunkFacts] = []
    for hunk in hunks:
        if hunk.old or not hunk.new or hunk.bound or not (former := gone.get(_trimmed(hunk.new))):
            continue
        begins = _DEFINITION.match(next(line for line in hunk.new if line.strip()))
        # Statements that change places within a file may do something else there.
        old = next((each for each in former if begins or each.path != hunk.path), None)
        if old is not None:
            former.remove(old)
            moved += (old, hunk)
    done = {hunk.id for hunk in moved}
    _mark_moved_runs([hunk for hunk in hunks if hunk.id not in done], evidence)
    return moved


def _is_block(lines: Sequence[str]) -> bool:
    return sum(len(_LETTERS.findall(line)) for line in lines) >= MIN_MOVED_WORDS


_LETTERS: Final = re.compile(r"\w")


def _trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    start, stop = 0, len(lines)
    while start < stop and not lines[start].strip():
        start += 1
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    return tuple(lines[start:stop])


class _Place(NamedTuple):
    hunk: HunkFacts
    lines: tuple[str, ...]
    at: int


def _mark_moved_runs(hunks: Sequence[HunkFacts], evidence: Mapping[int, list[Evidence]]) -> None:
    """Note runs of lines that one hunk takes away and another brings again, spaces apart."""
    starts: dict[tuple[str, ...], list[_Place]] = defaultdict(list)
    for hunk in hunks:
        lines = _stripped(hunk.old)
        for at in range(len(lines) - MIN_RUN + 1):
            starts[lines[at : at + MIN_RUN]].append(_Place(hunk, lines, at))
    if not starts:
        return
    taken: dict[int, set[int]] = defaultdict(set)
    to: dict[int, Counter[str]] = defaultdict(Counter)
    for hunk in hunks:
        lines, at = _stripped(hunk.new), 0
        came: set[int] = set()
        origin: Counter[str] = Counter()
        while at <= len(lines) - MIN_RUN:
            best, size = None, 0
            for place in starts.get(lines[at : at + MIN_RUN], ())[:8]:
                if place.hunk is hunk or place.at in taken[place.hunk.id]:
                    continue
                run = _run(lines, at, place)
                if run > size:
                    best, size = place, run
            if best is None or not _is_block(lines[at : at + size]):
                at += 1
                continue
            came |= set(range(at, at + size))
            taken[best.hunk.id] |= set(range(best.at, best.at + size))
            origin[best.hunk.path] += size
            to[best.hunk.id][hunk.path] += size
            at += size
        _note(hunk, hunk.new, came, "from", origin, evidence)
    for hunk in hunks:
        if hunk.id in to:
            _note(hunk, hunk.old, taken[hunk.id], "to", to[hunk.id], evidence)


def _stripped(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for line in lines if (text := line.strip()))


def _run(lines: Sequence[str], at: int, place: _Place) -> int:
    size = 0
    rest = min(len(lines) - at, len(place.lines) - place.at)
    while size < rest and lines[at + size] == place.lines[place.at + size]:
        size += 1
    return size


def _note(
    hunk: HunkFacts,
    side: Sequence[str],
    moved: set[int],
    way: str,
    files: Counter[str],
    evidence: Mapping[int, list[Evidence]],
) -> None:
    if not moved:
        return
    lines = _stripped(side)
    rest = [line for index, line in enumerate(lines) if index not in moved]
    where = ", ".join(path for path, _ in files.most_common(2))
    why = f"{len(moved)} of {counted(len(lines), 'line')} moved {way} {where}"
    why += f"; not: `{rest[0][:60]}`" if rest else ", with other spaces"
    why += f" and {len(rest) - 1} more" if len(rest) > 1 else ""
    mostly = bool(rest) and len(moved) >= MOSTLY * len(lines) and not (hunk.old and hunk.new)
    kinds = evidence[hunk.id]
    if way == "to" and not hunk.new:
        # Moved code was not deleted.
        kinds[:] = [each for each in kinds if each.kind is not ChangeKind.DELETION]
        if gone := deletion(hunk.path, rest, ()):
            kinds.append(Evidence(ChangeKind.DELETION, gone))
    kinds.append(Evidence(ChangeKind.EXCEPTION if mostly else ChangeKind.PLAIN, why))
