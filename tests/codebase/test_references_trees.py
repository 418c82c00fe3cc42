"""Uses of a name in other languages than Python, and those that a change leaves behind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from midstream.code.syntax import same_language
from midstream.codebase.references import (
    Use,
    find_uses,
    renames,
    told_uses_left,
    with_name,
)
from midstream.codebase.references_trees import search_trees
from midstream.codebase.similar_edits import first_use

JS = {
    "cart.js": """import { price } from './price.js'
export class Cart {
  addItem(item) { this.items.push(item); this.log(item) }
  log(text) { }
}
export function total(cart) {
  const price = cart.sum() // total
  return { price, total: price }
}
""",
    "price.ts": "export const price = 3\nexport const other = price * 2\n",
    "main.tsx": """import { Cart, total } from './cart'
const cart = new Cart()
cart.addItem(1)
console.log(total(cart), "total")
""",
    "unrelated.py": "total = 1\n",
}
GO = {
    "server.go": """package a

type Server struct{ n int }

func (s *Server) StartAll(port int) { s.n = port }

func limit() int { return 1 }
""",
    "main.go": """package a

func main() {
\tport := limit()
\tvar s Server
\ts.StartAll(port)
}
""",
}
C = {
    "add.h": "int add(int a, int b);\n",
    "add.c": '#include "add.h"\nint add(int a, int b) { return a + b; }\n',
    "main.cpp": '#include "add.h"\nint main() { int a = 1; return add(a, 2); }\n',
}
RUST = {
    "cart.rs": "pub struct Cart { rows: Vec<i32> }\n\nimpl Cart {\n"
    "    pub fn add_row(&mut self, row: i32) {\n        self.rows.push(row);\n    }\n}\n",
    "main.rs": "mod cart;\n\npub fn make_cart() -> cart::Cart {\n"
    "    let mut cart = cart::Cart::new();\n    cart.add_row(1);\n    cart\n}\n\n"
    "fn main() {\n    make_cart();\n}\n",
}
JAVA = {
    "Cart.java": "class Cart {\n    void addRow(int row) {\n        keep(row);\n    }\n}\n",
    "Main.java": "class Main {\n    static Cart makeCart() {\n        Cart cart = new Cart();\n"
    "        cart.addRow(1);\n        return cart;\n    }\n"
    "    public static void main(String[] args) {\n        makeCart();\n    }\n}\n",
}
RUBY = {
    "cart.rb": "class Cart\n  def add_row(row)\n    @rows << row\n  end\nend\n",
    "main.rb": 'require "cart"\n\ndef make_cart\n  cart = Cart.new\n  cart.add_row(1)\n'
    "  cart\nend\n\nmake_cart\n",
}
SHELL = {
    "rows.sh": 'add_row() {\n  local row=$1\n  echo "$row" >> rows\n}\n',
    "main.sh": ". ./rows.sh\n\nmain() {\n  add_row 1\n}\n\nmain\n",
}


def write(folder: Path, files: dict[str, str]) -> list[str]:
    for path, text in files.items():
        (folder / path).write_text(text)
    return sorted(files)


def places(found: Iterable[Use]) -> list[str]:
    """Uses as ``path:line``, 1-based; uncertain ones have a question mark."""
    return [f"{use.path}:{use.line + 1}{'' if use.certain else '?'}" for use in found]


def uses(files: dict[str, str], name: str, path: str) -> list[str]:
    """The answer of the searching process, worked out in this one."""
    lines = files[path].split("\n")
    spot = first_use(lines, name, range(len(lines)), path)
    assert spot is not None
    texts = {other: text for other, text in files.items() if same_language(path, other)}
    return places(Use(*use) for use in search_trees((path, *spot), name, texts))


@pytest.mark.parametrize(
    ("files", "name", "path", "said"),
    [
        (JS, "total", "cart.js", ["cart.js:6", "main.tsx:1", "main.tsx:4"]),
        (JS, "addItem", "cart.js", ["cart.js:3", "main.tsx:3"]),
        (JS, "log", "cart.js", ["cart.js:3", "cart.js:4", "main.tsx:4?"]),
        (JS, "item", "cart.js", ["cart.js:3", "cart.js:3", "cart.js:3"]),
        (JS, "price", "price.ts", ["cart.js:1", "price.ts:1", "price.ts:2"]),
        (GO, "StartAll", "server.go", ["main.go:6", "server.go:5"]),
        (GO, "limit", "main.go", ["main.go:4", "server.go:7"]),
        (GO, "port", "server.go", ["server.go:5", "server.go:5"]),
        (C, "add", "add.c", ["add.c:2", "add.h:1", "main.cpp:2"]),
        (C, "a", "main.cpp", ["main.cpp:2", "main.cpp:2"]),
        (RUST, "add_row", "cart.rs", ["cart.rs:4", "main.rs:5"]),
        (RUST, "make_cart", "main.rs", ["main.rs:3", "main.rs:10"]),
        (RUST, "row", "cart.rs", ["cart.rs:4", "cart.rs:5"]),
        (RUST, "Cart", "cart.rs", ["cart.rs:1", "cart.rs:3", "main.rs:3?", "main.rs:4?"]),
        (JAVA, "addRow", "Cart.java", ["Cart.java:2", "Main.java:4"]),
        (JAVA, "makeCart", "Main.java", ["Main.java:2", "Main.java:8"]),
        (JAVA, "row", "Cart.java", ["Cart.java:2", "Cart.java:3"]),
        (JAVA, "Cart", "Cart.java", ["Cart.java:1", "Main.java:2", "Main.java:3", "Main.java:3"]),
        (RUBY, "add_row", "cart.rb", ["cart.rb:2", "main.rb:5"]),
        (RUBY, "make_cart", "main.rb", ["main.rb:3", "main.rb:9"]),
        (RUBY, "row", "cart.rb", ["cart.rb:2", "cart.rb:3"]),
        (RUBY, "Cart", "cart.rb", ["cart.rb:1", "main.rb:4"]),
        (SHELL, "add_row", "rows.sh", ["main.sh:4", "rows.sh:1"]),
        (SHELL, "main", "main.sh", ["main.sh:3", "main.sh:7"]),
    ],
)
def test_uses_of_a_name(files: dict[str, str], name: str, path: str, said: list[str]) -> None:
    assert uses(files, name, path) == said


@pytest.mark.parametrize(
    ("files", "name", "start", "said"),
    [
        (JS, "total", Use("cart.js", 5, 16), ["cart.js:6", "main.tsx:1", "main.tsx:4"]),
        (C, "add", Use("add.c", 1, 4), ["add.c:2", "add.h:1", "main.cpp:2"]),
    ],
)
async def test_a_search_reads_the_files_whose_languages_go_together(
    files: dict[str, str], name: str, start: Use, said: list[str], tmp_path: Path
) -> None:
    assert places(await find_uses(tmp_path, write(tmp_path, files), name, start)) == said


async def test_a_shorthand_of_a_local_variable_is_uncertain(tmp_path: Path) -> None:
    """``{ price }`` is a key as well."""
    start = Use("cart.js", 6, 8)
    found = await find_uses(tmp_path, write(tmp_path, JS), "price", start)
    told = [(use.line + 1, use.certain, use.defines) for use in found]
    assert told == [(7, True, True), (8, False, False), (8, True, False)]


def test_two_definitions_of_one_name_are_not_mixed_up() -> None:
    files = {
        "a.rs": "fn load() {}\nfn main() { load() }\n",
        "b.rs": "fn load() {}\nfn other() { load() }\n",
        "c.rs": "fn third() { load() }\n",
    }
    assert uses(files, "load", "a.rs") == ["a.rs:1", "a.rs:2", "b.rs:1?", "b.rs:2?", "c.rs:1?"]


async def test_a_rename_that_leaves_a_use_behind_is_told(tmp_path: Path) -> None:
    write(tmp_path, JS)
    before = JS["cart.js"].split("\n")
    after = [line.replace("function total", "function sum_up") for line in before]
    (found,) = renames(before, after, "cart.js")
    assert (found.old, found.new) == ("total", "sum_up")
    told = await told_uses_left(tmp_path, sorted(JS), {"cart.js": before}, {"cart.js": after})
    assert told == "`total` is still used in main.tsx:1, main.tsx:4."


async def test_a_deleted_method_that_is_still_called_is_told(tmp_path: Path) -> None:
    write(tmp_path, GO)
    before = GO["server.go"].split("\n")
    after = [line for line in before if "StartAll" not in line]
    told = await told_uses_left(tmp_path, sorted(GO), {"server.go": before}, {"server.go": after})
    assert told == "`StartAll` is still used in main.go:6."


async def test_certain_uses_are_exchanged(tmp_path: Path) -> None:
    found = await find_uses(tmp_path, write(tmp_path, C), "add", Use("add.c", 1, 4))
    for path, text in C.items():
        mine = [use for use in found if use.path == path]
        after = with_name(text.split("\n"), mine, "add", "plus")
        assert "\n".join(after) == text.replace("add(", "plus(")
