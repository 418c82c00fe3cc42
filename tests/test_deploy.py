"""The files for operators: what they name is there, and what they start works."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import midstream
from midstream.cli import main
from midstream.errors import UsageError

ROOT = Path(midstream.__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")


def words(instruction: str) -> list[str]:
    found = re.search(rf"^{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


def fetch(url: str, token: str | None = None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.mark.system
def test_the_image_starts_a_server_that_is_healthy_and_tells_its_figures(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o400)
    entry = words("ENTRYPOINT")
    given = [str(token) if word.startswith("/run/secrets/") else word for word in words("CMD")]
    assert entry[0] == "midstream"
    server = subprocess.Popen(
        [sys.executable, "-m", *entry, *given, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        port = re.search(r":(\d+)", server.stdout.readline())
        assert port is not None
        address = f"http://127.0.0.1:{port[1]}"
        check = re.search(r"^ +CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
        assert check is not None
        python, *rest = json.loads(check[1])
        assert python == "python"
        healthy = [word.replace("http://127.0.0.1:8042", address) for word in rest]
        subprocess.run([sys.executable, *healthy], check=True)
        assert fetch(f"{address}/metrics")[0] == 401
        status, figures = fetch(f"{address}/metrics", token.read_text().strip())
        assert status == 200
        assert "# TYPE midstream_" in figures
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        server.stdout.close()


@pytest.mark.system
def test_what_the_image_copies_is_all_that_the_build_needs(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").split()
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        *names, target = line.split()
        for name in names:
            assert f"!{name}" in ignored, "Docker would not see it"
            there = source / (name if target == "./" else target)
            there.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                leave_out = shutil.ignore_patterns("__pycache__", "training")
                shutil.copytree(ROOT / name, there, ignore=leave_out)
            else:
                shutil.copy(ROOT / name, there)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(source)],
        check=True,
    )
    assert len(list(tmp_path.glob("midstream-*.whl"))) == 1


def test_the_command_of_the_service_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    unit = (DEPLOY / "midstream.service").read_text("utf-8")
    found = re.search(r"^ExecStart=\S+/midstream (serve .*)$", unit, re.MULTILINE)
    assert found is not None
    # Everything but the token is understood: it is the first file that is read.
    code = main(found[1].replace("%d", "/nowhere").split())
    assert code == UsageError.exit_code
    assert "/nowhere/token cannot be read" in capsys.readouterr().err


def test_ports_and_the_place_of_the_token_agree() -> None:
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    prometheus = (DEPLOY / "prometheus.yml").read_text("utf-8")
    assert "EXPOSE 8042" in DOCKERFILE
    assert ":8042:8042" in compose
    assert "server:8042" in prometheus
    assert words("CMD")[-1] in prometheus
    assert words("CMD")[-1].rpartition("/")[2] in compose
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    assert f'user: "{user}"' in compose
    assert f"chown {user}" in compose
