"""How people ask: from a wording to a written instruction.

Wordings are in `texts/wordings.txt` (notation: `wordings`). The families of the sort "new" are kept
for measuring how the model takes phrasings that it never saw: what the grammar makes is thrown away
where it says the same as one of them. Styles (quotes, politeness, haste, typing errors, reasons)
are applied on top by `write`.
"""

from __future__ import annotations

import functools
import itertools
import random
import re

from models.training.wordings import table

KNOWN, NEW, FREE, SENTENCES = map(table, ("known", "new", "free", "sentence"))
WORDS, OPENINGS, ENDINGS = map(table, ("word", "opening", "ending"))
(REASONED,) = table("reason").values()

FREE_SHARE = 0.6
"""Share of training instructions that the grammar makes, where a task has one."""
SENTENCE_SHARE = 0.25
"""Share of training instructions that are whole sentences."""
REASON_SHARE = 0.16
"""Share of the other training instructions that get a reason."""

NOUN, ATOM = "noun", "atom"
"""Keys of values that are no operands: words that reasons use."""


@functools.cache
def _skeletons(task: str) -> tuple[str, ...]:
    found: set[str] = set()
    for template in NEW.get(task, []):
        parts = re.split(r"\(([^()]*)\)", template)
        choices = [part.split("|") if k % 2 else [part] for k, part in enumerate(parts)]
        found.update(_bare(" ".join(each)) for each in itertools.product(*choices))
    return tuple(found)


def _bare(text: str) -> str:
    """Return a template without articles, fillers and punctuation."""
    words = re.findall(r"\{\w+\}|[\w']+|->|%", text.lower())
    return " ".join(
        w for w in words if w not in ("the", "a", "an", "please", "this", "it", "new", "here")
    )


def is_held_out(task: str, text: str) -> bool:
    """Whether an expanded template says the same as a family that is kept for measuring."""
    said = f" {_bare(text)} "
    return any(f" {kept} " in said for kept in _skeletons(task))


def families(task: str, *, held_out: bool) -> list[str]:
    """Return the written-out template families of a task, of training or of the held-out side."""
    return (NEW if held_out else KNOWN)[task]


def expand(template: str, rng: random.Random) -> str:
    """Resolve the words, choices and optional parts of a template."""
    while (found := re.search(r"<([a-z]+)>", template)) is not None:
        word = rng.choice(WORDS[found[1]])
        template = template[: found.start()] + word + template[found.end() :]
    while True:
        found = re.search(r"\[([^\[\]()]*)\]|\(([^\[\]()]*)\)", template)
        if found is None:
            return re.sub(r" +([,;?])", r"\1", re.sub(r"\s+", " ", template)).strip()
        if found[1] is not None:
            choice = rng.choice(found[1].split("|")) if rng.random() < 0.5 else ""
        else:
            choice = rng.choice(found[2].split("|"))
        template = template[: found.start()] + choice + template[found.end() :]


_BARE_CODE = re.compile(
    r"[\w.]+|@[\w.]+(\([^()\s]*\))?|\[\]|\{\}|\(\)|-\d[\w.]*|[\w.]+\([^()\n]+\)|[\w.]+\[[^\[\]\n]*\]|"
    r"(?:[<>!=]=|[<>])|[\w.]+\(\)"
)


def quoted(text: str, rng: random.Random, *, name: bool) -> str:
    """Write a name or a piece of code bare, in backticks or in quotes, where the text allows it."""
    chance = rng.random()
    if name:
        if chance < 0.5:
            return text
        if chance < 0.8:
            return f"`{text}`"
        quote = "'" if chance < 0.9 else '"'
        return text if quote in text else quote + text + quote
    if (chance < 0.45 and _BARE_CODE.fullmatch(text)) or "`" in text or text in ("''", '""'):
        return text
    return f"`{text}`"


_SMALL = frozenset(
    "a an the to of in it is with for as and should be this that by on at please its all".split()  # noqa: SIM905
)


def _hasty(text: str, rng: random.Random) -> str:
    """Drop small words, as people do when they type fast."""
    words = text.split(" ")
    for _ in range(rng.choice((1, 1, 2, 3))):
        small = [k for k, word in enumerate(words) if word in _SMALL]
        if len(words) > 3 and small:
            del words[rng.choice(small)]
    return " ".join(words)


def _mistyped(text: str, rng: random.Random) -> str:
    """Make one typing error in a word that is no operand."""
    places = list(re.finditer(r"(?<![\w{])[a-z]{4,}(?![\w}])", text))
    if not places:
        return text
    word = rng.choice(places)
    letters = list(word.group())
    k = rng.randrange(len(letters) - 1)
    kind = rng.random()
    if kind < 0.35:
        letters[k], letters[k + 1] = letters[k + 1], letters[k]
    elif kind < 0.7:
        del letters[k + rng.choice((0, 1))]
    elif kind < 0.85:
        letters.insert(k, letters[k])
    else:
        letters[k] = rng.choice("abcdefghijklmnopqrstuvwxyz")
    return text[: word.start()] + "".join(letters) + text[word.end() :]


def _styled(text: str, template: str, rng: random.Random, *, full: bool) -> str:
    """Add an opening, an ending or a reason to an expanded template."""
    if "{raw}" in template:
        return text
    chance = rng.random()
    if chance < 0.14:
        neutral = full or text.startswith(
            ("{", "the ", "it ", "this ", "if ", "when ", "no ", "we ", "i ")
        )
        text = f"{rng.choice(OPENINGS['neutral' if neutral else 'request'])} {text}"
    elif chance < 0.19:
        text += rng.choice(ENDINGS["reason"])
    chance = rng.random()
    if chance < 0.1:
        text += rng.choice(ENDINGS["any"])
    elif chance < 0.2:
        text += "."
    return text


def write(
    template: str,
    values: dict[str, str],
    rng: random.Random,
    *,
    styled: bool = True,
    reason: float = 0.0,
) -> str:
    """Fill a template and put it in a random style.

    `values` maps names to text that is ready to be inserted (see `quoted`); `reason` is the share
    that gets a reason.
    """
    return _filled(expand(template, rng), template, values, rng, styled=styled, reason=reason)


def _filled(
    text: str,
    template: str,
    values: dict[str, str],
    rng: random.Random,
    *,
    styled: bool = True,
    reason: float = 0.0,
    full: bool = False,
) -> str:
    if rng.random() < 0.15:
        text = _hasty(text, rng)
    if styled:
        text = _styled(text, template, rng, full=full)
    operand_first = text.startswith("{")
    if rng.random() < reason and not {"{raw}", "<why>"} & set(re.findall(r"[{<]\w+[}>]", template)):
        text = expand(rng.choice(REASONED), rng).replace("{ask}", text)
    if rng.random() < 0.06:
        text = _mistyped(text, rng)
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    if rng.random() < 0.35 and text[:1].isalpha() and not operand_first:
        text = text[0].upper() + text[1:]
    return text


def ask(
    task: str, values: dict[str, str], rng: random.Random, *, held_out: bool, styled: bool = True
) -> str:
    """Write an instruction for a task, from the families of one side of the split.

    With `values[NOUN]` and `values[ATOM]`, words for reasons, it may be a whole sentence.
    """
    fixed = families(task, held_out=held_out)
    grammar = [] if held_out else FREE.get(task, [])
    sentences = [] if held_out or NOUN not in values else SENTENCES.get(task, [])
    described = table("described").get(task, [])
    reason = REASON_SHARE if styled and not held_out and NOUN in values else 0.0
    for _ in range(200):
        full = sentences and rng.random() < SENTENCE_SHARE
        free = full or (grammar and rng.random() < FREE_SHARE)
        template = rng.choice(sentences if full else grammar if free else fixed)
        if free and described and rng.random() < 0.12:
            template = rng.choice(described)
        text = expand(template, rng)
        missing = set(re.findall(r"\{(\w+)\}", text)) - values.keys()
        if missing or (free and is_held_out(task, text)):
            continue
        share = 0.5 * reason if full else reason
        return _filled(text, template, values, rng, styled=styled, reason=share, full=bool(full))
    raise ValueError(f"no template of {task} fits")
