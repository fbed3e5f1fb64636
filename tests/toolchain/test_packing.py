"""What the packing of netlists leaves as it is; tests/formal/test_packing.py proves what it does."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from hwflow.toolchain.packing import netlist as netlists
from hwflow.toolchain.packing import pack
from hwflow.toolchain.packing.ecp5 import ground_blocks
from hwflow.toolchain.packing.files import pack_file
from tests.formal.test_packing import Netlist, ice40_registers, memory, multiplier


def names(design):
    (module,) = design["modules"].values()
    return set(module["cells"])


def untouched(netlist, family="ecp5"):
    design = netlist.module("top")
    before = deepcopy(design)
    packing = pack(design, family)
    return design == before and set(packing.registers.values()) <= {0}


@pytest.mark.parametrize(
    ("parameters", "connections"),
    [
        ({"CLKMUX": "INV"}, {}),  # the falling edge
        ({"CEMUX": "INV"}, {"CE": [3]}),
        ({"LSRMUX": "INV"}, {}),  # held in reset
        ({}, {"LSR": [3]}),
        ({"REGSET": "SET"}, {}),
        ({}, {"CLK": [3]}),  # another clock than its neighbours'
        ({"CEMUX": "CE"}, {"CE": [3]}),  # another enable
    ],
)
def test_a_register_that_a_block_does_not_have(parameters, connections):
    """One of the product's, one of a memory's: the other registers of these pins stay too."""
    for (netlist, _), name in ((multiplier(), "p0_3"), (memory(), "q_3")):
        netlist.cells[name]["parameters"] |= parameters
        netlist.cells[name]["connections"] |= connections
        design = netlist.module("top")
        pack(design, "ecp5")
        assert {cell for cell in names(design) if cell[0] in "pq"} == {c for c in netlist.cells if c[0] in "pq"}


def test_one_operand_alone_is_left():
    netlist, _ = multiplier()
    for i in range(4):
        netlist.cells.pop(f"b_{i}")  # no register drives it
    design = netlist.module("top")
    assert pack(design, "ecp5").registers["multipliers"] == 7  # those of the product
    assert {"a_0", "a_1", "a_2"} <= names(design)


def test_a_memory_that_is_reset_keeps_its_register_outside():
    netlist, _ = memory()
    netlist.cells["block"]["connections"]["RSTA"] = [3]
    assert untouched(netlist)


@pytest.mark.parametrize("change", [{"CE": [3]}, {"C": ["1"] * 16}, {"OHOLDTOP": [3]}])
def test_a_block_of_ice40_that_is_more_than_a_product(change):
    netlist, _ = ice40_registers()
    netlist.cells["block"]["connections"] |= change
    assert untouched(netlist, "ice40")


def test_a_family_without_rules_and_a_netlist_without_blocks():
    assert untouched(multiplier()[0], "gowin")
    assert str(pack(Netlist().module("top"), "ecp5")) == "0 flip-flops absorbed"


def test_from_file_to_file(tmp_path):
    source, target = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(json.dumps(multiplier()[0].module("top")))
    done = "14 flip-flops absorbed: 14 into 1 multipliers; 29 operand pins freed"
    assert str(pack_file("ecp5", source, target)) == done
    assert names(json.loads(target.read_text())) == {"block", "block_zero"}


def test_a_netlist_has_one_top():
    module = multiplier()[0].module("top")["modules"]["top"]
    with pytest.raises(ValueError, match="a netlist must have one top module, not 2"):
        pack({"modules": {"a": module, "b": module}}, "ecp5")
    with pytest.raises(ValueError, match="a netlist must have one top module, not 0"):
        pack({}, "ecp5")


def test_blocks_make_their_zeros_themselves():
    """A wire each, but for pins that are open or at 1, and for blocks that need none."""
    pins = [{"RST0": "0", "SOURCEA": "0", "SOURCEB": "1"}, {"SOURCEB": "1"}]
    design = {"modules": {"top": {"cells": {}}}}
    for number, ports in enumerate(pins):
        design["modules"]["top"]["cells"][f"block{number}"] = {
            "type": "MULT18X18D", "parameters": {}, "connections": {port: [bit] for port, bit in ports.items()},
            "port_directions": dict.fromkeys(ports, "input"),
        }
    netlist = netlists.Netlist(design)
    ground_blocks(netlist)
    ground_blocks(netlist)
    (zero,) = netlist.cells("LUT4")
    (net,) = netlist.bits(zero, "Z")
    assert netlist.parameters(zero)["INIT"] == "0" * 16
    assert [netlist.bit("block0", port) for port in pins[0]] == [net, net, "1"]
    assert netlist.bit("block1", "SOURCEB") == "1"
