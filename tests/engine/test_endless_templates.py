"""A chat template of any content ends, and says one sentence."""

from __future__ import annotations

import pytest
from jinja2 import TemplateError

from midstream.engine import chat_template
from midstream.engine.chat_template import chat_environment, render_limit


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
    ],
)
def test_a_template_ends(monkeypatch: pytest.MonkeyPatch, template: str, why: str) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 0.2)
    made = chat_environment().from_string(template)
    with pytest.raises(TemplateError, match=why), render_limit():
        made.render()


def test_a_usual_template_is_not_bothered() -> None:
    made = chat_environment().from_string("{{ '-' * 3 }}{{ 2 ** 8 }}")
    for _ in range(20):
        with render_limit():
            assert made.render() == "---256"
