"""The first use: the line about the built-in model, and setting up a larger one with `M`."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as FailKeyring

from midstream.pairing.models import lists
from midstream.pairing.models.lists import ask_everybody
from midstream.responses.dialect import DIALECTS
from midstream.settings import Settings, load_settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages import models as models_page
from midstream.tui.pages.models import ModelsScreen
from midstream.tui.pages.picker import PickerScreen
from tests.helpers.folders import write_folder
from tests.helpers.key_server import KeyServer
from tests.helpers.keyrings import MemoryKeyring
from tests.helpers.pages import hints
from tests.helpers.stage import Stage, on_stage

ABOUT = "The built-in model edits one function at a time"


@pytest.fixture(autouse=True)
def _nobodys_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in DIALECTS.values():
        if dialect.key_env:
            monkeypatch.delenv(dialect.key_env, raising=False)


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    former, own = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(former)


@asynccontextmanager
async def first_use(project: Path, settings: Settings | None = None) -> AsyncIterator[Stage]:
    """An app with the settings of the file, without a model given on the command line."""
    app = MidstreamApp(project, settings or load_settings(project))
    async with app.run_test(size=(120, 40)) as pilot:
        stage = Stage(app, pilot, None)
        await stage.until(lambda: app.session is not None, "session")
        await stage.pilot.pause(0.05)
        yield stage


def introduction(stage: Stage) -> str:
    return stage.screen.panes.introduction.text


async def asked(stage: Stage) -> ModelsScreen:
    """The models page, asking which way."""
    stage.screen.set_focus(stage.pane)
    await stage.press("M")
    screen = await the_page(stage)
    await stage.until(lambda: screen.notices.asking, "question")
    return screen


async def the_page(stage: Stage) -> ModelsScreen:
    await stage.until(lambda: isinstance(stage.app.screen, ModelsScreen), "page")
    assert isinstance(stage.app.screen, ModelsScreen)
    return stage.app.screen


def way(screen: ModelsScreen, words: str) -> str:
    """The number of an answer."""
    return str(1 + next(n for n, each in enumerate(screen.notices.choices) if words in each))


async def picking(stage: Stage) -> PickerScreen:
    await stage.until(
        lambda: isinstance(stage.app.screen, PickerScreen),
        "picker",
    )
    await stage.pilot.pause(0.05)
    assert isinstance(stage.app.screen, PickerScreen)
    return stage.app.screen


async def typed(stage: Stage, screen: ModelsScreen, text: str) -> None:
    await stage.until(lambda: screen.entry.is_open, "field")
    screen.entry.field.value = text
    await stage.press("enter")


async def test_the_line_stays_until_it_is_dismissed_and_never_comes_back(project: Path) -> None:
    async with first_use(project) as stage:
        assert introduction(stage).startswith(ABOUT)
        stage.screen.set_focus(stage.pane)
        await stage.until(lambda: "M sets up" in introduction(stage), "key")
        assert "esc hides this" in introduction(stage)
        await stage.press("escape")
        await stage.until(lambda: not introduction(stage), "gone")
    async with first_use(project) as stage:
        assert not introduction(stage)


@pytest.mark.system
async def test_opening_the_models_is_reading_it(project: Path) -> None:
    async with first_use(project) as stage:
        assert introduction(stage)
        screen = await asked(stage)
        await stage.press("escape")
        assert not screen.notices.asking
        await stage.press("escape")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        await stage.until(lambda: not introduction(stage), "gone")


async def test_there_is_no_introduction_once_a_model_is_set_up(project: Path, state: Path) -> None:
    (state / "config.toml").write_text('[endpoints.desk]\nurl = "http://127.0.0.1:1/v1"\n')
    async with first_use(project) as stage:
        assert not introduction(stage)
        stage.screen.set_focus(stage.pane)
        await stage.press("M")
        screen = await the_page(stage)
        await stage.until(lambda: screen.read, "models")
        await stage.pilot.pause(0.05)
        assert not screen.notices.asking
        assert "n set up" in hints(screen)
        await stage.press("n")
        assert screen.notices.asking


@pytest.mark.system
async def test_two_keys_lead_to_the_models_of_a_key_in_the_environment(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KeyServer(key="from-environment").running() as server:
        there = DIALECTS["groq"]
        monkeypatch.setitem(DIALECTS, "groq", _moved(there, server))  # type: ignore[index]
        monkeypatch.setenv("GROQ_API_KEY", "from-environment")
        async with first_use(project) as stage:
            screen = await asked(stage)
            assert "GROQ_API_KEY" in screen.notices.choices[0]
            await stage.press("1")
            picker = await picking(stage)
            assert server.asked == [("/v1/models", "from-environment")]
            await stage.press("enter")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert "large-1 is written to your settings and answers" in stage.notice
            assert picker.list.value == "large-1"
        profile = load_settings().profile
        assert profile is not None
        assert (profile.name, profile.model, profile.key_env) == ("groq", "large-1", "GROQ_API_KEY")
        assert "from-environment" not in (state / "config.toml").read_text()


def _moved(dialect, server: KeyServer):
    from dataclasses import replace

    return replace(dialect, url=server.url, domains=("127.0.0.1",))


@pytest.mark.system
async def test_a_pasted_address_and_a_key_that_is_checked_before_it_is_kept(
    project: Path, state: Path, ring: MemoryKeyring
) -> None:
    with KeyServer(key="right").running() as server:
        async with first_use(project) as stage:
            screen = await asked(stage)
            await stage.press(way(screen, "paste an address"))
            await typed(stage, screen, server.url + "/chat/completions")
            await stage.until(lambda: "check" in screen.entry.field.placeholder, "key")
            assert screen.entry.field.password
            assert "wants a key, and none was sent (HTTP 401); type it." in screen.notice.text
            await typed(stage, screen, "wrong")
            await stage.until(lambda: ("/v1/models", "wrong") in server.asked, "request")
            await stage.until(lambda: screen.entry.is_open, "field again")
            assert screen.entry.field.value == ""
            assert "refused the key (HTTP 401); type another." in screen.notice.text
            assert not ring.kept
            await typed(stage, screen, "right")
            await picking(stage)
            assert not ring.kept, "nothing is kept before a model is chosen"
            await stage.press("down", "enter")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert "The key is in the keyring (keyrings MemoryKeyring)" in stage.notice
            assert stage.app.settings.profile.model == "small-1"
        assert ring.kept == {("midstream", "localhost"): "right"}
        written = (state / "config.toml").read_text()
        assert "right" not in written
        profile = load_settings().profile
        assert (profile.url, profile.keyring) == (server.url, "midstream")
        assert profile.endpoint({}).token == "right"


@pytest.mark.system
async def test_without_a_keyring_it_is_said_where_the_key_is(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCALHOST_API_KEY", raising=False)
    former = keyring.get_keyring()
    keyring.set_keyring(FailKeyring())
    try:
        with KeyServer(key="right").running() as server:
            async with first_use(project) as stage:
                screen = await asked(stage)
                await stage.press(way(screen, "paste an address"))
                await typed(stage, screen, f"127.0.0.1:{server.port}")
                await stage.until(lambda: screen.entry.field.password, "key")
                await typed(stage, screen, "right")
                await picking(stage)
                await stage.press("enter")
                await stage.until(lambda: stage.app.screen is stage.screen, "back")
                assert "not saved and is forgotten when you quit" in stage.notice
                assert "export LOCALHOST_API_KEY" in stage.notice
                assert "pip install" not in stage.notice, "the package is there"
                stage.screen.set_focus(stage.pane)
                await stage.press("M")
                screen = await the_page(stage)
                await stage.until(lambda: screen.choice is not None, "row of the model in use")
                assert screen.choice is not None
                told = models_page._key_words(screen.choice)
                assert told == "typed, not saved; forgotten when you quit"
        assert os.environ.pop("LOCALHOST_API_KEY") == "right"
        assert "right" not in (state / "config.toml").read_text()
    finally:
        keyring.set_keyring(former)


async def test_a_key_that_is_missing_at_the_next_start_is_typed_on_the_models_page(
    project: Path, state: Path, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DESK_API_KEY", raising=False)
    with KeyServer(key="right").running() as server:
        (state / "config.toml").write_text(
            f'endpoint = "desk"\n[endpoints.desk]\nurl = "{server.url}"\nmodel = "small-1"\n'
            'context = 9000\nkey_env = "DESK_API_KEY"\n'
        )
        async with first_use(project) as stage:
            stage.screen.set_focus(stage.pane)
            await stage.press("M")
            screen = await the_page(stage)
            await stage.until(lambda: screen.choice is not None, "row of the model in use")
            assert screen.choice.endpoint == "desk"
            await stage.press("enter")
            assert screen.notice.text == "DESK_API_KEY is not set; type the key."
            await typed(stage, screen, "right")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert "small-1 is written to your settings and answers" in stage.notice
        profile = load_settings().profile
        assert (profile.model, profile.context, profile.keyring) == ("small-1", 9000, "midstream")
        assert profile.endpoint({}).token == "right"


async def test_a_service_that_lacks_a_model_and_is_away_says_both(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KeyServer(key="from-environment").running() as server:
        moved = _moved(DIALECTS["groq"], server)
    monkeypatch.setitem(DIALECTS, "groq", moved)  # type: ignore[index]
    monkeypatch.setenv("GROQ_API_KEY", "from-environment")
    settings = load_settings(project).with_endpoint("groq", "--endpoint")
    async with first_use(project, settings) as stage:
        stage.screen.set_focus(stage.pane)
        await stage.press("M")
        screen = await the_page(stage)
        await stage.until(lambda: screen.choice is not None, "row of the endpoint in use")
        await stage.press("s")
        await stage.until(lambda: screen.notice.level == "warning", "what is missing")
        assert screen.notice.text.endswith(" groq has no model yet.")


async def test_a_known_service_without_a_model_lists_its_models(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KeyServer(key="from-environment").running() as server:
        monkeypatch.setitem(DIALECTS, "groq", _moved(DIALECTS["groq"], server))  # type: ignore[index]
        monkeypatch.setenv("GROQ_API_KEY", "from-environment")
        settings = load_settings(project).with_endpoint("groq", "--endpoint")
        async with first_use(project, settings) as stage:
            stage.screen.set_focus(stage.pane)
            await stage.press("M")
            screen = await the_page(stage)
            await stage.until(lambda: screen.choice is not None, "row of the endpoint in use")
            assert screen.choice.endpoint == "groq"
            assert screen.choice.name == "no model yet"
            assert "groq is not set up yet" in screen.title_row.render().plain
            assert "enter its models" in hints(screen)
            await stage.press("enter")
            await picking(stage)
            await stage.press("enter")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert stage.app.settings.profile.model == "large-1"


@pytest.mark.system
async def test_a_server_without_a_list_is_asked_for_by_name(project: Path) -> None:
    with KeyServer(models=None).running() as server:
        async with first_use(project) as stage:
            screen = await asked(stage)
            await stage.press(way(screen, "paste an address"))
            await typed(stage, screen, server.url)
            await stage.until(lambda: "as the server calls it" in screen.entry.field.placeholder)
            await typed(stage, screen, "house-model")
            await picking(stage)
            await stage.press("enter")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert stage.app.settings.profile.model == "house-model"


@pytest.mark.system
async def test_a_model_folder_is_given_by_its_path(
    project: Path, state: Path, tmp_path: Path
) -> None:
    write_folder(tmp_path / "mine", prompt="chat")
    async with first_use(project) as stage:
        screen = await asked(stage)
        await stage.press(way(screen, "or a folder"))
        for wrong in (str(tmp_path), "~no-such-user/x", "/" + "x" * 300):
            await typed(stage, screen, wrong)
            await stage.until(lambda wrong=wrong: wrong[:20] in screen.notice.text, "no folder")
            assert "is not a model folder" in screen.notice.text
            await stage.press("n", way(screen, "or a folder") if screen.notices.asking else "4")
        await typed(stage, screen, str(tmp_path / "mine"))
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        assert stage.app.settings.model == tmp_path / "mine"
    assert str(tmp_path / "mine") in (state / "config.toml").read_text()


@pytest.mark.system
async def test_what_cannot_be_reached_changes_nothing(project: Path, state: Path) -> None:
    async with first_use(project) as stage:
        screen = await asked(stage)
        await stage.press(way(screen, "paste an address"))
        await typed(stage, screen, "two words")
        await stage.until(lambda: "not an address" in screen.notice.text, "no address")
        await stage.press("n", way(screen, "paste") if screen.notices.asking else "4")
        await typed(stage, screen, "http://127.0.0.1:1/v1")
        await stage.until(lambda: "cannot be reached" in screen.notice.text, "error")
        assert stage.app.screen is screen
    assert not (state / "config.toml").exists()


@pytest.mark.system
async def test_engines_on_this_machine_are_asked_on_request(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KeyServer().running() as server:

        def only_this(settings: Settings, *, here: bool) -> lists.Asked:
            return ask_everybody(settings, here=here, ports=(server.port,))

        monkeypatch.setattr(models_page, "ask_everybody", only_this)
        async with first_use(project) as stage:
            screen = await asked(stage)
            assert not server.asked, "nobody is asked unasked"
            await stage.press(way(screen, "an engine on this machine"))
            picker = await picking(stage)
            assert not picker.query(".note"), "nothing leaves this machine"
            await stage.press("enter")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert load_settings().profile.url == f"http://127.0.0.1:{server.port}/v1"


async def test_without_an_engine_it_says_where_it_looked_and_what_to_do(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(settings: Settings, *, here: bool) -> lists.Asked:
        return ask_everybody(settings, here=here, ports=(1, 7))

    monkeypatch.setattr(models_page, "ask_everybody", nowhere)
    (state / "config.toml").parent.mkdir(exist_ok=True)
    (state / "config.toml").write_text('[endpoints.team]\nurl = "https://team.invalid/v1"\n')
    async with on_stage(project, settings=load_settings(project)) as stage:
        stage.screen.set_focus(stage.pane)
        await stage.press("M")
        screen = await the_page(stage)
        await stage.press("n")
        await stage.until(lambda: screen.notices.asking, "the ways")
        await stage.press(way(screen, "an engine on this machine"))
        await stage.until(lambda: "on the ports 1, 7. " in screen.notice.text, "where it looked")
        assert screen.notice.text.endswith(
            "Start one and press n again, or give its address there."
        )
        assert "team" not in screen.notice.text, "it is not on this machine"


@pytest.mark.system
async def test_what_is_sent_is_said_before_a_model_is_taken_and_once(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from midstream.pairing.models import setup
    from midstream.responses.catalogue import ListedModel

    monkeypatch.setattr(setup, "check_key", lambda _: (ListedModel("large-1"),))
    monkeypatch.setenv("GROQ_API_KEY", "k")
    async with first_use(project) as stage:
        await asked(stage)
        await stage.press("1")
        picker = await picking(stage)
        note = str(picker.query_one(".note").render())
        assert note.startswith("api.groq.com receives each instruction with the files it is about")
        assert not (state / "told.json").exists() or "groq" not in (state / "told.json").read_text()
        await stage.press("enter")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
    assert "https://api.groq.com/openai/v1" in json.loads((state / "told.json").read_text())


@pytest.mark.system
async def test_a_key_that_nobody_could_check_is_kept_and_said_to_be_unchecked(
    project: Path, state: Path, ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KeyServer(key="right").running() as server:
        gone = server.port
        monkeypatch.setitem(DIALECTS, "groq", _moved(DIALECTS["groq"], server))  # type: ignore[index]
    async with first_use(project) as stage:
        screen = await asked(stage)
        await stage.press(way(screen, "hosted API"))
        await picking(stage)
        await stage.type("groq")
        await stage.press("enter")
        await typed(stage, screen, "right")
        await stage.until(lambda: "The key is not checked." in screen.notice.text, "question")
        assert screen.notices.choices == ("keep it unchecked", "try again", "forget it")
        await stage.press("1")
        await stage.until(lambda: "It is not checked yet: enter on groq" in screen.notice.text)
        assert ring.kept == {("midstream", "groq"): "right"}
        written = (state / "config.toml").read_text()
        assert f'url = "http://127.0.0.1:{gone}/v1"' in written
        assert "right" not in written
        assert stage.app.settings.endpoint is None, "the model in use stays"
        assert screen.list.value == "endpoint:groq"
