"""L2 against L0: the wavelet-level mesh computes right sums and bounds the closed forms to 5 %."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.wafer import collectives
from midstream.wafer.errors import WaferUsageError
from tests.helpers import wavelet_mesh as mesh

LENGTHS = (2, 3, 5, 7, 8, 13, 16, 24, 30, 31, 48, 60, 64)
RAMP = 2


def line_of(length: int) -> mesh.Mesh:
    return mesh.Mesh(1, length, ramp=RAMP)


def vectors(length: int, wavelets: int) -> dict[tuple[int, int], np.ndarray]:
    rng = np.random.default_rng(length)
    return {(0, y): rng.integers(0, 9, (wavelets, 2)).astype(float) for y in range(length)}


@pytest.mark.parametrize("wavelets", [1, 2, 6, 17, 64])
def test_two_level_allreduce(wavelets: int) -> None:
    for length in LENGTHS:
        grid, values = line_of(length), vectors(length, wavelets)
        total = sum(values.values())
        mesh.two_level_allreduce(grid, mesh.column(grid, 0), values)
        cycles = grid.run()
        assert all(np.array_equal(value, total) for value in values.values())
        form = collectives.two_level_allreduce(length, wavelets, RAMP).cycles
        assert form == pytest.approx(cycles, rel=0.05), (length, wavelets)


def test_chain_reduce_is_the_hpdc_form() -> None:
    for length, wavelets in ((2, 3), (16, 1), (64, 40)):
        grid, values = line_of(length), vectors(length, wavelets)
        total = sum(values.values())
        mesh.chain_reduce(grid, mesh.column(grid, 0), values)
        cycles = grid.run()
        assert np.array_equal(values[0, length - 1], total)
        # ``B + L + (2 T_R + 1) D`` of arXiv 2404.15888: distance and depth are the other PEs.
        form = wavelets + (length - 1) + (2 * RAMP + 1) * (length - 1)
        assert form == pytest.approx(cycles, rel=0.05)


def test_gemv_on_64_by_64() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(-4, 5, (128, 256)).astype(float)
    vector = rng.integers(-4, 5, 128).astype(float)
    grid = mesh.Mesh(64, 64, ramp=RAMP)
    product, cycles = mesh.gemv(matrix, vector, grid)
    assert np.array_equal(product, vector @ matrix)
    form = collectives.two_level_allreduce(64, 2, RAMP).cycles
    assert form == pytest.approx(cycles, rel=0.05)


@pytest.mark.parametrize("side", [4, 7])
def test_mesh_gemm_moves_two_hops_a_step(side: int) -> None:
    rng = np.random.default_rng(1)
    left = rng.integers(-3, 4, (2 * side, 3 * side)).astype(float)
    right = rng.integers(-3, 4, (3 * side, 4 * side)).astype(float)
    product, steps = mesh.gemm(left, right, lambda: mesh.Mesh(side, side, ramp=RAMP))
    assert np.array_equal(product, left @ right)
    wavelets = 3 * 4 / 2
    assert len(steps) == side - 1
    assert max(steps) <= 2 * wavelets + 2 + 2 * (RAMP + 1), "a send, a receive, two hops, the ramps"


def test_ring_never_needs_more_than_two_hops() -> None:
    for length in range(2, 40):
        ring = mesh.ring_positions(length)
        assert sorted(ring) == list(range(length))
        hops = [abs(a - b) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
        assert max(hops) <= 2


def test_one_wavelet_per_link_and_cycle() -> None:
    grid = mesh.Mesh(2, 1)
    payload = np.ones((50, 2))
    grid.route((0, 0), 0, "E")
    grid.route((1, 0), 0, "R")
    grid.program((0, 0), mesh.Instruction(payload, send=0))
    grid.program((1, 0), mesh.Instruction(np.zeros((50, 2)), receive=0))
    assert grid.run() == 50 + 2 * RAMP + 2
    assert grid.wavelet_hops == 50


def test_two_axes_fit_in_the_colours_of_a_pe() -> None:
    grid = mesh.Mesh(9, 9)
    for x in range(9):
        columns = {(x, y): np.ones((1, 2)) for y in range(9)}
        mesh.two_level_allreduce(grid, mesh.column(grid, x), columns)
    for y in range(9):
        rows = {(x, y): np.ones((1, 2)) for x in range(9)}
        mesh.two_level_allreduce(grid, mesh.row(grid, y), rows)
    busiest = max(grid.used_colours((x, y)) for x in range(9) for y in range(9))
    per_axis = collectives.two_level_allreduce(9, 1, RAMP).colours
    assert busiest <= 2 * per_axis == 20


def test_wrong_programs_are_named() -> None:
    grid = mesh.Mesh(2, 1)
    grid.program((0, 0), mesh.Instruction(np.zeros((1, 2)), receive=3))
    with pytest.raises(WaferUsageError, match="dead-locks"):
        grid.run()
    with pytest.raises(WaferUsageError, match="Colour 24"):
        grid.route((0, 0), 24, "E")
    grid.route((0, 0), 1, "E")
    with pytest.raises(WaferUsageError, match="another route"):
        grid.route((0, 0), 1, "R")


def test_published_group_sizes() -> None:
    published = {240: 16, 300: 20, 360: 20, 420: 21, 480: 24, 540: 27, 600: 25, 660: 30, 720: 30}
    assert {p: collectives.group_size(p) for p in published} == published
