"""Carry chains that make their first carry themselves (hwflow.toolchain.packing.carries): proved equal, whatever the
carry in of the chain's first cell is, and how many look-up tables that frees."""

from __future__ import annotations

import pytest

from hwflow.toolchain.packing import carries, pack
from hwflow.toolchain.packing import netlist as netlists
from tests.formal.prover import check
from tests.formal.test_packing import Netlist, side_by_side

ADD = f"{0x96AA:016b}"  # A ^ B ^ C if D, whose carry is A where that is 0: yosys' adders


def adder(width, *, subtract="0", carry=None, read=(), inject="NO", name="sum"):
    """A chain of ``width`` bits: a + (b ^ subtract) + carry. ``read``: the cells whose carry out is an output, too."""
    n = Netlist()
    a, b, s = n.input("a", width), n.input("b", width), n.nets(width)
    if not isinstance(subtract, str):
        subtract = n.input("subtract", 1)[0]
    before = ("1" if subtract == "1" else "0") if carry is None else carry
    if not isinstance(before, str):
        before = n.input("carry", 1)[0]
    for cell in range(-(-width // 2)):
        after, pins = n.nets(1)[0], {}
        for half in (0, 1):
            k = 2 * cell + half
            inside = k < width
            pins |= {f"A{half}": a[k] if inside else "0", f"B{half}": b[k] if inside else "0"}
            pins |= {f"C{half}": subtract, f"D{half}": "1", f"S{half}": s[k] if inside else n.nets(1)[0]}
        parameters = {"INIT0": ADD, "INIT1": ADD, "INJECT1_0": inject, "INJECT1_1": "NO"}
        n.cell(f"{name}_{cell}", "CCU2C", parameters, CIN=before, COUT=after, **pins)
        if cell in read:
            n.output(f"carry{cell}", [after])
        before = after
    n.output("o", s)
    return n


CASES = {  # and the look-up tables freed: two of an open end; two of a spare half, one where the first sum goes out
    "one bit": (adder(1), 4),
    "an odd number of bits": (adder(5), 4),
    "an even number of bits": (adder(4), 3),
    "a difference of odd bits": (adder(3, subtract="1"), 4),
    "a difference of even bits": (adder(6, subtract="1"), 3),
    "a sum and one": (adder(4, carry="1"), 3),
    "a difference without one": (adder(2, subtract="1", carry="0"), 3),
    "a carry that is read": (adder(5, read=[2]), 1),
    "a carry that is read half-way": (adder(5, read=[1]), 3),
    "a carry in that changes": (adder(5, carry=0), 2),
    "a sum or a difference": (adder(4, subtract=0), 2),
    "a sum or a difference of odd bits": (adder(3, subtract=0), 4),
    "no carry into the first sum": (adder(4, inject="YES"), 2),
    "no carry into the first sum of odd bits": (adder(5, inject="YES"), 4),
}


@pytest.mark.parametrize("case", CASES)
def test_a_chain_is_the_same(tmp_path, case):
    netlist, freed = CASES[case]
    design = netlist.module("top")
    assert pack(design, "ecp5").carries == freed
    packed = netlists.Netlist(design)
    pins = [f"{pin}{half}" for pin in "ABCD" for half in "01"]
    assert not any(packed.bit(name, pin) == "0" for name in packed.cells("CCU2C") for pin in pins)
    side_by_side(tmp_path, netlist, [], 0)
    passed, log = check(tmp_path, 1)
    assert passed, log


def test_what_a_sum_of_the_first_half_has_read():
    """Nothing, where nobody reads it."""
    netlist = adder(4)
    netlist.ports["o"]["bits"] = netlist.ports["o"]["bits"][1:]
    design = netlist.module("top")
    pack(design, "ecp5")
    assert not list(netlists.Netlist(design).cells("LUT4"))


def other_carry(change):
    half = carries._half
    return lambda netlist, name, which: change(half(netlist, name, which))


BROKEN = {
    "the carry of another table": (adder(4), "_half", lambda h: h._replace(table=h.table ^ 1)),
    "a changing input taken for a constant": (
        adder(4, subtract=0), "_half", lambda h: h._replace(inputs=(*h.inputs[:2], "0", "1"))
    ),
    "a half in use taken for a spare one": (adder(4), "_half", lambda h: h._replace(sum=h.sum + 99)),
    "a carry into the first sum taken for granted": (
        adder(4, inject="YES"), "_half", lambda h: h._replace(inject="NO")
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_chain_is_refuted(tmp_path, monkeypatch, case):
    netlist, name, change = BROKEN[case]
    with monkeypatch.context() as patch:
        patch.setattr(carries, name, other_carry(change))
        side_by_side(tmp_path, netlist, [], None)
    passed, log = check(tmp_path, 1)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


def one_cell(pin):
    """A cell with a carry in, of which one input is 0 and all tables ask for it."""
    netlist = Netlist()
    (carry,), (a,), sums = netlist.input("carry", 1), netlist.input("a", 1), netlist.nets(3)
    zeros = {f"{name}{half}": "0" if k == pin else a for k, name in enumerate("ABCD") for half in (0, 1)}
    tables = {"INIT0": f"{0x6996:016b}", "INIT1": f"{0x9669:016b}", "INJECT1_0": "NO", "INJECT1_1": "NO"}
    netlist.cell("cell", "CCU2C", tables, CIN=carry, COUT=sums[2], S0=sums[0], S1=sums[1], **zeros)
    netlist.output("o", sums)
    return netlist


@pytest.mark.parametrize("pin", range(4))
def test_zeros_become_ones(tmp_path, pin):
    side_by_side(tmp_path, one_cell(pin), [], 0)
    passed, log = check(tmp_path, 1)
    assert passed, log


@pytest.mark.parametrize("pin", range(4))
def test_a_zero_that_only_becomes_one_is_refuted(tmp_path, monkeypatch, pin):
    def only_connect(netlist):
        for half in "01":
            netlist.connect("cell", f"{'ABCD'[pin]}{half}", ["1"])

    monkeypatch.setattr("hwflow.toolchain.packing._ZEROS", {"ecp5": (only_connect,)})
    side_by_side(tmp_path, one_cell(pin), [], None)
    passed, log = check(tmp_path, 1)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


def test_a_carry_in_of_one_that_is_forgotten_is_refuted(tmp_path, monkeypatch):
    own = carries._own_carry

    def forgetful(netlist, cells):
        netlist.connect(cells[0], "CIN", ["0"])
        return own(netlist, cells)

    with monkeypatch.context() as patch:
        patch.setattr(carries, "_own_carry", forgetful)
        side_by_side(tmp_path, adder(5, subtract="1"), [], None)
    passed, log = check(tmp_path, 1)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"
