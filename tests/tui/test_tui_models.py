"""The models page: what there is to choose from, switching in the middle of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.pairing.models import lists
from midstream.pairing.models.lists import ask_everybody
from midstream.pairing.trial.kept import keep_trial, trial_key
from midstream.resources import default_model
from midstream.responses.profiles import Profile
from midstream.settings import Settings, load_settings
from midstream.tui.app import MidstreamApp
from midstream.tui.pages import models as models_page
from midstream.tui.pages.models import ModelsScreen
from midstream.tui.pages.picker import PickerScreen
from tests.helpers.folders import write_folder
from tests.helpers.model_hub import HubRepository, ModelHub, serving_hub
from tests.helpers.pages import accepted, answered, hints, page, rows, shown
from tests.helpers.stage import Stage, on_stage
from tests.helpers.stepped import SteppedModel, served

PLAIN = Settings(journal=False, attention=False)


async def opened(stage: Stage) -> ModelsScreen:
    screen = await page(stage, "M", ModelsScreen)
    await stage.until(lambda: screen.read, "models")
    await stage.pilot.pause(0.05)
    return screen


async def to(stage: Stage, screen: ModelsScreen, value: str) -> None:
    await stage.press("g")
    for _ in range(20):
        if screen.list.value == value:
            return
        await stage.press("j")
    raise AssertionError(f"no row {value}")


def write(state: Path, text: str) -> None:
    (state / "config.toml").write_text(text)


async def test_rows_have_price_context_and_key(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write(
        state,
        '[endpoints.openai]\nkind = "openai"\nmodel = "deep-5"\nprice_in = 1.25\nprice_out = 10\n'
        'context = 400000\n[endpoints.desk]\nurl = "http://127.0.0.1:1/v1"\n',
    )
    settings = load_settings(project)
    keep_trial(trial_key(settings.endpoints[0].url, "deep-5"), 30, 24, 1)
    async with on_stage(project, settings=settings) as stage:
        screen = await opened(stage)
        lines = [" ".join(row.split()) for row in rows(screen)]
        folder = default_model()
        context = json.loads((folder / "genai_config.json").read_text())["model"]["context_length"]
        assert any(line.endswith(f"built-in {context:,} free rewrite") for line in lines)
        assert "deep-5 openai 400k 1.25 / 10 patch no key" in lines
        assert "the server's default desk ? ?" in lines
        await to(stage, screen, "endpoint:openai")
        about = " ".join(shown(screen, "about").split())
        assert "tried 24 of 30 right, 1 wrong without a flag" in about
        assert "$1.25 in, $10 out per million tokens" in about
        assert "OPENAI_API_KEY is not set" in about
        await stage.press("enter")
        assert screen.notice.text == "OPENAI_API_KEY is not set; type the key."
        assert screen.entry.is_open
        assert screen.entry.field.password
        assert stage.app.screen is screen


async def test_switching_keeps_the_session_and_asks_the_other_model(
    project: Path, state: Path
) -> None:
    other = SteppedModel()
    async with served(other) as endpoint:
        write(
            state,
            f'[endpoints.other]\nkind = "local"\nurl = "{endpoint.url}"\nmodel = "stepped"\n'
            'key_env = "OTHER_KEY"\n',
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OTHER_KEY", "secret")
            async with on_stage(project, settings=load_settings(project)) as stage:
                await answered(stage)
                await accepted(stage, 1)
                session = stage.session
                screen = await opened(stage)
                await to(stage, screen, "endpoint:other")
                await stage.press("enter")
                await stage.until(lambda: stage.app.screen is stage.screen, "back")
                assert "answers from the next instruction on" in stage.notice
                assert "files, decisions and the conversation stay" in stage.notice
                assert stage.session is session
                assert len(session.turns) == 1
                assert len(session.hunks.undecided()) == 1
                former = len(stage.model.requests)
                await stage.press("i")
                stage.composer.put("rename number to value in double")
                await stage.press("enter")
                await stage.until(lambda: other.requests, "request at the other one")
                assert len(stage.model.requests) == former
                other.give("def double(value):\n    return value * 2\n")
                other.give(None)
                await stage.until(lambda: len(session.hunks.undecided()) >= 2, "hunks")
                screen = await opened(stage)
                assert screen.used == "endpoint:other"
                await stage.press("enter")
                assert "is already in use" in screen.notice.text


async def test_keep_writes_the_choice(project: Path, state: Path) -> None:
    write(state, '# mine\n[endpoints.desk]\nurl = "http://127.0.0.1:1/v1"\nmodel = "qwen"\n')
    async with on_stage(project, settings=load_settings(project)) as stage:
        screen = await opened(stage)
        await to(stage, screen, "endpoint:desk")
        assert "s use, keep" in hints(screen)
        await stage.press("s")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        assert "is written to your settings" in stage.notice
        assert load_settings().endpoint == "desk"
        screen = await opened(stage)
        await to(stage, screen, f"built-in:{default_model()}")
        await stage.press("s")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        assert load_settings().endpoint is None
        assert (state / "config.toml").read_text().startswith("# mine\n")


async def test_a_key_pressed_twice_leaves_the_page_once(project: Path, state: Path) -> None:
    async with on_stage(project, settings=load_settings(project)) as stage:
        screen = await opened(stage)
        await to(stage, screen, f"built-in:{default_model()}")
        screen.action_keep()
        screen.action_keep()
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        await stage.pilot.pause(0.05)
        assert "failed" not in stage.notice


async def test_endpoints_are_asked_for_their_models_when_the_person_wants_it(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SteppedModel()
    other.name = "deeper"
    monkeypatch.setattr(models_page, "ask_everybody", without_engines)
    monkeypatch.setenv("OTHER_KEY", "secret")
    async with served(other) as endpoint:
        write(
            state,
            f'[endpoints.other]\nkind = "local"\nurl = "{endpoint.url}"\nmodel = "stepped"\n'
            'key_env = "OTHER_KEY"\n',
        )
        async with on_stage(project, settings=load_settings(project)) as stage:
            screen = await opened(stage)
            listed = "endpoint:other#deeper"
            assert listed not in [choice.id for choice in screen.choices], "nobody was asked yet"
            assert "f ask servers" in hints(screen)
            await stage.press("f")
            await stage.until(lambda: not screen.asking, "answers")
            await stage.until(lambda: "other has 1 model." in screen.notice.text, "notice")
            assert any(row.strip() == "other, asked just now" for row in rows(screen))
            await to(stage, screen, listed)
            await stage.press("enter")
            await stage.until(lambda: stage.app.screen is stage.screen, "back")
            assert stage.app.settings.profile.model == "deeper"
        async with on_stage(project, settings=load_settings(project)) as stage:
            screen = await opened(stage)
            assert listed in [choice.id for choice in screen.choices], "what was said is kept"


def without_engines(settings: Settings, *, here: bool = False) -> lists.Asked:
    """What ports other programs listen on here is no part of the test."""
    return ask_everybody(settings, here=here, ports=())


@pytest.mark.system
async def test_keeping_asks_before_an_address_is_taken_out(project: Path, state: Path) -> None:
    write(
        state,
        '[endpoint]\nurl = "http://127.0.0.1:1/v1"\n'
        '[endpoints.desk]\nurl = "http://127.0.0.1:2/v1"\n',
    )
    async with on_stage(project, settings=load_settings(project)) as stage:
        screen = await opened(stage)
        await to(stage, screen, "endpoint:desk")
        await stage.press("s")
        assert "takes that out" in screen.notice.text
        await stage.press("2")
        assert "takes that out" not in screen.notice.text
        assert load_settings().endpoint_url == "http://127.0.0.1:1/v1"
        await stage.press("s", "1")
        await stage.until(lambda: stage.app.screen is stage.screen, "back")
        assert load_settings().endpoint == "desk"


async def test_advice_for_sensitive_files(project: Path) -> None:
    (project / "auth.py").write_text("def login(user):\n    return user\n")
    async with on_stage(project, settings=PLAIN) as stage:
        await stage.open("auth.py")
        screen = await opened(stage)
        await to(stage, screen, f"built-in:{default_model()}")
        words = " ".join(shown(screen, "about").split())
        assert 'auth.py looks security-sensitive ("auth" in its path): use a stronger' in words


async def test_folders_of_the_person_are_found_and_damaged_ones_do_no_harm(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    models = tmp_path / "data" / "midstream" / "models"
    (models / "mine").mkdir(parents=True)
    (models / "mine" / "model.onnx").write_bytes(b"x" * 2_000_000)
    (models / "mine" / "genai_config.json").write_text(
        json.dumps({"model": {"context_length": 8192}})
    )
    (models / "bad").mkdir()
    (models / "bad" / "model.onnx").write_bytes(b"x")
    (models / "bad" / "genai_config.json").write_text("{")
    (models / "bad" / "midstream.toml").write_text("= =")
    (models / "empty").mkdir()
    async with on_stage(project, settings=PLAIN) as stage:
        screen = await opened(stage)
        names = [choice.name for choice in screen.choices]
        assert set(names) >= {"mine", "bad", "built-in"}
        assert "empty" not in names
        await to(stage, screen, f"built-in:{models / 'mine'}")
        about = " ".join(shown(screen, "about").split())
        assert "8,192 tokens" in about
        assert "2 MB" in about


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_rows_fit(project: Path, size: tuple[int, int]) -> None:
    settings = Settings(journal=False, attention=False, ascii=True)
    async with on_stage(project, size=size, settings=settings) as stage:
        screen = await opened(stage)
        for row in rows(screen):
            assert len(row) <= screen.list.size.width
            assert row.isascii()
        shown = "\n".join(rows(screen))
        assert "none yet: openai, anthropic" in shown
        assert "n sets one up" in shown
        await stage.press("question_mark")
        await stage.pilot.pause(0.1)
        assert type(stage.app.screen).__name__ == "HelpScreen"
        await stage.press("escape", "escape")
        assert stage.app.screen is stage.screen


@pytest.mark.system
async def test_a_model_of_the_catalogue_is_downloaded(
    project: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "made", prompt="chat")
    published = {
        path.name: path.read_bytes()
        for path in (tmp_path / "made").iterdir()
        if path.name != "midstream.toml"
    }
    graph = published.pop("model.onnx")
    del published["genai_config.json"]
    config = json.dumps({"max_position_embeddings": 256, "eos_token_id": 1}).encode()
    name = "HuggingFaceTB/SmolLM2-135M-Instruct"
    files = {**published, "config.json": config, "onnx/model_q4.onnx": graph}
    hub = ModelHub({name: HubRepository(files)}, held={"onnx/model_q4.onnx"})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with serving_hub(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        async with on_stage(project, settings=PLAIN) as stage:
            screen = await opened(stage)
            await stage.press("d")
            await stage.until(lambda: isinstance(stage.app.screen, PickerScreen), "the catalogue")
            await stage.press("enter")
            await stage.until(lambda: screen.notices.asking, "the question")
            assert "200 MB from HuggingFaceTB" in screen.notice.text
            assert not hub.requests
            await stage.press("1")
            await stage.until(hub.waiting.is_set, "the download")
            await stage.press("d", "1")
            await stage.until(lambda: "has stopped" in screen.notice.text, "its end")
            hub.held.clear()
            await stage.press("d", "enter")
            await stage.until(lambda: screen.notices.asking, "the question")
            await stage.press("1")
            await stage.until(lambda: "installed and works" in screen.notice.text, "the model")
            assert screen.choice is not None
            assert screen.choice.name == "smollm2-135m"


async def test_a_key_that_is_missing_is_said_with_what_gives_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEEP_KEY", raising=False)
    profile = Profile("deep", "custom", "http://127.0.0.1:9/v1", "deep-1", "DEEP_KEY")
    settings = Settings(endpoints=(profile,), endpoint="deep", journal=False)
    app = MidstreamApp(project, settings)
    async with app.run_test(size=(120, 36)) as pilot:
        stage = Stage(app, pilot, SteppedModel())
        await stage.until(lambda: app.session is not None, "a session")
        await stage.until(lambda: "DEEP_KEY is not set" in stage.notice, "what is missing")
        assert stage.notice.endswith("M).")
        await stage.open("pkg/things.py")
        await stage.press("i")
        stage.composer.put("rename number in double")
        await stage.press("enter")
        await stage.until(lambda: stage.notice.startswith("Not sent: DEEP_KEY"), "not sent")
        assert stage.composer.text == "rename number in double"
