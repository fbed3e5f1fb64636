"""Sums of products of look-up tables with weights of which the table is looked at: what is the same for several rows is
made once, what is 0 in all words not at all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.digit_product import Digits
from hwflow.cores.costs.basics import chain
from hwflow.cores.costs.products.row_sums import digit_products
from hwflow.cores.operator import Resources
from hwflow.ir.graph import IntArray
from hwflow.types import Interval, IntType

Key = Hashable


def shared_sums(
    family: str, rows: Sequence[Sequence[Key | None]], low: int, high: int, limit: int, *, carried: bool
) -> Resources:
    """Estimate the adder trees of ``rows`` of terms within ``low .. high``, cut to ``limit`` bits; None: a term that is
    0. A register is behind every adder and every term that is left over; ``carried``: sums are one place longer, and
    hand a carry on."""

    def width(count: int) -> int:
        return int(min(limit, shape_of(count * low - carried, count * high).width))

    total, made = Resources(), set()
    for row in rows:
        terms = [(key, 1, width(1)) for key in row]  # a sum, of so many lanes, of so many bits
        while len(terms) > 1:
            sums: list[tuple[Key | None, int, int]] = []
            for index in range(0, len(terms), 2):
                pair = terms[index : index + 2]
                there = [term for term in pair if term[0] is not None]
                count = sum(count for _, count, _ in pair)
                held = width(count) if len(there) > 1 else there[0][2] if there else 0
                key = tuple(there) if there else None
                sums.append((key, count, held))
                if key is None or key in made:
                    continue
                made.add(key)
                total += Resources(lut=chain(family, held) if len(there) > 1 else 0, ff=held + carried)
            terms = sums
    return total


def digit_sums(
    family: str, x: IntType, digits: Digits, weights: IntArray, limit: int, accumulated: bool
) -> Resources:
    """Estimate the sums of ``weights`` [words, rows, lanes] (:mod:`hdl_lib.arithmetic.digit_product`)."""
    rows = [
        [(lane, tuple(words)) if any(words) else None for lane, words in enumerate(row)]
        for row in weights.transpose(1, 2, 0).tolist()
    ]
    made = list({key: None for keys in rows for key in keys if key is not None})
    products = digit_products(family, x, digits, [words for _, words in made], [lane for lane, _ in made])
    product = x.interval.times(Interval(*digits.range))
    low, high = product.lo, product.hi
    total = products + shared_sums(family, rows, low, high, limit, carried=True)
    if not accumulated:
        lanes = weights.shape[2]
        different = len({tuple(keys) for keys in rows if any(key is not None for key in keys)})
        held = int(min(limit, shape_of(low * lanes - 1, high * lanes).width))
        total += Resources(lut=chain(family, held), ff=held).times(different)
    return total


def table_products(
    family: str, weights: IntArray, low: int, high: int, limit: int, product: Callable[[int], Resources]
) -> Resources:
    """Estimate products within ``low .. high`` that are one table per bit, or a choice (``product``: of so many bits),
    and their sums."""
    rows = [
        [(lane, tuple(words)) if any(words) else None for lane, words in enumerate(row)]
        for row in weights.transpose(1, 2, 0).tolist()
    ]
    made = {key for keys in rows for key in keys if key is not None}
    total = product(int(shape_of(low, high).width)).times(len(made))
    return total + shared_sums(family, rows, low, high, limit, carried=False)
