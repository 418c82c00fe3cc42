"""What is written to a terminal arrives whole and in order, and at once where it can."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TextIO

import pytest
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.app import App
from textual.constants import ESCAPE_DELAY
from textual.driver import Driver
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Paste
from textual.geometry import Region
from textual.message import Message
from textual.messages import ExitApp
from textual.strip import Strip

from midstream.tui.eager import MIN_FRAME_S, let_keys_pass
from midstream.tui.output import UNDER_WAY_S, Outlet, PromptDriver, prompt
from tests.helpers.stage import Stage
from tests.helpers.waiting import PATIENCE_S

PAGE = "ä line of a frame, 0123456789 \u2501\n" * 600


class Terminal:
    """Both ends of a pseudo-terminal; ours is the one that reads."""

    def __init__(self) -> None:
        self.reader, self.writer = pty.openpty()
        tty.setraw(self.writer)
        self.file: TextIO = os.fdopen(self.writer, "w")

    def read(self, seconds: float = 0.0) -> bytes:
        data = b""
        while select.select([self.reader], [], [], seconds)[0]:
            data += os.read(self.reader, 1 << 16)
        return data


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.file.close()
    os.close(terminal.reader)


def test_what_fits_is_there_without_the_thread(terminal: Terminal) -> None:
    outlet = Outlet(terminal.file)
    outlet.write("a \u2501 key")
    assert terminal.read(0.2).decode() == "a \u2501 key"
    assert outlet._queue.empty()
    flags = fcntl.fcntl(terminal.writer, fcntl.F_GETFL)
    assert not flags & os.O_NONBLOCK, "others write to this one as well"


def test_a_terminal_that_lags_gets_everything_in_order_and_holds_nobody_up(
    terminal: Terminal,
) -> None:
    outlet = Outlet(terminal.file)
    outlet.start()
    pages = [f"{number}{PAGE}" for number in range(20)]
    for page in pages:
        outlet.write(page)
    assert outlet._queue.unfinished_tasks, "a page is more than a terminal keeps"
    text = terminal.read(0.5).decode()
    assert text == "".join(pages)
    outlet.write("afterwards")
    assert terminal.read(0.2) == b"afterwards"
    outlet.stop()


def test_a_frame_is_written_in_one_piece(terminal: Terminal) -> None:
    outlet = Outlet(terminal.file)
    for part in (SYNC_START, "rows"):
        outlet.write(part)
    assert terminal.read(0.1) == b""
    outlet.write(SYNC_END)
    assert terminal.read(0.2).decode() == f"{SYNC_START}rows{SYNC_END}"
    outlet.write("a title")
    assert terminal.read(0.2) == b"a title"


def test_what_is_kept_is_written_before_the_end(terminal: Terminal) -> None:
    outlet = Outlet(terminal.file)
    outlet.start()
    outlet.write(PAGE)
    outlet.write("bye")
    stopping = Thread(target=outlet.stop)
    stopping.start()
    text = terminal.read(0.3).decode()
    stopping.join(5)
    assert text == f"{PAGE}bye"
    assert not outlet.is_alive()


def test_a_descriptor_that_does_not_wait_loses_nothing(terminal: Terminal) -> None:
    os.set_blocking(terminal.writer, False)
    outlet = Outlet(terminal.file)
    outlet.start()
    outlet.write(PAGE * 3)
    assert terminal.read(0.3).decode() == PAGE * 3
    outlet.stop()


def test_a_pipe_is_written_by_the_thread(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        outlet = Outlet(file)
        outlet.write("kept")
        assert outlet._queue.qsize() == 1
        outlet.start()
        outlet.stop()
    assert (tmp_path / "out").read_text() == "kept"


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as file:
        outlet = Outlet(file)
        outlet.start()
        os.close(reader)
        for _ in range(100):  # More than the queue takes.
            outlet.write(PAGE)
        outlet.stop()
        assert not outlet.is_alive()


class Listener(App[None]):
    """Notes keys and pastes, and when they came."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.came: list[float] = []
        self.news = asyncio.Event()
        self.prompt_driver = PromptDriver(self)
        self.prompt_driver.fileno = terminal.writer
        self.prompt_driver._file = terminal.file  # pyright: ignore[reportAttributeAccessIssue]

    def post_message(self, message: Message) -> bool:
        if isinstance(message, Key):
            self.seen.append(message.key)
        elif isinstance(message, Paste):
            self.seen.append(message.text)
        elif isinstance(message, ExitApp):
            self.seen.append("exit")
        self.came.append(time.perf_counter())
        self.news.set()
        return True


async def heard(listener: Listener, count: int) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        while len(listener.seen) < count:
            listener.news.clear()
            await listener.news.wait()
    seen, listener.seen = listener.seen, []
    return seen


async def test_keys_come_by_the_loop_and_no_thread_waits_for_them(terminal: Terminal) -> None:
    listener = Listener(terminal)
    driver = listener.prompt_driver
    driver.start_application_mode()
    try:
        assert driver._key_thread is not None
        driver._key_thread.join(1)
        assert not driver._key_thread.is_alive()
        os.write(terminal.reader, "aä\x1b[A".encode())
        assert await heard(listener, 3) == ["a", "ä", "up"]
        assert driver.key_is_coming(), "it may be on its way to its field"
        await asyncio.sleep(2 * UNDER_WAY_S)
        assert not driver.key_is_coming()
        os.write(terminal.reader, "€".encode()[:1])
        assert driver.key_is_coming()
        await asyncio.sleep(0.05)
        os.write(terminal.reader, "€".encode()[1:])
        assert await heard(listener, 1) == ["euro_sign"]
        sent = time.perf_counter()
        os.write(terminal.reader, b"\x1b")
        assert await heard(listener, 1) == ["escape"]
        assert listener.came[-1] - sent >= ESCAPE_DELAY * 0.9, "more of a sequence may follow"
        text = "pasted \n" * 20_000
        writing = Thread(target=write_all, args=(terminal.reader, f"\x1b[200~{text}\x1b[201~"))
        writing.start()
        assert await heard(listener, 1) == [text]
        writing.join()
    finally:
        driver.disable_input()
        driver.close()
    os.write(terminal.reader, b"x")
    await asyncio.sleep(0.05)
    assert listener.seen == [], "what is typed later is the shell's"


def write_all(target: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(target, data[:2_000]) :]


async def test_a_terminal_that_is_gone_ends_the_program() -> None:
    terminal = Terminal()
    listener = Listener(terminal)
    driver = listener.prompt_driver
    driver.start_application_mode()
    os.close(terminal.reader)
    assert await heard(listener, 1) == ["exit"]
    driver.disable_input()
    driver.close()
    terminal.file.close()


async def test_what_cannot_be_waited_for_is_read_by_the_thread(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("q")
    with (tmp_path / "keys").open() as keys:
        listener = Listener(terminal)
        driver = listener.prompt_driver
        driver.fileno = keys.fileno()
        driver.start_application_mode()
        assert await heard(listener, 1) == ["q"]
        driver.disable_input()
        driver.close()


def test_only_textuals_own_driver_is_replaced() -> None:
    class Other(LinuxDriver):
        pass

    assert prompt(LinuxDriver) is PromptDriver
    kept: tuple[type[Driver], ...] = (HeadlessDriver, Other)
    assert [prompt(driver) for driver in kept] == list(kept)


@pytest.mark.parametrize(("flag", "driver"), [("", "PromptDriver"), ("1", "LinuxDriver")])
def test_the_program_uses_it_unless_told_otherwise(flag: str, driver: str, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from midstream.settings import load_settings\n"
        "from midstream.tui.app import MidstreamApp\n"
        "root = Path.cwd()\n"
        "print(MidstreamApp(root, load_settings(root)).driver_class.__name__)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MIDSTREAM_PLAIN_PAINT": flag},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert run.stdout.strip() == driver


async def test_what_was_typed_is_painted_before_anything_else_happens(stage: Stage) -> None:
    screen, field = stage.screen, stage.composer.field
    await stage.press("escape", "i")
    screen._last_paint -= MIN_FRAME_S  # A test's pause ends with a paint.
    painted = screen._last_paint
    field.insert("x")
    assert screen._last_paint > painted
    assert field.render_line(0).text.startswith("x")
    assert not field._repaint_required
    # Ahead of the clock: however slow the machine is, no frame is due.
    just_now = screen._last_paint = time.perf_counter() + 60
    field.insert("y")
    assert screen._last_paint == just_now, "a paste is not painted letter by letter"
    just_now = screen._last_paint = time.perf_counter() - MIN_FRAME_S
    await stage.pilot.pause(0.1)
    assert screen._last_paint > just_now


async def test_a_frame_that_is_due_comes_behind_the_key(stage: Stage) -> None:
    await stage.open("pkg/things.py")
    screen, field = stage.screen, stage.composer.field
    await stage.press("escape", "i")
    asked: list[str] = []

    def note(crop: Region) -> list[Strip]:
        asked.append(field.text)
        return type(stage.pane).render_lines(stage.pane, crop)

    stage.pane.render_lines = note  # type: ignore[method-assign]
    screen._last_paint -= MIN_FRAME_S
    stage.pane.refresh()
    stage.pane._check_refresh()
    screen._dirty_widgets.add(stage.pane)
    field.insert("x")
    assert not field._repaint_required
    assert not asked, "a page of code is not painted before what was typed"
    await stage.pilot.pause(0.1)
    assert asked[0] == "x"


async def test_keys_that_have_arrived_go_before_a_frame(stage: Stage) -> None:
    await stage.press("escape", "i")
    field = stage.composer.field
    stage.app.post_message(Key("q", "q"))
    await let_keys_pass()
    assert field.text == "q"


async def test_a_line_that_is_added_is_laid_out_before_it_is_painted(stage: Stage) -> None:
    screen, field = stage.screen, stage.composer.field
    await stage.press("escape", "i")
    screen._last_paint -= MIN_FRAME_S
    painted = screen._last_paint
    field.insert("a\nb")
    assert screen._last_paint == painted
    await stage.pilot.pause(0.1)
    assert field.size.height == 2


async def test_colours_that_are_kept_follow_theme_and_focus(stage: Stage) -> None:
    field = stage.composer.field
    await stage.press("escape", "i")
    await stage.type("text")
    seen = []
    for change in ("theme", "focus", "back"):
        if change == "theme":
            stage.app.use_theme("paper")
        await stage.press("escape" if change == "focus" else "i")
        await stage.pilot.pause(0.05)
        crop = Region(0, 0, *field.size)
        kept = [list(strip) for strip in field.render_lines(crop)]
        field._styled = None
        field._line_cache.clear()
        assert kept == [list(strip) for strip in field.render_lines(crop)], change
        seen.append(kept)
    assert seen[0] != seen[1], "the cursor is shown where the keys go"
