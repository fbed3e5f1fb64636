"""An engine that computes layers in turn."""

from __future__ import annotations

from functools import lru_cache

from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.engine.engine_program import AHEAD, BYTE, LOOKED_UP, Program
from hdl_lib.engine.fields import Fields
from hdl_lib.engine.kept_words import MOST_ROWS
from hdl_lib.engine.serial_program import SerialProgram
from hdl_lib.engine.weight_ring import WeightRing
from hwflow.cores.costs.basics import adder, bits, loop
from hwflow.cores.costs.memory import asynchronous_memory, buffer_memory, filled_rom, queue
from hwflow.cores.costs.products.matrix import Matrix
from hwflow.cores.costs.products.serial_engine import serial_engine
from hwflow.cores.operator import Resources
from hwflow.types import IntType

_WALK = Resources(lut=160, ff=60)  # of places, phases, loops besides their bits
_PLACES = (9.0, 6.0)  # look-up tables and flip-flops per bit of a place in a region
_COUNTS = (2.4, 1.0)  # per bit of what counts down
_BORROW = 7  # look-up tables of a weight less what the other one in its block borrows
_GREATER = 14  # look-up tables of a greatest element
_LIMITS = 70  # look-up tables of a result's limits


@lru_cache(maxsize=256)
def layer_engine(family: str, program: Program, width: int, depth: int) -> Resources:
    """Return the resources of an engine; ``width``: bits of a beat that it sends."""
    if isinstance(program, SerialProgram):
        return serial_engine(family, program, width, depth)
    forms, lanes, word = program.forms, program.lanes, program.lanes * BYTE
    types = (IntType(BYTE + 1, True), IntType(program.weight_bits, True), IntType(forms.sum_bits, True))
    total = Resources(lut=program.pairs * lanes * _BORROW)
    hard = ProductForm.DSP2 if program.pairs else ProductForm.DSP
    for form, rows in ((hard, lanes - program.soft), (ProductForm.LUT, program.soft)):
        if rows:
            packing = program.packing if form == ProductForm.DSP2 else None
            total += Matrix(family, *types, form, PART, lanes, 2, packing=packing).of_any_matrix(rows, 1, 1)
            waits = 2 * rows * lanes * program.weight_bits  # of weights
            total += Resources(ff=waits if form == ProductForm.LUT else 0)
    total += buffer_memory(family, program.words, word) + queue(family, width, depth)
    total += Resources(lut=2 * word, ff=6 * word)  # words that are read, written, gathered, added
    if program.overlap:  # pixels of the image before those that come, or padding
        before = program.overlap * (program.lanes // (program.pixels_of_word + program.overlap)) * BYTE
        total += Resources(lut=before, ff=before) + loop(program.words_of_row)
    if program.maxima:
        total += Resources(lut=lanes * _GREATER, ff=word)
    if program.levels:  # words on their way outside and from there, with counters
        total += queue(family, word, AHEAD) + Resources(lut=3 * word, ff=5 * word)
    ring = WeightRing(program)
    total += buffer_memory(family, program.ring, ring.together * ring.width).times(len(ring.columns))
    near = lanes * lanes * program.weight_bits
    total += Resources(ff=near + 2 * program.beats_of_word + 2 * program.width) + loop(program.beats_of_word)
    size = forms.multiplier_bits + forms.addend_bits
    total += Resources(lut=lanes * (forms.sum_bits + 2 * size), ff=lanes * (forms.sum_bits + size))
    total += _stages(family, program).times(program.together)
    if program.tables:
        words = [byte for table in program.tables for byte in table]
        once = filled_rom(family, words, BYTE) + Resources(lut=BYTE, ff=LOOKED_UP * BYTE)
        total += once.times(program.together)
    if program.columns:  # operands of each row's own, words of columns before
        own = lanes * program.columns * (BYTE + 1)
        total += Resources(lut=own, ff=(program.columns - 1) * word + lanes + word)
        total += asynchronous_memory(family, MOST_ROWS, (program.columns - 1) * word)
    table = Fields(program)
    held = sum(shape.width for shape in table.shapes.values())
    total += filled_rom(family, table.words, held, output_register=False) + Resources(ff=held)
    counted = sum(shape.width for name, shape in table.shapes.items() if name.endswith("_left"))
    places = bits(program.words - 1)
    return total + _WALK + Resources(
        lut=round(_COUNTS[0] * counted + _PLACES[0] * places), ff=round(_COUNTS[1] * counted + _PLACES[1] * places)
    )


def _stages(family: str, program: Program) -> Resources:
    """Estimate what multiplies, adds and limits one result after the other."""
    forms = program.forms
    whole = max(forms.sum_bits + forms.multiplier_bits, forms.addend_bits) + 1
    products, later = program.forms.scaling, program.forms.scaling.latency + 1
    total = Resources(
        lut=adder(family, whole) + _LIMITS + whole * (products.blocks > 1),
        ff=whole * (1 + (products.blocks > 1)) + forms.addend_bits * later + 3 * (BYTE + 1), dsp=products.blocks,
    )
    if program.forms.adds:
        whole = BYTE + 2 + max(forms.factor_bits, forms.added_bits)
        delays = (BYTE + 1) * (program.first_stage + program.second_stage)
        total += Resources(
            lut=2 * adder(family, whole) + _LIMITS + BYTE, ff=2 * whole + delays + 3 * (BYTE + 1),
            dsp=2 * program.forms.weighing.blocks,
        )
    return total
