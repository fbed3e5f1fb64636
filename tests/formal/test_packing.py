"""Every rule of hwflow.toolchain.packing, proved: the packed netlist computes what the netlist computed, at all times.

A small netlist and what the rule makes of it run side by side on the models of the cells that the netlist tests use.
Outputs are equal by induction; the registers inside the block equal the flip-flops they stand for, which makes it
inductive whatever the enables do. Broken twins of the rules are refuted. Operands are narrow, so that a solver can
multiply: every bit of a block is packed by the same rule.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from hwflow.toolchain.packing import ecp5, ice40, pack
from hwflow.toolchain.packing.registers import Bank, ecp5_register
from tests.flow.sizes.netlists import models
from tests.formal.prover import check, yosys

# pins of one bit that a product alone leaves at 0
IDLE = tuple(pin for pin in ice40.IDLE if pin not in ("C", "D"))
CELLS = {  # the ports that are outputs
    "TRELLIS_FF": {"Q"},
    "LUT4": {"Z"},
    "CCU2C": {"S0", "S1", "COUT"},
    "MULT18X18D": set(ecp5.PRODUCT),
    "DP16KD": set(ecp5.READ_DATA["A"] + ecp5.READ_DATA["B"]),
    "SB_DFF": {"Q"},
    "SB_MAC16": {"O"},
}


class Netlist:
    """A netlist under construction, in yosys' JSON; ``probes`` are what invariants speak of."""

    def __init__(self):
        self.ports, self.cells, self.free = {}, {}, 2
        self.clock, self.enable, self.other = self.input("clk", 1), self.input("en", 1), self.input("en2", 1)

    def nets(self, width):
        self.free += width
        return list(range(self.free - width, self.free))

    def input(self, name, width):
        self.ports[name] = {"direction": "input", "bits": self.nets(width)}
        return self.ports[name]["bits"]

    def output(self, name, bits):
        self.ports[name] = {"direction": "output", "bits": bits}

    def cell(self, name, kind, parameters, **pins):
        self.cells[name] = {
            "type": kind, "parameters": parameters, "attributes": {},
            "connections": {pin: bits if isinstance(bits, list) else [bits] for pin, bits in pins.items()},
            "port_directions": {pin: "output" if pin in CELLS[kind] else "input" for pin in pins},
        }

    def register(self, name, d, enable=None, *, start="RESET"):
        """Flip-flops; the bits they drive, of which an output tells what a proof needs."""
        q = self.nets(len(d))
        for i, bit in enumerate(d):
            parameters = {"CEMUX": "CE" if enable else "1 ", "CLKMUX": "CLK", "LSRMUX": "LSR", "REGSET": start}
            pins = {"DI": bit, "Q": q[i], "CLK": self.clock[0], "LSR": "0"} | ({"CE": enable[0]} if enable else {})
            self.cell(f"{name}_{i}", "TRELLIS_FF", parameters, **pins)
        return q

    def product(self, a, b, width, name="block"):
        """A signed product of operands whose last bit is their sign; ``width`` bits of it are used."""
        def extended(bits):
            return [*bits, *bits[-1:] * (18 - len(bits))]

        p = self.nets(width)
        pins = {f"A{i}": bit for i, bit in enumerate(extended(a))} | {f"B{i}": bit for i, bit in enumerate(extended(b))}
        pins |= {f"P{i}": bit for i, bit in enumerate(p)} | {"SIGNEDA": "1", "SIGNEDB": "1"}
        self.cell(name, "MULT18X18D", {}, **pins)
        return p

    def memory(self, address, enable):
        """A table of 16 words, read through port A."""
        contents = "".join(f"{(i * 0x2F1B7 + 0x15A3) % 2**18:020b}" for i in reversed(range(16)))
        q = self.nets(18)
        pins = {f"DOA{i}": bit for i, bit in enumerate(q)} | {f"ADA{4 + i}": bit for i, bit in enumerate(address)}
        pins |= {f"ADA{i}": "0" for i in (0, 1, 2, 3, 8, 9, 10, 11, 12, 13)} | {f"ADB{i}": "0" for i in range(14)}
        zero = ("WEA", "WEB", "RSTA", "RSTB", "CEB", "CSA0", "CSA1", "CSA2", "CSB0", "CSB1", "CSB2", "CLKB", "OCEB")
        pins |= dict.fromkeys(zero, "0") | {"OCEA": "1", "CLKA": self.clock[0], "CEA": enable[0]}
        self.cell("block", "DP16KD", {"INITVAL_00": contents}, **pins)
        return q

    def ice40_register(self, name, d):
        q = self.nets(len(d))
        for i, bit in enumerate(d):
            self.cell(f"{name}_{i}", "SB_DFF", {}, D=bit, Q=q[i], C=self.clock[0])
        return q

    def ice40_product(self, name, a, b, *, signed=(0, 1), registered=(0, 0, 1)):
        """As synth_ice40 -dsp maps one of 8 by 8 bits: extended to 16 bits, a register behind, and before as said."""
        def extended(bits, sign):
            return [*bits, *(bits[-1:] if sign else ["0"]) * (16 - len(bits))]

        o = self.nets(32)
        parameters = {"A_SIGNED": 1, "B_SIGNED": 1, "A_REG": registered[0], "B_REG": registered[1]}
        parameters |= dict.fromkeys(("TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG", "PIPELINE_16x16_MULT_REG1"), registered[2])
        parameters = {parameter: str(value) for parameter, value in parameters.items()}
        parameters |= {"TOPOUTPUT_SELECT": "11", "BOTOUTPUT_SELECT": "11"}
        a, b = (extended(bits, sign) for bits, sign in zip((a, b), signed, strict=True))
        pins = dict.fromkeys(IDLE, "0") | {"C": ["0"] * 16, "D": ["0"] * 16, "CLK": self.clock[0], "CE": "1"}
        self.cell(name, "SB_MAC16", parameters, A=a, B=b, O=o, **pins)
        return o[:16]

    def module(self, top):
        attributes = {"top": "00000000000000000000000000000001"}
        return {"modules": {top: {"attributes": attributes, "ports": self.ports, "cells": self.cells, "netnames": {}}}}


def multiplier(a_enable=False, b_enable=False, levels=1, late=False, shared=False, constant=False):
    """Registers around a multiplier; ``late``: the enable of what stands behind it. ``shared``: an operand is read."""
    n = Netlist()
    a = n.register("a", n.input("x", 3), n.enable if a_enable else None)
    b = ["1", "0", "1", "0"] if constant else n.register("b", n.input("y", 4), n.other if b_enable else None)
    p = n.product(a, b, 7)
    invariants = [("a_register", a)] if constant else [("a_register", a), ("b_register", b)]
    names = ("output_register",) if levels == 1 else ("pipeline_register", "output_register")
    for level in range(levels):
        p = n.register(f"p{level}", p, n.other if late else None)
        invariants.append((names[level], p))
    n.output("o", p)
    if shared:
        n.output("seen", a)
    return n, invariants


def wide_product():
    """A product of which more bits are read, through look-up tables, than it has: the others are its sign."""
    n = Netlist()
    p = n.product(n.register("a", n.input("x", 3)), n.register("b", n.input("y", 4)), 9)
    z = n.nets(9)
    for i, bit in enumerate(p):
        n.cell(f"lut_{i}", "LUT4", {"INIT": f"{0xAAAA:016b}"}, A=bit, B="0", C="0", D="0", Z=z[i])
    n.output("o", z)
    return n, [("a_register", [n.cells[f"a_{i}"]["connections"]["Q"][0] for i in range(3)])]


def memory(enable=False):
    n = Netlist()
    q = n.register("q", n.memory(n.input("address", 4), n.enable)[:12], n.other if enable else None)
    n.output("o", q)
    return n, [("registered_a", q)]


def ice40_registers():
    n = Netlist()
    a, b = n.ice40_register("a", n.input("x", 3)), n.ice40_register("b", n.input("y", 4))
    n.output("o", n.ice40_product("block", a, b))
    return n, [("rA", a), ("rB", b)]


def ice40_results(others=False):
    """A second register behind the product; ``others``: of a part of its bits, the rest is read at once."""
    n = Netlist()
    a, b = n.ice40_register("a", n.input("x", 3)), n.ice40_register("b", n.input("y", 4))
    p = n.ice40_product("block", a, b)
    q = n.ice40_register("q", p[:7] if others else p)
    n.output("o", q)
    if others:
        n.output("early", p[7:])
    return n, [("rA", a), ("rB", b)] if others else [("rA", a), ("rB", b), ("rH", q)]


def ice40_pair(signed=(0, 1), other=(0, 1), registered=(1, 1, 1), width=4):
    """Two products of operands of ``width`` bits, of which the last is the sign where there is one."""
    n = Netlist()
    for name, signs in (("block", signed), ("second", other)):
        operands = [n.input(f"{name}_{operand}", 3) for operand in "xy"]
        operands = [[*bits, *bits[-1:] * (width - 3)] for bits in operands]
        n.output(f"{name}_o", n.ice40_product(name, *operands, signed=signs, registered=registered))
    return n, []


def ice40_pair_that_fits(swapped=False, below_128=False, constant=False):
    """Two products of a number with a sign and one without that differ: in the second the operands change places, its
    number with a sign is never negative, or is a constant and has no register."""
    n = Netlist()
    x, y = n.input("block_x", 3), n.input("block_y", 3)
    n.output("block_o", n.ice40_product("block", x, [*y, y[-1]], signed=(0, 1), registered=(1, 1, 1)))
    x, y = n.input("second_x", 3), n.input("second_y", 3)
    y = ["1", "0", "1", "0"] if constant else [*y, "0"] if below_128 else y
    signs, registers = (0, 0 if constant or below_128 else 1), (1, 0 if constant else 1)
    if swapped:
        x, y, signs, registers = y, x, signs[::-1], registers[::-1]
    n.output("second_o", n.ice40_product("second", x, y, signed=signs, registered=(*registers, 1)))
    return n, []


def side_by_side(tmp_path, netlist, invariants, expected, family="ecp5"):
    """Write top.smt2: both netlists, their outputs equal and, for ``invariants``, registers and flip-flops equal."""
    plain = netlist.module("plain")
    packed = deepcopy(plain)
    packed["modules"]["packed"] = packed["modules"].pop("plain")
    packing = pack(packed, family)
    if expected is not None:
        assert sum([*packing.registers.values(), *packing.pairs.values()]) == expected
        again = deepcopy(packed)
        assert str(pack(again, family)).startswith("0 flip-flops") and again == packed  # nothing is left to do
    ports = {name: (port["direction"], len(port["bits"])) for name, port in netlist.ports.items()}
    for k, (_, bits) in enumerate(invariants):
        plain["modules"]["plain"]["ports"][f"probe{k}"] = {"direction": "output", "bits": bits}
    for name, design in (("plain", plain), ("packed", packed)):
        (tmp_path / f"{name}.json").write_text(json.dumps(design))
    inputs = [name for name, (direction, _) in ports.items() if direction == "input"]
    shared = ", ".join(f".{name}({name})" for name in inputs)
    lines = ["module top(" + ", ".join(f"input [{ports[name][1] - 1}:0] {name}" for name in inputs) + ");"]
    connected = {"plain": [shared], "packed": [shared]}
    checks = []
    for name, (direction, width) in ports.items():
        if direction == "output":
            lines.append(f"wire [{width - 1}:0] plain_{name}, packed_{name};")
            for side, pins in connected.items():
                pins.append(f".{name}({side}_{name})")
            checks.append(f"plain_{name} == packed_{name}")
    for k, (register, bits) in enumerate(invariants):
        lines.append(f"wire [{len(bits) - 1}:0] probe{k}; wire [35:0] inner{k};")
        connected["plain"].append(f".probe{k}(probe{k})")
        connected["packed"].append(f".\\block.{register} (inner{k})")
        low = lowest(packed["modules"]["packed"]["cells"]["block"], register)
        checks.append(f"probe{k} == inner{k}[{low + len(bits) - 1}:{low}]")
        if register in ("a_register", "b_register"):  # an operand whose sign is on its last pin
            assert low == 18 - len(bits)
            checks.append(f"inner{k}[{low - 1}:0] == 0")
    lines += [f"{side} {side}_0 ({', '.join(pins)});" for side, pins in connected.items()]
    # the registers of a DSP block of iCE40 hold anything at first
    settled = "settled[2]" if family == "ice40" else "1'b1"
    lines.append("reg [2:0] settled = 0; always @(posedge clk) settled <= {settled[1:0], 1'b1};")
    lines += [f"always @* if ({settled}) assert ({check});" for check in checks]
    (tmp_path / "top.v").write_text("\n".join([*lines, "endmodule\n"]))
    (tmp_path / "models.v").write_text(models(family))
    inner = " ".join(f"w:block.{register}" for register, _ in invariants)
    expose = f"cd packed; expose {inner}; cd .." if inner else "opt_clean"
    script = "; ".join(
        (
            "read_verilog -defer models.v; read_json packed.json; hierarchy -top packed; proc; flatten",
            "setundef -anyseq", expose,
            "design -stash packed; read_verilog -defer models.v; read_json plain.json; hierarchy -top plain",
            "proc; flatten",
            "design -stash plain; read_verilog -formal top.v; design -copy-from packed packed",
            "design -copy-from plain plain; hierarchy -top top; proc; flatten; opt -full; memory_map; opt -full",
            "async2sync; chformal -lower; dffunmap; opt_clean; write_smt2 -wires top.smt2",
        )
    )
    yosys(tmp_path, script)


def lowest(block, register):
    """Where in a register of a block the least bit lies that it stands for."""
    pins = {"a_register": ecp5.OPERANDS[0], "b_register": ecp5.OPERANDS[1]}.get(register, ecp5.PRODUCT)
    if block["type"] != "MULT18X18D":
        return 0
    return next(place for place, pin in enumerate(pins) if isinstance(block["connections"].get(pin, [""])[0], int))


CASES = {
    "all registers": (multiplier(), 3 + 4 + 7),
    "enables": (multiplier(a_enable=True, b_enable=True, late=True), 3 + 4 + 7),
    "pipeline": (multiplier(levels=2), 3 + 4 + 7 + 7),
    "an operand that is read elsewhere": (multiplier(shared=True, a_enable=True), 4 + 7),
    "a constant operand": (multiplier(constant=True), 3 + 7),
    "more bits of a product than it has": (wide_product(), 3 + 4),
    "memory": (memory(), 12),
    "memory with an enable": (memory(enable=True), 12),
}
ICE40_CASES = {
    "registers": (ice40_registers(), 3 + 4),
    "a second register": (ice40_results(), 3 + 4 + 16),
    "a second register of some bits": (ice40_results(others=True), 3 + 4),
    "two products": (ice40_pair(), 1),
    "two products, both operands signed, of 8 bits": (ice40_pair((1, 1), (1, 1), width=8), 1),
    "two products without registers": (ice40_pair((0, 0), (0, 0), registered=(0, 0, 0)), 1),
    "two products with their operands in another order": (ice40_pair_that_fits(swapped=True), 1),
    "a number below 128 with numbers that have a sign": (ice40_pair_that_fits(below_128=True), 1),
    "a constant with a number in a register": (ice40_pair_that_fits(swapped=True, constant=True), 1),
}


@pytest.mark.parametrize(
    ("family", "case"), [*(("ecp5", case) for case in CASES), *(("ice40", case) for case in ICE40_CASES)]
)
def test_a_packed_netlist_is_the_same(family, case, tmp_path):
    (netlist, invariants), absorbed = {"ecp5": CASES, "ice40": ICE40_CASES}[family][case]
    side_by_side(tmp_path, netlist, invariants, absorbed, family)
    passed, log = check(tmp_path, 5)
    assert passed, f"a counterexample from the start:\n{log}"
    passed, log = check(tmp_path, 5, "-i")
    assert passed, f"not inductive:\n{log}"


def starts_with_one():
    n, invariants = multiplier()
    for name in ("a_1", "b_1"):
        n.cells[name]["parameters"]["REGSET"] = "SET"
    return n, invariants


def read_elsewhere():
    """The product's register is an output, and the product itself as well."""
    n, invariants = multiplier()
    n.output("early", [n.cells["p0_0"]["connections"]["DI"][0]])
    return n, invariants


def careless_register(netlist, name):
    """As ecp5_register, without looking at the value it starts with."""
    if netlist.kind(name) == "TRELLIS_FF":
        netlist.parameters(name)["REGSET"] = "RESET"
    return ecp5_register(netlist, name)


def always_enabled(netlist, name):
    register = ecp5_register(netlist, name)
    return register and replace(register, control=replace(register.control, enable="1"))


def careless_readers(netlist, bits, register_of):
    """As registers_behind, for the first reader alone."""
    found = [register_of(netlist, max(netlist.readers(bit))[0]) for bit in bits[:7]]  # a cell, not a port
    if None in found:
        return None
    return Bank(found[0].control, tuple(r.q for r in found) + tuple(bits[7:]), tuple(r.cell for r in found))


def careless_ice40_readers(netlist, bits, register_of):
    """As registers_behind, without looking at bits that no register reads."""
    found = [register_of(netlist, netlist.readers(bit)[0][0]) for bit in bits[:7]]
    return Bank(found[0].control, tuple(r.q for r in found) + tuple(bits[7:]), tuple(r.cell for r in found))


copies_of_sign = ecp5._copies_of_sign


def one_too_far(bits):
    copies: int = copies_of_sign(bits)
    return copies and copies + 1


BROKEN = {
    "an operand that is moved too far": (wide_product, "_copies_of_sign", one_too_far),
    "a register that starts with 1": (starts_with_one, "ecp5_register", careless_register),
    "a register that waits": (lambda: multiplier(a_enable=True), "ecp5_register", always_enabled),
    "a memory's register that waits": (lambda: memory(enable=True), "ecp5_register", always_enabled),
    "a product that is read elsewhere": (read_elsewhere, "registers_behind", careless_readers),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_refuted(case, tmp_path, monkeypatch):
    make, name, broken = BROKEN[case]
    netlist, _ = make()
    with monkeypatch.context() as patch:
        patch.setattr(ecp5, name, broken)
        side_by_side(tmp_path, netlist, [], None)
    passed, log = check(tmp_path, 6)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


def test_products_of_different_signs_in_one_block_are_refuted(tmp_path, monkeypatch):
    operand = ice40._operand
    monkeypatch.setattr(ice40, "_operand", lambda *pin: (kind := operand(*pin)) and (int(pin[2] == "B"), kind[1]))
    netlist, _ = ice40_pair((0, 1), (1, 1))
    side_by_side(tmp_path, netlist, [], None, "ice40")
    passed, log = check(tmp_path, 6)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


def test_a_second_register_of_bits_that_are_read_at_once_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(ice40, "registers_behind", careless_ice40_readers)
    netlist, _ = ice40_results(others=True)
    side_by_side(tmp_path, netlist, [], None, "ice40")
    passed, log = check(tmp_path, 8)
    assert not passed and "Assert failed" in log, f"the broken twin passed:\n{log}"


@pytest.mark.parametrize(
    "options", [{"other": (1, 1), "width": 8}, {"width": 9}, {"signed": (0, 0), "other": (0, 0), "width": 9}],
)
def test_products_that_do_not_share_a_block(options):
    netlist, _ = ice40_pair(**options)
    assert pack(netlist.module("plain"), "ice40").pairs == {"multipliers": 0}


@pytest.mark.parametrize(("others", "pairs"), [("top first product", 1), ("top second product", 0), ("product", 0)])
def test_products_of_one_module_share_a_block(others, pairs):
    """Each core's blocks can be counted by themselves, and stand where the core is."""
    netlist, _ = ice40_pair()
    design = netlist.module("plain")
    names = {"block": "top first product", "second": others}
    design["modules"]["plain"]["netnames"] = {
        f"{cell}{k}": {"bits": netlist.cells[cell]["connections"]["O"], "attributes": {"hdlname": name}}
        for cell, path in names.items() for k, name in enumerate((path, "top product"))
    }
    assert pack(design, "ice40").pairs == {"multipliers": pairs}


def test_the_same_kind_goes_together_first():
    """Of four products the first two could share a block, the others then not."""
    n = Netlist()
    for index, (sign, top) in enumerate([(1, None), (0, "0"), (1, None), (0, None)]):
        x, y = n.input(f"x{index}", 7), n.input(f"y{index}", 8)
        y = [*y[:7], top] if top else y
        n.output(f"o{index}", n.ice40_product(f"block{index}", x, y, signed=(0, sign), registered=(1, 1, 1)))
    assert pack(n.module("plain"), "ice40").pairs == {"multipliers": 2}


@pytest.mark.parametrize("make", [starts_with_one, read_elsewhere])
def test_what_the_rules_leave_alone(make):
    """The same netlists: the operands' registers stay where one starts with 1, the product's where it is read."""
    netlist, _ = make()
    design = netlist.module("plain")
    pack(design, "ecp5")
    left = {name.split("_")[0] for name in design["modules"]["plain"]["cells"]} - {"block"}
    assert left == ({"a", "b"} if make is starts_with_one else {"p0"})
