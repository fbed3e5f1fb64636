"""Products in multiplier blocks, with the registers that let a block run at its full clock rate.

A multiplier block has registers at its operands, in its middle and after the product (MULT18X18D: input, pipeline and
output registers; SB_MAC16: input and output registers). A core writes them as plain registers: one directly at each
operand, with no logic between it and the ``*``, and :data:`BLOCK_LATENCY` behind the product. The first two of these
are free once packed into blocks; unpacked, the multiplication has a cycle to itself. The last one stays beside the
logic that reads the product: blocks stand in a few rows of a device, and the route from there takes most of a cycle (4
ns were seen on an LFE5U-85F).
"""

from __future__ import annotations

from amaranth.hdl import Module, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl_lib.arithmetic.adder_tree import Term, registered
from hdl_lib.shared import SharedComponent

BLOCK_LATENCY = 3
"""Cycles from the operands in their registers to the product."""


def block_product(m: Module, name: str, product: Term) -> Term:
    """Return ``product``, an operator between two registers, :data:`BLOCK_LATENCY` cycles later.

    Its registers are called ``<name>_product``, ``<name>_output`` and ``name``.
    """
    # Yosys' ice40_dsp takes the register of one product as the adder's input register of another product's block and
    # leaves that input unconnected (seen in 0.70): the sum is wrong. It passes registers to keep.
    inside = registered(m, f"{name}_product", product, keep=True)
    return registered(m, name, registered(m, f"{name}_output", inside, keep=True))


_BYTES = data.ArrayLayout(signed(8), 2)


class BytePair(SharedComponent):
    """Two signed products of 8 by 8 bits, in one block where a part's blocks have two such multipliers.

    Synthesis knows the module by its name and its ports (``hwflow/toolchain/maps/ice40_pair.v``): it is an SB_MAC16 of
    an iCE40. Elsewhere each product is an operator.

    Members
    -------
    a, b: In(two bytes).
    p: Out(two products of 16 bits): ``p[k] = a[k] * b[k]``, two cycles later. There is a register at
    each operand and one behind each product, all without reset, and none ever waits.
    """

    def __init__(self) -> None:
        members = {"a": In(_BYTES), "b": In(_BYTES), "p": Out(data.ArrayLayout(signed(16), 2))}
        super().__init__("byte_pair", None, members)

    def build(self) -> Module:
        m = Module()
        for k in range(2):
            a = registered(m, f"a_{k}", Term(self.a[k], -128, 127)).value
            b = registered(m, f"b_{k}", Term(self.b[k], -128, 127)).value
            product = Term(a * b, -128 * 127, 128 * 128)
            m.d.comb += self.p[k].eq(registered(m, f"p_{k}", product, keep=True).value)  # as in block_product
        return m
