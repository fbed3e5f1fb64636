"""Places of blocks: nextpnr has them all, what pulls stands together, and what does not need it is left alone."""

from __future__ import annotations

import json
from itertools import pairwise, permutations

import numpy as np
import pytest

from hwflow.toolchain import nextpnr
from hwflow.toolchain.packing import block_places
from hwflow.toolchain.packing.block_places import SITES, Site, arrange, place_blocks, pulls
from hwflow.toolchain.packing.files import place_file
from hwflow.toolchain.packing.netlist import Netlist
from hwflow.toolchain.tool import run

OUTPUTS = {"MULT18X18D": [f"P{k}" for k in range(36)], "LUT4": ["Z"]}
INPUTS = {"MULT18X18D": [f"A{k}" for k in range(18)], "LUT4": [*"ABCD"]}


def design(cells, wires):
    """``cells``: types by name; ``wires``: names of cells, the first of which drives the others."""
    outputs = {name: iter(OUTPUTS[kind]) for name, kind in cells.items()}
    inputs = {name: iter(INPUTS[kind]) for name, kind in cells.items()}
    pins = {name: {} for name in cells}
    for bit, (driver, *readers) in enumerate(wires, 2):
        pins[driver][next(outputs[driver])] = [bit]
        for reader in readers:
            pins[reader][next(inputs[reader])] = [bit]
    table = {
        name: {
            "type": kind, "parameters": {}, "connections": pins[name],
            "port_directions": {pin: "output" if pin in OUTPUTS[kind] else "input" for pin in pins[name]},
        }
        for name, kind in cells.items()
    }
    return {"modules": {"top": {"attributes": {"top": "1"}, "ports": {}, "cells": table, "netnames": {}}}}


def chain(blocks):
    """Multiplier blocks one behind the other."""
    names = [f"m{k}" for k in range(blocks)]
    return design(dict.fromkeys(names, "MULT18X18D"), list(pairwise(names)))


def bels(table):
    attributes = [cell.get("attributes", {}) for cell in table["modules"]["top"]["cells"].values()]
    return [of["BEL"] for of in attributes if "BEL" in of]


def test_pulls_are_those_of_resistors(monkeypatch):
    """Two nets in parallel, each a star of two resistors: 2 x 1/2. Through a cell in between: four in a row, 1/4."""
    table = design(
        {"a": "MULT18X18D", "b": "MULT18X18D", "c": "MULT18X18D", "between": "LUT4"},
        [("a", "b"), ("a", "b"), ("b", "between"), ("between", "c")],
    )
    monkeypatch.setattr(block_places, "STEPS", 60)
    found = pulls(Netlist(table), ["a", "b", "c"])
    assert found == pytest.approx(np.array([[0, 1, 0], [1, 0, 0.25], [0, 0.25, 0]]))


def test_a_net_of_three_pulls_by_thirds():
    table = design({name: "MULT18X18D" for name in "abc"}, [("a", "b", "c")])
    found = pulls(Netlist(table), ["a", "b", "c"])  # each resistor in a row with two others side by side
    assert found == pytest.approx((np.ones((3, 3)) - np.eye(3)) / 3)


def test_the_best_of_all_orders_is_nearly_found(monkeypatch):
    monkeypatch.setattr(block_places, "MOVES", 20_000)
    sites = [Site(f"s{k}", 9 * k % 27, 24 * (k // 3)) for k in range(6)]

    def cost(order):
        return sum(
            pull[i, j] * (abs(a.column - b.column) + abs(a.row - b.row))
            for i, a in enumerate(order) for j, b in enumerate(order)
        )

    for seed in range(3):
        pull = np.triu(np.random.default_rng(seed).integers(0, 9, (6, 6)), 1).astype(float)
        pull += pull.T
        costs = sorted(map(cost, permutations(sites)))
        assert cost(arrange(pull, sites)) <= costs[len(costs) // 50]


def test_what_belongs_together_stands_together(monkeypatch):
    """Six chains of thirteen, with nothing between them: a part's row is long, and none is torn."""
    monkeypatch.setattr(block_places, "MOVES", 100_000)
    names = {f"c{c}_{k}": "MULT18X18D" for c in range(6) for k in range(13)}
    wires = [(a, b) for a, b in pairwise(names) if a[:2] == b[:2] for _ in range(8)]
    table = design(names, wires)
    assert place_blocks(Netlist(table), "LFE5U-85F") == 0  # half of the blocks
    names["more"] = "MULT18X18D"
    table = design(names, wires)
    assert place_blocks(Netlist(table), "LFE5U-85F") == 79
    where = dict(zip(names, bels(table), strict=True))
    spot = {site.name: site for site in SITES["85F"]}
    steps = [abs(spot[where[a]].column - spot[where[b]].column) + abs(spot[where[a]].row - spot[where[b]].row)
             for a, b in set(wires)]
    assert sum(steps) / len(steps) < 9  # in one group of four, or the next; two at random are 60 apart


def test_every_block_has_a_place_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(block_places, "MOVES", 1000)
    (tmp_path / "in.json").write_text(json.dumps(chain(156)))
    assert place_file("LFE5UM5G-85F", tmp_path / "in.json", tmp_path / "out.json") == 156
    found = bels(json.loads((tmp_path / "out.json").read_text()))
    assert sorted(found) == sorted(site.name for site in SITES["85F"])


@pytest.mark.parametrize(
    ("blocks", "device"), [(78, "LFE5U-85F"), (157, "LFE5U-85F"), (100, "other"), (0, "LFE5U-85F")]
)
def test_what_is_left_to_nextpnr(blocks, device):
    table = chain(blocks)
    assert place_blocks(Netlist(table), device) == 0 and not bels(table)


@pytest.mark.parametrize(("device", "blocks"), [("25F", 28), ("45F", 72), ("85F", 156)])
def test_nextpnr_has_these_places(tmp_path, monkeypatch, device, blocks):
    """All blocks of a part, placed by nextpnr itself: the same places."""
    monkeypatch.setattr(block_places, "MOVES", 1000)
    table = chain(blocks)
    (tmp_path / "in.json").write_text(json.dumps(table))
    run(
        nextpnr.NEXTPNR_ECP5.find(),
        [nextpnr.DEVICE_OPTIONS[f"LFE5U-{device}"], "--json", "in.json", "--no-route", "--write", "out.json"],
        tmp_path, tmp_path / "log", step="place", remedy="r", outputs=("out.json",),
    )
    placed = json.loads((tmp_path / "out.json").read_text())["modules"]["top"]["cells"].values()
    theirs = {cell["attributes"]["NEXTPNR_BEL"] for cell in placed if cell["type"] == block_places.BLOCK}
    assert place_blocks(Netlist(table), f"LFE5U-{device}") == blocks
    assert theirs == set(bels(table))
