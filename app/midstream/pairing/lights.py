"""What a screen shows of the guard: its light, masked lines, and which files ask for more care.

Pure; the guard's own state is ``guarding``'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from midstream.guard.secrets import find_secrets

_SENSITIVE: Final = re.compile(
    r"(?:^|[/_.\-])(?:auth(?:n|z|s|entication|orization|enticator)?|oauth2?|log_?in|sign_?in|sso|saml|jwt"
    r"|passwords?|crypto(?:graphy)?|encrypt(?:ion)?|payments?|billing|checkout|invoices?|stripe|paypal"
    r"|secrets?|credentials?|permissions?|acl|rbac|iam)(?:[/_.\-]|(?-i:[A-Z])|$)"
    r"|^\.github/workflows/|^\.gitlab-ci|^\.circleci/|^\.travis\.|^Jenkinsfile|^(?:azure|bitbucket)-pipelines"
    r"|(?:^|/)\.env(?:\.|$)",
    re.IGNORECASE,
)


def looks_sensitive(path: str) -> bool:
    """Whether a file is about authentication, money, secrets and the like, by its name."""
    return _SENSITIVE.search(path) is not None


class LightState(StrEnum):
    """What the guard does for a file."""

    OFF = "off"
    IDLE = "idle"
    """Nothing has streamed into this file, so nothing is scanned."""
    GUARDED = "guarded"
    UNGUARDED = "unguarded"


@dataclass(frozen=True, slots=True)
class Light:
    """The state of the guard for a file, and why it is not guarded."""

    state: LightState
    why: str = ""

    @property
    def words(self) -> str:
        """The state in words."""
        if self.state is LightState.IDLE:
            return "scanning nothing"
        return f"unguarded: {self.why}" if self.why else self.state.value


def shown_line(line: str) -> str:
    """A line of a quarantined hunk as it may be shown: credentials masked, of the same length."""
    for secret in find_secrets(line):
        shown = min(secret.start + 4, secret.stop)
        line = line[:shown] + "*" * (secret.stop - shown) + line[secret.stop :]
    return line
