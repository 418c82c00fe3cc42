"""Why people ask: clauses that say nothing about what to do, and how they are put around a request.

The model must learn to look past them, so they are made of many words: nouns and names that have
nothing to do with the edit, names of the region, and sentences from comments and docstrings of the
corpus (`use_prose`).
"""

# ruff: noqa: E501 (a phrase is one line, however long)
from __future__ import annotations

import random
import re

WHO = (
    "the caller|our callers|callers|the tests|one of the tests|mypy|pyright|ruff|pylint|the linter|the type checker|the reviewer|"
    "my reviewer|half the team|the team|the whole team|the handler|the users|users|the docs|the scheduler|people|everybody|nobody|somebody|"
    "newcomers|our style guide|the style guide|the next release|the parser|the reader|whoever reads it|the backend|the frontend|"
    "the ui|the importer|our customers|the {noun}|the {noun}|the {noun} layer|the {noun} module|the {noun} service|the old {noun}|"
    "our {noun}|every {noun}|the {atom} function|the code in {atom}|{atom}|the api|the spec|the client|the server|support|"
    "the security team|an intern|a colleague|the maintainer|upstream|python|the framework|the plugin|production|the deployment"
)
DOES = (
    "expects that|expects it|needs it|needs this|relies on it|relies on this|depends on it|complains otherwise|complains about it|chokes on it|"
    "gets confused by it|trips over it|keeps asking about it|requires it now|asked for it|wants it that way|wants that|"
    "got it wrong twice|misread it|hates it|does that already|does this already|passes it anyway|always sets it|never sets it|"
    "never looks at it|ignores it anyway|fails without it|crashes without it|breaks otherwise|crashed because of it|expects a {noun} there|"
    "looks for the {noun}|stores the {noun} there|reads the {noun} first|handles the {noun} itself|calls it that|uses that name|"
    "uses the same word|does it the same way|does not know it|cannot tell them apart|has no idea what it means|said so|was surprised by it|"
    "calls {atom} first|already checks {atom}|looks at {atom} only|prefers it|will thank us|breaks on windows|is not ready for that|"
    "changed last week|was rewritten|moved to another {noun}|got a new {noun}|checks for that now|logs every {noun}|retries anyway"
)
IT = "it|this|that|the old one|the current one|the code|the whole thing|this part|the old way|what we have|the rest"
IS = (
    "is confusing|is too confusing|is misleading|is hard to read|is hard to follow|is unclear|is cryptic|is error prone|is fragile|is outdated|is noise|"
    "is a leftover from the {noun}|is a leftover|says nothing about the {noun}|says nothing|hides errors|hides the {noun}|reads badly|"
    "reads better|is clearer|is safer|is simpler|is more consistent|is what the docs say|is our convention|is easier to test|is easier to debug|"
    "is easier to grep for|makes debugging easier|makes the {noun} easier to follow|caused a bug last week|bit us twice|breaks the {noun}|"
    "breaks on an empty {noun}|fails for large {noun}s|will be removed soon|comes from the {noun}|holds the {noun}|is the {noun} really|"
    "has nothing to do with the {noun}|is never used for the {noun}|matches the {noun}|matches the rest of the code|matches {atom}|"
    "looks like {atom}|clashes with {atom}|has changed since|used to be different|is only used for logging|took me an hour to find|"
    "is not obvious|surprises people|is what everybody expects|is how the {noun} works|is a matter of taste|is ugly|is too short|is too vague"
)
MORE = (
    "we (log|store|cache|test|document|export) it (later|elsewhere|in the {noun}|too|anyway)|"
    "we agreed on (that|this|it) (yesterday|last week|in the {noun} meeting|in review)|"
    "i keep (forgetting|confusing|misreading) (it|that|them)|i (ran|run) into this (today|yesterday|again)|"
    "there is (no|already a|another) {noun}|there are (two|three|several|other) {noun}s|there was a bug report about (it|this|the {noun})|"
    "nothing else (needs|uses|touches|calls) it|that's what (it is|it does|we agreed on|the {noun} says|everybody calls it)|"
    "we (only|always|never) (have|get|pass|see) one {noun}|we support python 3.12 only|"
    "it took (me|us) (an hour|a day|ages) to find|it will be (needed|used|removed|called) (soon|later|by the {noun})|"
    "the (name|value|result|order|type) (is|was) (wrong|misleading|different|surprising) (before|otherwise|)|"
    "the {noun} (is|was) (slow|large|small|missing|optional|gone|new) (now|sometimes|)|"
    "(not|almost) every {noun} has one|a {noun} may be missing|it is (faster|slower|shorter|longer) that way"
)
TO = (
    "to avoid confusion|to avoid surprises|to keep the linter happy|to keep mypy happy|to match the rest|to match the {noun}|to match {atom}|"
    "to make it clearer|to make the {noun} clearer|to make debugging easier|to help the reader|to be consistent|to be on the safe side|to be explicit|"
    "to please the linter|to follow the style guide|to follow our conventions|to prevent mistakes|to prevent bugs|to save time|"
    "to help with the {noun}|to prepare for the {noun}|to support the new {noun}|to get rid of the warning|to silence the warning|to fix the {noun}"
)
SO_THAT = (
    "callers can (see|tell|find|use|catch|log) it|callers know what they get|callers do not have to guess|the caller can (retry|decide|handle it)|"
    "we can (log|test|reuse|find|change|debug|cache) it|we can see what happens|we see the {noun} early|the tests (pass|stay green|work again)|"
    "mypy is happy|the linter is quiet|the reviewer is happy|it is (clear|obvious|clearer|easier to read|consistent|explicit)|it matches (the docs|{atom}|the {noun})|"
    "(nobody|no one) (gets confused|has to guess|is surprised|trips over it)|the {noun} (works|keeps working|is not lost|is found|does not break|stays small)|"
    "people understand it|readers know what it is|it (fails|stops) early|it does not (crash|fail|break) (later|on the {noun}|any more)|the intent is clear"
)

AROUND: tuple[str, ...] = (
    *("{ask}, because {why}", "{ask} because {why}", "{ask} since {why}", "{ask}, since {why}"),
    *(
        "{ask}, as {why}",
        "{ask}, {why}",
        "{ask}; {why}",
        "{ask}. {Why}",
        "{ask}. {Why}.",
        "{ask} - {why}",
    ),
    *("{ask} ({why})", "{ask} so that {sothat}", "{ask}, so that {sothat}", "{ask} so {sothat}"),
    *(
        "{ask} {to}",
        "{ask}, {to}",
        "{ask}, otherwise {why}",
        "{ask} now that {why}",
        "{ask}, given that {why}",
    ),
    *(
        "{ask}, i think {why}",
        "{ask} - i think {why}",
        "{ask}, after all {why}",
        "{ask} - otherwise {why}",
    ),
    *(
        "since {why}, {ask}",
        "because {why}, {ask}",
        "as {why}, {ask}",
        "{why}, so {ask}",
        "{Why}. {Ask}",
    ),
    *("{Why}. {Ask}.", "{why} - {ask}", "{why}; {ask}", "{to}, {ask}", "so that {sothat}, {ask}"),
    *(
        "i noticed that {why}, {ask}",
        "now that {why}, {ask}",
        "{why}, please {ask}",
        "given that {why}, {ask}",
    ),
    *("{Why}. So {ask}", "{Why}, therefore {ask}", "{why}. {ask}", "{ask}. {why}"),
)
"""How a reason stands beside a request."""

_PROSE: list[str] = []
_PROSE_START_WORDS = (
    "the this that a an we it if these there some only all most each every when not our they its"
)
_PROSE_START = frozenset(_PROSE_START_WORDS.split())


def use_prose(sentences: list[str]) -> None:
    """Take sentences of comments and docstrings as reasons, too."""
    _PROSE[:] = sentences


def prose_of(texts: list[str], most: int = 6000) -> list[str]:
    """Return sentences of comments and docstrings that could stand as a reason."""
    found: dict[str, None] = {}
    for text in texts:
        for block in re.findall(r'"""(.*?)"""', text, re.DOTALL) + re.findall(r"# (.*)", text):
            for sentence in re.split(r"[.;]\s|\n\s*\n|:\s", " ".join(block.split())):
                words = sentence.strip(" .").split(" ")
                plain = all(re.fullmatch(r"[A-Za-z_][\w']*,?", word) for word in words)
                if 4 <= len(words) <= 11 and plain and words[0].lower() in _PROSE_START:
                    found[" ".join([words[0].lower(), *words[1:]]).rstrip(",")] = None
        if len(found) >= most:
            break
    return list(found)


def _pick(table: str, rng: random.Random) -> str:
    depth, parts = 0, [""]
    for ch in table:
        depth += (ch == "(") - (ch == ")")
        if ch == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += ch
    text = rng.choice(parts)
    while (found := re.search(r"\(([^()]*)\)", text)) is not None:
        text = text[: found.start()] + rng.choice(found[1].split("|")) + text[found.end() :]
    return " ".join(text.split())


def _named(text: str, rng: random.Random, nouns: list[str], atoms: list[str]) -> str:
    while "{noun}" in text:
        text = text.replace("{noun}", rng.choice(nouns) if nouns else "data", 1)
    while "{atom}" in text:
        text = text.replace("{atom}", rng.choice(atoms) if atoms else "it", 1)
    return text


def why(rng: random.Random, nouns: list[str], atoms: list[str]) -> str:
    """Return a clause, such as "the parser expects it"; `nouns` and `atoms` are words to use."""
    chance = rng.random()
    if chance < 0.25 and _PROSE:
        return rng.choice(_PROSE)
    if chance < 0.5:
        text = f"{_pick(WHO, rng)} {_pick(DOES, rng)}"
    elif chance < 0.8:
        text = f"{_pick(IT, rng)} {_pick(IS, rng)}"
    else:
        text = _pick(MORE, rng)
    if rng.random() < 0.08:
        text = f"{text} and {_pick(IT, rng)} {_pick(IS, rng)}"
    return _named(text, rng, nouns, atoms)


def what(rng: random.Random, nouns: list[str]) -> str:
    """Return a noun phrase, such as "the cached rows"."""
    noun = rng.choice(nouns) if nouns else "data"
    shape = rng.choice(
        ["the {}", "the {}", "a {}", "the list of {}s", "the number of {}s", "the current {}", "one {}",
         "the name of the {}", "the {} of the {}", "the whole {}", "the path of the {}", "the parsed {}"]
    )  # fmt: skip
    while "{}" in shape:
        shape = shape.replace("{}", noun, 1)
        noun = rng.choice(nouns) if nouns else "data"
    return shape


def around(ask: str, rng: random.Random, nouns: list[str], atoms: list[str]) -> str:
    """Put a reason beside a request."""
    shape = rng.choice(AROUND)
    clause = why(rng, nouns, atoms)
    parts = {
        "why": clause,
        "Why": clause[:1].upper() + clause[1:],
        "to": _named(_pick(TO, rng), rng, nouns, atoms),
        "sothat": _named(_pick(SO_THAT, rng), rng, nouns, atoms),
        "ask": ask,
        "Ask": ask[:1].upper() + ask[1:] if not ask.startswith("{") else ask,
    }
    return re.sub(r"\{(why|Why|to|sothat|ask|Ask)\}", lambda m: parts[m[1]], shape)
