"""Sums of products in multiplier blocks with weights that never change: what is the same for several rows is made once,
zeros at a product's low end are in no register, sums are as narrow as their terms. As products with any weight the
sampled cores have more blocks than synthesis finds (60 instead of 56, 2 instead of 1)."""

from __future__ import annotations

from collections.abc import Sequence

from hdl_lib.arithmetic.adder_tree import shape_of
from hdl_lib.arithmetic.block_product import BLOCK_LATENCY
from hwflow.cores.costs.basics import chain, trailing_zeros
from hwflow.cores.operator import Resources
from hwflow.types import IntType

Term = tuple[object, int, int]  # what it is, bits, zeros at its low end
Terms = list[Term | None]  # None: 0


def known_products(
    family: str, x: IntType, rows: Sequence[Sequence[int]], blocks: Sequence[Sequence[bool]]
) -> tuple[Resources, list[Terms]]:
    """Estimate the products of ``rows`` of weights, [rows, lanes], with registers behind them, without multiplier
    blocks, and the rows' terms; ``blocks``: which of them are made in blocks."""
    total, terms = Resources(), []
    made: set[object] = set()
    for weights, in_block in zip(rows, blocks, strict=True):
        row: Terms = []
        for lane, (weight, block) in enumerate(zip(weights, in_block, strict=True)):
            if not weight:
                row.append(None)
                continue
            zeros = trailing_zeros(weight)
            width = int(shape_of(*sorted((weight * x.min, weight * x.max))).width)
            row.append(((lane, weight), width, zeros))
            if (lane, weight) not in made:
                made.add((lane, weight))
                negation = chain(family, width - zeros) if weight < 0 and not block else 0
                total += Resources(lut=negation, ff=BLOCK_LATENCY * (width - zeros))
        terms.append(row)
    return total, terms


def known_sums(
    family: str, rows: Sequence[Terms], levels: int, limit: int
) -> Resources:
    """Estimate the adder trees of ``rows`` of terms, of so many ``levels``, with a register behind every adder and
    every term that is left over; sums are cut to ``limit`` bits."""
    total = Resources()
    made: set[object] = set()
    for row in rows:
        terms = list(row)
        for _ in range(levels):
            sums: Terms = []
            for pair in (terms[index : index + 2] for index in range(0, len(terms), 2)):
                there = [term for term in pair if term is not None]
                if not there:
                    sums.append(None)
                    continue
                key = tuple(term[0] for term in there)
                zeros, width = min(term[2] for term in there), there[0][1]
                if len(there) > 1:
                    width = min(max(term[1] for term in there) + 1, limit)
                sums.append((key, width, zeros))
                if key in made:
                    continue
                made.add(key)
                luts = chain(family, width - max(term[2] for term in there)) if len(there) > 1 else 0
                total += Resources(lut=luts, ff=max(0, width - zeros))
            terms = sums
    return total
