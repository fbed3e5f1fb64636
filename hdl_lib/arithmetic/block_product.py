"""Products in multiplier blocks, with the registers that let a block run at its full clock rate.

A multiplier block has registers at its operands, in its middle and after the product (MULT18X18D: input, pipeline and
output registers; SB_MAC16: input and output registers). A core writes them as plain registers: one directly at each
operand, with no logic between it and the ``*``, and :data:`BLOCK_LATENCY` behind the product. The first two of these
are free once packed into blocks; unpacked, the multiplication has a cycle to itself. The last one stays beside the
logic that reads the product: blocks stand in a few rows of a device, and the route from there takes most of a cycle (4
ns were seen on an LFE5U-85F).
"""

from __future__ import annotations

from amaranth.hdl import Module

from hdl_lib.arithmetic.adder_tree import Term, registered

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
