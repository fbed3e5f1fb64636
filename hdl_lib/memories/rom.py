"""Read-only tables: the source of their words, and the synchronous memory that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from amaranth.hdl import ClockSignal, Instance, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

VERILOG = Path(__file__).parents[1] / "verilog" / "hwflow_rom.v"
"""The Verilog module a file-based :class:`Rom` instantiates; it must be read along with the emitted design."""

WRITABLE_VERILOG = VERILOG.with_name("hwflow_ram.v")
"""The one that it instantiates if the table can be written."""


@dataclass(frozen=True, eq=False)
class WritePort:
    """Signals that write a row of a table's memory in a cycle with ``enable``: a word of each bank, bank 0 lowest.
    Somebody else drives them."""

    enable: Signal
    address: Signal
    data: Signal

    @classmethod
    def of(cls, width: int, depth: int) -> WritePort:
        """Return the port of a table of ``depth`` words of ``width`` bits."""
        rows = bank_words(width, depth)
        return cls(
            Signal(name="write"), Signal(max(1, ceil_log2(rows)), name="write_addr"),
            Signal(banks_of(width, depth) * width, name="write_data"),
        )


@dataclass(frozen=True)
class Table:
    """The words of a read-only table: exactly one of ``words`` (written out) and ``file`` (in a ``$readmemh`` file).

    ``words``: ``depth`` bit patterns in ``0 .. 2**width - 1``. ``file``: a path as the tool that reads the Verilog
    sees it. ``width``: bits of a word, at least 1. ``depth``: words, at least 1. ``held``: other words may take their
    place in a bitstream: the table (in a file, of at least two words) lies in block RAM whatever its size, with all
    bits of its words, whatever they are. ``port``: what writes other words in their place while the design runs; such
    a table is held, too.
    """

    words: Sequence[int] | None
    file: str | None
    width: int
    depth: int
    held: bool = False
    port: WritePort | None = None

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Table width must be at least 1 bit, not {self.width}; leave out a table without bits")
        if self.depth < 1:
            raise ValueError(f"Table depth must be at least 1 word, not {self.depth}; leave out an empty table")
        if (self.words is None) == (self.file is None):
            given = "neither" if self.words is None else "both"
            raise ValueError(f"Table must have exactly one of words and file, not {given}; pass None for the other one")
        if self.held and (self.file is None or self.depth < 2):
            raise ValueError("a held Table must have a file of at least 2 words; leave out constants")
        if self.port is not None and not self.held:
            raise ValueError("a Table with a port must be held; leave out the port, or hold it")
        if self.words is not None:
            if len(self.words) != self.depth:
                raise ValueError(
                    f"Table words must be {self.depth} (depth), not {len(self.words)}; "
                    "pad with words that are never read"
                )
            for index, word in enumerate(self.words):
                if not 0 <= word < 1 << self.width:
                    raise ValueError(
                        f"Table word {index} must be in 0..2**{self.width}-1, not {word}; "
                        "mask a negative number to its two's complement"
                    )

    @classmethod
    def of_words(cls, words: Sequence[int], width: int) -> Table:
        """Return a table of these words."""
        return cls(tuple(words), None, width, len(words))


BLOCK_SHAPES = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
"""Words and bits of block RAMs of 18 Kbit."""
DEEPEST = BLOCK_SHAPES[-1][0]
_BANK_SHAPES = BLOCK_SHAPES[:3]  # those that hold the same; deeper ones have no parity bits
_BLOCK_WORTH = 160  # look-up tables and flip-flops that a block RAM is worth
_ROW_BITS = 1 << 16  # of a cell in a netlist, at most
_ROWS_AT_ONCE = 1 << 12  # written: a string each takes many times the memory of its digits
SELECT_REACH = 32
"""Bits of a word for which a register chooses the bank."""


BLOCK_BITS = 2048  # of a table of no more for each of its block RAMs synthesis makes look-up tables
FAR_BITS = 16384  # about a block RAM of the larger families


@cache
def lies_in_block(width: int, depth: int) -> bool:
    """Tell whether a table is large enough for block RAMs of 18 Kbit. If its words go to multiplier blocks alone,
    neither can be placed near the other in a device that is full of them: a register halves the distance."""
    blocks = min(-(-(-(-depth // words) * width) // bits) for words, bits in BLOCK_SHAPES)
    return width * depth > BLOCK_BITS * blocks


def lies_far(width: int, depth: int) -> bool:
    """Tell whether a table takes so many block RAMs that some are far from its reader, so that its words need a
    register on the way."""
    return width * depth >= FAR_BITS


@cache
def bank_words(width: int, depth: int) -> int:
    """Return the words of a bank of a table: 512, 1024 or 2048, the rows of block RAMs of 18 Kbit, or ``depth`` for one
    bank.

    Banks lie side by side in the rows of one memory if that takes fewer block RAMs than a row for every word. Synthesis
    would find the same memory by itself, but would select the bank in front of the output register, which then is not
    the block RAM's own. Few deep banks take fewer look-up tables to select, many shallow ones leave fewer block RAMs
    empty; the cheaper choice is taken. If rows would be wider than a cell may be, in tables many times larger than
    a part holds, there is one bank.
    """
    found = []
    for words, bits in _BANK_SHAPES:
        banks = -(-depth // words)
        if banks * width <= _ROW_BITS:
            found.append((-(-banks * width // bits), banks, words))
    plain = [-(-width // bits) for words, bits in BLOCK_SHAPES[1:] if words >= depth]
    if depth <= _BANK_SHAPES[0][0] or not found or (plain and min(plain) <= min(found)[0]):
        return depth
    # Of each bank but one a register and a look-up table for every bit. One bank is none of them: synthesis would cut
    # it into those with the fewest blocks.
    _, words = min(
        (_BLOCK_WORTH * blocks + 2 * width * (banks - 1), words) for blocks, banks, words in found if banks > 1
    )
    return words


def banks_of(width: int, depth: int) -> int:
    """Return the banks that a table is stored in, 1 or more (:func:`bank_words`)."""
    return -(-depth // bank_words(width, depth))


def readmemh_text(words: Sequence[int], width: int) -> str:
    """Return a table's ``$readmemh`` file: one word per line, with a fixed number of hexadecimal digits, address 0
    first. For a table in banks (:func:`bank_words`) a line is a row: word ``r`` of each bank, bank 0 lowest."""
    rows = _rows(words, width)
    digits = -(-banks_of(width, len(words)) * width // 4)
    some = (rows[begin : begin + _ROWS_AT_ONCE] for begin in range(0, len(rows), _ROWS_AT_ONCE))
    return "".join("".join([f"{row:0{digits}x}\n" for row in part]) for part in some)


def _rows(words: Sequence[int], width: int) -> Sequence[int]:
    count = bank_words(width, len(words))
    if count == len(words):
        return words
    # Of many banks, numbers written one behind the other are quicker than a sum of shifted ones.
    banks_at = (words[row::count] for row in range(count))
    return [int("".join([f"{word:0{width}b}" for word in reversed(some)]), 2) for some in banks_at]


class Rom(wiring.Component):
    """A read-only memory with one synchronous read port.

    Parameters
    ----------
    width: bits of a word, >= 1.
    depth: number of words, >= 1.
    init: the words (bit patterns), as an Amaranth memory: simulates in Python, for small tables.
    file: path of a ``$readmemh`` file instead: an instance of Verilog module ``hwflow_rom`` (:data:`VERILOG`).
    output_register: one more register behind the memory, for clock speed.
    held, port: as of :class:`Table`.

    Members
    -------
    addr: In. The word to read; values from ``depth`` on give an unspecified word.
    data: Out(width).

    Timing
    ------
    ``latency`` cycles from ``addr`` to ``data``: 1, or 2 with ``output_register``. Unspecified before the first read. A
    word is read in every cycle: an enable would have to reach every bit of a table in look-up tables. Reset has no
    effect.

    Ordering
    --------
    Words arrive in the order of their reads.
    """

    def __init__(
        self,
        width: int,
        depth: int,
        *,
        init: Sequence[int] | None = None,
        file: str | None = None,
        output_register: bool = False,
        held: bool = False,
        port: WritePort | None = None,
    ) -> None:
        self._table = Table(init, file, width, depth, held, port)
        self._output_register = output_register
        # A port of no bits is not Verilog: a table of one word keeps an address bit that is ignored.
        self.address_width = max(1, ceil_log2(depth))
        super().__init__({"addr": In(self.address_width), "data": Out(width)})

    @classmethod
    def of_table(cls, table: Table, *, output_register: bool = False) -> Rom:
        """Return the memory that holds ``table``."""
        return cls(
            table.width, table.depth, init=table.words, file=table.file, output_register=output_register,
            held=table.held, port=table.port,
        )

    @property
    def latency(self) -> int:
        """Return the cycles from ``addr`` to ``data``."""
        return 2 if self._output_register else 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = banks_of(self._table.width, self._table.depth)
        row = self._elaborate_rows(m, banks)
        if self._output_register:
            registered = Signal(len(row), name="word_registered", reset_less=True)
            m.d.sync += registered.eq(row)
            row = registered
        if banks == 1:
            m.d.comb += self.data.eq(row)
        else:
            self._elaborate_choice(m, row, banks)
        return m

    def _elaborate_rows(self, m: Module, banks: int) -> Signal:
        """Build the memory; return the row read a cycle ago."""
        table = self._table
        # A single word is a register that never changes: synthesis makes a constant of it.
        constant = table.words[0] if table.words is not None and table.depth == 1 else None
        row = Signal(banks * table.width, name="word", init=constant or 0, reset_less=True)
        count = bank_words(table.width, table.depth)
        address_width = self.address_width if banks == 1 else ceil_log2(count)
        if table.file is not None:
            port, ports = table.port, {}
            if port is not None:
                ports = {"i_write": port.enable, "i_write_addr": port.address, "i_write_data": port.data}
            elif table.held:
                ports = {"p_HELD": 1}
            m.submodules.table = Instance(
                "hwflow_rom" if port is None else "hwflow_ram",
                p_WIDTH=len(row),
                p_DEPTH=count,
                p_ADDRESS_WIDTH=address_width,
                p_FILE=table.file,
                **ports,
                i_clk=ClockSignal("sync"),
                i_addr=self.addr[:address_width],
                o_data=row,
            )
        elif constant is not None:
            m.d.sync += row.eq(constant)
        else:
            rows = list(_rows(table.words or (), table.width))
            m.submodules.table = cells = memory.Memory(shape=len(row), depth=len(rows), init=rows)
            port = cells.read_port(domain="sync")
            m.d.comb += [port.addr.eq(self.addr[:address_width]), row.eq(port.data)]
        return row

    def _elaborate_choice(self, m: Module, row: Signal, banks: int) -> None:
        """Select the bank's word of a row. The selection is registered once for every few bits, which are far apart."""
        width = self._table.width
        bank = self.addr[ceil_log2(bank_words(width, self._table.depth)) :]
        if self._output_register:
            before = Signal.like(bank, name="bank", reset_less=True)
            m.d.sync += before.eq(bank)
            bank = before
        for low in range(0, width, SELECT_REACH):
            high = min(width, low + SELECT_REACH)
            chosen_bank = Signal.like(bank, name=f"bank_of_{low}", reset_less=True, attrs={"keep": 1})
            m.d.sync += chosen_bank.eq(bank)
            with m.Switch(chosen_bank):
                for index in range(banks):
                    start = index * width
                    with m.Case(index) if index < banks - 1 else m.Default():
                        m.d.comb += self.data[low:high].eq(row[start + low : start + high])
