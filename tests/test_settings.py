"""Settings: files as people write them, mistakes included."""

from __future__ import annotations

from pathlib import Path

import pytest

from midstream.errors import UsageError
from midstream.resources import config_path
from midstream.settings import Settings, Source, load_settings, resolve_settings
from midstream.settings.declarations import SETTINGS


def read(tmp_path: Path, toml: str, root: Path | None = None, **environ: str) -> Settings:
    config = tmp_path / "config.toml"
    config.write_text(toml, encoding="utf-8")
    return load_settings(root, environ={"MIDSTREAM_CONFIG": str(config), **environ})


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(environ={"MIDSTREAM_CONFIG": str(tmp_path / "none.toml")}) == Settings()


@pytest.mark.parametrize("text", ["off", "wafer", "gpu", "gpu:llama3.1-8b", "replay"])
def test_pacing_names_a_machine_and_perhaps_a_model(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f'[model]\npacing = "{text}"').pacing == text
    assert read(tmp_path, "", MIDSTREAM_PACING=text).pacing == text


@pytest.mark.parametrize("text", ["tpu", "gpu:", "off:llama3.1-8b", "Wafer ", ""])
def test_pacing_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="pacing must be"):
        read(tmp_path, f'[model]\npacing = "{text}"')


def test_every_setting_can_be_written(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        theme = "dusk"
        layout = "split"
        ascii = true
        journal = false
        [keys]
        preset = "vim"
        [keys.bind]
        "hunk.accept" = "a,y"
        hunk.split = "ctrl+y"
        [endpoint]
        url = "wss://api.openai.com/v1"
        model = "some-model"
        transport = "sse"
        token_env = "OPENAI_API_KEY"
        [model]
        folder = "~/models/edit"
        threads = 4
        provider = "cuda"
        """,
    )
    assert settings == Settings(
        theme="dusk",
        layout="split",
        keys="vim",
        key_binds=(("hunk.accept", "a,y"), ("hunk.split", "ctrl+y")),
        ascii=True,
        journal=False,
        endpoint_url="wss://api.openai.com/v1",
        endpoint_model="some-model",
        endpoint_transport="sse",
        endpoint_token_env="OPENAI_API_KEY",
        model=Path("~/models/edit").expanduser(),
        threads=4,
        provider="cuda",
    )


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        'theme = "dusk"\nascii = true\n[model]\nthreads = 4\n',
        MIDSTREAM_THEME="dawn",
        MIDSTREAM_ASCII="no",
        MIDSTREAM_THREADS="2",
    )
    assert (settings.theme, settings.ascii, settings.threads) == ("dawn", False, 2)


def test_a_folder_has_its_own_table_and_the_deeper_one_wins(tmp_path: Path) -> None:
    outer, inner = tmp_path / "work", tmp_path / "work" / "api"
    toml = f'''
        layout = "unified"
        theme = "dusk"
        [projects."{inner}"]
        layout = "split"
        [projects."{outer}"]
        layout = "auto"
        model.threads = 8
        '''
    assert read(tmp_path, toml).layout == "unified"
    assert read(tmp_path, toml, root=outer / "web").layout == "auto"
    deep = read(tmp_path, toml, root=inner / "src")
    assert (deep.layout, deep.threads, deep.theme) == ("split", 8, "dusk")


def test_a_folders_own_file_sets_looks_and_a_stricter_guard(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".midstream.toml").write_text(
        'theme = "dusk"\nlayout = "split"\n[guard]\non = true\nS110 = "halt"\n'
    )
    settings = read(tmp_path, 'layout = "unified"\n', root=project)
    assert (settings.theme, settings.layout) == ("dusk", "split")
    assert settings.guard_levels == (("S110", "halt"),)
    mine = f'[projects."{project}"]\nlayout = "auto"\n'
    assert read(tmp_path, mine, root=project).layout == "auto"
    for name in ("config.toml", "midstream.toml"):
        (project / name).write_text('theme = "dawn"\n')
    assert read(tmp_path, "", root=project).theme == "dusk"


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('[endpoint]\nurl = "wss://thief.example/v1"\n', 'may not set "endpoint"; set it in'),
        ('endpoint = "mine"\n', 'may not set "endpoint"'),
        ('[endpoints.x]\nurl = "wss://thief.example/v1"\n', 'may not set "endpoints"'),
        ('[model]\nfolder = "here"\n', 'may not set "model"'),
        ("journal = false\n", 'may not set "journal"'),
        ("attention = false\n", 'may not set "attention"'),
        ("guard = false\n", r"may only make the guard stricter, and guard\.on = false does not"),
        ('[guard]\nS608 = "off"\n', r'stricter, and guard\.S608 = "off" does not'),
        ('[guard]\nS608 = "warn"\n', r'stricter, and guard\.S608 = "warn" does not'),
        ('layuot = "split"\n', r'no setting "layuot"; did you mean "layout"\?'),
        *(
            (f"{name} = 1\n", f'may not set "{name}"; set it in')
            for name in sorted({one.path[0] for one in SETTINGS if not one.in_projects})
        ),
    ],
)
def test_a_folders_own_file_cannot_do_harm(tmp_path: Path, toml: str, sentence: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".midstream.toml").write_text(toml)
    with pytest.raises(UsageError, match=sentence) as caught:
        read(tmp_path, "", root=project)
    assert ".midstream.toml: " in str(caught.value)


LONG = "x" * 4_000


@pytest.mark.parametrize(
    "toml",
    [
        f"{LONG} = 1",
        f'theme = ["{LONG}"]',
        f'layout = "{LONG}"',
        f'guard = "{LONG}"',
        f'[guard]\n{LONG} = "halt"',
        f'[guard]\nS608 = "{LONG}"',
    ],
)
def test_what_a_folders_own_file_says_is_cut_in_a_sentence(tmp_path: Path, toml: str) -> None:
    (tmp_path / ".midstream.toml").write_text(toml)
    with pytest.raises(UsageError, match="x…x") as caught:
        load_settings(tmp_path, environ={"MIDSTREAM_CONFIG": str(tmp_path / "none.toml")})
    assert len(str(caught.value)) < len(str(tmp_path)) + 900


def test_a_folders_own_file_is_not_read_through_a_link_out_of_it(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other.toml"
    project.mkdir()
    (project / "own.toml").write_text('theme = "dusk"\n')
    link = project / ".midstream.toml"
    link.symlink_to("own.toml")
    assert read(tmp_path, "", root=project).theme == "dusk"
    link.unlink()
    link.symlink_to(other)
    for text in ('theme = "dusk"\n', "secret = 1\n", None):
        if text is None:
            other.unlink()
        else:
            other.write_text(text)
        with pytest.raises(UsageError, match="is a link that leads out of the folder") as caught:
            read(tmp_path, "", root=project)
        assert "secret" not in str(caught.value)
    link.unlink()
    link.symlink_to(link.name)
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path, "", root=project)


def test_every_place_is_known_that_sets_something(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'layout = "auto"\n[model]\npace = 40\n[projects."{tmp_path}"]\nascii = true\n'
    )
    environ = {"MIDSTREAM_CONFIG": str(config), "MIDSTREAM_THREADS": "3"}
    resolved = resolve_settings(tmp_path, environ=environ)
    given = {(step[0], one.setting.name) for one in resolved.values() for step in one.steps[1:]}
    assert given == {
        (Source.USER, "layout"),
        (Source.USER, "pace"),
        (Source.FOLDER, "ascii"),
        (Source.ENVIRONMENT, "threads"),
    }
    settings = load_settings(tmp_path, environ=environ)
    assert {name: one.value for name, one in resolved.items()} == {
        name: getattr(settings, name) for name in resolved
    }
    assert {one.steps[0][0] for one in resolved.values()} == {Source.DEFAULT}


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('them = "dusk"', r'no setting "them"; did you mean "theme"\?'),
        ("threads = 3", r'no setting "threads"; did you mean "model.threads"\?'),
        ("[model]\nthread = 3", r'no setting "model.thread"; did you mean "model.threads"\?'),
        ("zzz = 1", r'no setting "zzz"; known are theme, layout, .*endpoint\.url'),
        ('layout = "splitt"', r'layout cannot be \'splitt\'; did you mean "split"\?'),
        (
            '[keys]\npreset = "x"',
            "preset cannot be 'x'; choose one of default, git, vim, emacs",
        ),
        ('keys = "vim"', r'"keys" is a table: write \[keys\], then preset = "vim"'),
        ('[keys]\nbind = "x"', r'keys\.bind must be a table such as "hunk.accept" = "a,y"'),
        ('[keys.bind]\n"hunk.accept" = 3', r'"hunk.accept" must be keys in one text'),
        ("theme = 3", "theme must be a non-empty text, not 3"),
        ("ascii = 1", "ascii must be true or false, not 1"),
        ("[model]\nthreads = 0", "model.threads must be a whole number from 1 to 1024, not 0"),
        ("[model]\nthreads = true", "must be a whole number"),
        ('[endpoint]\nurl = "api.openai.com"', "endpoint.url must start with wss://"),
        ("model = 3", r'"model" is a table: write \[model\], then folder = 3'),
        ("projects = 3", '"projects" must be a table of folders'),
        ("theme = \n", r"is not valid TOML: .*line 1"),
        (f"layout = 0x{'f' * 5_000}", r"is not valid TOML: a number in it is too long\.$"),
        (f"layout = {'9' * 5_000}", r"is not valid TOML: a number in it is too long\.$"),
        (r'"a\nb\u001b" = 1', r'no setting "a\\nb\\x1b"; known are'),
    ],
)
def test_mistakes_name_the_file_and_the_way_out(tmp_path: Path, toml: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        read(tmp_path, toml)
    assert "config.toml" in str(caught.value)


BROKEN = """
[endpoints.good]
url = "https://a.example/v1"
[endpoints.typo]
url = "https://b.example/v1"
modle = "m"
[endpoints.leak]
url = "https://c.example/v1"
api_key = "sk-123"
"""


def test_an_endpoint_that_is_wrong_leaves_the_others_usable(tmp_path: Path) -> None:
    settings = read(tmp_path, BROKEN)
    assert [profile.name for profile in settings.endpoints] == ["good"]
    broken = dict(settings.broken_endpoints)
    assert list(broken) == ["typo", "leak"]
    assert 'endpoints.typo: there is no setting "modle"; did you mean "model"?' in broken["typo"]
    assert "a key does not belong in a file" in broken["leak"]
    assert read(tmp_path, f'endpoint = "good"\n{BROKEN}').profile is not None
    with pytest.raises(UsageError, match='did you mean "model"'):
        read(tmp_path, f'endpoint = "typo"\n{BROKEN}')
    with pytest.raises(UsageError, match="does not belong in a file"):
        settings.with_endpoint("leak", "--endpoint")


def test_a_known_service_or_engine_needs_no_table() -> None:
    chosen = Settings().with_endpoint("anthropic", "--endpoint").profile
    assert chosen is not None
    assert (chosen.name, chosen.url) == ("anthropic", "https://api.anthropic.com/v1")
    assert chosen.key_env == "ANTHROPIC_API_KEY"
    engine = Settings().with_endpoint("ollama", "--endpoint").profile
    assert engine is not None
    assert (engine.kind, engine.key_env) == ("ollama", None)


def test_a_table_of_ones_own_has_the_name_of_a_known_service(tmp_path: Path) -> None:
    table = '[endpoints.openai]\nurl = "https://proxy.example/v1"\nmodel = "m"\n'
    chosen = read(tmp_path, table).with_endpoint("openai", "--endpoint").profile
    assert chosen is not None
    assert chosen.url == "https://proxy.example/v1"
    broken = read(tmp_path, '[endpoints.openai]\nmodle = "m"\n')
    with pytest.raises(UsageError, match='did you mean "model"'):
        broken.with_endpoint("openai", "--endpoint")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("api.openai.com", "wss://api.openai.com/v1"),
        ("localhost", "http://localhost/v1"),
        ("localhost:8977", "http://localhost:8977/v1"),
        ("llm.example.com/team/v1", "https://llm.example.com/team/v1"),
    ],
)
def test_an_endpoint_may_be_a_host(host: str, url: str) -> None:
    assert Settings().with_endpoint(host, "--endpoint").endpoint_url == url


def test_an_unknown_endpoint_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match='did you mean "anthropic"'):
        Settings().with_endpoint("antropic", "--endpoint")
    with pytest.raises(UsageError, match=r"known are local, openai, .*\[endpoints\.azure\]"):
        Settings().with_endpoint("azure", "--endpoint")


def test_a_folder_can_put_an_endpoint_right(tmp_path: Path) -> None:
    table = f'[projects."{tmp_path}".endpoints.typo]\nurl = "https://b.example/v1"\n'
    settings = read(tmp_path, BROKEN + table, root=tmp_path)
    assert {profile.name for profile in settings.endpoints} == {"good", "typo"}
    assert [name for name, _ in settings.broken_endpoints] == ["leak"]


def test_the_transport_is_a_setting_of_any_endpoint(tmp_path: Path) -> None:
    profile = read(tmp_path, f'endpoint = "good"\n{BROKEN}', MIDSTREAM_ENDPOINT_TRANSPORT="sse")
    assert profile.profile is not None
    assert profile.profile.transport == "sse"
    bare = read(tmp_path, '[endpoint]\nurl = "http://h/v1"\ntransport = "websocket"\n')
    assert bare.profile is not None
    assert bare.profile.transport == "websocket"
    assert bare.with_endpoint("http://other/v1", "x").endpoint_transport is None
    with pytest.raises(UsageError, match="transport cannot be 'udp'; choose one of auto"):
        read(tmp_path, '[endpoint]\ntransport = "udp"\n')


def test_a_project_mistake_names_the_project(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf'projects\."{tmp_path}": there is no setting "colour"'):
        read(tmp_path, f'[projects."{tmp_path}"]\ncolour = 1\n', root=tmp_path)


def test_a_wrong_variable_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"MIDSTREAM_THREADS must be a whole number .* not 'many'"):
        read(tmp_path, "", MIDSTREAM_THREADS="many")
    with pytest.raises(UsageError, match="MIDSTREAM_JOURNAL must be true or false, not 'maybe'"):
        read(tmp_path, "", MIDSTREAM_JOURNAL="maybe")


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_settings(environ={"MIDSTREAM_CONFIG": str(tmp_path)})
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'theme = "caf\xe9"')
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load_settings(environ={"MIDSTREAM_CONFIG": str(latin)})


def test_configuration_lies_in_the_users_folder() -> None:
    assert config_path({}).parts[-2:] == ("midstream", "config.toml")


def test_guard_levels_are_checked_with_the_nearest_name(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"

    def read(text: str, **environ: str) -> Settings:
        config.write_text(text)
        return load_settings(tmp_path, environ={"MIDSTREAM_CONFIG": str(config), **environ})

    assert read("").guard
    assert not read("guard = false").guard
    settings = read('[guard]\non = false\nS608 = "warn"\nsecret-jwt = "off"')
    assert not settings.guard
    assert dict(settings.guard_levels) == {"S608": "warn", "secret-jwt": "off"}
    settings = read('[guard]\nS608 = "warn"', MIDSTREAM_GUARD_LEVELS="S301=off")
    assert dict(settings.guard_levels) == {"S301": "off"}
    with pytest.raises(UsageError, match='no rule "secret-aws"; did you mean "secret-aws-key"'):
        read('[guard]\nsecret-aws = "off"')
    with pytest.raises(UsageError, match=r'S608 has no level "warning"; .*"warn"'):
        read('[guard]\nS608 = "warning"')
