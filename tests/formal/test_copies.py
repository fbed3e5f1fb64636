"""Copies of what very many pins read (hwflow.toolchain.packing.copies): proved equal, and where they are made.

The proof runs a netlist and its packed twin side by side, as tests/formal/test_packing.py does for registers in blocks.
"""

from __future__ import annotations

import pytest

from hwflow.toolchain.packing import netlist as netlists
from hwflow.toolchain.packing import pack
from hwflow.toolchain.packing.copies import BLOCKS, COPIES, READERS
from tests.formal.prover import check
from tests.formal.test_packing import Netlist, side_by_side

AND_WITH_BOTH = "1000100010001000"  # A and B, whatever C and D are


def broadcast(readers, *, start="RESET", cores=1):
    """A register with an enable, a table that reads it and an input, and as many registers of each of the two."""
    n = Netlist()
    held = n.register("held", n.input("x", 1), n.enable, start=start)
    z = n.nets(1)
    n.cell("table", "LUT4", {"INIT": AND_WITH_BOTH}, A=held[0], B=n.other[0], C="0", D="0", Z=z[0])
    for name, bit in (("plain", held), ("masked", z)):
        bits = [n.register(f"top.core{k % cores}.{name}{k}", bit)[0] for k in range(readers)]
        n.output(f"{name}_o", bits)
    return n


def made(netlist):
    """What packing copied: how many copies, and the most readers that a cell has."""
    design = netlist.module("top")
    packing = pack(design, "ecp5")
    top = netlists.Netlist(design)
    driven = [bit for name in top.cells("TRELLIS_FF", "LUT4") for bit in (*top.bits(name, "Q"), *top.bits(name, "Z"))]
    return packing.copies, max(len(top.readers(bit)) for bit in driven)


@pytest.mark.parametrize("start", ["RESET", "SET"])
def test_copies_are_the_same(tmp_path, start):
    netlist = broadcast(READERS + 2, start=start, cores=3)
    assert made(netlist)[0] > 0
    side_by_side(tmp_path, netlist, [], 0)
    passed, log = check(tmp_path, 5)
    assert passed, f"a counterexample from the start:\n{log}"
    passed, log = check(tmp_path, 5, "-i")
    assert passed, f"not inductive:\n{log}"


@pytest.mark.parametrize("lost", [{"CEMUX": "1 "}, {"REGSET": "RESET"}])
def test_a_copy_that_differs_is_refuted(tmp_path, monkeypatch, lost):
    copy = netlists.Netlist.copy

    def careless(self, name, output, scope):
        bit = copy(self, name, output, scope)
        if self.kind(name) == "TRELLIS_FF":
            self.parameters(self.driver(bit)[0]).update(lost)
        return bit

    with monkeypatch.context() as patch:
        patch.setattr(netlists.Netlist, "copy", careless)
        side_by_side(tmp_path, broadcast(READERS + 2, start="SET"), [], None)
    passed, log = check(tmp_path, 6)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


@pytest.mark.parametrize(
    ("readers", "copies"),
    [
        (READERS - 1, 0),  # and the table is one more reader of the register
        (READERS, 1),  # the register alone
        (READERS + 1, 2),
        (2 * READERS, 3),  # the register's readers are 2 READERS and two tables
        (2 * READERS + 1, 4),
    ],
)
def test_the_copies_of_one_core(readers, copies):
    found, most = made(broadcast(readers))
    assert found == copies and most <= READERS


def test_readers_of_a_core_stay_together():
    """Three cores of 20 readers each: two fit one copy, so that no core's readers are divided."""
    netlist = broadcast(60, cores=3)
    design = netlist.module("top")
    assert pack(design, "ecp5").copies == 2
    drivers = {}
    for name, cell in design["modules"]["top"]["cells"].items():
        if ".masked" in name:
            drivers.setdefault(name.split(".")[1], set()).add(cell["connections"]["DI"][0])
    assert {len(bits) for bits in drivers.values()} == {1}
    assert "top.core0.table_copy1" in design["modules"]["top"]["cells"]  # the smaller half stays with the original


def test_copies_need_copies():
    """Where a register that moves on to another one has so many copies that the first one needs some as well: they are
    far apart, and none is read by more than so many of them."""
    n = Netlist()
    first = n.register("first", n.input("x", 1))
    second = n.register("second", first)
    n.output("o", [n.register(f"top.core{k}.sub.last{k}", second)[0] for k in range(READERS * COPIES * 3 + 1)])
    design = n.module("top")
    assert pack(design, "ecp5").copies == 3 * COPIES + 3  # of the second, whose 25 the first one and three copies drive
    top = netlists.Netlist(design)
    seconds = {top.driver(top.bit(name, "DI"))[0] for name in top.cells("TRELLIS_FF") if ".sub.last" in name}
    firsts = [top.driver(top.bit(name, "DI"))[0] for name in seconds]
    assert len(seconds) == 3 * COPIES + 1
    assert sorted(firsts.count(name) for name in set(firsts)) == [1, COPIES, COPIES, COPIES]


def test_registers_that_enable_each_other(monkeypatch):
    """A counter that stops itself: each of its registers is read by the table that enables them all. In one core either
    has nearly as many readers as it may, in another one some more: the first ones must not stay with the original, or
    each copy of the table makes one of the registers necessary, and the other way round."""
    n = Netlist()
    z = n.nets(1)
    held = [n.register(f"held{k}", n.input(f"x{k}", 1), z) for k in range(3)]
    n.cell("table", "LUT4", {"INIT": AND_WITH_BOTH}, A=held[0], B=held[1], C=held[2], D=n.other[0], Z=z[0])
    for core, enabled, read in ((0, READERS - 3, READERS - 1), (1, 4, 4)):
        n.output(f"e{core}", [n.register(f"top.core{core}.enabled{k}", n.other, z)[0] for k in range(enabled)])
        for k, bit in enumerate(held):
            n.output(f"r{core}_{k}", [n.register(f"top.core{core}.reads{k}_{i}", bit)[0] for i in range(read)])
    made_copies = netlists.Netlist.copy
    count = iter(range(100))

    def counted(self, name, output, scope):
        assert next(count, None) is not None, "there must be an end"
        return made_copies(self, name, output, scope)

    monkeypatch.setattr(netlists.Netlist, "copy", counted)
    assert 0 < made(n)[0] < 40


@pytest.mark.parametrize(("count", "copies"), [(BLOCKS, 0), (BLOCKS + 1, 1), (2 * BLOCKS + 1, 2)])
def test_a_block_counts_as_many_readers(count, copies):
    """Operands of 3 bits, each on one pin of each block; the blocks take the second register in."""
    n = Netlist()
    first = n.register("first", n.input("x", 3))
    operand = n.register("second", first)
    for k in range(count):
        n.output(f"o{k}", n.product(operand, ["1", "0", "1"], 6, f"top.core.block{k}"))
    design = n.module("top")
    assert pack(design, "ecp5").copies == 3 * copies
    top = netlists.Netlist(design)
    for name in top.cells("TRELLIS_FF"):
        assert 0 < len({cell for cell, _ in top.readers(top.bit(name, "Q"))}) <= BLOCKS
    for name in top.cells("MULT18X18D"):
        assert len([bit for i in range(18) for bit in top.bits(name, f"A{i}") if isinstance(bit, int)]) == 3


def test_clocks_and_other_families_are_left_alone():
    netlist = broadcast(READERS + 2)
    for name in ("plain0_0", "plain1_0"):
        netlist.cells[f"top.core0.{name}"]["connections"]["CLK"] = [netlist.cells["table"]["connections"]["Z"][0]]
    design = netlist.module("top")
    assert pack(design, "ecp5").copies == 1  # the register's; the table drives clocks
    assert pack(broadcast(READERS + 2).module("top"), "gowin").copies == 0
