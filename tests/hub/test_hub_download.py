"""Downloading published models from a hub on loopback: whole, broken, damaged, stopped, refused."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from midstream import cli
from midstream.engine.inspect import describe
from midstream.hub import download as downloads
from midstream.hub.download import download, folder_of, partials
from midstream.hub.offer import HubError, look_up
from midstream.hub.published import published_model, published_models
from tests.helpers.folders import write_folder
from tests.helpers.model_hub import REVISION, HubRepository, ModelHub, serving_hub

REPO = "people/Tiny-ONNX"
GRAPH = "onnx/model_q4.onnx"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a repository in transformers.js' layout, with more graphs than one."""
    folder = tmp_path_factory.mktemp("published")
    write_folder(folder, prompt="chat")
    graph = (folder / "model.onnx").read_bytes()
    config = {"max_position_embeddings": 256, "eos_token_id": 1}
    return {
        "README.md": b"# Tiny\n",
        "config.json": json.dumps(config).encode(),
        "generation_config.json": json.dumps({"eos_token_id": [1, 4]}).encode(),
        "model.safetensors": b"other weights",
        "modeling_tiny.py": b"raise SystemExit\n",
        GRAPH: graph,
        "onnx/model.onnx": graph,
        "onnx/model_bnb4.onnx": graph,
        "tokenizer.json": (folder / "tokenizer.json").read_bytes(),
        "tokenizer_config.json": (folder / "tokenizer_config.json").read_bytes(),
    }


def use_hub(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """What HF_ENDPOINT does to the hub's library when it is imported."""
    constants = "huggingface_hub.constants."
    monkeypatch.setattr(constants + "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants + "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants + "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(downloads, "PAUSE_SECONDS", 0.01)


@pytest.fixture
def hub(published: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    repository = HubRepository(
        dict(published), frozenset({GRAPH, "onnx/model.onnx"}), {"license": "apache-2.0"}
    )
    with serving_hub(ModelHub({REPO: repository})) as served:
        use_hub(monkeypatch, served.url)
        yield served


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's directory of models."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "midstream" / "models"


def run(*arguments: str) -> int:
    return cli.main(["models", *arguments])


def fetch(place: Path, name: str = "tiny") -> int:
    """Download the repository's offer; returns how many bytes came."""
    came: list[int] = []
    offer = look_up(REPO)
    try:
        download(offer, folder_of(place, name), name, lambda _, count: came.append(count))
    finally:
        offer_size = sum(came)
    return offer_size


def test_a_published_model_is_installed_and_runs(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", REPO, "--name", "tiny", "--yes") == 0
    said = capsys.readouterr().out
    assert "apache-2.0" in said
    assert "on its disk" in said
    assert "tiny is installed and works" in said
    report = describe(place / "tiny")
    assert (report.name, report.layout) == ("tiny", "transformers.js")
    assert report.graph == "model_q4.onnx"
    assert report.facts["repository"] == REPO
    assert report.facts["revision"] == REVISION
    # Neither other weights nor foreign code, and each file once.
    names = {path.relative_to(place / "tiny").as_posix() for path in (place / "tiny").rglob("*.*")}
    assert "model.safetensors" not in names
    assert "modeling_tiny.py" not in names
    assert "onnx/model.onnx" not in names
    assert "README.md" in names
    assert all(len(hub.fetched(name)) == 1 for name in ("config.json", GRAPH))
    assert not folder_of(place, "tiny").exists()
    assert run("list") == 0
    assert "tiny " in capsys.readouterr().out
    assert run("get", REPO, "--name", "tiny", "--yes") == 2
    assert "already exists" in capsys.readouterr().err
    assert run("remove", "tiny", "--yes") == 0
    assert not (place / "tiny").exists()


def test_another_variant_can_be_named(hub: ModelHub, place: Path) -> None:
    assert run("get", REPO, "--name", "b", "--variant", "model_bnb4.onnx", "--yes") == 0
    assert describe(place / "b").graph == "model_bnb4.onnx"
    assert run("get", REPO, "--name", "c", "--variant", "model_q2.onnx", "--yes") == 2


def test_lost_connections_are_taken_up_where_they_broke(hub: ModelHub, place: Path) -> None:
    size = len(hub.repositories[REPO].files[GRAPH])
    hub.cut[GRAPH] = [size // 3, size // 3]
    assert fetch(place) == look_up(REPO).size
    ranges = hub.fetched(GRAPH)
    assert len(ranges) == 3
    assert ranges == [f"bytes={start}-" for start in (0, size // 3, 2 * (size // 3))]


def test_what_came_is_kept_and_not_fetched_again(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(place, "tiny")
    content = hub.repositories[REPO].files[GRAPH]
    offer = look_up(REPO)
    (file,) = [file for file in offer.files if file.path == GRAPH]
    part = downloads._part(file, folder)  # pyright: ignore[reportPrivateUsage]
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:5000])
    assert run("get", REPO, "--name", "tiny", "--yes") == 0
    assert hub.fetched(GRAPH) == ["bytes=5000-"]
    assert (place / "tiny" / GRAPH).read_bytes() == content


@pytest.mark.parametrize("path", [GRAPH, "config.json"])
def test_damage_is_found_by_the_checksum(hub: ModelHub, place: Path, path: str) -> None:
    hub.damaged.add(path)
    with pytest.raises(HubError, match=r"arrived damaged.*run the command again"):
        fetch(place)
    assert partials(place)[0].name == "tiny"
    assert fetch(place) > 0
    assert run("list") == 0


def test_a_hub_that_sends_less_than_it_says(hub: ModelHub, place: Path) -> None:
    listing = hub.repositories[REPO].listing

    def lies(name: str) -> dict[str, Any]:
        said = listing(name)
        for entry in said["siblings"]:
            if entry["rfilename"] == GRAPH:
                entry["size"] += 100
        return said

    hub.repositories[REPO].listing = lies  # type: ignore[method-assign]
    with pytest.raises(HubError, match="fewer bytes of"):
        fetch(place)


def test_a_full_disk_is_said_before_and_during(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage("/")._replace(free=1_000_000)
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(HubError, match="has 1 MB free"):
            fetch(place)
    assert not hub.fetched(GRAPH)

    def full(file: str, count: int) -> None:
        if file == GRAPH:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(HubError, match=r"disk of .* is full.*kept"):
        download(look_up(REPO), folder_of(place, "tiny"), "tiny", full)
    assert fetch(place) > 0


def test_a_download_can_be_stopped_and_continued(hub: ModelHub, place: Path) -> None:
    hub.held.add(GRAPH)
    environ = {**os.environ, "HF_ENDPOINT": hub.url}
    command = [sys.executable, "-m", "midstream", "models", "get", REPO, "--name", "tiny", "--yes"]
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    assert hub.waiting.wait(100)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "are kept" in said
    assert "Traceback" not in said
    hub.held.clear()
    (partial,) = partials(place)
    assert 0 < partial.done < partial.size
    assert run("get", REPO, "--name", "tiny", "--yes") == 0
    assert not partials(place)


def test_an_unfinished_download_is_listed_and_removed(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.damaged.add(GRAPH)
    assert run("get", REPO, "--name", "tiny", "--yes") == 3
    capsys.readouterr()
    assert run("list") == 0
    assert "`midstream models get" in capsys.readouterr().out
    assert run("remove", "tiny", "--yes") == 0
    assert list(place.iterdir()) == []


def test_nothing_is_downloaded_without_agreement(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", REPO) == 2
    assert "--yes confirms" in capsys.readouterr().err
    assert not hub.fetched("config.json")
    assert not place.exists() or not list(place.iterdir())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda r: r.files.pop("tokenizer.json"), r"has no tokenizer\.json"),
        (lambda r: r.files.pop("config.json"), r"has no config\.json"),
        (lambda r: [r.files.pop(n) for n in list(r.files) if "onnx" in n], "has no ONNX model"),
        (lambda r: setattr(r, "gated", True), "accepted its terms"),
    ],
)
def test_what_a_repository_lacks_is_named(
    hub: ModelHub, place: Path, change: Any, sentence: str
) -> None:
    change(hub.repositories[REPO])
    with pytest.raises(HubError, match=sentence):
        fetch(place)


def test_unknown_and_unreachable(hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HubError, match="no public repository people/None"):
        look_up("people/None")
    with pytest.raises(HubError, match="neither a model of the catalogue nor a repository"):
        look_up("no/such/name")
    use_hub(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(HubError, match="cannot be reached"):
        look_up(REPO)


def test_a_path_out_of_the_folder_is_left_out(hub: ModelHub) -> None:
    hub.repositories[REPO].files["../../evil.json"] = b"{}"
    assert all(".." not in file.path for file in look_up(REPO).files)


def test_folders_of_onnx_runtime_genai_are_variants(hub: ModelHub, tmp_path: Path) -> None:
    folder = "cpu_and_mobile/cpu-int4-rtn-block-32-acc-level-4"
    names = ("genai_config.json", "model.onnx", "model.onnx.data", "tokenizer.json", "config.py")
    files = {f"{folder}/{name}": b"{}" for name in names}
    files |= {f"gpu/gpu-int4-rtn-block-32/{name}": b"{}" for name in names} | {"LICENSE": b"MIT"}
    hub.repositories["maker/Phi"] = HubRepository(files)
    offer = look_up("maker/Phi")
    assert offer.variant == folder
    assert offer.others == ("gpu/gpu-int4-rtn-block-32",)
    assert {file.path for file in offer.files} == {*names, "LICENSE"} - {"config.py"}
    assert offer.license == "not stated"


def test_the_catalogue_without_a_network(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_hub(monkeypatch, "http://127.0.0.1:9")
    assert run("get") == 0
    said = capsys.readouterr().out
    models = published_models()
    assert all(model.name in said and model.license in said for model in models)
    assert [model.size for model in models] == sorted(model.size for model in models)
    assert published_model("onnx-community/qwen2.5-coder-0.5b-instruct") is models[1]
    assert all(model.read <= model.size for model in models)
    assert run("get", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == [model.name for model in models]
    assert all(row["tokens_per_second"] > 0 for row in rows)


def test_shipped_models_stay(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("remove", "brook-4m", "--yes") == 2
    assert "part of Midstream" in capsys.readouterr().err
    assert run("remove", "../models", "--yes") == 2


def test_a_folder_of_genai_brings_no_code() -> None:
    from midstream.hub.offer import HubFile, _needed

    wanted = {"genai_config.json", "tokenizer.json", "model.onnx", "model.onnx.data", "vocab.txt"}
    foreign = {"evil.so", "run.sh", "x.js", "custom.PY", "a.dll", "y.ipynb", "w.pkl", "z.pyc", "b"}
    names = [f"cpu/{name}" for name in wanted | foreign]
    files = {name: HubFile(name, name, 1, "", "1") for name in names}
    assert {file.path for file in _needed("p/T", files, "cpu")} == wanted


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b"[" * 200_000, b'{"siblings": [1, "x"]}'])
def test_what_is_no_hub_gives_one_sentence(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    class Portal(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:  # type: ignore[override]
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        use_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(HubError, match="does not answer as a hub does"):
            look_up(REPO)
        server.shutdown()
