"""`midstream web`: who may connect, and the whole way in a real browser.

The browser test wants Chromium and its driver (Debian: ``chromium chromium-driver``) and selenium:
``pip install selenium && pytest -m browser``.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from midstream.cli import main
from midstream.commands import web
from midstream.pairing.journal.journal import Replay, earlier_sessions, summarize
from tests.helpers.waiting import until

CODE = '''\
"""Bills."""


def total(entries, rate):
    res = 0
    for entry in entries:
        res += entry.price
    res *= rate
    print(res)
    return res
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bills"
    folder.mkdir()
    (folder / "bill.py").write_text(CODE)
    return folder


@pytest.fixture
def address(folder: Path, built_in: Path) -> Iterator[str]:
    """The printed address of a running server."""
    command = [sys.executable, "-m", "midstream", "web", "--port", "0", "bill.py", "--pace", "6"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    server = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found is not None
    yield found[0]
    server.send_signal(signal.SIGINT)
    assert server.wait(60) == 0
    server.stdout.close()


def get(address: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return connection.getresponse()


def cookie_of(address: str) -> str:
    answer = get(address, f"/?{urlsplit(address).query}")
    assert answer.status == 302
    assert answer.headers["Location"] == "/"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    return cookie.partition(";")[0]


async def test_only_who_has_the_token_gets_in(address: str) -> None:
    host = urlsplit(address).netloc
    for path in ("/", "/static/js/textual.js", "/ws", "/?token=guessed"):
        answer = get(address, path)
        assert answer.status == 403
        assert b"it has the token" in answer.read()
    cookie = cookie_of(address)
    page = get(address, "/", Cookie=cookie)
    assert page.status == 200
    assert f"ws://{host}/ws" in page.read().decode()
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    with pytest.raises(InvalidStatus, match="403"):
        await connect(f"ws://{host}/ws")


async def test_pages_of_other_sites_and_other_names_are_refused(address: str) -> None:
    host, cookie = urlsplit(address).netloc, cookie_of(address)
    for origin in ("http://evil.example", "null", f"https://{host}", "http://127.0.0.1:1"):
        answer = get(address, "/", Cookie=cookie, Origin=origin)
        assert answer.status == 403
        assert b"other sites" in answer.read()
        with pytest.raises(InvalidStatus, match="403"):
            await connect(f"ws://{host}/ws", origin=origin, additional_headers={"Cookie": cookie})  # pyright: ignore[reportArgumentType]
    rebound = get(address, "/", Cookie=cookie, Host=f"evil.example:{urlsplit(address).port}")
    assert rebound.status == 403
    assert b"this machine only" in rebound.read()


@pytest.mark.system
async def test_the_screen_comes_over_the_socket_and_takes_sizes(address: str) -> None:
    host, cookie = urlsplit(address).netloc, cookie_of(address)
    headers = {"Cookie": cookie}
    async with (
        asyncio.timeout(120),
        connect(
            f"ws://{host}/ws?width=100&height=30",
            origin=f"http://{host}",
            additional_headers=headers,
        ) as socket,  # pyright: ignore[reportArgumentType]
    ):
        text = ""
        while "Bills." not in text:
            data = await socket.recv()
            text += data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
        await socket.send(json.dumps(["resize", {"width": 70, "height": 20}]))
        text = ""
        while "[20;" not in text:  # the last row of the smaller screen is painted
            data = await socket.recv()
            text += data.decode("utf-8", "replace") if isinstance(data, bytes) else ""


def test_without_the_extra_the_way_out_is_said(
    monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    assert main(["web", str(folder)]) == 3
    assert "pip install 'midstream[web]'" in capsys.readouterr().err


def test_what_cannot_be_served_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "gone.py"]) == 2
    assert "There is no file or folder gone.py" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind((web.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["web", "--port", str(port)]) == 3
    assert f"Port {port} cannot be used" in capsys.readouterr().err


CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


class Browser:
    """A headless Chromium on the page, and what the page was sent."""

    def __init__(self) -> None:
        selenium: Any = pytest.importorskip("selenium.webdriver")
        options = selenium.ChromeOptions()
        options.binary_location = CHROMIUM
        for word in ("headless=new", "no-sandbox", "disable-gpu", "window-size=1300,800"):
            options.add_argument(f"--{word}")
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
        self._keys: Any = pytest.importorskip("selenium.webdriver.common.action_chains")
        self.driver: Any = selenium.Chrome(options, selenium.ChromeService(DRIVER))
        self.text = ""
        self.sizes: list[int] = []

    def type(self, text: str) -> None:
        self._keys.ActionChains(self.driver).send_keys(text).perform()

    def saw(self, words: str) -> bool:
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.webSocketFrameReceived":
                frame = message["params"]["response"]
                if frame["opcode"] == 2:
                    data = base64.b64decode(frame["payloadData"]).decode("utf-8", "replace")
                    self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data)
            elif message["method"] == "Network.webSocketFrameSent":
                sent = message["params"]["response"]["payloadData"]
                if sent.startswith('["resize"'):
                    self.sizes.append(json.loads(sent)[1]["width"])
        return words in self.text


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and its driver")
def test_instruct_accept_reject_redirect_resize(address: str, folder: Path) -> None:
    enter, escape, browser = "\ue007", "\ue00c", Browser()
    file = folder / "bill.py"
    try:
        browser.driver.get(address)
        until(lambda: browser.saw("what should change?") and browser.saw("ready"), "the screen")
        assert "token" not in browser.driver.current_url
        browser.type("rename `res` to `amount` in total" + enter)
        until(lambda: browser.saw("1 to decide"), "a hunk while the rest streams")
        browser.type("a")
        until(lambda: "amount = 0" in file.read_text(), "the accepted hunk on disk")
        assert "res += entry.price" in file.read_text()
        browser.type("i")
        browser.type("no, call it `whole`" + enter)
        until(lambda: browser.saw("whole"), "the redirected answer")
        before = browser.driver.get_window_size()["width"]
        browser.sizes.clear()
        browser.driver.set_window_size(before - 400, 600)
        until(lambda: browser.saw("") and browser.sizes, "the new size")
        until(lambda: browser.saw("2 to decide"), "the rest of the answer")
        browser.text = ""
        browser.type(escape)
        until(lambda: browser.saw("a accept"), "the keys of the code")
        browser.type("r")
        (info,) = earlier_sessions(folder)
        until(lambda: summarize(info.path).rejected == 1, "the rejected hunk")
        if to := os.environ.get("MIDSTREAM_BROWSER_PICTURE"):
            browser.driver.save_screenshot(to)
    finally:
        browser.driver.quit()
    until(lambda: not earlier_sessions(folder)[0].live, "the end of the program")
    turns = Replay.read(info.path).turns
    assert turns[0].instruction.startswith("rename `res`")
    assert turns[-1].redirected_from == turns[0].id
    assert "whole" not in file.read_text(), "nothing of it was accepted"
