"""What uses the definitions of a hunk and which tests cover its lines, in words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from midstream.codebase.references import ReferencesError
from midstream.counting import counted
from midstream.pairing.review.uses import (
    HunkText,
    find_coverage,
    find_definitions,
    find_places,
)
from midstream.tui.clock import when
from midstream.tui.pages.sheet import Paragraph

if TYPE_CHECKING:
    from midstream.codebase.coverage import FileCoverage
    from midstream.edits.hunks import Hunk
    from midstream.pairing.review.uses import ChangedDefinition, UsePlace
    from midstream.pairing.session import PairingSession

MAX_DEFINITIONS: Final = 3
"""Definitions of one hunk whose uses are looked for."""
MAX_LISTED: Final = 5
"""Places or tests that are listed of one definition."""


async def look_up(hunk: Hunk, session: PairingSession) -> AsyncIterator[list[Paragraph]]:
    """What uses a hunk's definitions and which tests cover its lines, as it is found.

    Args:
        hunk: The hunk.
        session: Its session.
    """
    text = HunkText(session.files[hunk.path], hunk)
    looking = ("looking …", "muted")
    yield [Paragraph("Used by", (looking,)), Paragraph("Tests", (looking,))]
    coverage = await find_coverage(session.workspace, hunk.path)
    definitions = await find_definitions(text)
    uses: list[tuple[str, str]] = []
    named: list[UsePlace] = []
    for definition in definitions[:MAX_DEFINITIONS]:
        ran = _run_by(coverage, text)
        yield [Paragraph("Used by", (*uses, looking)), Paragraph("Tests", (*ran, looking))]
        try:
            places = await find_places(session.workspace, text, definition)
        except ReferencesError as error:
            uses.append((str(error), "warning"))
            break
        uses += _used_in(definition, [place for place in places if not place.test])
        named += [place for place in places if place.test]
    if more := definitions[MAX_DEFINITIONS:]:
        names = ", ".join(f"`{each.name}`" for each in more)
        uses.append((f"not looked for: {names}", "muted"))
    if not uses:
        uses.append(("It is in no function or class whose uses can be looked for.", "muted"))
    ran = _run_by(coverage, text)
    tests = (*ran, *_named_in(named, coverage, bool(definitions)))
    yield [Paragraph("Used by", tuple(uses)), Paragraph("Tests", tests)]


def _used_in(
    definition: ChangedDefinition, places: Sequence[UsePlace]
) -> Iterator[tuple[str, str]]:
    name = f"`{definition.name}`" + (", which is gone" if definition.gone else "")
    sure = [place for place in places if place.certain]
    if not sure:
        yield f"{name}: no use was found outside of it and of tests", "foreground"
    else:
        where = counted(len({place.path for place in sure}), "file")
        yield f"{name}: {counted(len(sure), 'line')} in {where}", "foreground"
        yield from _listed(sure, lambda place: place.text)
    if perhaps := [place for place in places if not place.certain]:
        yield "the same name, perhaps another thing:", "muted"
        yield from _listed(perhaps, lambda place: place.text)


def _run_by(coverage: FileCoverage | None, text: HunkText) -> list[tuple[str, str]]:
    """Which tests ran the lines of a hunk."""
    if coverage is None or text.whole:
        return []
    made = f"{coverage.source} of {when(coverage.made)}"
    if coverage.older:
        return [(f"{made} is older than the file; run the tests with coverage again", "muted")]
    lines = text.lines_on_disk()
    ran = [line for line in lines if line in coverage.ran]
    not_run = lines if coverage.missed is None else [n for n in lines if n in coverage.missed]
    missed = [line for line in not_run if line not in coverage.ran]
    said: list[tuple[str, str]] = []
    if not ran:
        said.append((f"no test ran any of its lines ({made})", "warning"))
    elif tests := coverage.tests_of(lines):
        said.append((f"{counted(len(tests), 'test')} ran lines of it ({made})", "foreground"))
        said += ((f"  {test}", "foreground") for test in tests[:MAX_LISTED])
        said += _more(len(tests))
    else:
        imported = (
            "when it was imported" if coverage.tests else "but the coverage data name no test"
        )
        said.append((f"run, {imported} ({made})", "foreground"))
    if ran and missed:
        numbers = ", ".join(str(line + 1) for line in missed[:MAX_LISTED])
        doubt = ", or without code of their own" if coverage.missed is None else ""
        more = ", …" if len(missed) > MAX_LISTED else ""
        said.append((f"not run{doubt}: line {numbers}{more}", "warning"))
    return said


def _named_in(
    places: Sequence[UsePlace], coverage: FileCoverage | None, defined: bool
) -> Iterator[tuple[str, str]]:
    """The tests that name a hunk's definitions."""
    if coverage is not None and not coverage.older and coverage.tests:
        return
    if coverage is None:
        yield "no coverage data yet; `pytest --cov --cov-context=test` makes them", "muted"
    if places:
        yield "tests that name it:", "muted"
        yield from _listed(places, lambda place: place.inside or place.text)
    elif defined:
        yield "no test names it", "foreground"


def _listed(
    places: Sequence[UsePlace], words: Callable[[UsePlace], str]
) -> Iterator[tuple[str, str]]:
    for place in places[:MAX_LISTED]:
        yield f"  {place.path}:{place.line + 1}  {words(place)}", "foreground"
    yield from _more(len(places))


def _more(count: int) -> Iterator[tuple[str, str]]:
    if count > MAX_LISTED:
        yield f"  and {count - MAX_LISTED} more", "muted"
