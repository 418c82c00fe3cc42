"""Signs in a rewrite that its instruction was misunderstood.

They are computed from the instruction and the lines before and after, without a model.  Each may
have a good reason, so most of them are only named where the model was not sure.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Final

from midstream.edits.doubt.rewrite import (
    FUNCTION,
    KNOWN,
    NAME,
    JudgedRewrite,
    Trees,
    bound,
    differ,
    functions,
    parameters,
    parsed,
    read,
    words,
)

_IMPORT: Final = re.compile(r"^[ \t]*(?:from|import)\b(?:[^(\n]*\([^)]*\)|.*)", re.M)
_STRING: Final = re.compile(
    r"(?<!\w)[rRbBuUfF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')",
    re.S,
)
_COMMENT: Final = re.compile(r"#[^\n]*")
_QUOTED: Final = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|(?<!\w)'([^'\n]+)'(?!\w)")
_PLAIN: Final = re.compile(r"[A-Za-z]?[a-z]*")
_DEFINED: Final = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)

_REMOVAL: Final = re.compile(
    r"\b(?:remov|delet|drop|strip|get(?:ting)? rid|take (?:out|all|off)|takes? away|throw|without"
    r"|no|not|don'?t|never|omit|cut|clean|kill|discard|simplif|inline|merge|collaps|replac|instead"
    r"|unwrap|flatten|unus|dead|eliminat|eras|un\w+|shorten|condens|rewrit|only|skip|leave out|lose"
    r"|rm|nuke|scrap|purge|trim|turn|convert|make it|one[- ]?line|silenc|chuck|ditch|gone|go\b|away"
    r"|off\b|forget|toss|hide)",
    re.IGNORECASE,
)
_UNDEFINING: Final = re.compile(
    r"\b(?:(?:functions?|methods?|class|def|rm)\b|remov|delet|drop|inlin|merg|get(?:ting)? rid"
    r"|nuke|eliminat|replac|kill|scrap|(?:rename|call|name)\s+(?:it|this|that)\b"
    r"|(?:it|this)\s+\w+\s+be\s+(?:called|named))",
    re.IGNORECASE,
)
_ADDING: Final = re.compile(
    r"\b(?:add|annotat|give|put|insert|document|introduc|includ|attach|append|type[sd]?|hints?)",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"\b(?:in|of|after|before|above|below|from|at|inside|within|behind|under|over|on|for|to|into)"
    r"(?:\s+the)?(?:\s+(?:line|call|function|method|class|loop|statement))?\s*[`'\"]?$",
    re.IGNORECASE,
)
_NAMING: Final = re.compile(
    r"(?:\b(?:to|into|as|called|named|names?|parameter|param|argument|arg|variable|attribute"
    r"|constant|with|use|raise|return|returns|log|import|self|cls|method|function|field|flag|keyword|logger"
    r"|catch|except|default|decorator|type|instead of|than|and|or|not|is|a|an|by|via|from)"
    r"|[=<>+\-*/@.(,\[:`'\"])\s*$",
    re.IGNORECASE,
)
_COMMON_WORDS: Final = """
    a an the to of in on at by for from as is are be it its this that these those and or not no if
    else then when while with without into out up so all any each every one two new old use uses add
    make set get put name names value values type types result results return returns data line
    lines list dict string str int float bool bytes tuple file path key keys item items self cls
    none true false class def function method call calls argument arguments parameter parameters
    variable default error exception raise try except import async await first last start end before
    after test tests code text message comment print log check can should would could please do does
    has have i we you my our your they them only also just instead there other specify optional
    called module let
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_NO_NAMES: Final = KNOWN | {"self", "cls"}


def deleted(rewrite: JudgedRewrite) -> int:
    """Lines removed without replacement though the instruction does not ask for that."""
    if asks_for_removal(rewrite.all_said):
        return 0
    return sum(max(0, len(gone) - len(come)) for gone, come in rewrite.changes)


def lost(rewrite: JudgedRewrite) -> Counter[str]:
    """Type hints, decorators and docstrings that are gone though something is to be added."""
    said, trees = rewrite.all_said, rewrite.trees
    if trees is None or asks_for_removal(said) or not _ADDING.search(said):
        return Counter()
    return _described(trees[0]) - _described(trees[1])


def broken(rewrite: JudgedRewrite) -> bool:
    """Whether the lines were Python before and are not any more."""
    changed = differ(rewrite.own, rewrite.after)
    return changed and rewrite.own_trees is None and parsed(rewrite.own, "") is not None


def unbound(rewrite: JudgedRewrite) -> tuple[str, ...]:
    """Names that a rewrite still uses and no longer defines."""
    if rewrite.own_trees is None or not differ(rewrite.own, rewrite.after):
        return ()
    before, after = rewrite.own_trees
    gone = bound(before, patterns=False) - bound(after, patterns=False)
    return tuple(sorted(gone.intersection(read(after))))


def asks_for_removal(instruction: str) -> bool:
    """Whether an instruction has a word after which code may be gone."""
    return _REMOVAL.search(_QUOTED.sub(" ", instruction)) is not None


def untouched(rewrite: JudgedRewrite) -> tuple[str, ...]:
    """Names of these lines that the instruction mentions and no changed line has."""
    instruction, had, defined = rewrite.said, words(rewrite.before), _DEFINED.search(rewrite.before)
    touched = words(*(line for change in rewrite.changes for side in change for line in side))
    found: dict[str, None] = {}
    quoted = [(m.start(), next(filter(None, m.groups()))) for m in _QUOTED.finditer(instruction)]
    bare = _QUOTED.sub(lambda m: " " * len(m.group()), instruction)
    names = [(start, text) for start, text in quoted if NAME.fullmatch(text)]
    names += [
        (m.start(), m.group()) for m in NAME.finditer(bare) if m.group().lower() not in _COMMON
    ]
    for start, name in names:
        if name not in had or name in touched or (defined and name == defined[1]):
            continue
        if not _PLACE.search(instruction[:start]):
            found[name] = None
    return tuple(found)


def missing(rewrite: JudgedRewrite) -> tuple[str, ...]:
    """Words that the instruction quotes and neither the lines before nor the rewrite have."""
    both = f"{rewrite.before}\n{rewrite.after}"
    quoted = (next(filter(None, m.groups())) for m in _QUOTED.finditer(rewrite.said))
    return tuple(text for text in quoted if text.strip("@() ") not in both)


def borrowed(rewrite: JudgedRewrite) -> tuple[str, ...]:
    """Words of the instruction that became names though nothing says they are."""
    fresh = _names("\n".join(line for _, come in rewrite.changes for line in come))
    had = words(rewrite.before) | _NO_NAMES
    both = rewrite.said, rewrite.all_said
    return tuple(n for n in fresh if n not in had and all(_borrowed(n, said) for said in both))


def strangers(rewrite: JudgedRewrite) -> tuple[str, ...]:
    """Names in a rewrite that neither it imports nor the instruction or the file contains."""
    had = words(rewrite.known, rewrite.all_said, *_IMPORT.findall(rewrite.after))
    return tuple(n for n in _names(rewrite.after) if n not in had and n not in _NO_NAMES)


def overwritten(trees: Trees) -> tuple[str, ...]:
    """Parameters that a rewrite adds to functions which assign a variable of that name."""
    old, new = map(functions, trees)
    found: dict[str, None] = {}
    for name in old.keys() & new.keys():
        fresh = {*parameters(new[name])} - {*parameters(old[name])}
        assigned = bound(ast.Module(old[name].body, []), patterns=False)
        found |= dict.fromkeys(sorted(fresh & assigned))
    return tuple(found)


def vanished(instruction: str, before: str, after: str) -> tuple[str, ...]:
    """Functions and classes that a rewrite no longer defines although the instruction neither names
    them nor speaks of "this function" or of removing.
    """
    if _UNDEFINING.search(instruction):
        return ()
    kept = words(instruction).union(_DEFINED.findall(after))
    return tuple(name for name in dict.fromkeys(_DEFINED.findall(before)) if name not in kept)


def _names(text: str) -> list[str]:
    """The names in code, each once, without those in strings and comments."""
    return list(dict.fromkeys(NAME.findall(_COMMENT.sub(" ", _STRING.sub(" ", text)))))


def _borrowed(name: str, instruction: str) -> bool:
    if not _PLAIN.fullmatch(name):
        return False
    bare = _QUOTED.sub(lambda m: "`" * len(m.group()), instruction)
    places = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", bare))
    return bool(places) and not any(
        _NAMING.search(bare[: m.start()]) or bare[m.end() : m.end() + 1] in tuple("=.([:")
        for m in places
    )


def _described(tree: ast.Module) -> Counter[str]:
    """How many descriptions of each kind code has."""
    nodes = [*ast.walk(tree)]
    defined = [node for node in nodes if isinstance(node, (*FUNCTION, ast.ClassDef))]
    hints = [
        hint for node in nodes for hint in ("annotation", "returns") if getattr(node, hint, None)
    ]
    return Counter(
        {
            "decorator": sum(len(node.decorator_list) for node in defined),
            "docstring": sum(ast.get_docstring(node, clean=False) is not None for node in defined),
            "type hint": len(hints),
        }
    )
