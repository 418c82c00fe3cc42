"""A chat template of any content ends, says one sentence, and takes nothing from others."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from midstream import processes
from midstream.engine import chat_template
from midstream.engine.chat_template import ChatTemplate, ChatTemplateError
from tests.helpers.waiting import until

GROWS = (
    "{{% set ns = namespace(s={0}) %}}{{% for _ in range(60) %}}{{% set ns.s = ns.s {1} ns.s %}}"
    "{{% endfor %}}"
)
ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
# Two lists that double sixty times: to compare them takes 2 ** 60 steps within one.
COMPARES = (
    "{% set ns = namespace(a=[1], b=[1]) %}{% for _ in range(60) %}{% set ns.a = [ns.a, ns.a] %}"
    "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux")


@pytest.mark.parametrize(
    "template",
    [
        ENDLESS,
        # One step of the interpreter each, which no thread interrupts; the first one is taken while
        # the template is compiled.
        "{{ 5 | round(-99999999) }}",
        "{{ given | round(-99999999) }}",
        "{{ ('a' * 9999999).rfind('ab' + 'a' * 5000000) }}",
        "{{ ('f' * 9000000) | int(0, 16) % (('f' * 4000000) | int(0, 16) - 3) }}",
        COMPARES,
    ],
)
def test_a_template_is_ended(monkeypatch: pytest.MonkeyPatch, template: str) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 0.2)
    with pytest.raises(ChatTemplateError, match="it takes longer than 0 s"):
        ChatTemplate(template).render({"given": 5})


@linux
@pytest.mark.parametrize(
    ("template", "why"),
    [
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
        ("{{ given.to_bytes(given, 'big') | length }}", "more than 0 GB of memory"),
    ],
)
def test_a_template_stays_small(monkeypatch: pytest.MonkeyPatch, template: str, why: str) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 60.0)
    monkeypatch.setattr(chat_template, "MAX_MEMORY", 300_000_000)
    with pytest.raises(ChatTemplateError, match=why):
        ChatTemplate(template).render({"given": 10**11})


def test_what_it_says_may_be_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 60.0)
    template = ChatTemplate("{% if odd %}{{ raise_exception('é' * 9999999) }}{% endif %}{{ s }}")
    with pytest.raises(ChatTemplateError) as error:
        template.render({"odd": True})
    assert len(str(error.value)) < 9999
    said = "a\nb\x00é\ud800\u2028😀" * 99999
    assert template.render({"s": said}) == said


def test_the_next_conversation_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 60.0)
    template = ChatTemplate("{% if odd %}" + ENDLESS + "{% endif %}said")
    monkeypatch.setattr(chat_template, "RENDER_S", 0.2)
    with pytest.raises(ChatTemplateError, match="longer"):
        template.render({"odd": True})
    monkeypatch.setattr(chat_template, "RENDER_S", 60.0)
    assert [template.render({}) for _ in range(3)] == ["said"] * 3


def test_others_neither_wait_nor_lose_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "RENDER_S", 600.0)
    endless, usual = ChatTemplate(COMPARES), ChatTemplate("{{ '-' * 3 }}{{ 2 ** 8 }}")
    ask = processes.AskedProcess.ask
    asked = threading.Event()

    def seen(process: processes.AskedProcess, question: bytes, timeout: float) -> bytes:
        asked.set()
        return ask(process, question, timeout)

    monkeypatch.setattr(processes.AskedProcess, "ask", seen)
    refused: list[ChatTemplateError] = []

    def render() -> None:
        try:
            endless.render({})
        except ChatTemplateError as error:
            refused.append(error)

    thread = threading.Thread(target=render)
    thread.start()
    try:
        assert asked.wait(60)
        assert usual.render({}) == "---256"
        if sys.platform == "linux":
            import resource

            limit = "import resource; print(resource.getrlimit(resource.RLIMIT_AS))"
            run = subprocess.run([sys.executable, "-c", limit], capture_output=True, check=True)
            assert run.stdout.decode().strip() == f"{resource.getrlimit(resource.RLIMIT_AS)}"
    finally:
        endless._process._process.kill()
        thread.join()
    assert [f"{error}" for error in refused] == ["its process broke off"]


@linux
def test_its_process_ends_with_it() -> None:
    template = ChatTemplate("{{ 1 }}")
    pid = template._process._process.pid
    assert processes.runs(pid)
    del template
    gc.collect()
    assert not processes.runs(pid)


@pytest.mark.system
@linux
def test_its_process_ends_with_the_program(tmp_path: Path) -> None:
    """Also while it renders, and if nothing tidies up."""
    told = tmp_path / "pid"
    program = (
        "import os, pathlib, sys, threading\n"
        "from midstream.processes import AskedProcess\n"
        "child = AskedProcess('midstream.engine.chat_template_child', '2000000000', '0')\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child._process.pid))\n"
        "threading.Timer(0.2, os._exit, [0]).start()\n"
        "child.ask(b'\"{{ 5 | round(-99999999) }}\"', 600)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(told)], check=False)
    until(lambda: not processes.runs(int(told.read_text())))
