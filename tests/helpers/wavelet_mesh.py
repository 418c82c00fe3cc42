"""L2: a wavelet-level mesh of PEs and routers, small enough for tests, that computes as well as
counts.

Every PE has a router with one queue per colour.  A router forwards the head of a queue to all
directions its route names (multicast) when every link is free and every next queue has room: one
wavelet per link and cycle, back-pressure included.  Between router and PE lies a ramp of ``T_R``
cycles each way.  A PE runs a list of blocking vector instructions that handle one wavelet per
cycle.  Payloads are NumPy rows (two values per wavelet), so a collective that loses or doubles a
wavelet gives a wrong sum, not just a wrong time.

It bounds the closed forms of ``wafer.collectives`` and of the GEMM shift.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from midstream.wafer.collectives import group_size
from midstream.wafer.errors import WaferUsageError

Direction = Literal["N", "S", "W", "E", "R"]
Place = tuple[int, int]
Array = npt.NDArray[np.float64]

_STEP: dict[Direction, Place] = {"N": (0, -1), "S": (0, 1), "W": (-1, 0), "E": (1, 0)}
_BACK: dict[Direction, Direction] = {"N": "S", "S": "N", "W": "E", "E": "W"}
LANES = 2
"""fp16 values per 32-bit wavelet."""


@dataclass(slots=True)
class Instruction:
    """A blocking vector instruction over ``len(data)`` wavelets.

    ``receive`` names the colour of the fabric operand and ``send`` that of the fabric destination;
    without ``receive`` the data itself is sent, without ``send`` the result stays in memory.
    ``add`` adds memory to what is received, otherwise it is copied.
    """

    data: Array
    receive: int | None = None
    send: int | None = None
    add: bool = False


@dataclass(slots=True)
class _Pe:
    program: list[Instruction] = field(default_factory=list[Instruction])
    current: int = 0
    position: int = 0
    inbox: dict[int, deque[tuple[int, Array]]] = field(
        default_factory=dict[int, "deque[tuple[int, Array]]"]
    )
    finished_at: int = 0


class Mesh:
    """A ``width x height`` mesh; configure routes and programs, then ``run``."""

    def __init__(
        self, width: int, height: int, *, ramp: int = 2, queue: int = 6, colours: int = 24
    ) -> None:
        self.width = width
        self.height = height
        self.ramp = ramp
        self.queue = queue
        self.colours = colours
        self.wavelet_hops = 0
        self._pes = {(x, y): _Pe() for x in range(width) for y in range(height)}
        self._routes: dict[tuple[Place, int], tuple[Direction, ...]] = {}
        self._queues: dict[tuple[Place, int], deque[tuple[int, Array]]] = {}
        self._busy: dict[Place, list[int]] = {}
        self._agenda: list[tuple[int, int, Place]] = []
        self._planned: set[tuple[int, int, Place]] = set()

    def route(self, place: Place, colour: int, *to: Direction) -> None:
        """Forward wavelets of a colour at a place to the given directions (``R``: up the ramp to
        the PE).

        Raises:
            WaferUsageError: The colour does not exist, or already has another route there.
        """
        if not 0 <= colour < self.colours:
            raise WaferUsageError(f"Colour {colour} does not exist; a PE has {self.colours}.")
        if self._routes.setdefault((place, colour), to) != to:
            raise WaferUsageError(f"Colour {colour} at PE {place} already has another route.")

    def program(self, place: Place, *instructions: Instruction) -> None:
        """Append instructions to a PE's program."""
        self._pes[place].program.extend(instructions)

    def used_colours(self, place: Place) -> int:
        """Colours with a route at a place."""
        return sum(1 for at, _ in self._routes if at == place)

    def run(self, limit: int = 1_000_000) -> int:
        """Run until every program has ended.

        Returns:
            The cycle at which the last instruction of the last PE finished.

        Raises:
            WaferUsageError: The mesh dead-locked, or ``limit`` cycles were not enough.
        """
        for place in self._pes:
            self._plan(0, 1, place)
        while self._agenda:
            now, kind, place = heapq.heappop(self._agenda)
            self._planned.discard((now, kind, place))
            if now > limit:
                raise WaferUsageError(
                    f"The mesh program needs more than {limit} cycles; raise the limit."
                )
            if kind == 0:
                self._route_step(now, place)
            else:
                self._pe_step(now, place)
        stuck = [place for place, pe in self._pes.items() if pe.current < len(pe.program)]
        if stuck:
            raise WaferUsageError(
                f"The mesh program dead-locks at PE {stuck[0]}; check its routes."
            )
        return max(pe.finished_at for pe in self._pes.values())

    def _plan(self, cycle: int, kind: int, place: Place) -> None:
        entry = (cycle, kind, place)
        if entry not in self._planned:
            self._planned.add(entry)
            heapq.heappush(self._agenda, entry)

    def _put(self, place: Place, colour: int, ready: int, payload: Array) -> None:
        if (place, colour) not in self._queues:
            self._queues[place, colour] = deque()
            self._busy.setdefault(place, []).append(colour)
        self._queues[place, colour].append((ready, payload))
        self._plan(ready, 0, place)

    def _route_step(self, now: int, place: Place) -> None:
        """Move what can be moved at one router in one cycle."""
        taken: set[Direction] = set()
        for colour in self._busy.get(place, ()):
            waiting = self._queues[place, colour]
            if not waiting or waiting[0][0] > now:
                continue
            to = self._routes.get((place, colour))
            if to is None:
                raise WaferUsageError(f"A wavelet of colour {colour} has no route at PE {place}.")
            if taken.intersection(to) or not all(self._room(place, d, colour) for d in to):
                self._plan(now + 1, 0, place)
                continue
            _, payload = waiting.popleft()
            taken.update(to)
            for direction in to:
                if direction == "R":
                    inbox = self._pes[place].inbox.setdefault(colour, deque())
                    inbox.append((now + self.ramp, payload))
                    self._plan(now + self.ramp, 1, place)
                else:
                    self.wavelet_hops += 1
                    self._put(self._neighbour(place, direction), colour, now + 1, payload)
            if waiting:
                self._plan(max(now + 1, waiting[0][0]), 0, place)

    def _room(self, place: Place, direction: Direction, colour: int) -> bool:
        if direction == "R":
            return len(self._pes[place].inbox.get(colour, ())) < self.queue + self.ramp
        return len(self._queues.get((self._neighbour(place, direction), colour), ())) < self.queue

    def _neighbour(self, place: Place, direction: Direction) -> Place:
        dx, dy = _STEP[direction]
        return place[0] + dx, place[1] + dy

    def _pe_step(self, now: int, place: Place) -> None:
        """One cycle of one PE: at most one wavelet of its current instruction."""
        pe = self._pes[place]
        if pe.current >= len(pe.program):
            return
        instruction = pe.program[pe.current]
        row = pe.position
        value = instruction.data[row]
        if instruction.send is not None:
            pending = len(self._queues.get((place, instruction.send), ()))
            if pending >= self.queue + self.ramp:
                self._plan(now + 1, 1, place)
                return
        if instruction.receive is not None:
            inbox = pe.inbox.get(instruction.receive)
            if not inbox:
                return  # woken by the next arrival
            ready, payload = inbox[0]
            if ready > now:
                self._plan(ready, 1, place)
                return
            inbox.popleft()
            self._plan(now, 0, place)  # room on the ramp again
            value = payload + value if instruction.add else payload
        if instruction.send is not None:
            self._put(place, instruction.send, now + 1 + self.ramp, np.array(value))
        else:
            instruction.data[row] = value
        pe.position += 1
        if pe.position == len(instruction.data):
            pe.current, pe.position, pe.finished_at = pe.current + 1, 0, now + 1
        self._plan(now + 1, 1, place)


@dataclass(frozen=True, slots=True)
class Line:
    """A row or a column of the mesh with its two directions."""

    places: tuple[Place, ...]
    ahead: Direction
    colour_base: int

    @property
    def behind(self) -> Direction:
        """The direction of falling index."""
        return _BACK[self.ahead]


def column(mesh: Mesh, x: int) -> Line:
    """Column ``x``, colours 0-9."""
    return Line(tuple((x, y) for y in range(mesh.height)), "S", 0)


def row(mesh: Mesh, y: int) -> Line:
    """Row ``y``, colours 10-19."""
    return Line(tuple((x, y) for x in range(mesh.width)), "E", 10)


def chain_reduce(mesh: Mesh, line: Line, vectors: dict[Place, Array]) -> None:
    """Program a chain reduction to the last PE of a line; its vector ends as the sum."""
    last = len(line.places) - 1
    for index, place in enumerate(line.places):
        send, receive = line.colour_base + index % 2, line.colour_base + (index + 1) % 2
        if index < last:
            mesh.route(place, send, line.ahead)
            mesh.route(line.places[index + 1], send, "R")
        mesh.program(
            place,
            Instruction(
                vectors[place],
                receive=receive if index else None,
                send=send if index < last else None,
                add=True,
            ),
        )


def two_level_allreduce(mesh: Mesh, line: Line, vectors: dict[Place, Array]) -> None:
    """Program WaferLLM's two-level tree all-reduce on a line; every vector ends as the sum.

    Vectors are ``[wavelets, 2]`` arrays, changed in place.
    """
    size = group_size(len(line.places))
    roots = [
        start + min(size, len(line.places) - start) // 2
        for start in range(0, len(line.places), size)
    ]
    for number, root in enumerate(roots):
        start = number * size
        stop = min(start + size, len(line.places))
        _arms(mesh, line, vectors, list(range(start, stop)), root - start, line.colour_base)
    final = len(roots) // 2
    _arms(mesh, line, vectors, roots, final, line.colour_base + 4)
    _multicast(mesh, line, vectors, roots[final])


def _arms(
    mesh: Mesh, line: Line, vectors: dict[Place, Array], members: list[int], centre: int, base: int
) -> None:
    """Reduce members towards ``members[centre]`` over two arms; the shorter arm (behind) is added
    first.
    """
    for number, index in enumerate(members):
        place = line.places[index]
        if number == centre:
            continue
        ahead = number < centre
        send = base + (0 if ahead else 2) + number % 2
        receive = base + (0 if ahead else 2) + (number + 1) % 2
        outermost = number == 0 if ahead else number == len(members) - 1
        target = members[number + 1 if ahead else number - 1]
        _connect(mesh, line, index, target, send)
        mesh.program(
            place,
            Instruction(
                vectors[place], receive=None if outermost else receive, send=send, add=True
            ),
        )
    root = line.places[members[centre]]
    if centre + 1 < len(members):
        mesh.program(
            root, Instruction(vectors[root], receive=base + 2 + (centre + 1) % 2, add=True)
        )
    if centre > 0:
        mesh.program(root, Instruction(vectors[root], receive=base + (centre - 1) % 2, add=True))


def _connect(mesh: Mesh, line: Line, start: int, stop: int, colour: int) -> None:
    """Route a colour from one PE of a line to another, straight through the routers between."""
    step = 1 if stop > start else -1
    direction = line.ahead if step == 1 else line.behind
    for index in range(start, stop, step):
        mesh.route(line.places[index], colour, direction)
    mesh.route(line.places[stop], colour, "R")


def _multicast(mesh: Mesh, line: Line, vectors: dict[Place, Array], root: int) -> None:
    """Send the root's vector to both ends, first behind, then ahead."""
    source = line.places[root]
    ends: tuple[tuple[int, Direction, int], ...] = (
        (8, line.behind, -1),
        (9, line.ahead, 1),
    )
    for offset, direction, step in ends:
        colour = line.colour_base + offset
        end = 0 if step < 0 else len(line.places) - 1
        if root == end:
            continue
        mesh.route(source, colour, direction)
        mesh.program(source, Instruction(vectors[source], send=colour))
        for index in range(root + step, end + step, step):
            onward: tuple[Direction, ...] = ("R",) if index == end else ("R", direction)
            mesh.route(line.places[index], colour, *onward)
            mesh.program(
                line.places[index], Instruction(vectors[line.places[index]], receive=colour)
            )


def gemv(matrix: Array, vector: Array, mesh: Mesh) -> tuple[Array, int]:
    """``vector @ matrix`` on the mesh: local tiles, then an all-reduce down every column.

    Returns:
        The product, gathered from row 0, and the cycles of the collective.
    """
    rows, columns = matrix.shape
    tall, wide = rows // mesh.height, columns // mesh.width
    vectors: dict[Place, Array] = {}
    for x in range(mesh.width):
        for y in range(mesh.height):
            tile = matrix[y * tall : (y + 1) * tall, x * wide : (x + 1) * wide]
            vectors[x, y] = _wavelets(vector[y * tall : (y + 1) * tall] @ tile)
        two_level_allreduce(mesh, column(mesh, x), vectors)
    cycles = mesh.run()
    return np.concatenate([vectors[x, 0].reshape(-1)[:wide] for x in range(mesh.width)]), cycles


def _wavelets(values: Array) -> Array:
    padded = np.zeros(-(-values.size // LANES) * LANES)
    padded[: values.size] = values
    return padded.reshape(-1, LANES)


def ring_positions(length: int) -> list[int]:
    """MeshGEMM's logical ring over a physical line: evens outwards, odds back, at most two hops
    per step.
    """
    return [*range(0, length, 2), *reversed(range(1, length, 2))]


def gemm(left: Array, right: Array, make_mesh: Callable[[], Mesh]) -> tuple[Array, list[int]]:
    """``left @ right`` by MeshGEMM: Cannon's algorithm on the two-hop ring of rows and columns.

    Returns:
        The product and the cycles of every shift step (both matrices move at once).
    """
    probe = make_mesh()
    side = probe.width
    rows, inner, columns = left.shape[0] // side, left.shape[1] // side, right.shape[1] // side
    ring = ring_positions(side)
    rank = {position: order for order, position in enumerate(ring)}
    a: dict[Place, Array] = {}
    b: dict[Place, Array] = {}
    for x in range(side):
        for y in range(side):
            shared = ring[(rank[x] + rank[y]) % side]
            a[x, y] = left[y * rows : (y + 1) * rows, shared * inner : (shared + 1) * inner]
            b[x, y] = right[shared * inner : (shared + 1) * inner, x * columns : (x + 1) * columns]
    out = {place: np.zeros((rows, columns)) for place in a}
    steps: list[int] = []
    for step in range(side):
        for place, total in out.items():
            total += a[place] @ b[place]
        if step + 1 < side:
            a, b, cycles = _shift(make_mesh(), a, b, ring)
            steps.append(cycles)
    product = np.block([[out[x, y] for x in range(side)] for y in range(side)])
    return product, steps


def _shift(
    mesh: Mesh, a: dict[Place, Array], b: dict[Place, Array], ring: list[int]
) -> tuple[dict[Place, Array], dict[Place, Array], int]:
    """Move every tile one place back along the logical ring: ``a`` in rows, ``b`` in columns.

    The two matrices use different links, so they overlap; each is a send and a receive per PE.
    """
    results: list[dict[Place, Array]] = []
    cycles = 0
    for lines, tiles in (
        ([row(mesh, y) for y in range(mesh.height)], a),
        ([column(mesh, x) for x in range(mesh.width)], b),
    ):
        single = Mesh(mesh.width, mesh.height, ramp=mesh.ramp, queue=mesh.queue)
        landed = {place: _wavelets(np.zeros(tile.size)) for place, tile in tiles.items()}
        for line in lines:
            _program_shift(single, line, tiles, landed, ring)
        cycles = max(cycles, single.run())
        results.append(
            {p: landed[p].reshape(-1)[: t.size].reshape(t.shape) for p, t in tiles.items()}
        )
    return results[0], results[1], cycles


def _program_shift(
    mesh: Mesh, line: Line, tiles: dict[Place, Array], landed: dict[Place, Array], ring: list[int]
) -> None:
    base = line.colour_base
    for order, position in enumerate(ring):
        target = ring[order - 1]
        _connect(mesh, line, position, target, base + _shift_colour(position, target))
        mesh.program(
            line.places[position],
            Instruction(
                _wavelets(tiles[line.places[position]].reshape(-1)),
                send=base + _shift_colour(position, target),
            ),
        )
    for order, position in enumerate(ring):
        origin = ring[(order + 1) % len(ring)]
        mesh.program(
            line.places[position],
            Instruction(
                landed[line.places[position]], receive=base + _shift_colour(origin, position)
            ),
        )


def _shift_colour(position: int, target: int) -> int:
    """A colour that no overlapping path of the ring shares: direction and place modulo four."""
    return (0 if target > position else 5) + (4 if abs(target - position) == 1 else position % 4)
