"""A chat template of any content ends, and says one sentence."""

from __future__ import annotations

import sys

import pytest
from jinja2 import TemplateError

from midstream.engine import chat_template
from midstream.engine.chat_template import chat_environment, render_limit

GROWS = (
    "{{% set ns = namespace(s={0}) %}}{{% for _ in range(60) %}}{{% set ns.s = ns.s {1} ns.s %}}"
    "{{% endfor %}}"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux")


@linux
@pytest.mark.parametrize(
    ("template", "why"),
    [
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "longer",
        ),
        (
            "{% for a in 'x' * 9999 %}{% for b in 'x' * 9999 %}{% for c in 'xx' %}{% endfor %}"
            "{% endfor %}{% endfor %}{% for a in range(99999) %}{% for b in range(99999) %}"
            "{% endfor %}{% endfor %}",
            "longer",
        ),
        # One step of the interpreter, which nothing interrupts.
        ("{{ 'x' * 10 ** 9 }}", "a text is too long"),
        ("{{ 10 ** 99999999 }}", "a power is too large"),
        ("{{ [1] * 10 ** 9 }}", "a text is too long"),
        (GROWS.format("7", "*"), "a product is too large"),
        ("{% set s = 'x' * 9999999 %}{{ s }}{{ s }}", "a text is too long"),
        (GROWS.format("'xx'", "~"), "more than 0 GB of memory"),
        (GROWS.format("'xx'", "+"), "more than 0 GB of memory"),
        (GROWS.format("[1]", "+"), "more than 0 GB of memory"),
        ("{{ 'x'.ljust(given) | length }}", "more than 0 GB of memory"),
        ("{{ ('x' * 99999).replace('x', 'y' * 99999) | length }}", "more than 0 GB of memory"),
        ("{{ ('<' * 9999999) | striptags }}", "No filter named"),
    ],
)
def test_a_template_ends(monkeypatch: pytest.MonkeyPatch, template: str, why: str) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 0.2 if why == "longer" else 60.0)
    monkeypatch.setattr(chat_template, "MAX_MEMORY", 300_000_000)
    with pytest.raises(TemplateError, match=why), render_limit():
        chat_environment().from_string(template).render(given=10**11)


def test_a_usual_template_is_not_bothered() -> None:
    made = chat_environment().from_string("{{ '-' * 3 }}{{ 2 ** 8 }}")
    for _ in range(20):
        with render_limit():
            assert made.render() == "---256"
