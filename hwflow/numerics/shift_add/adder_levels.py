"""Schedule the adders of a network on pipeline levels, minimizing registers.

With a register after every ``span`` levels, a term is kept from its own stage to the last one that uses it. A sum whose
operands have no later use is best computed early: it is narrower than both together. A sum of operands that are kept
for others anyway is best computed late.
"""

from __future__ import annotations

from hwflow.numerics.shift_add.network import Network, width_of


def levels_of(network: Network, span: int = 1, total: int | None = None) -> list[int]:
    """Return a level for each adder, at least 1 and above those of its operands, at most ``total`` (at least, and by
    default, ``network.depth``).

    From the last adder to the first, each moves to the level with the fewest register bits, given all others.
    """
    inputs = len(network.inputs)
    total = network.depth if total is None else total
    levels = list(network.depths)
    widths = [width_of(low, high) for low, high in network.intervals]
    readers: list[list[int]] = [[] for _ in levels]
    for number, adder in enumerate(network.adders, inputs):
        for term in set(adder.operands):
            readers[term].append(number)
    last = -(-total // span)
    outputs = {output.term for output in network.outputs if output.term is not None}

    def end(term: int, without: int) -> int:
        """Return the last stage in which an adder other than ``without`` uses the term."""
        if term in outputs:
            return last + 1
        return max((-(-levels[r] // span) for r in readers[term] if r != without), default=0)

    for number in range(len(levels) - 1, inputs - 1, -1):
        operands = set(network.adders[number - inputs].operands)
        first = 1 + max(levels[term] for term in operands)
        latest = min([levels[r] - 1 for r in readers[number]], default=total)
        if latest <= first:
            continue
        own_end = end(number, -1)
        ends = {term: end(term, number) for term in operands}

        best = None
        for level in range(latest, first - 1, -1):
            stage = -(-level // span)
            kept = widths[number] * (own_end - stage)
            kept += sum(widths[term] * max(stage, end) for term, end in ends.items())
            if best is None or kept < best:
                best, levels[number] = kept, level
    return levels[inputs:]
