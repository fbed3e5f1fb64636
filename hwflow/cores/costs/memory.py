"""Memories: read-only tables, buffers, queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, log2

import numpy as np
import numpy.typing as npt

from hdl_lib.memories.buffer_memory import memory_parts
from hdl_lib.memories.rom import DEEPEST, SELECT_REACH, banks_of
from hdl_lib.memories.storage import REGISTER_DEPTH, StorageStyle
from hwflow.cores.costs.changing import Changing, changing_columns, changing_numbers
from hwflow.cores.costs.family import FAMILIES
from hwflow.cores.costs.plain_tables import plain_tables, without_idle_bits
from hwflow.cores.memory_words import bit_table
from hwflow.cores.operator import Resources
from hwflow.ir.graph import IntArray

BitArray = npt.NDArray[np.uint8]


@lru_cache(maxsize=1 << 14)
def block_ram_shape(family: str, words: int, width: int, *, writable: bool) -> tuple[int, tuple[int, int]]:
    """Return the block RAMs for a memory, and the shape (words, bits) they are used in: of those that take the fewest
    the one that leaves least of them empty. In a memory that is never written a row may hold several words."""

    def blocks(shape: tuple[int, int]) -> int:
        depth, bits = shape
        if writable:
            return ceil(words / depth) * ceil(width / bits)
        return ceil(ceil(words / depth) * width / bits)

    best = min(FAMILIES[family].bram_shapes, key=lambda shape: (blocks(shape), shape[0] * shape[1]))
    return blocks(best), best


def block_rams(family: str, words: int, width: int) -> int:
    """Return the fewest block RAMs for a memory over the primitive's shapes."""
    return block_ram_shape(family, words, width, writable=True)[0]


def read_only_block_rams(family: str, words: int, width: int) -> int:
    """Return the same for a read-only memory."""
    return block_ram_shape(family, words, width, writable=False)[0]


def table_writer(words: int, width: int) -> Resources:
    """Estimate what writes a loadable table (:class:`hdl_lib.loading.table_writer.TableWriter`): a row, the line, an
    address."""
    banks = banks_of(width, words)
    address = max(1, (-(-words // banks) - 1).bit_length())
    return Resources(lut=6, ff=banks * width + 2 * address + 17)


@lru_cache(maxsize=1 << 12)
def rom(
    family: str, words: int, width: int, changing: Changing | None = None, *, held: bool = False
) -> Resources:
    """Estimate a synchronous read-only table with an output register; ``changing``: of its bits (None: all); ``held``:
    in block RAM, whatever its size."""
    changing = changing or Changing.every(words, width)
    banks, width = banks_of(width, words), changing.bits
    if words == 1 or not width:
        return Resources()
    blocks = read_only_block_rams(family, words, width)
    if held or words * width > 16 * FAMILIES[family].bram_cost * blocks:
        if banks > 1:
            return _banked(family, words, banks, changing, True)
        return Resources(lut=_deep_choice(words, width), ff=width, bram=blocks)
    # A bit's function of the address; of few words there are few functions, shared by the bits that have the same.
    kinds = float(1 << words) if words <= 10 else float("inf")
    different = width if kinds == float("inf") else ceil(kinds * (1 - (1 - 1 / kinds) ** width))
    tables = max(1, ceil(words / 16))
    each = tables * (1 + 0.14 * max(0.0, log2(tables) - 2))
    return Resources(lut=ceil(different * each), ff=2 * different)


def filled_rom(family: str, words: Sequence[int], width: int, *, output_register: bool = True) -> Resources:
    """Estimate a synchronous read-only table of known words, patterns of ``width`` bits: see :func:`filled_table`."""
    return filled_table(family, bits_of_words(words, width), output_register=output_register)


def filled_table(family: str, bits: BitArray, *, output_register: bool = True) -> Resources:
    """Estimate a synchronous read-only table of known ``bits`` [words, bits]: a bit that is the same in all words costs
    nothing, and of bits that are alike in all words look-up tables hold one.

    Of logic, a block of 16 words is a look-up table; 32 to 128 words are made of such blocks with multiplexers of the
    device's own. A half in which a bit never changes is a reset of the bit's register (without this TFC 2w2a is
    predicted 11.4 % above its look-up tables, 4.9 % with), and an address bit that goes through to it takes no table.
    Blocks of 16 words that are alike are made once, but not in tables of more than 32 words, which are mapped for the
    fewest levels (shared there too, a binary search is 22 % below). Where there are no multiplexers but
    look-up tables, see :mod:`hwflow.cores.costs.plain_tables`.
    """
    words, width = bits.shape
    changing = (bits != bits[:1]).any(axis=0)
    count = int(changing.sum())
    if not count:
        return Resources()
    narrow = FAMILIES[family].lutram is None  # of tables alone, whose multiplexers are tables as well
    in_blocks = _in_blocks(family, (words, width), count, lambda: changing_columns(bits), output_register)
    if in_blocks is not None:
        return in_blocks
    stored = (bits.T[changing] + ord("0")).tobytes()
    columns = [stored[start : start + words] for start in range(0, len(stored), words)]
    if narrow:
        luts, functions = plain_tables(columns)
        return Resources(lut=luts, ff=functions * (1 + output_register))
    size = 1 << (words - 1).bit_length()
    different = {column + column[-1:] * (size - words) for column in set(columns)}
    made = set(map(without_idle_bits, different))
    if size != 16:  # a table of 16 words stays a look-up table as it is
        made = set(map(_without_resets, made))
    blocks: set[bytes] = set()
    luts = sum(_tables(function, blocks) for function in made - {b"01"})
    return Resources(lut=luts + len(blocks), ff=len(different) * (1 + output_register))


def filled_numbers(family: str, words: IntArray, width: int, *, output_register: bool = True) -> Resources:
    """Estimate the same of numbers, in two's complement of ``width`` bits: a table in block RAMs is not taken apart."""
    count = (int(np.bitwise_or.reduce(words ^ words[0])) & (1 << width) - 1).bit_count()
    column = words[:, np.newaxis]
    in_blocks = _in_blocks(
        family, (len(words), width), count, lambda: changing_numbers(column, [width]), output_register
    )
    if in_blocks is not None:
        return in_blocks
    return filled_table(family, bit_table(column, width), output_register=output_register)


def _in_blocks(
    family: str, shape: tuple[int, int], count: int, changing: Callable[[], Changing], output_register: bool
) -> Resources | None:
    """Estimate a table of known [words, bits], ``count`` of which change, in block RAMs; None where it is smaller in
    logic."""
    words, width = shape
    blocks, _ = block_ram_shape(family, words, count, writable=False)
    if words * count <= 16 * FAMILIES[family].bram_cost * blocks:
        return None
    banks = banks_of(width, words)
    if banks > 1:
        return _banked(family, words, banks, changing(), output_register)
    choice = BLOCK_CHOICE.get(_rows_of_blocks(family, words, count, blocks), 0)
    return Resources(lut=choice * count + _deep_choice(words, count), ff=count * output_register, bram=blocks)


def bits_of_words(words: Sequence[int], width: int) -> BitArray:
    """Return the [words, bits] of patterns of ``width`` bits, the lowest first."""
    if width < 64:  # a word is a number that numpy knows
        octets = np.array(words, dtype="<u8").view(np.uint8).reshape(len(words), 8)
        return np.unpackbits(octets, axis=1, bitorder="little")[:, :width]
    digits = "".join([f"{word:0{width}b}" for word in words])
    return np.frombuffer(digits.encode(), dtype=np.uint8).reshape(len(words), width)[:, ::-1] & np.uint8(1)


def _banked(family: str, words: int, banks: int, changing: Changing, output_register: bool) -> Resources:
    """Estimate a table in several banks (:func:`hdl_lib.memories.rom.banks_of`). Measured when this was written: as one
    bank, lenet300 is predicted 28 % below its look-up tables."""
    blocks = read_only_block_rams(family, ceil(words / banks), changing.columns)
    select = (banks - 1).bit_length() * (ceil(changing.bits / SELECT_REACH) + output_register)
    # A bank's bit that never changes takes no place in the choice.
    choice = round(BANK_CHOICE.get(banks, EACH_BANK * banks) / (banks - 1) * (changing.columns - changing.bits))
    return Resources(lut=choice, ff=changing.columns * output_register + select, bram=blocks)


# Look-up tables that choose a bit of a word from so many banks, as measured; of more, so many for each.
BANK_CHOICE = {2: 1, 3: 2, 4: 3, 5: 6}
EACH_BANK = 1.4


def _deep_choice(words: int, width: int) -> int:
    """Count the look-up tables that choose among the block RAMs of a bit where a table is deeper than any, in one bank:
    by synthesis, of the deepest ones."""
    return round(EACH_BANK * ceil(words / DEEPEST) * width) if words > DEEPEST else 0


@lru_cache(maxsize=1 << 12)  # of few words there are few columns
def _without_resets(column: bytes) -> bytes:
    """Return what is left of a bit of a table, a function of all its address bits, behind halves in which it never
    changes."""
    while len(column) > 2:
        left = [half for half in _halves(column) if _changes(half)]
        if len(left) != 1:
            break
        column = without_idle_bits(left[0])
    return column


def _tables(column: bytes, blocks: set[bytes]) -> int:
    """Count the look-up tables of a bit of a table, but for those of 16 words, which are added to ``blocks``."""
    if len(column) > 128:  # each half for itself
        return 1 + sum(_tables(_without_resets(half), blocks) for half in _halves(column) if _changes(half))
    if len(column) > 32:
        return len(column) // 16
    blocks |= {column[start : start + 16] for start in range(0, len(column), 16)}
    return 0


def _halves(column: bytes) -> tuple[bytes, bytes]:
    middle = len(column) // 2
    return column[:middle], column[middle:]


def _changes(column: bytes) -> bool:
    """Tell whether a bit, given by its values in all words, changes."""
    return b"0" in column and b"1" in column


def _rows_of_blocks(family: str, words: int, width: int, blocks: int) -> int:
    """Count block RAMs one behind the other, as few as there can be in so many ``blocks``."""
    rows = [(ceil(words / depth), bits) for depth, bits in FAMILIES[family].bram_shapes]
    return min(count for count, bits in rows if ceil(count * width / bits) == blocks)


@lru_cache(maxsize=1 << 12)
def in_block_ram(family: str, words: int, width: int) -> int:
    """Return the block RAMs that yosys takes for a memory that is written and read, 0 if it makes it of something
    else."""
    device, blocks = FAMILIES[family], block_rams(family, words, width)
    if device.lutram is None:
        return blocks if device.bram_cost * blocks + BLOCK_EXTRA < words * width else 0
    rows = ceil(words / 16)
    # What memory_libmap of yosys 0.70 prints with its debug messages on; half a point per bit of each further row's
    # multiplexer, the rest for addresses.
    flat = device.lutram_cost * ceil(width / 4) * rows + width * (rows - 1) / 2 + (rows + 4) / 2
    return blocks if device.bram_cost * blocks + 2 <= flat else 0


# What memory_libmap charges for a block RAM besides, without look-up table memories: a read port of its own (1) and a
# first value of the register at the port, which blocks of such families have not (2), each twice.
BLOCK_EXTRA = 6


@lru_cache(maxsize=1 << 12)
def asynchronous_memory(family: str, words: int, width: int) -> Resources:
    """Estimate a memory read in the same cycle."""
    per_block = FAMILIES[family].lutram
    if words == 1:
        return Resources(ff=width)
    if per_block is None:  # flip-flops and a multiplexer
        share = FLAT_READ[words & (words - 1) > 0] if width <= NARROW or words <= 16 else FLAT_READ[2]
        each = FLAT_CHOICE.get(words, share * words)
        return Resources(lut=words + round(each * width), ff=width * words)
    blocks = ceil(words / 16)
    return Resources(lut=per_block * ceil(width / 4) * blocks + width * (blocks - 1))


@lru_cache(maxsize=1 << 12)
def buffer_memory(family: str, words: int, width: int) -> Resources:
    """Estimate a memory with two registers behind it (:class:`hdl_lib.memories.buffer_memory.BufferMemory`): of several
    parts each has both, with a choice behind them. Small parts are in look-up tables, and the first register is not
    theirs."""
    total, parts = Resources(), memory_parts(width, words)
    for part in parts:
        blocks = in_block_ram(family, part, width)
        total += Resources(ff=width, bram=blocks)
        if not blocks:
            total += asynchronous_memory(family, part, width) + Resources(ff=width)
    if len(parts) > 1:
        choice = BANK_CHOICE.get(len(parts), round(EACH_BANK * len(parts))) * width
        total += Resources(lut=len(parts) + choice, ff=2 * (len(parts) - 1).bit_length())
    return total


# Look-up tables of four inputs per bit of a word, to choose the bit of one word, as measured: of a power of two words,
# of another number; of more than 16 words of more than NARROW bits.
FLAT_READ, NARROW = (0.72, 0.8, 0.9), 100
FLAT_CHOICE = {2: 1, 3: 2, 5: 3, 6: 4, 7: 5, 8: 6}  # the same for a bit of a word
BLOCK_CHOICE = {2: 1, 3: 2, 4: 2, 5: 3}  # of so many block RAMs one behind the other


@lru_cache(maxsize=1 << 12)
def queue(family: str, width: int, depth: int) -> Resources:
    """Estimate an output queue: shift registers up to 4 entries, an asynchronous memory beyond; nothing without
    entries."""
    if not depth:
        return Resources()
    address = (depth - 1).bit_length()
    if depth <= REGISTER_DEPTH:
        control = _REGISTER_QUEUE_LUTS[FAMILIES[family].carry_bits][depth - 1]
        return Resources(lut=width * (depth - 1) + control, ff=depth * width + address + 1 + depth)
    if not width and FAMILIES[family].lutram is None:  # no memory that were addressed
        return Resources(lut=2 * address + 2, ff=2 * address + 1)
    rows = 1 << address if depth <= 16 else depth
    control = 7 * address + 2 if FAMILIES[family].carry_bits > 1 else 6 * address + 1
    return asynchronous_memory(family, rows, width) + Resources(lut=control, ff=4 * address + 2)


# Credits and what says which entries are full: by the bits of a carry cell, and depth.
_REGISTER_QUEUE_LUTS = {2: (6, 10, 14, 17), 1: (5, 8, 12, 15)}


_RELAY_LUTS = (3, 7, 11, 17)  # of its control, by depth


def relay(family: str, width: int, depth: int) -> Resources:
    """Estimate a queue whose entries themselves, or a counter beyond four of them, say whether there is room."""
    if depth <= REGISTER_DEPTH:
        return Resources(lut=width * (depth - 1) + _RELAY_LUTS[depth - 1], ff=depth * (width + 1))
    address = (depth - 1).bit_length()
    return queue(family, width, depth) + Resources(lut=2, ff=-address)


def block_queue(family: str, width: int, depth: int) -> Resources:
    """Estimate a queue in block RAM: a row less than ``depth``, a register behind it. So few bits that no block is
    taken for them are in look-up tables, and the memory's own register is one of flip-flops."""
    rows = max(2, depth - 1)
    address, credits = (rows - 1).bit_length(), (depth - 1).bit_length()
    return Resources(lut=10 + 5 * address, ff=credits + 3 * address + 4) + buffer_memory(family, rows, width)


def delay(family: str, width: int, beats: int, depth: int) -> Resources:
    """Estimate a memory of ``beats`` with two registers behind it, what counts them, and a queue; between a beat and
    the first one the registers of a queue choose."""
    address = (beats - 1).bit_length()
    choice = width if depth > REGISTER_DEPTH else 0
    control = Resources(lut=8 + 6 * address + choice, ff=8 + 4 * address)
    return control + queue(family, width, depth) + buffer_memory(family, beats, width)


_SCARCE = 4  # times as many cells as a block RAM counts as else, where a design would fit but for its block RAMs


def cells(storage: Resources, family: str, *, scarce: bool) -> int:
    """Count look-up tables and flip-flops, with those that block RAMs count as."""
    each = FAMILIES[family].block_ram_cells * (_SCARCE if scarce else 1)
    return storage.lut + storage.ff + each * storage.bram


def cheapest_style(family: str, width: int, depth: int, *, scarce: bool = False) -> StorageStyle:
    """Return the storage of a queue of ``depth`` beats: BLOCK where look-up tables and flip-flops would cost more than
    block RAM takes of a device; else AUTO. ``scarce``: the design would fit but for its block RAMs. A block RAM, whose
    latency is longer, takes more beats to do the same: no queue of so few that registers hold them moves there."""
    if depth <= REGISTER_DEPTH:
        return StorageStyle.AUTO
    ways = (way(family, width, depth) for way in (queue, block_queue))
    flat, block = (cells(way, family, scarce=scarce) for way in ways)
    return StorageStyle.BLOCK if flat > block else StorageStyle.AUTO
