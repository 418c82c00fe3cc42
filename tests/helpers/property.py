"""How much a property is tried on: little while one works, everything in the gate."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = 10
"""Examples of a property without ``--hypothesis-profile=gate``, at most."""
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Nothing depends on how fast the machine is."""


def register_profiles() -> None:
    """Make ``gate`` known to ``--hypothesis-profile``, and fewer, fixed examples the default."""
    settings.register_profile("gate", _COMMON, max_examples=100)
    settings.register_profile("quick", _COMMON, max_examples=QUICK, derandomize=True)
    settings.load_profile("quick")


def thorough() -> bool:
    """Whether this run tries everything: it was started with ``--hypothesis-profile=gate``."""
    return settings.get_current_profile_name() == "gate"


def examples(count: int, **more: object) -> settings:
    """Settings of a property: ``count`` examples in the gate, a tenth of that or less elsewhere.

    A property with a small ``count`` is slow, so it gets fewer than ``QUICK`` elsewhere, too.
    """
    number = count if thorough() else min(count // 10, QUICK)
    return settings(max_examples=number, **more)  # type: ignore[arg-type]
