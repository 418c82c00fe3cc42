"""An answer that comes in pieces is shown as one that came whole."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widget import Widget
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownBlock

from midstream.tui.conversation.answer import GrowingAnswer

LINES = [
    "- item\n", "- **bold** and `code`\n", "  - deep\n", "    - deeper\n", "  goes on\n", "\n",
    "text\n", "1. one\n", "2. two\n", "   3. deep\n", "10) other\n", "* star\n", "-\n", "---\n",
    "- ```py\n  x = 1\n  ```\n", "- ---\n", "> quote\n", "- > quoted\n", "# Head\n", "===\n",
    "  | a | b |\n", "  |---|---|\n",
]  # fmt: skip


class Shown(App[None]):
    CSS = "Markdown { height: auto; }"

    def __init__(self, text: str = "", kind: type[Markdown] = GrowingAnswer) -> None:
        super().__init__()
        self.answer = kind(text)

    def compose(self) -> ComposeResult:
        yield self.answer


def tree(widget: Widget) -> list[object]:
    """What is shown, block by block."""
    said = getattr(widget, "symbol", None)
    if isinstance(widget, MarkdownBlock):
        said = widget._content.plain
    return [type(widget).__name__, said, *map(tree, widget.children)]


async def in_pieces(pieces: list[str]) -> tuple[list[object], int]:
    app = Shown()
    made = 0
    async with app.run_test():
        for piece in pieces:
            before = set(app.answer.walk_children())
            await app.answer.append(piece)
            made += len(set(app.answer.walk_children()) - before)
        return tree(app.answer), made


async def whole(text: str) -> list[object]:
    app = Shown(text)
    async with app.run_test() as pilot:
        await pilot.pause()
        return tree(app.answer)


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=12), st.data())
@example(["- a\n", "-"], None)
def test_lists_are_the_same_however_they_come(lines: list[str], data: st.DataObject | None) -> None:
    text = "".join(lines)
    inner = st.integers(1, max(1, len(text) - 1))
    cuts = [] if data is None else sorted(data.draw(st.sets(inner, max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    came, _ = asyncio.run(in_pieces([piece for piece in pieces if piece]))
    assert came == asyncio.run(whole(text))


@pytest.mark.parametrize(
    "text",
    [
        "Do this:\n\n" + "- an `x`\n" * 3 + "\nEnd.\n",
        "".join(f"{n}. step\n" for n in range(9, 11)),
        "- a\n  - b\n    1. c\n    2. d\n- e\n\n  more of e\n\n- f\n  ```py\n  x = 1\n  ```\n- g\n",
        "- a\n- b\n---\nafter\n",
        "- a\n-\n--\n",
    ],
)
@pytest.mark.parametrize("size", [1, 7])
async def test_a_growing_list_is_that_of_the_whole_text(text: str, size: int) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    came, _ = await in_pieces(pieces)
    assert came == await whole(text)


async def test_an_item_that_comes_makes_no_others_anew() -> None:
    items = [f"- item {number} with `code`\n" for number in range(12)]
    _, made = await in_pieces(items)
    assert made < 6 * len(items)


async def places(kind: type[Markdown], text: str) -> list[Region]:
    """Where everything stands that has text."""
    app = Shown(text, kind)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        return [widget.region for widget in app.answer.query(Static)]


@pytest.mark.parametrize(
    "text",
    [
        "- a\n- b\n\nend",
        "text\n\n- a\n\n- b\n\nend",
        "1. a\n2. b\n\n   more\n3. c\n   - x\n   - y\n4. d\n\nend",
        "- e\n  - f\n\n  more of e\n\n- g\n  ```py\n  x = 1\n  ```\n- h\n\n> quote\n\nend",
    ],
)
async def test_a_list_takes_the_rows_of_its_items(text: str) -> None:
    assert await places(GrowingAnswer, text) == await places(Markdown, text)
