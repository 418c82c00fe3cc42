"""What speaks against a rewrite in its text: all of it, gathered for one answer."""

from __future__ import annotations

from dataclasses import dataclass

from midstream.counting import counted
from midstream.edits.doubt import signs
from midstream.edits.doubt.losses import losses
from midstream.edits.doubt.rewrite import JudgedRewrite, differ
from midstream.edits.doubt.slips import neighbours_again, slips, slips_of_addition, undefined
from midstream.edits.doubt.wording import joined, one_of, quoted


@dataclass(frozen=True, slots=True)
class RewriteEvidence:
    """What speaks against a rewrite; sentences are without their subject "it", the worst first.

    Attributes:
        broken: Whether the lines were Python before and are not any more.
        wrong: Sentences about what is wrong however confident the model was.
        undefined: Names that it uses and nothing in the file defines.
        gone: Functions and classes that it no longer defines, unasked.
        overwritten: Parameters that it adds to functions which assign a variable of that name.
        torn: Names that it still uses, and of which the definition was in a part that was kept.
        signs: Sentences about what may have a good reason, and the names above.
    """

    broken: bool
    wrong: list[str]
    undefined: list[str]
    gone: tuple[str, ...]
    overwritten: tuple[str, ...]
    torn: tuple[str, ...]
    signs: list[str]


def judged(rewrite: JudgedRewrite) -> RewriteEvidence:
    """Gather what speaks against a rewrite."""
    python, trees = rewrite.python, rewrite.trees
    broken = python and signs.broken(rewrite)
    unbound = signs.unbound(rewrite) if python else ()
    torn = unbound if rewrite.torn else ()
    wrong = [] if torn or not unbound else [_unbound(unbound)]
    gone = signs.vanished(rewrite.all_said, rewrite.before, rewrite.after) if python else ()
    loose = undefined(rewrite) if python else []
    assigned = signs.overwritten(trees) if python and trees is not None else ()
    seen = [_unbound(torn)] if torn else []
    if gone:
        seen.append(f"no longer defines {quoted(gone)}")
    odd = () if broken or loose or not python else signs.strangers(rewrite)
    if odd:
        seen.append(f"uses {quoted(odd)}, which nothing defines")
    if differ(rewrite.before, rewrite.after):
        seen = [*_left_out(rewrite), *seen, *_misread(rewrite)]
    if loose:
        seen.append(f"uses {quoted(loose)} and does not define {one_of(loose, 'it', 'them')}")
    if assigned:
        seen.append(f"made {quoted(assigned)} a parameter, which the function assigns")
    return RewriteEvidence(broken, [*wrong, *_faults(rewrite)], loose, gone, assigned, torn, seen)


def _faults(rewrite: JudgedRewrite) -> list[str]:
    """What is wrong with a rewrite whatever the confidence."""
    found: list[str] = []
    if not rewrite.adds:
        if neighbours_again(rewrite):
            found.append("wrote the lines around the region again, which are in the file already")
        found += losses(rewrite)
    if not rewrite.python:
        return found
    if rewrite.wanted is not None:  # It changes nothing that is there.
        return slips_of_addition(rewrite, rewrite.wanted)
    return [*found, *slips(rewrite)]


def _unbound(names: tuple[str, ...]) -> str:
    return f"still uses {quoted(names)} and no longer defines {one_of(names, 'it', 'them')}"


def _left_out(rewrite: JudgedRewrite) -> list[str]:
    found: list[str] = []
    if missing := signs.missing(rewrite):
        found.append(f"left out {quoted(missing)}")
    if rewrite.python and (lost := signs.lost(rewrite)):
        kinds = [counted(number, kind) for kind, number in lost.items()]
        found.append(f"took {joined(kinds)} away")
    return found


def _misread(rewrite: JudgedRewrite) -> list[str]:
    found: list[str] = []
    if deleted := signs.deleted(rewrite):
        found.append(f"deleted {counted(deleted, 'line')}")
    if untouched := signs.untouched(rewrite):
        found.append(f"did not change {quoted(untouched)}")
    if borrowed := signs.borrowed(rewrite):
        word, name = one_of(borrowed, "word", "words"), one_of(borrowed, "a name", "names")
        found.append(f"took the {word} {quoted(borrowed)} for {name}")
    return found
