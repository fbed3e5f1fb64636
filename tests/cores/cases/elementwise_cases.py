"""Cases of functions of several streams, element by element."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hwflow.cores.operator import Folding
from hwflow.ir.graph import Node
from hwflow.ir.integer_functions import (
    MAXIMUM,
    MINIMUM,
    Function,
    Magnitude,
    Modulus,
    Multiplied,
    Quotient,
    Remainder,
    Shifted,
    Simple,
    Times,
)
from hwflow.types import Interval, IntType, TensorType
from tests.cores.harness import Case, Frames

U1, U4, U8, U16, U32 = (IntType(bits, False) for bits in (1, 4, 8, 16, 32))
I2, I4, I8, I32 = (IntType(bits, True) for bits in (2, 4, 8, 32))


def _all_ends(node: Node) -> Frames:
    """Every combination of the ends of the inputs' intervals: enough for what is monotone in each."""
    ends = []
    for value in node.inputs:
        ranges = value.typed.channel_intervals(1)
        ends.append([np.broadcast_to([getattr(r, e) for r in ranges], value.typed.shape) for e in ("lo", "hi")])
    return [np.stack(arrays) for arrays in zip(*itertools.product(*ends), strict=True)]


def _case(
    name: str, function: Function, elements: tuple[IntType, ...], lanes: tuple[int, ...], *,
    wrap: IntType | None = None, constants: tuple[int | npt.NDArray[np.int64] | None, ...] = (),
    shape: tuple[int, int] = (4, 3), intervals: tuple[tuple[Interval, ...], ...] = (), monotone: bool = False,
    kinds: tuple[str, ...] = ("",),
) -> Case:
    types = [TensorType(shape, element, element.interval) for element in elements]
    if intervals:
        types = [TensorType.of(shape, ranges, 1) for ranges in intervals]
    attributes = {"function": function, "constants": constants or (None,) * len(elements), "wrap": wrap}
    corners: Callable[[Node], Frames] | None = _all_ends if monotone else None
    foldings = tuple(Folding(n, n, 0, kind) for n in lanes for kind in kinds)
    return Case(name, "elementwise", attributes, types[0], foldings, corners, tuple(types[1:]))


def _tensor(element: IntType, shape: tuple[int, int] = (4, 3)) -> npt.NDArray[np.int64]:
    """Both ends of the type among its values."""
    values = np.random.default_rng(element.bits).integers(element.min, element.max, shape, endpoint=True)
    values.reshape(-1)[:2] = element.min, element.max
    return values


ELEMENTWISE = [
    _case("add", Simple("add"), (U8, I8), (1, 2, 6), monotone=True),
    _case("add_wrapped", Simple("add"), (U8, U8), (3,), wrap=U8),
    _case("add_constant", Simple("add"), (I8,), (3,), constants=(None, 300), monotone=True),
    _case("constant_minus", Simple("sub"), (U4,), (2,), constants=(5, None), monotone=True),
    _case("sub_wide", Simple("sub"), (U32, U32), (2,), wrap=U32),
    _case("and", Simple("and"), (I8, U4), (3,)),
    _case("or_of_bits", Simple("or"), (U1, U1), (12,), monotone=True),
    _case("xor", Simple("xor"), (I8, I4), (2,)),
    _case("not", Simple("not"), (U8,), (3,), wrap=U8, monotone=False),
    _case("not_of_bits", Simple("not"), (U1,), (1,), wrap=U1),
    _case("equal", Simple("equal"), (I4, U4), (1,)),
    _case("equal_wide", Simple("equal"), (I32, I32), (2,), monotone=True),
    _case("equal_constant", Simple("equal"), (I4,), (3,), constants=(None, -3)),
    _case("greater", Simple("greater"), (U8, I8), (3,), monotone=True),
    _case("greater_or_equal", Simple("greater_or_equal"), (I32, I32), (1,), monotone=True),
    _case("less", Simple("less"), (I8, I8), (2,), monotone=True),
    _case("less_or_equal", Simple("less_or_equal"), (U4, U4), (6,), constants=(None, None), monotone=True),
    _case("where", Simple("where"), (U1, I8, U8), (1, 3), monotone=True),
    _case("where_constant", Simple("where"), (U1, I8), (3,), constants=(None, 100, None), monotone=True),
    _case("wrap", Simple("wrap"), (I32,), (3,), wrap=I8),
    _case("max", MAXIMUM, (I8, U4), (1, 3), monotone=True),
    _case("min_wide", MINIMUM, (I32, I32), (2,), monotone=True),
    _case("min_constant", MINIMUM, (I32,), (1,), constants=(None, 1000), monotone=True),
    _case("magnitude", Magnitude(), (I8,), (3,), wrap=I8),
    _case("magnitude_wide", Magnitude(), (I32,), (2,), wrap=None),
    _case("times", Times(-91), (I8,), (1, 3), monotone=True),
    _case("times_wrapped", Times(200), (U8,), (3,), wrap=U8),
    _case("times_power", Times(8), (I8,), (3,), monotone=True),
    _case("left", Shifted(True, 8), (U8, U8), (2,), wrap=U8),
    _case("left_by_few", Shifted(True, 32), (I32, I4), (1,), wrap=I32),
    _case("left_by_constant", Shifted(True, 16), (U4,), (3,), wrap=U16, constants=(None, 3), monotone=True),
    _case("right", Shifted(False, 8), (I8, I8), (3,)),
    _case("right_wide", Shifted(False, 32), (I32, I32), (1,)),
    _case("right_without_sign", Shifted(False, 32), (U32, I2), (2,)),
    _case("quotient", Quotient(), (I8, I8), (1, 2), wrap=I8),
    _case("quotient_without_sign", Quotient(), (U16, U8), (1,)),
    _case("quotient_of_constant", Quotient(), (I8,), (1,), constants=(None, 7), monotone=True),
    _case("quotient_wide", Quotient(), (I32, I32), (1,), wrap=I32, shape=(2, 2)),
    _case("remainder", Remainder(), (I8, I4), (2,)),
    _case("modulus", Modulus(), (I8, I8), (1, 3)),
    _case("modulus_without_sign", Modulus(), (U8, U4), (3,)),
    _case("modulus_of_negative", Modulus(), (I8,), (1,), constants=(None, -5)),
    _case("add_tensor", Simple("add"), (U8,), (1, 2, 3, 12), constants=(None, _tensor(I8))),
    _case("tensor_or_tensor", Simple("where"), (U1,), (1, 3), constants=(None, _tensor(I8), _tensor(U4))),
    _case("by_a_tensor", Modulus(), (I8,), (3,), constants=(None, _tensor(I4))),
    _case(
        "times_tensor", Multiplied(), (I8,), (1, 3), constants=(None, _tensor(IntType(6, True))), kinds=("dsp", "lut"),
    ),
    _case("product_wrapped", Multiplied(), (I32, I32), (1,), wrap=I32, kinds=("lut",)),
    _case(
        "intervals", Simple("add"), (I8, I8), (2,), shape=(3, 2), monotone=True,
        intervals=((Interval(-3, 5), Interval(0, 100)), (Interval(-9, 1), Interval(4, 4))),
    ),
]
