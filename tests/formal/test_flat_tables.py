"""Look-up tables that read what others were made of (hwflow.toolchain.packing.flat_tables): proved equal, and which."""

from __future__ import annotations

import random

import pytest

from hwflow.toolchain.packing import flat_tables, pack
from hwflow.toolchain.packing import netlist as netlists
from tests.formal.prover import check
from tests.formal.test_packing import Netlist, side_by_side


def columns(seed=1, words=11):
    """Columns of a table of 11 words: the first two by the address, the others by two columns and an address bit."""
    draw = random.Random(seed)
    n = Netlist()
    address = n.input("address", 4)
    made = list(address)
    for column in range(6):
        first = column < 2
        pins = address if first else [made[-1], made[-2], draw.choice(address), "1"]
        z = n.nets(1)[0]
        table = {"INIT": f"{draw.getrandbits(16):016b}"}
        n.cell(f"column_{column}", "LUT4", table, **dict(zip("ABCD", pins, strict=True)), Z=z)
        made.append(z)
    n.output("o", made[4:])
    return n


def row(width, table=0x6996):
    """Tables one behind the other, of three new inputs each."""
    n = Netlist()
    x, before = n.input("x", 3 * width), "0"
    for k in range(width):
        z = n.nets(1)[0]
        pins = dict(zip("ABCD", [*x[3 * k : 3 * k + 3], before], strict=True))
        n.cell(f"part_{k}", "LUT4", {"INIT": f"{table:016b}"}, **pins, Z=z)
        before = z
    n.output("o", [before])
    return n


def idle_inputs():
    """A product of a product and a sum that is always 1: the sum's sources make no difference."""
    n = Netlist()
    x, y, (p, one, z) = n.input("x", 2), n.input("y", 2), n.nets(3)
    n.cell("p", "LUT4", {"INIT": f"{0x8888:016b}"}, A=x[0], B=x[1], C="1", D="1", Z=p)
    n.cell("one", "LUT4", {"INIT": f"{0xFFFF:016b}"}, A=y[0], B=y[1], C="0", D="1", Z=one)
    n.cell("z", "LUT4", {"INIT": f"{0x8888:016b}"}, A=p, B=one, C="1", D="0", Z=z)
    n.output("o", [z])
    return n


def same_source_twice():
    n = Netlist()
    x, (p, z) = n.input("x", 3), n.nets(2)
    n.cell("p", "LUT4", {"INIT": f"{0x6AC1:016b}"}, A=x[0], B=x[0], C=x[1], D=x[2], Z=p)
    n.cell("z", "LUT4", {"INIT": f"{0x1D35:016b}"}, A=p, B=x[0], C=p, D=x[1], Z=z)
    n.output("o", [p, z])
    return n


CASES = {  # and how many tables read others
    "columns of a table": (columns(), 4),
    "other columns": (columns(seed=5), 4),
    "a row with no room": (row(3), 0),
    "inputs that make no difference": (idle_inputs(), 1),
    "a source twice": (same_source_twice(), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_the_outputs_are_the_same(tmp_path, case):
    netlist, changed = CASES[case]
    design = netlist.module("top")
    assert pack(design, "ecp5").tables == changed
    side_by_side(tmp_path, netlist, [], 0)
    passed, log = check(tmp_path, 1)
    assert passed, log


def test_all_columns_read_the_address():
    design = columns().module("top")
    pack(design, "ecp5")
    packed = netlists.Netlist(design)
    ports = design["modules"]["top"]["ports"]["address"]["bits"]
    assert {bit for name in packed.cells("LUT4") for bit in packed.inputs(name)} <= {*ports, "1"}


def test_what_nobody_reads_any_more_goes():
    design = idle_inputs().module("top")
    pack(design, "ecp5")
    assert list(netlists.Netlist(design).cells("LUT4")) == ["z"]


def test_a_loop_ends():
    n = Netlist()
    x, (y, z) = n.input("x", 1), n.nets(2)
    n.cell("one", "LUT4", {"INIT": f"{0x8888:016b}"}, A=x[0], B=z, C="1", D="1", Z=y)
    n.cell("other", "LUT4", {"INIT": f"{0xEEEE:016b}"}, A=x[0], B=y, C="1", D="1", Z=z)
    n.output("o", [z])
    design = n.module("top")
    pack(design, "ecp5")
    assert list(netlists.Netlist(design).cells("LUT4"))


BROKEN = {
    "a source in another place": ("_set", lambda original: lambda netlist, name, function: original(
        netlist, name, function._replace(sources=function.sources[::-1])
    )),
    "a table without its last word": ("_function", lambda original: lambda netlist, name: (
        (found := original(netlist, name))._replace(bits=found.bits & ~(1 << (1 << len(found.sources)) - 1))
    )),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_refuted(tmp_path, monkeypatch, case):
    name, broken = BROKEN[case]
    with monkeypatch.context() as patch:
        patch.setattr(flat_tables, name, broken(getattr(flat_tables, name)))
        side_by_side(tmp_path, columns(), [], None)
    passed, log = check(tmp_path, 1)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"
