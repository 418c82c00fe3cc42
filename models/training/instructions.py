"""Instruction templates: how people ask for each kind of edit.

A template is a small pattern: `(a|b)` chooses, `[x]` is optional, `{name}` is filled in. Each
template is one family. `TEMPLATES` and `MORE` are for training; the families of `NEW` are kept for
measuring how the model takes phrasings that it never saw. Styles (quotes, politeness, sloppy
typing) are applied on top by `write`.
"""

from __future__ import annotations

import random
import re

from models.training.templates import CONDITION_WORDS, MORE, NEW, TEMPLATES, TYPE_WORDS

PREFIXES = [
    "please ",
    "can you ",
    "could you ",
    "i want you to ",
    "let's ",
    "now ",
    "then ",
    "ok, ",
    "we should ",
    "you should ",
]
SUFFIXES = [" please", ", please", "?", "!", " here", " in this function", ", thanks", " now"]


def families(task: str, *, held_out: bool) -> list[str]:
    """Return the template families of a task, of training or of the held-out side."""
    return NEW[task] if held_out else TEMPLATES[task] + MORE.get(task, [])


def expand(template: str, rng: random.Random) -> str:
    """Resolve the choices and optional parts of a template."""
    while True:
        found = re.search(r"\[([^\[\]()]*)\]|\(([^\[\]()]*)\)", template)
        if found is None:
            return re.sub(r"\s+", " ", template).strip()
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


_SMALL = frozenset("a an the to of in it is with for as and should be".split())  # noqa: SIM905


def _sloppy(text: str, rng: random.Random) -> str:
    """Drop one small word, as people do when they type fast."""
    words = text.split(" ")
    small = [k for k, word in enumerate(words) if word in _SMALL]
    if len(words) > 4 and small:
        del words[rng.choice(small)]
    return " ".join(words)


def write(template: str, values: dict[str, str], rng: random.Random) -> str:
    """Fill a template and put it in a random style.

    `values` maps names to text that is ready to be inserted (see `quoted`).
    """
    text = expand(template, rng)
    if rng.random() < 0.12:
        text = _sloppy(text, rng)
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    raw_end = "{raw}" in template
    chance = rng.random()
    if chance < 0.12 and not raw_end:
        text = rng.choice(PREFIXES) + text
    elif chance < 0.2 and not raw_end:
        text += rng.choice(SUFFIXES)
    elif chance < 0.3 and not raw_end:
        text += "."
    if rng.random() < 0.35 and text[:1].isalpha() and not text.startswith(tuple(values.values())):
        text = text[0].upper() + text[1:]
    return text


def vocabulary() -> list[str]:
    """Return every plain word of the templates: the tokenizer should know them."""
    words: set[str] = set()
    phrases = [t for table in (TEMPLATES, MORE) for group in table.values() for t in group]
    phrases += [w for group in TYPE_WORDS.values() for w in group]
    phrases += [w for group in CONDITION_WORDS.values() for w in group]
    for phrase in [*phrases, *PREFIXES, *SUFFIXES]:
        words.update(w.lower() for w in re.findall(r"[A-Za-z]+", re.sub(r"\{\w+\}", "", phrase)))
    return sorted(words)
