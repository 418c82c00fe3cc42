"""Credentials in source text, line by line: provider tokens, private keys, and keyword = literal.

Provider patterns follow the formats that the issuers document (prefix, alphabet, length); a
keyword only counts with a value that looks real: long enough, mixed, not a placeholder, not an
environment name. Entropy alone never decides, it only helps to tell a real value from a word.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential found in a line: its rule, what it is, and its columns."""

    rule: str
    what: str
    start: int
    stop: int


_TOKEN_END = r"(?![A-Za-z0-9_\-])"
_TOKEN_START = r"(?<![A-Za-z0-9_\-])"

# name, what people call it, literals of which one must occur (a cheap first test), pattern
_PROVIDERS: Final[tuple[tuple[str, str, tuple[str, ...], str], ...]] = (
    (
        "aws-key",
        "an AWS access key id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    ),
    (
        "github-token",
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        r"gh[pousr]_[A-Za-z0-9]{36,255}",
    ),
    ("github-pat", "a GitHub token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{60,255}"),
    (
        "gitlab-token",
        "a GitLab token",
        ("glpat-", "gldt-", "glrt-", "glptt-"),
        r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_\-]{20,64}",
    ),
    (
        "openai-key",
        "an OpenAI key",
        ("sk-",),
        r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_\-]{20,}T3BlbkFJ[A-Za-z0-9_\-]{20,}|sk-(?:proj|svcacct|admin)-[A-Za-z0-9_\-]{40,}|sk-[A-Za-z0-9]{48}",
    ),
    (
        "anthropic-key",
        "an Anthropic key",
        ("sk-ant-",),
        r"sk-ant-(?:api|admin|oat)[0-9]{2}-[A-Za-z0-9_\-]{32,}",
    ),
    ("xai-key", "an xAI key", ("xai-",), r"xai-[A-Za-z0-9]{60,90}"),
    ("groq-key", "a Groq key", ("gsk_",), r"gsk_[A-Za-z0-9]{48,60}"),
    ("hugging-face-token", "a Hugging Face token", ("hf_",), r"hf_[A-Za-z]{34,40}"),
    ("google-api-key", "a Google API key", ("AIza",), r"AIza[A-Za-z0-9_\-]{35}"),
    (
        "google-oauth",
        "a Google OAuth secret",
        ("GOCSPX-", "ya29."),
        r"GOCSPX-[A-Za-z0-9_\-]{28}|ya29\.[A-Za-z0-9_\-]{40,}",
    ),
    (
        "slack-token",
        "a Slack token",
        ("xox", "xapp-"),
        r"xox[abeoprs]-(?:[0-9]+-)*[A-Za-z0-9\-]{20,}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]{32,}",
    ),
    (
        "slack-webhook",
        "a Slack webhook",
        ("hooks.slack.com",),
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,56}",
    ),
    (
        "discord-token",
        "a Discord bot token",
        tuple(f"{start}{second}" for start in "MNO" for second in "TDjz"),
        r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,38}",
    ),
    (
        "discord-webhook",
        "a Discord webhook",
        ("discord.com/api/webhooks", "discordapp.com/api/webhooks"),
        r"https://discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_\-]{60,}",
    ),
    ("telegram-token", "a Telegram bot token", (":AA",), r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}"),
    (
        "stripe-key",
        "a Stripe key",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"),
        r"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{20,247}|whsec_[A-Za-z0-9+/]{32,})",
    ),
    (
        "square-token",
        "a Square token",
        ("sq0", "EAAA"),
        r"sq0(?:atp|csp)-[A-Za-z0-9_\-]{22,43}|EAAA[A-Za-z0-9_\-]{60}",
    ),
    (
        "shopify-token",
        "a Shopify token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    ),
    (
        "twilio-key",
        "a Twilio key",
        tuple(f"{kind}{digit}" for kind in ("SK", "AC") for digit in "0123456789abcdef"),
        r"(?:SK|AC)[0-9a-f]{32}",
    ),
    ("sendgrid-key", "a SendGrid key", ("SG.",), r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}"),
    ("mailgun-key", "a Mailgun key", ("key-", "pubkey-"), r"(?:pub)?key-[a-f0-9]{32}"),
    ("mailchimp-key", "a Mailchimp key", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("npm-token", "an npm token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    (
        "pypi-token",
        "a PyPI token",
        ("pypi-AgEIcHlwaS5vcmc",),
        r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_\-]{50,}",
    ),
    (
        "digitalocean-token",
        "a DigitalOcean token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        r"do[opr]_v1_[a-f0-9]{64}",
    ),
    ("heroku-key", "a Heroku key", ("HRKU-",), r"HRKU-[A-Za-z0-9_\-]{36,60}"),
    (
        "cloudflare-ca-key",
        "a Cloudflare origin key",
        ("v1.0-",),
        r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
    ),
    ("databricks-token", "a Databricks token", ("dapi",), r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    (
        "new-relic-key",
        "a New Relic key",
        ("NRAK-", "NRJS-"),
        r"NRAK-[A-Z0-9]{27}|NRJS-[a-f0-9]{19}",
    ),
    (
        "grafana-token",
        "a Grafana token",
        ("glsa_", "glc_"),
        r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3}",
    ),
    (
        "sentry-token",
        "a Sentry token",
        ("sntrys_", "sntryu_"),
        r"sntrys_eyJ[A-Za-z0-9+/=_]{40,}|sntryu_[a-f0-9]{64}",
    ),
    ("linear-key", "a Linear key", ("lin_api_",), r"lin_api_[A-Za-z0-9]{40}"),
    (
        "notion-token",
        "a Notion token",
        ("ntn_", "secret_"),
        r"ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43}",
    ),
    ("postman-key", "a Postman key", ("PMAK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("vault-token", "a Vault token", ("hvs.", "hvb."), r"hv[sb]\.[A-Za-z0-9_\-]{24,300}"),
    (
        "terraform-token",
        "a Terraform token",
        (".atlasv1.",),
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{60,70}",
    ),
    (
        "azure-storage-key",
        "an Azure storage key",
        ("AccountKey=",),
        r"AccountKey=[A-Za-z0-9+/]{86}==",
    ),
    (
        "age-key",
        "an age secret key",
        ("AGE-SECRET-KEY-1",),
        r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
    ),
    ("dropbox-token", "a Dropbox token", ("sl.",), r"sl\.(?:u\.)?[A-Za-z0-9_\-]{130,}"),
    ("atlassian-token", "an Atlassian token", ("ATATT3",), r"ATATT3[A-Za-z0-9_\-=]{180,200}"),
    (
        "jwt",
        "a signed JSON web token",
        ("eyJ",),
        r"eyJ[A-Za-z0-9_\-]{15,}\.eyJ[A-Za-z0-9_\-]{15,}\.[A-Za-z0-9_\-]{20,}",
    ),
)

_COMPILED: Final = tuple(
    (name, what, words, re.compile(f"{_TOKEN_START}(?:{pattern}){_TOKEN_END}"))
    for name, what, words, pattern in _PROVIDERS
)

_LITERALS: Final = re.compile(
    "|".join(sorted({re.escape(word) for _, _, words, _ in _PROVIDERS for word in words}, key=len))
)
"""Any of the providers' literals; hardly a line of code has one."""

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?=\s*$|\\[nr]|[A-Za-z0-9+/]{16})"
)
_URL_PASSWORD: Final = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s:/@'\"{}<>%$]{0,64}:(?P<value>[^\s:/@'\"{}<>$%]{6,})@[A-Za-z0-9\[]"
)

_KEYWORD: Final = re.compile(
    r"""(?<![A-Za-z0-9_:])(?P<name>[A-Za-z0-9_.\-\[\]"']*?
        (?:passw(?:or)?d|passwd|passphrase|\bpwd|_pwd|secret|api_?key|apikey|access_?key|auth_?key|private_?key
          |encryption_?key|signing_?key|token|credentials?|client_?secret)
        (?:_?(?:key|value|string|id|hash|salt))?)
        (?:["'\]]{0,3}\s*(?::\s*[A-Za-z_][A-Za-z0-9_\[\]| .]*\s*)?(?:=|:|=>|:=)|(?<=\w)["'],)
        \s*(?:[bru]{0,2})
        (?P<quote>["'`])(?P<value>[^"'`\n]{8,200}?)(?P=quote)""",
    re.VERBOSE | re.IGNORECASE,
)
_KEYWORD_HINT: Final = re.compile(r"pass|pwd|secret|key|token|credential", re.IGNORECASE)

_PLACEHOLDER: Final = re.compile(
    r"""example|sample|dummy|fake|mock|placeholder|change[_\-]?me|replace|your[_\-]?|my[_\-]|insert|redacted|todo|xxx+|\*{3}
      |\.\.\.|<[^>]*>|\{[^}]*\}|\$\{|%\(|%s|env\[|getenv|environ|not[_\-]?set|undefined|none|null|default|test(?:ing|er)?|password
      |passwd|secret|token|abcdef|qwerty|letmein|foobar|deadbeef|0123456|1234567|lorem|hunter2|correct.?horse|swordfish
      |(.)\1{4,}""",
    re.VERBOSE | re.IGNORECASE,
)
_NOT_A_VALUE: Final = re.compile(
    r"""^(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+          # the name of an environment variable
        |[a-z]+(?:[^A-Za-z0-9\s][a-z]+)*            # words: a header name, a scope, a route
        |(?:[A-Z]?[a-z]+)+(?:[_.:/\-](?:[A-Z]?[a-z]+)+)+  # dotted names
        |[A-Z]?[a-z]+(?:[A-Z][a-z]+)*              # camelCase words
        |(?:https?|file|s3|gs|arn):.*              # addresses are not secrets by themselves
        |[./~].*                                   # paths
        |.*\s.*\s.*|[a-z]+\s[a-z]+                 # a sentence, two words
        |[$^].*|.*\\[wWdDsSbB].*                    # a pattern
        |\W+|[\d.\-:/]+)$""",
    re.VERBOSE,
)

RULES: Final = (
    "secret-private-key",
    "secret-url-password",
    "secret-keyword",
    *(f"secret-{name}" for name, _, _, _ in _PROVIDERS),
)
"""Names of all rules."""


def entropy(text: str) -> float:
    """Return Shannon's entropy of the characters in bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values()) if text else 0.0


def looks_real(value: str) -> bool:
    """Tell whether a literal next to a credential's name looks like a real credential."""
    if len(value) < 8 or _NOT_A_VALUE.match(value) or _PLACEHOLDER.search(value):
        return False
    classes = sum(
        any(test(char) for char in value)
        for test in (str.islower, str.isupper, str.isdigit, _is_sign)
    )
    return classes >= 3 or (classes >= 2 and entropy(value) >= 3.0)


def _is_sign(char: str) -> bool:
    return not char.isalnum()


def find_secrets(line: str) -> Iterator[Secret]:
    """Yield the credentials in one line of any language, from left to right within a rule."""
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
    if _KEYWORD_HINT.search(line):
        for match in _KEYWORD.finditer(line):
            span = match.span("value")
            if any(start < span[1] and span[0] < stop for start, stop in taken):
                continue
            if looks_real(match.group("value")):
                yield Secret(
                    "secret-keyword", f"a literal for {match.group('name').strip()!r}", *span
                )


def mask(line: str) -> str:
    """Return the line with every credential in it replaced by its first characters and dots."""
    for secret in sorted(find_secrets(line), key=lambda found: -found.start):
        value = line[secret.start : secret.stop]
        line = line[: secret.start] + value[:4] + "…" + line[secret.stop :]
    return line


def _fake_token(token: str) -> bool:
    """Whether a provider-shaped token is an obvious stand-in, such as AWS's example key."""
    body = token.rsplit("-", 1)[-1].rsplit("_", 1)[-1]
    return "EXAMPLE" in token.upper() or bool(re.search(r"(.)\1{5,}", token)) or entropy(body) < 2.2
