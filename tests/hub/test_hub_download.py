"""Downloading published models from a hub on loopback: whole, broken, damaged, stopped, refused."""

from __future__ import annotations

import contextlib
import errno
import functools
import gzip
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from midstream import cli
from midstream.engine.inspect import describe
from midstream.hub import bounds
from midstream.hub import download as downloads
from midstream.hub import offer as offers
from midstream.hub.download import download, folder_of, partials
from midstream.hub.library import HubError
from midstream.hub.offer import look_up
from midstream.hub.published import published_model, published_models
from midstream.resources import default_model
from tests.helpers.folders import write_folder
from tests.helpers.model_hub import REVISION, HubRepository, ModelHub, serving_hub
from tests.helpers.processes import started

REPO = "people/Tiny-ONNX"
GRAPH = "onnx/model_q4.onnx"
GET = [sys.executable, "-m", "midstream", "models", "get", REPO, "--name", "tiny", "--yes"]


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


def begin_graph(folder: Path, came: bytes) -> None:
    """Leave what has come of the graph, as a download that was interrupted does."""
    (file,) = [file for file in look_up(REPO).files if file.path == GRAPH]
    part = downloads._part(file, folder)  # pyright: ignore[reportPrivateUsage]
    part.parent.mkdir(parents=True)
    part.write_bytes(came)


def test_what_came_is_kept_and_not_fetched_again(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(place, "tiny")
    content = hub.repositories[REPO].files[GRAPH]
    begin_graph(folder, content[:5000])
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


def test_a_hub_that_sends_all_of_a_file_again(
    hub: ModelHub, place: Path, published: dict[str, bytes]
) -> None:
    hub.cut, hub.forgetful = {GRAPH: [1000]}, True
    assert fetch(place) == look_up(REPO).size
    assert (folder_of(place, "tiny") / GRAPH).read_bytes() == published[GRAPH]
    assert len(hub.fetched(GRAPH)) == 2


@pytest.mark.usefixtures("hub")
def test_what_an_earlier_revision_had_is_not_installed(place: Path) -> None:
    earlier = folder_of(place, "tiny") / "onnx"
    earlier.mkdir(parents=True)
    (earlier / "modeling_tiny.py").write_text("raise SystemExit\n")
    assert run("get", REPO, "--name", "tiny", "--yes") == 0
    assert not (place / "tiny" / "onnx" / "modeling_tiny.py").exists()


def test_what_is_there_counts_only_while_it_is_whole(
    hub: ModelHub, place: Path, published: dict[str, bytes]
) -> None:
    fetch(place)
    config = folder_of(place, "tiny") / "config.json"
    config.write_bytes(b"x" * len(published["config.json"]))
    assert fetch(place) == len(published["config.json"])
    assert config.read_bytes() == published["config.json"]


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


SMALL_DISK = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
"""Runs a shell's commands where a file system can be mounted."""
FILLED = """
mount -t tmpfs -o size=80m tmpfs "$0" || exit 77
"$@" & get=$!
read filled
cat /dev/zero > "$0/filler"
echo full
wait $get; echo "code $?"
rm "$0/filler"
"$@"; echo "code $?"
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="Linux")
def test_a_disk_that_is_filled_by_others_during_a_download(hub: ModelHub, tmp_path: Path) -> None:
    """A real file system: no byte can be written any more, and names still can."""
    hub.held.add(GRAPH)
    environ = {**os.environ, "HF_ENDPOINT": hub.url, "XDG_DATA_HOME": str(tmp_path)}
    with started(
        [*SMALL_DISK, FILLED, str(tmp_path), *GET],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while not hub.waiting.wait(0.05):
            if process.poll() is not None:
                pytest.skip("namespaces or mounts are not allowed here")
        process.stdin.write("\n")
        process.stdin.flush()
        assert any("full" in line for line in iter(process.stdout.readline, ""))
        hub.held.clear()
        hub.release.set()
        told, said = process.communicate(timeout=100)
    assert [line for line in told.splitlines() if line.startswith("code")] == ["code 3", "code 0"]
    assert "is full; what was downloaded is kept" in said.replace("\n", " ")
    assert "Traceback" not in said


def test_a_download_can_be_stopped_and_continued(hub: ModelHub, place: Path) -> None:
    hub.held.add(GRAPH)
    environ = {**os.environ, "HF_ENDPOINT": hub.url}
    with started(GET, env=environ, stderr=subprocess.PIPE, text=True) as process:
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


SERVER = """
import pickle, sys, time
from tests.helpers.model_hub import ModelHub, serving_hub
hub = ModelHub(pickle.load(sys.stdin.buffer))
hub.held.add(sys.argv[1])
with serving_hub(hub):
    print(hub.url, flush=True)
    hub.waiting.wait()
    print("waits", flush=True)
    time.sleep(600)
"""


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_hub_that_is_killed_or_stands_still_in_the_middle_of_a_file(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """One that stands still keeps its connection open, and nothing comes, not even an end."""
    monkeypatch.setattr(bounds, "PACE_S", 1.0)
    command = [sys.executable, "-c", SERVER, GRAPH]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        said = server.stdout
        assert said is not None
        assert server.stdin is not None
        server.stdin.write(pickle.dumps(hub.repositories))
        server.stdin.close()
        use_hub(monkeypatch, said.readline().decode().strip())
        offer, folder = look_up(REPO), folder_of(place, "tiny")

        def strike() -> None:
            said.readline()
            server.send_signal(number)

        striking = threading.Thread(target=strike)
        striking.start()
        with pytest.raises(HubError, match=r"cannot be reached|bytes a second"):
            download(offer, folder, "tiny", lambda *_: None)
        striking.join()
    (partial,) = partials(place)
    assert 0 < partial.done < partial.size
    assert not (folder / GRAPH).exists(), "what was not checked has no name"
    use_hub(monkeypatch, hub.url)
    assert run("get", REPO, "--name", "tiny", "--yes") == 0
    assert hub.fetched(GRAPH) == ["bytes=1000-"]


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
    assert "--yes goes ahead" in capsys.readouterr().err
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
    assert "{" not in said
    models = published_models()
    assert all(model.name in said and model.license in said for model in models)
    assert re.search(r"memory bandwidth \(\d+ GB/s\)", said)
    assert [model.size for model in models] == sorted(model.size for model in models)
    assert published_model("onnx-community/qwen2.5-coder-0.5b-instruct") is models[1]
    assert all(model.read <= model.size for model in models)
    assert run("get", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == [model.name for model in models]
    assert all(row["tokens_per_second"] > 0 for row in rows)


def test_shipped_models_stay(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("remove", default_model().name, "--yes") == 2
    assert "part of Midstream" in capsys.readouterr().err
    assert run("remove", "../models", "--yes") == 2


def test_a_hub_is_not_told_what_else_runs_here() -> None:
    code = (
        "from midstream.hub.library import hub_library; hub_library()\n"
        "from huggingface_hub import constants; assert constants.HF_HUB_DISABLE_TELEMETRY"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)


def test_a_folder_of_genai_brings_no_code() -> None:
    from midstream.hub.offer import HubFile, _needed

    wanted = {"genai_config.json", "tokenizer.json", "model.onnx", "model.onnx.data", "vocab.txt"}
    foreign = {"evil.so", "run.sh", "x.js", "custom.PY", "a.dll", "y.ipynb", "w.pkl", "z.pyc", "b"}
    names = [f"cpu/{name}" for name in wanted | foreign]
    files = {name: HubFile(name, name, 1, "", "1") for name in names}
    assert {file.path for file in _needed("p/T", files, "cpu")} == wanted


@pytest.mark.parametrize("text", ["../../../x", "\x1b]0;o\x07", "0" * 10 + "/" + "0" * 10])
@pytest.mark.parametrize("large", [False, True])
def test_a_checksum_that_is_none(
    hub: ModelHub, monkeypatch: pytest.MonkeyPatch, text: str, large: bool
) -> None:
    listing = hub.repositories[REPO].listing(REPO)
    for entry in listing["siblings"]:
        if large and "lfs" in entry:
            entry["lfs"]["sha256"] = text
        elif not large:
            entry["blobId"] = text
    body = json.dumps(listing).encode()
    with (
        answering(monkeypatch, lambda handler: send(handler, body)),
        pytest.raises(HubError, match="does not answer as a hub does"),
    ):
        look_up(REPO)


def test_a_folder_of_notices_is_not_downloaded() -> None:
    names = ["config.json", "tokenizer.json", "model.onnx", "LICENSE", "README." + "x" * 300]
    names += [f"license.{number}" for number in range(2000)]
    files = {name: offers.HubFile(name, name, 1, "", "1") for name in names}
    needed = [file.path for file in offers._needed("p/T", files, "model.onnx")]
    assert {"config.json", "tokenizer.json", "model.onnx", "LICENSE"} <= set(needed)
    assert len(needed) == 3 + offers.MAX_NOTICES
    assert max(map(len, needed)) < 100


@pytest.mark.parametrize("name", ["..", "a/b", "x\x1b[31m", "a\nb", ".hidden"])
def test_a_name_that_is_no_name_of_a_folder(hub: ModelHub, place: Path, name: str) -> None:
    assert run("get", REPO, "--yes", f"--name={name}") == 2
    assert not place.exists() or list(place.iterdir()) == []


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> Iterator[None]:
    """A hub that answers everything in one way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(ConnectionError):
                answer(self)

        def log_message(self, *_: object) -> None:  # type: ignore[override]
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        use_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


def send(
    handler: BaseHTTPRequestHandler, body: bytes = b"", status: int = 200, **more: str
) -> None:
    handler.send_response(status)
    for key, value in {"Content-Length": str(len(body)), **more}.items():
        handler.send_header(key.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"[" * 200_000, b'{"siblings": [1, "x"]}'])
def test_what_is_no_hub_gives_one_sentence(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    with (
        answering(monkeypatch, lambda handler: send(handler, body)),
        pytest.raises(HubError, match="does not answer as a hub does"),
    ):
        look_up(REPO)


def kept(place: Path) -> int:
    """How many bytes there are in a folder."""
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


BOMBS = {
    "gzip": lambda: gzip.compress(bytes(10 << 20)),
    "deflate": lambda: zlib.compress(bytes(10 << 20)),
    "gzip, gzip": lambda: gzip.compress(gzip.compress(bytes(40 << 20))),
}


@pytest.mark.parametrize("coding", BOMBS)
def test_what_was_not_asked_for_packed_is_not_unpacked(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    offer = look_up(REPO)
    bomb = BOMBS[coding]()

    def packed(handler: BaseHTTPRequestHandler) -> None:
        send(handler, bomb, Content_Encoding=coding)

    with answering(monkeypatch, packed):
        with pytest.raises(HubError, match="was not asked for: content packed"):
            look_up(REPO)
        with pytest.raises(HubError, match="was not asked for: content packed"):
            download(replace(offer, address=constants.ENDPOINT), place, "tiny", lambda *_: None)
    assert kept(place) < 1000


def endless(handler: BaseHTTPRequestHandler, status: int = 200) -> None:
    handler.send_response(status)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def test_a_description_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "_MAX_LISTING_BYTES", 1 << 20)

    with (
        answering(monkeypatch, endless),
        pytest.raises(HubError, match="sends more than 1 MB of description"),
    ):
        look_up(REPO)


@pytest.mark.parametrize("checked", [True, False])
def test_a_file_without_end_is_cut(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    offer = look_up(REPO)
    if not checked:
        bare = tuple(replace(file, sha256="", blob="") for file in offer.files)
        offer = replace(offer, files=bare)

    with (
        answering(monkeypatch, functools.partial(endless, status=206)),
        pytest.raises(HubError, match="arrived damaged"),
    ):
        download(replace(offer, address=constants.ENDPOINT), place, "tiny", lambda *_: None)
    assert kept(place) < 1000


DRIBBLES = {
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "chunk extension": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
}


@pytest.mark.parametrize("place_of", DRIBBLES)
def test_a_hub_that_dribbles_is_given_up(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch, place_of: str
) -> None:
    offer = look_up(REPO)
    monkeypatch.setattr(bounds, "PACE_S", 0.3)
    over = threading.Event()
    start, drop = DRIBBLES[place_of]

    def dribble(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(start)
        while not over.wait(0.05):
            handler.wfile.write(drop)

    with answering(monkeypatch, dribble):
        for ask in (
            lambda: look_up(REPO),
            lambda: download(
                replace(offer, address=constants.ENDPOINT), place, "tiny", lambda *_: None
            ),
        ):
            with pytest.raises(HubError, match="bytes a second"):
                ask()
        over.set()


def test_a_hub_that_ends_each_answer_after_a_byte_is_given_up(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection brings the download on, so the tries never run out."""
    offer = look_up(REPO)
    monkeypatch.setattr(bounds, "PACE_S", 0.5)

    def byte(handler: BaseHTTPRequestHandler) -> None:
        start = int(handler.headers["Range"].removeprefix("bytes=").rstrip("-"))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{offer.size}/{offer.size}")
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b"x")

    big = max(offer.files, key=lambda file: file.size)
    offer = replace(offer, files=(big,))
    with answering(monkeypatch, byte), pytest.raises(HubError, match="bytes a second"):
        download(replace(offer, address=constants.ENDPOINT), place, "tiny", lambda *_: None)


def test_two_downloads_of_one_model_do_not_mix(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(place, "tiny")
    with downloads.claimed(folder):
        assert run("get", REPO, "--name", "tiny", "--yes") == 3
        assert "Another process is downloading" in capsys.readouterr().err
        assert not hub.fetched(GRAPH)
    assert run("get", REPO, "--name", "tiny", "--yes") == 0


def test_what_has_no_checksum_is_not_mixed_with_an_earlier_revision(
    hub: ModelHub, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = hub.repositories[REPO].listing

    def bare(name: str) -> dict[str, Any]:
        said = listing(name)
        for entry in said["siblings"]:
            entry.pop("lfs", None)
            del entry["blobId"]
        return said

    hub.repositories[REPO].listing = bare  # type: ignore[method-assign]
    folder = folder_of(place, "tiny")
    content = hub.repositories[REPO].files[GRAPH]
    begin_graph(folder, bytes(len(content) // 2))
    (folder / "tokenizer.json").write_bytes(
        bytes(len(hub.repositories[REPO].files["tokenizer.json"]))
    )
    assert run("get", REPO, "--name", "tiny", "--yes") == 0
    assert "states no checksum of" in capsys.readouterr().out
    for name in (GRAPH, "tokenizer.json"):
        assert (place / "tiny" / name).read_bytes() == hub.repositories[REPO].files[name]


@pytest.mark.parametrize(
    "name",
    [
        "onnx/model_q4.onnx_data\x1b[2J",
        "onnx/model_q4.onnx_data\u202e",
        "onnx/model_q4.onnx_data\\..\\..\\x",
    ],
)
def test_a_name_that_cannot_be_shown_is_left_out(hub: ModelHub, name: str) -> None:
    hub.repositories[REPO].files[name] = b"1"
    assert name not in [file.path for file in look_up(REPO).files]


def test_a_hub_that_is_silent_is_given_up(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SILENCE_S", 0.2)
    offer = look_up(REPO)
    over = threading.Event()

    def wait(_: BaseHTTPRequestHandler) -> None:
        over.wait(60)

    with answering(monkeypatch, wait):
        with pytest.raises(HubError, match="did not answer in time"):
            download(replace(offer, address=constants.ENDPOINT), place, "tiny", lambda *_: None)
        over.set()


@pytest.mark.parametrize("status", [429, 503])
def test_a_hub_is_not_waited_for_as_long_as_it_says(
    hub: ModelHub, place: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    offer = look_up(REPO)
    asked: list[str] = []

    def later(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        more = {"Retry_After": "1000000000", "RateLimit": '"x";r=0;t=99999999'}
        send(handler, b"", status, **more)

    with answering(monkeypatch, later), pytest.raises(HubError, match=f"answers HTTP {status}"):
        download(replace(offer, address=constants.ENDPOINT), place, "tiny", lambda *_: None)
    assert len(asked) == downloads.TRIES + 1
