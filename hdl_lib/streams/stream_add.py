"""The sum of two streams, each multiplied by constants."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Shape, Signal, Value

from hdl_lib.arithmetic.adder_tree import Term, registered, tree_levels
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY, block_product
from hdl_lib.arithmetic.multiplier import FORMS, PART, Multiplier, ProductForm, interval
from hdl_lib.arithmetic.signed_sum import Register, Summand, planned, signed_digits, signed_sum
from hdl_lib.blocks import ONE_TURN, Turns, count_in_turns
from hdl_lib.memories.rom import Rom, Table
from hdl_lib.streams.joined import Joined

_READ_LATENCY = 2  # of a table: its memory and the register behind it
_FACTOR_LATENCY = 1 + BLOCK_LATENCY  # of a product with a constant, its operand in a register


class StreamAdd(Joined):
    """``o = ma * a + mb * b``, element by element, with a multiplier of each input for each channel.

    Exact modulo ``2**output_shape.width``: correct wherever the result lies in the range of ``output_shape``.

    Parameters
    ----------
    input_shapes, output_shape: of an element of ``a`` and ``b``, and of the sum; integer shapes.
    lanes, channels: elements per beat and elements per pixel; ``blocks = ceil(channels / lanes)`` beats per pixel.
    multipliers: of ``a`` and of ``b``: integers that are not 0, one for all channels or one per channel.
    multiplier: "dsp" (products in multiplier blocks) or "lut" (sums of shifted inputs). A multiplier that is a power of
        two, or the negative of one, costs nothing in either form.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.
    part: in the form "dsp" multipliers of more bits are split into parts of so many, each with its own block; the tree
        of the sum adds them, so that no adder follows a block in the same cycle.
    tables: of ``a`` and of ``b``; needed where multipliers differ between beats (:attr:`table_shapes` tells), else
        None. The words of :meth:`AddPlan.words`: for each lane, lane 0 in the least significant bits, the multiplier in
        two's complement of its shape.
    held: the shapes of the multiplier of ``a`` and of ``b``, one each for all channels, whatever the tables hold: two
        equal words of one multiplier.
    turns: (rounds, pixels): there are multipliers, one or one per channel, for so many rounds, which follow each other;
        those of each serve so many pixels before the next ones come.

    Members
    -------
    a, b: In(stream). Elements of the inputs.
    o: Out(stream). Sums; lanes beyond ``channels`` in a pixel's last beat are unspecified.

    Timing
    ------
    As :class:`hdl_lib.streams.joined.Joined` says; :attr:`latency` cycles from a step to ``o.valid``: the products
    where there are any (4 in the form "dsp"; with a table 2 and those of
    :class:`hdl_lib.arithmetic.multiplier.Multiplier`), a register for each level of the sum, 1 for the output queue.
    Initiation interval 1 cycle per beat. Under backpressure no step begins; those begun continue.

    Ordering
    --------
    Beats leave in the order they came; beat n of ``a`` meets beat n of ``b``.
    """

    def __init__(
        self,
        input_shapes: Sequence[Shape],
        output_shape: Shape,
        *,
        lanes: int,
        channels: int,
        multipliers: Sequence[Sequence[int]],
        multiplier: ProductForm,
        depth: int,
        part: int = PART,
        tables: Sequence[Table | None] = (None, None),
        turns: Turns = ONE_TURN,
        held: tuple[Shape, Shape] | None = None,
    ) -> None:
        if held is not None and (turns[0] > 1 or any(len(values) > 1 for values in multipliers)):
            raise ValueError("multipliers that are held must be one for all channels and rounds")
        if multiplier not in FORMS:
            raise ValueError(f"multiplier must be one of {', '.join(FORMS)}, not {multiplier!r}")
        for values in multipliers:
            if len(values) not in (1, turns[0], turns[0] * channels):
                each = f", in {turns[0]} rounds" if turns[0] > 1 else ""
                raise ValueError(f"multipliers must be 1 or {channels} (one per channel){each}, not {len(values)}")
            if not all(values):
                raise ValueError("multipliers must not be 0")
        super().__init__(input_shapes, output_shape, lanes=lanes, channels=channels, depth=depth)
        self.turns = turns
        self.plan = AddPlan(
            self.input_shapes, self.output_shape.width, lanes, channels, multipliers, multiplier, part, turns[0], held
        )
        for index, (name, table, shape) in enumerate(zip("ab", tables, self.table_shapes, strict=True)):
            words = len(self.plan.words(index))
            if (table is None) != (shape is None):
                needed = "no table" if shape is None else "a table"
                raise ValueError(f"{name} needs {needed} of multipliers")
            width = 0 if shape is None else self.plan.columns * shape.width
            if table is not None and (table.width, table.depth) != (width, words):
                raise ValueError(
                    f"the table of {name} must have {words} words of {width} bits, not {table.depth} of {table.width}"
                )
        self.table_a, self.table_b = tables

    @property
    def table_shapes(self) -> tuple[Shape | None, ...]:
        """Return the shape of a multiplier in the table of ``a`` and of ``b``; None without a table."""
        return self.plan.table_shapes

    @property
    def latency(self) -> int:
        """Return the cycles from a step to ``o.valid``."""
        return self.plan.latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue, step, payloads = self._issue(m)
        plan = self.plan
        words: list[Value | None] = []
        rounds, pixels = self.turns
        for name, table in (("a", self.table_a), ("b", self.table_b)):
            if table is None:
                words.append(None)
                continue
            m.submodules[f"multipliers_{name}"] = rom = Rom.of_table(table, output_register=True)
            blocks = table.depth // rounds
            turns = rounds, max(1, pixels * self.blocks // blocks)
            m.d.comb += rom.addr.eq(count_in_turns(m, f"block_{name}", blocks, turns, step))
            words.append(rom.data)
        for lane in range(self.lanes):
            summands: list[Summand] = []
            for index, (name, payload) in enumerate(zip("ab", payloads, strict=True)):
                summands += self._summands(m, lane, index, name, payload[lane], words[index])
            total = signed_sum(m, f"sum_{lane}", summands, plan.levels, self.output_shape.width)
            m.d.comb += queue.payload[lane].eq(total)
        return m

    def _summands(
        self, m: Module, lane: int, index: int, name: str, x: Value, word: Value | None
    ) -> list[Summand]:
        """Return the summands of one input in one lane, ``plan.product_latency`` cycles after the step."""
        plan, shape = self.plan, self.input_shapes[index]
        low, high = interval(shape)
        if word is None:
            operand: Value | None = None
            summands: list[Summand] = []
            for number, (factor, digits) in enumerate(plan.constant(index, lane)):
                label = f"{name}_{lane}" if number == 0 else f"{name}_{lane}_part{number}"
                term, delay = Term(x, low, high), plan.product_latency
                if factor > 1:
                    if operand is None:
                        operand = Value.cast(registered(m, f"{label}_operand", term).value)
                    product = Term(operand * factor, low * factor, high * factor)
                    term = block_product(m, f"{label}_product", product)
                    delay -= _FACTOR_LATENCY
                for stage in range(delay):
                    term = registered(m, f"{label}_{stage}", term)
                value = Value.cast(term.value)
                summands += [Summand(value, term.low, term.high, bit, minus) for bit, minus in digits]
            return summands
        multiplier = plan.products[index]
        assert multiplier is not None, "a table has a multiplier"
        label = f"{name}_{lane}"
        weight = Signal(multiplier.weight_shape, name=f"{label}_multiplier")
        m.d.comb += weight.eq(word.word_select(lane if plan.columns > 1 else 0, multiplier.weight_shape.width))
        arrived = Term(x, low, high)
        for stage in range(_READ_LATENCY):
            arrived = registered(m, f"{label}_arrived_{stage}", arrived)
        operand = multiplier.operand(m, label, Value.cast(arrived.value))
        held: Value = weight
        for stage in range(multiplier.operand_latency - multiplier.weight_lead):
            later = Signal(multiplier.weight_shape, name=f"{label}_multiplier_{stage}", reset_less=True)
            m.d.sync += later.eq(held)
            held = later
        term = multiplier.product(m, f"{label}_product", operand, held)
        for stage in range(plan.product_latency - plan.tabled_latency(index)):
            term = registered(m, f"{label}_{stage}", term)
        return [Summand(Value.cast(term.value), term.low, term.high)]


class AddPlan:
    """The structure of a :class:`StreamAdd`: its tables, products and sums of shifted inputs, and their timing.

    ``products``: the multiplier of each input that has a table, else None; ``product_latency``: cycles from a step to
    the summands; ``levels``: of the sum; ``columns``: multipliers in a word of a table.
    """

    def __init__(
        self,
        input_shapes: Sequence[Shape],
        width: int,
        lanes: int,
        channels: int,
        multipliers: Sequence[Sequence[int]],
        form: ProductForm,
        part: int = PART,
        rounds: int = 1,
        held: tuple[Shape, Shape] | None = None,
    ) -> None:
        self.input_shapes = tuple(input_shapes)
        self.width = width
        self.lanes = lanes
        self.form = form
        self.part = part
        self.rounds = rounds
        self.held = held
        self.columns = lanes if held is None else 1
        blocks = -(-channels // lanes)
        self.multipliers = [
            tuple(values[:1]) if len(set(values)) == 1 else tuple(values) for values in multipliers
        ]
        self.table_shapes: tuple[Shape | None, ...] = held or tuple(
            None if rounds * blocks == 1 or len(values) == 1 else _shape_holding(values) for values in self.multipliers
        )
        self.products = [
            None if weight is None else Multiplier(shape, weight, form, part)
            for shape, weight in zip(self.input_shapes, self.table_shapes, strict=True)
        ]
        times = [self.tabled_latency(index) for index, product in enumerate(self.products) if product]
        constants = [self.constant(i, lane) for i in (0, 1) if not self.products[i] for lane in range(lanes)]
        in_blocks = any(factor > 1 for parts in constants for factor, _ in parts)
        self.product_latency = max([*times, _FACTOR_LATENCY if in_blocks else 0])
        self.levels = max(1, *(tree_levels(len(self.summands(lane))) for lane in range(lanes)))

    @property
    def latency(self) -> int:
        return self.product_latency + self.levels + 1

    def words(self, index: int) -> list[tuple[int, ...]]:
        """Return the multipliers of each lane in the words of the table of an input, zeros in lanes without a channel:
        a word for each block of each round, or for each round where channels are alike."""
        values, lanes = self.multipliers[index], self.columns
        if self.held is not None:
            return [(values[0],)] * 2  # a table of one word is a constant
        own = len(values) // self.rounds
        if own <= 1:
            return [(value,) * lanes for value in values]
        padded = -own % lanes
        rows = [(*values[begin : begin + own], *[0] * padded) for begin in range(0, len(values), own)]
        return [row[first : first + lanes] for row in rows for first in range(0, own, lanes)]

    def constant(self, index: int, lane: int) -> list[tuple[int, list[tuple[int, bool]]]]:
        """Return the multiplier of a lane as a sum of parts, each ``factor`` times the sum of its digits; the factor is
        an odd number above 1 if a multiplier block computes the product, else 1."""
        values = self.multipliers[index]
        value = values[0] if len(values) == 1 or lane >= len(values) else values[lane]
        digits = signed_digits(value)
        if self.form == ProductForm.LUT or len(digits) == 1 or self.input_shapes[index].width == 1:
            return [(1, digits)]
        parts, rest, bit = [], abs(value), 0
        while rest:
            zeros = (rest & -rest).bit_length() - 1
            rest, bit = rest >> zeros, bit + zeros
            parts.append((rest & ((1 << self.part) - 1), [(bit, value < 0)]))
            rest, bit = rest >> self.part, bit + self.part
        return parts

    def tabled_latency(self, index: int) -> int:
        """Return the cycles from a step to the product of an input with a table."""
        product = self.products[index]
        assert product is not None, "only inputs with a table have a product"
        return _READ_LATENCY + product.operand_latency + product.latency

    def summands(self, lane: int) -> list[Summand]:
        """Return the summands of a lane, without values."""
        result = []
        for index, (shape, product) in enumerate(zip(self.input_shapes, self.products, strict=True)):
            low, high = interval(shape)
            if product is None:
                for number, (factor, digits) in enumerate(self.constant(index, lane)):
                    ends, key = (low * factor, high * factor), (index, number) if number else index
                    result += [Summand(None, *ends, bit, minus, key) for bit, minus in digits]
            else:
                corners = [x * w for x in (low, high) for w in interval(product.weight_shape)]
                result.append(Summand(None, min(corners), max(corners), key=index))
        return result

    def registers(self, lane: int) -> list[Register]:
        """Return the registers of a lane's sum."""
        return planned(self.summands(lane), self.levels, self.width)


def _shape_holding(values: Sequence[int]) -> Shape:
    """Return the narrowest shape for all of ``values``."""
    low, high = min(values), max(values)
    if low >= 0:
        return Shape(max(1, high.bit_length()))
    return Shape(max((~low).bit_length(), max(0, high).bit_length()) + 1, signed=True)
