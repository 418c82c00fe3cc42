"""Credentials in source text, line by line: provider tokens, private keys, and keyword = literal.

Provider patterns follow the documented formats.  A keyword only counts with a value that looks
real: long enough, mixed, not a placeholder, not the name of an environment variable.  Entropy alone
never decides; it only helps to tell a real value from a word.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from midstream.guard.providers import PROVIDERS


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential found in a line: its rule, what it is, and its columns."""

    rule: str
    what: str
    start: int
    stop: int


_TOKEN_END = r"(?![A-Za-z0-9_\-])"
_TOKEN_START = r"(?<![A-Za-z0-9_\-])"

_COMPILED: Final = tuple(
    (name, what, words, re.compile(f"{_TOKEN_START}(?:{pattern}){_TOKEN_END}"))
    for name, what, words, pattern in PROVIDERS
)


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of some words, as a trie; a plain alternation takes four times as long."""
    endings: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""
        endings.setdefault(word[0], []).append(word[1:])
    parts = [re.escape(first) + _any_of(rest) for first, rest in sorted(endings.items())]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


_LITERALS: Final = re.compile(_any_of({word for _, _, words, _ in PROVIDERS for word in words}))
"""Any of the providers' literals, which few lines contain."""

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?=\s*$|\\[nr](?:[A-Za-z0-9+/]|\W?\s*$)|[A-Za-z0-9+/]{16})"
)
_KEY_BODY: Final = re.compile(r"^\W*?(?P<body>[A-Za-z0-9+/=]+)(?:\\[nr])*\W*$")
"""A line of a private key, alone or as a string in a list or a concatenation."""
_KEY_HEADER_LINE: Final = re.compile(r"^\W*(?:[A-Z][A-Za-z\-]+: .*)?$")
"""A line between the first one of a private key and its body."""
_MIN_BODY: Final = 16
"""Characters of the first line of a body."""
MAX_KEY_LINES: Final = 128
"""Lines of the longest private key that is found."""
_URL_PASSWORD: Final = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s:/'\"{}<>%$]{0,64}:(?P<value>[^\s:/@'\"{}<>$%]{6,})@[A-Za-z0-9\[]"
)

_NAMES = r"""(?:passw(?:or)?d|passwd|passphrase|\bpwd|_pwd|(?-i:[a-z0-9]P(?:wd|ass))|(?<![a-z])pass
    |(?<![a-z])pw\b|_pw\b|\bcreds|secret|api[_-]?key|access[_-]?key|auth[_-]?key|private[_-]?key|encryption_?key|signing_?key|token|credentials?|client_?secret|_auth\b|access_?id\b)
    (?:_?(?:key|value|string|id|hash|salt))?(?:_?\d{1,3})?"""
"""Names of variables that hold credentials."""
_KEYWORD: Final = re.compile(
    rf"""(?<![A-Za-z0-9_:])(?P<name>[A-Za-z0-9_.\-\[\]"']{{0,64}}?{_NAMES})
        (?:["'\]]{{0,3}}\s*(?::\s*[A-Za-z_][A-Za-z0-9_\[\]| .]*\s*|\s[A-Za-z][\w.<>\[\]*]*\s*)?
            (?:[:?.+|]{{0,3}}={{1,3}}|!={{1,2}}|:|=>)|(?<=\w)["'],)
        \s*(?:[bru]{{0,2}})
        (?P<quote>["'`])(?P<value>[^"'`\n]{{8,200}}?)(?P=quote)""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE: Final = re.compile(
    rf"""^\s*(?:-\s+|export\s+|set\s+|ENV\s+)?(?P<name>[A-Za-z][\w.\-]*?{_NAMES}|{_NAMES})
        \s*(?:[:?.+]{{0,3}}=|:)\s?(?P<value>[^\s"'`(){{}}\[\]<>,;$]{{8,200}})\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
"""A line of an environment file, of YAML or of properties."""
_CONNECTION: Final = re.compile(
    r"(?:server|host|data source|database|user id|uid|user)\s*=.*?"
    r"\b(?:password|pwd)\s*=\s*(?P<value>[^;\s\"'{}$<>]{8,})",
    re.IGNORECASE,
)
_ELEMENT: Final = re.compile(
    rf"""(?:key|name)=["'](?P<name>[\w.:\-]{{0,64}}{_NAMES})["']\s+value=(?P<quote>["'])(?P<value>[^"'\n]{{8,200}})(?P=quote)""",
    re.VERBOSE | re.IGNORECASE,
)
_LOGIN: Final = re.compile(
    r"""\b(?P<name>auth|login|basic_?auth|setBasicAuth|authenticate)\s*[=(:]\s*[(\[]?\s*(["'])[^"']*\2\s*,
        \s*(?P<quote>["'])(?P<value>[^"'\n]{8,200})(?P=quote)""",
    re.VERBOSE | re.IGNORECASE,
)
_TAG: Final = re.compile(
    rf"<(?P<name>[\w.:\-]{{0,64}}{_NAMES})>(?P<value>[^<>\s]{{8,200}})</",
    re.VERBOSE | re.IGNORECASE,
)
_DEFINED: Final = re.compile(
    rf"""\b(?:define|global|set|setx)\s+(?P<name>\w{{0,64}}?{_NAMES})\s+(?P<quote>["'])(?P<value>[^"'\n]{{8,200}})(?P=quote)""",
    re.VERBOSE | re.IGNORECASE,
)
_ACCOUNT: Final = re.compile(
    r"\b(?:identified\s+by|password)\s+(?P<quote>['\"])(?P<value>[^'\"\n]{8,200})(?P=quote)",
    re.IGNORECASE,
)
"""A statement of SQL that gives an account its password."""
_CURL: Final = re.compile(
    r"\bcurl\b.{0,300}?\s(?:-u|--user)[\s=]+[\"']?[^\s:\"']{0,64}:(?P<value>[^\s\"'$]{8,200})"
)
_FORMS: Final = (_KEYWORD, _CONNECTION, _ELEMENT, _LOGIN, _TAG, _DEFINED, _ACCOUNT, _CURL)
_INSIDE: Final = re.compile(
    rf"""(?:^|[^\w.\-])(?P<name>(?:[A-Za-z][\w.]{{0,64}}?)?{_NAMES})
        =(?P<value>[A-Za-z0-9_\-.+/=~%]{{8,200}})(?=\\[nr]|["'`\s;&]|$)""",
    re.VERBOSE | re.IGNORECASE,
)
"""``NAME=value`` in a command, an address or a string."""
_OPTION: Final = re.compile(
    rf"""(?:^|\s)--?(?P<name>(?:[a-z][a-z\-]{{0,40}}?)?{_NAMES})[\s=]+(?P<quote>["']?)(?P<value>[^\s"'$<>(){{}}]{{8,200}})(?P=quote)""",
    re.VERBOSE | re.IGNORECASE,
)
_HEADER: Final = re.compile(
    r"""\bauthorization["'\]]*\s*[:,=]\s*["'`]?(?:bearer|basic|token|apikey)\s+(?P<value>[A-Za-z0-9_\-.+/=~]{16,400})""",
    re.IGNORECASE,
)
_KEY_HEADER: Final = re.compile(
    r"""\bx-[a-z\-]{0,30}?(?:api-?key|token)["']?\s*[:=,]\s*["'`]?(?P<value>[A-Za-z0-9_\-.+/=~]{16,400})""",
    re.IGNORECASE,
)
_LOOSE_FORMS: Final = (_INSIDE, _OPTION, _HEADER, _KEY_HEADER)
"""Forms without quotes around the value: it must look random, not only real."""
_NO_CREDENTIAL: Final = re.compile(
    r"public|csrf|credentials?_?ids?$|(?:secret|token|key)_?(?:name|url|uri|endpoint|type|id)s?$",
    re.IGNORECASE,
)
"""Names that only sound like credentials."""
_HINTS: Final = (
    *("pass", "pwd", "pw", "secret", "key", "token"),
    *("cred", "auth", "login", "identified", "curl"),
)
_KEYWORD_HINT: Final = re.compile("|".join(_HINTS), re.IGNORECASE)
"""Every name of a credential contains one of them."""

_PLACEHOLDER: Final = re.compile(
    r"""example|sample|dummy|fake|mock|placeholder|change[_\-]?(?:me|it)|replace|your[_\-]?|my[_\-]|insert|redacted|todo
      |xxx+|\*{3}|\.\.\.|<[^>]*>|\{[^}]*\}|\$\{|%\(|(?-i:%s)(?!\w)|env\[|getenv|environ|not[_\-]?set|undefined|none|null
      |abcdef|qwerty|letmein|foobar|deadbeef|0123456|1234567|lorem|hunter2|correct.?horse|swordfish""",
    re.VERBOSE | re.IGNORECASE,
)
_RUN: Final = re.compile(r"(.)\1{4,}")
_WORDS: Final = re.compile(
    r"test(?:ing|er)?|default|passw(?:or)?d|secret|token|user|admin|key", re.IGNORECASE
)
"""Words that placeholders consist of; the rest must look real without them."""
_NOT_A_VALUE: Final = re.compile(
    r"""^(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+          # the name of an environment variable
        |[^A-Za-z0-9\s]?[a-z]+(?:[^A-Za-z0-9\s][a-z]+)*[^A-Za-z0-9\s]?  # words
        |[A-Za-z]+(?:[_.:/\-][A-Za-z]+)+           # dotted names
        |(?:[A-Z]{1,4}[a-z]{2,})+[A-Z]{0,3}        # class names
        |urn:.*|.*(?:a-z|A-Z|0-9).*                # names of standards, character classes
        |[A-Z]?[a-z]+(?:[A-Z][a-z]+)*              # camelCase words
        |(?:https?|file|s3|gs|arn):.*              # addresses are not secrets by themselves
        |(?=.{1,60}$)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+   # attributes
        |[./~].*|--.*                              # paths, options
        |.*\s.*\s.*|[a-z]+\s[a-z]+                 # a sentence, two words
        |[$^].*|.*\\[wWdDsSbB].*                    # a pattern
        |\W+|[\d.\-:/]+)$""",
    re.VERBOSE,
)

RULES: Final = (
    "secret-private-key",
    "secret-url-password",
    "secret-keyword",
    *(f"secret-{name}" for name, _, _, _ in PROVIDERS),
)
"""Names of all rules."""


def entropy(text: str) -> float:
    """Return Shannon's entropy of the characters in bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values()) if text else 0.0


def looks_real(value: str) -> bool:
    """Tell whether a literal next to a credential's name looks like a real credential."""
    if len(value) < 8 or _NOT_A_VALUE.match(value) or _PLACEHOLDER.search(value) or _runs(value):
        return False
    rest = _WORDS.sub("", value)
    if rest != value and (len(rest) < 8 or _classes(rest) < 3):
        return False
    classes = _classes(value)
    return classes >= 3 or (classes >= 2 and entropy(value) >= 3.0)


def _looks_random(value: str) -> bool:
    """Whether a value without quotes can only be a credential, not an expression or a name."""
    if not looks_real(value) or not any(map(str.isdigit, value)) or "::" in value:
        return False
    kinds = [(c.isdigit(), c.isupper(), c.isalnum()) for c in value]
    changes = sum(one != other for one, other in pairwise(kinds))
    if _classes(value) < 3 or "." in value.strip("."):
        if value.isalnum():
            return len(value) >= 16 and changes >= len(value) / 6 + 1
        return len(value) >= 20 and changes >= len(value) / 4
    return changes >= 5


def _runs(value: str) -> bool:
    """Whether one repeated character makes up much of it."""
    longest = max((len(run.group()) for run in _RUN.finditer(value)), default=0)
    return 4 * longest >= len(value)


def _classes(value: str) -> int:
    return sum(
        any(test(char) for char in value)
        for test in (str.islower, str.isupper, str.isdigit, _is_sign)
    )


def _is_sign(char: str) -> bool:
    return not char.isalnum()


@lru_cache(maxsize=256)
def find_secrets(line: str) -> tuple[Secret, ...]:
    """The credentials in one line of any language, from left to right within a rule.

    Cached: a line that streams in is scanned for the journal and by the guard.
    """
    return tuple(_found(line))


def _found(line: str) -> Iterator[Secret]:
    for match in _PRIVATE_KEY.finditer(line) if "PRIVATE" in line else ():
        yield Secret("secret-private-key", "a private key", match.start(), match.end())
    taken: list[tuple[int, int]] = []
    for name, what, words, pattern in _COMPILED if _LITERALS.search(line) else ():
        if not any(word in line for word in words):
            continue
        for match in pattern.finditer(line):
            span = match.span()
            if any(start < span[1] and span[0] < stop for start, stop in taken):
                continue
            if _fake_token(match.group()):
                continue
            taken.append(span)
            yield Secret(f"secret-{name}", what, *span)
    if "://" in line and "@" in line:
        for match in _URL_PASSWORD.finditer(line):
            if looks_real(match.group("value")):
                yield Secret("secret-url-password", "a password in a URL", *match.span("value"))
    if _may_name_one(line):
        yield from _named(line, taken)


def _may_name_one(line: str) -> bool:
    """Whether a line contains a word of ``_HINTS`` in any case."""
    if not line.isascii():
        return _KEYWORD_HINT.search(line) is not None
    small = line.lower()
    return any(word in small for word in _HINTS)


def _named(line: str, taken: list[tuple[int, int]]) -> Iterator[Secret]:
    """Literals next to a name that says what they are."""
    matches = [
        match for form in _FORMS for match in form.finditer(line) if looks_real(match["value"])
    ]
    bare = _BARE.match(line)
    loose = [match for form in _LOOSE_FORMS for match in form.finditer(line)]
    loose += [bare] if bare is not None else []
    matches += [match for match in loose if _looks_random(match["value"])]
    for match in matches:
        if _NO_CREDENTIAL.search((match.groupdict().get("name") or "").strip(" \t\"'`]")):
            continue
        start, stop = match.span("value")
        if any(first < stop and start < last for first, last in taken):
            continue
        taken.append((start, stop))
        name = (match.groupdict().get("name") or "a connection").strip(" \t\"'`")
        yield Secret("secret-keyword", f"a literal for {name!r}", start, stop)


class SecretReader:
    """Finds the credentials in lines that follow each other, one after the other.

    These are what ``find_secrets`` finds in a line, and the lines of a private key below its first.
    """

    def __init__(self) -> None:
        self._left = 0
        """Lines that may still be of the private key that has begun."""
        self._body = False
        """Whether its body has begun."""

    def find(self, line: str) -> tuple[Secret, ...]:
        """The credentials in the next line."""
        inside = _KEY_BODY.match(line) if self._left else None
        if inside is not None and (self._body or len(inside["body"]) >= _MIN_BODY):
            self._left, self._body = self._left - 1, True
            return (Secret("secret-private-key", "a private key", *inside.span("body")),)
        if self._left and not self._body and _KEY_HEADER_LINE.match(line):
            self._left -= 1
        else:
            self._left = 0
        found = find_secrets(line)
        if begins_key(line) and "-----END" not in line:
            self._left, self._body = MAX_KEY_LINES, False
        return found

    def mask(self, line: str) -> str:
        """The next line, masked as ``mask`` does."""
        return _masked(line, self.find(line))


def mask(line: str) -> str:
    """Return the line with every credential in it replaced by its first characters and dots."""
    return _masked(line, find_secrets(line))


def mask_lines(lines: Sequence[str]) -> list[str]:
    """Mask lines that follow each other as ``mask`` does, and the lines of private keys."""
    return list(map(SecretReader().mask, lines))


def mask_text(text: str) -> str:
    """Mask a text of several lines as ``mask_lines`` does."""
    return "".join(mask_lines(text.splitlines(keepends=True)))


def _masked(line: str, found: Iterable[Secret]) -> str:
    for secret in sorted(found, key=lambda each: -each.start):
        value = line[secret.start : secret.stop]
        line = line[: secret.start] + value[:4] + "…" + line[secret.stop :]
    return line


def shown_line(line: str, above: Sequence[str] = ()) -> str:
    """A line of a held-back hunk as it may be shown: credentials masked, of the same length.

    Args:
        line: The line.
        above: Lines right above it; it may be part of a private key that begins there.
    """
    reader = SecretReader()
    for before in above:
        reader.find(before)
    for secret in reader.find(line):
        shown = min(secret.start + 4, secret.stop)
        line = line[:shown] + "*" * (secret.stop - shown) + line[secret.stop :]
    return line


def begins_key(line: str) -> bool:
    """Whether a line is the first one of a private key."""
    return "PRIVATE" in line and _PRIVATE_KEY.search(line) is not None


def _fake_token(token: str) -> bool:
    """Whether a provider-shaped token is an obvious stand-in, such as AWS's example key."""
    return "EXAMPLE" in token.upper() or _runs(token) or entropy(token[4:]) < 2.5


_SENSITIVE: Final = re.compile(
    r"(?<![^/_.\-])(?:auth(?:n|z|s|entication|orization|enticator)?|oauth2?|log_?in|sign_?in|sso|saml|jwt"
    r"|passwords?|crypto(?:graphy)?|encrypt(?:ion)?|payments?|billing|checkout|invoices?|stripe|paypal"
    r"|secrets?|credentials?|permissions?|acl|rbac|iam)(?=[/_.\-]|(?-i:[A-Z])|$)"
    r"|^\.github/workflows(?=/)|^\.gitlab-ci|^\.circleci(?=/)|^\.travis(?=\.)|^Jenkinsfile"
    r"|^(?:azure|bitbucket)-pipelines|(?<![^/])\.env(?=\.|$)",
    re.IGNORECASE,
)


_HOLDS_SECRETS: Final = re.compile(
    r"(?:^|/)(?:\.env(?:\.(?!example$|sample$|template$|dist$)[^/]*)?|\.netrc|\.npmrc|\.pypirc|\.pgpass"
    r"|\.htpasswd|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx)"
    r"|(?:[^/]*[_.-])?(?:secrets?|credentials?)(?:\.(?:json|ya?ml|toml|ini|txt|env))?)$",
    re.IGNORECASE,
)


def holds_secrets(path: str) -> bool:
    """Whether a file is meant for credentials, by its name."""
    return _HOLDS_SECRETS.search(path) is not None


def sensitive_part(path: str) -> str:
    """The part of a path that tells of authentication, money, secrets and the like; ``""`` for
    none.
    """
    found = _SENSITIVE.search(path)
    return "" if found is None else found[0]
