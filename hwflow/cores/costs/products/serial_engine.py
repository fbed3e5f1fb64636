"""An engine of one element a step, on an iCE40: within 3 % of the cells that yosys makes of four programs."""

from __future__ import annotations

from functools import lru_cache

from amaranth.utils import bits_for, ceil_log2

from hdl_lib.engine.engine_program import BYTE
from hdl_lib.engine.serial_fields import SerialFields
from hdl_lib.engine.serial_program import SerialProgram
from hwflow.cores.costs.memory import buffer_memory, queue
from hwflow.cores.operator import Resources

_CONTROL = Resources(lut=270, ff=255)
_PLACE = (20, 6)  # look-up tables and flip-flops per bit of a place in the memory
_COUNT = (2.4, 1)  # per bit of what counts down
_PARAMETER = 4  # look-up tables per bit of a multiplier and of an addend, for product, sum and limits
_PRODUCT = 3  # flip-flops per bit of a product of both, for its parts and sums
_GREATEST = Resources(lut=14, ff=16)  # of a lane of maxima, and of its neighbour that waits with it
_RING = 15  # look-up tables per bit of a place in the ring


@lru_cache(maxsize=256)
def serial_engine(family: str, program: SerialProgram, width: int, depth: int) -> Resources:
    """Return the resources of an engine; ``width``: bits of a beat that it sends."""
    forms, rows, fields = program.forms, program.rows, SerialFields(program)
    place = bits_for(program.words)
    counted = sum(shape.width for name, shape in fields.shapes.items() if name.endswith("_left"))
    sums = 2 * rows * forms.sum_bits  # accumulated, and on their way to the requantizer
    total = _CONTROL + queue(family, width, depth) + Resources(
        lut=round(
            sums + _PARAMETER * (forms.multiplier_bits + forms.addend_bits) + _PLACE[0] * place
            + _COUNT[0] * counted + _RING * ceil_log2(program.ring)
        ),
        ff=sums + fields.bits + _PRODUCT * (forms.multiplier_bits + forms.sum_bits) + _PLACE[1] * place
        + _COUNT[1] * counted,
        dsp=program.multipliers,
    )
    if program.maxima:
        total += _GREATEST.times(program.lanes)
    memories = [
        (program.ring, rows * BYTE), (program.header, max(forms.multiplier_bits, forms.addend_bits)),
        (fields.table.depth, fields.table.width),
    ]
    blocks = sum(buffer_memory(family, words, bits).bram for words, bits in memories)
    return total + Resources(bram=blocks)
