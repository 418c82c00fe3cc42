"""The same small programs in every language that a grammar reads, for tests of names and syntax."""

from __future__ import annotations

from typing import Final

SAMPLES: Final[dict[str, str]] = {
    "cart.js": r"""// Loads.
export function load(path) { return path }
const save = async (x, {y}) => {
  const total = x + y
  return total
}
export const LIMIT = 3, MORE = 4
class Cart extends Base {
  /** Adds. */
  add(item) { this.items.push(item) }
  static of = (x) => x
  #hidden = 1
}
module.exports.run = function () { }
export default { name: "x", fetch: () => 1, go() { } }
""",
    "store.ts": r"""@Injectable()
export class Store<T> {
  private items: T[] = [];
  @Log() get(id: number): T { return this.items[id] }
  handler = (e: Event) => { };
}
export interface Item { id: number; load(): void }
type Alias = string | number
enum Color { Red }
namespace NS { export function inner(a: string, b?: number) { } }
abstract class A { abstract f(): void; g() {} }
export const f = <T,>(x: T) => x
""",
    "server.go": r"""package main

// Server serves.
type Server struct { n int }

type (
	A int
	B = string
)

const Limit = 3

// Start starts.
func (s *Server) Start(port int) error {
	for i, x := range xs { total := i; _ = total }
	return nil
}

func Map[T any](xs []T) []T { return xs }
""",
    "point.rs": r"""/// A point.
#[derive(Debug)]
pub struct Point<T> { x: T }

impl<T> Point<T> {
    /// New.
    pub fn new(x: T) -> Self { let y = x; Point { x: y } }
}
impl fmt::Display for Point<f64> { fn fmt(&self, f: &mut F) -> R { } }
mod tests { #[test] fn works() { } }
const N: usize = 3;
macro_rules! m { () => {} }
trait T { fn a(&self); fn b(&self) {} }
""",
    "Cart.java": r"""package x;
/** Doc. */
@Entity
public class Cart {
    private int total = 0;
    public Cart(int a) { }
    @Override
    public void add(Item item) throws E { for (Item i : items) { int n = 0; } }
    enum K { A; void f() {} }
}
record P(int x) { }
""",
    "add.c": r"""#include <stdio.h>
#define MAX(a,b) ((a)>(b)?(a):(b))
#define N 3
typedef struct point { int x; } point;
struct node { int v; };
static int counter = 0;
int add(int a, int *b);
/* Adds. */
static int add(int a, int *b) {
    int total = a + *b;
    return total;
}
char *name(void) { return 0; }
""",
    "cart.cpp": r"""#pragma once
namespace shop { namespace deep {
template <typename T>
class Cart : public Base {
public:
  Cart() {}
  ~Cart() {}
  void add(const T& item) { items.push_back(item); }
  int size() const;
  bool operator==(const Cart& o) const { return true; }
};
int Cart<T>::size() const { return 0; }
std::string& Cart<T>::name() { return n; }
}}
int main(int argc, char** argv) { auto x = 1; for (auto& y : z) {} }
""",
    "shop.rb": r"""# Shop.
module Shop
  LIMIT = 3
  class Cart < Base
    attr_reader :items
    # Adds.
    def add(item, qty = 1, *rest, key: 2)
      total = item
      @items << total
    end
    def self.build = new
    def empty? = true
    def total=(v); end
  end
end
class A::B; end
""",
    "load.sh": r"""#!/bin/bash
LIMIT=3
export X=1
# Loads.
load() {
  local name=$1 other
  echo "$name"
}
function save { echo; }
for f in *; do :; done
""",
}
"""By a file name that tells the language."""
