"""Search the foldings: the least initiation interval that fits a budget, and the cheapest foldings for it.

The cost model adds up each node's resources at a folding, with queues of the fewest beats that its own rate allows
(:mod:`hwflow.schedule.search.exploration`), the width converters between nodes whose lanes differ, and the frame
synchroniser of each input. A combination of foldings reaches an interval if each node's cycles do, and fits if no sum
exceeds the budget. Feasibility is monotone in the interval, so the least one is found by binary search over the cycles
of all foldings. Each step, and the cheapest combination at the end, is a problem of
:mod:`hwflow.schedule.search.selection` whose variables are lanes: a node's table has a row for each folding at its
input and output lanes, an edge's for each pair of lanes at its ends. The result is exact under the cost model unless
:data:`hwflow.schedule.search.selection.MOST_UNTIL_FOUND` or ``MOST_SUMS`` ends a search early.

The price does not depend on the budget: it is the sum over the resources of the share of the device that a design
takes, times :data:`WEIGHTS`. A multiplier block thus costs about as much as the look-up tables and flip-flops of a
6-bit product, so that narrower products are cheaper without one; if there are too few blocks, look-up tables take over
where that is cheapest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from math import ceil
from typing import Any, Protocol

import numpy as np

from hwflow.cores.beat_movers import WidthConverterAttributes
from hwflow.cores.operator import Device, Folding, Resources
from hwflow.cores.registry import hardware
from hwflow.display import show
from hwflow.errors import DoesNotFit, Finding, ModelRefused
from hwflow.ir.graph import Graph, Node, Value
from hwflow.schedule.converters import View, steps_between
from hwflow.schedule.search.circuit_nodes import circuit_nodes
from hwflow.schedule.search.elimination import IntArray, Selection, Table
from hwflow.schedule.search.exploration import Explored, explore_foldings, graph_inputs, inserted, resources
from hwflow.schedule.search.selection import cheapest, pareto_rows
from hwflow.schedule.shares import shares

RESOURCES = Resources._fields
# Look-up tables slow routing down most. (A quarter for flip-flops makes a search at the limits ten times as long.)
WEIGHTS = {"lut": 1.0, "ff": 1.0, "dsp": 0.1, "bram": 0.25}
EVEN = {"lut": 1.0, "ff": 1.0, "dsp": 0.2, "bram": 0.5}  # to decide feasibility: any price would do, this one is fast
UNLIMITED = 1 << 40
PRICE_UNITS = 1_000_000_000  # the price of all of the device's look-up tables


_Lanes = tuple[tuple[int, ...], bool, int]
"""Lanes (of each input, or one number for all of them), whether they are of a whole vector (see :class:`Folding`), and
by how many pixels a folding shortens the stream: both of its ends must."""


class Chip(Device, Protocol):
    """A device with its resources."""

    @property
    def lut(self) -> int: ...
    @property
    def ff(self) -> int: ...
    @property
    def dsp(self) -> int: ...
    @property
    def bram(self) -> int: ...


@dataclass(frozen=True)
class Budget:
    """The resources that a design may use. ``leeway``: look-up tables beyond ``lut`` that a whole design with its
    queues may take, within the part and the user's own limits; the folding search does not use them."""

    lut: int
    ff: int
    dsp: int
    bram: int
    leeway: int = 0

    @property
    def of_whole_designs(self) -> Budget:
        """Return the budget with its leeway."""
        return Budget(self.lut + self.leeway, self.ff, self.dsp, self.bram)

    def shortages(self, need: Resources) -> list[tuple[str, int, int]]:
        """Return (resource, needed, available) for each resource that does not suffice."""
        pairs = [(name, int(getattr(need, name)), int(getattr(self, name))) for name in RESOURCES]
        return [(name, wanted, there) for name, wanted, there in pairs if wanted > there]


@dataclass(frozen=True)
class _Options:
    """A node's nondominated foldings: the indices of their lanes among the variables' values, ``needs`` [foldings,
    resources] and ``cycles``."""

    variables: tuple[int, ...]
    foldings: list[Folding]
    places: IntArray
    needs: IntArray
    cycles: IntArray


def price(resources: Resources, device: Chip) -> float:
    """Return the price of resources: 1 for all of the device's look-up tables."""
    total = 0.0
    for name, weight in WEIGHTS.items():
        total += weight * getattr(resources, name) / max(1, getattr(device, name))
    return total


class FoldingSearch:
    """The foldings of a dataflow graph on a device. ``executor``: of processes that help to evaluate them; ``like``:
    the search of a similar graph on the same device, which knows what width converters cost."""

    def __init__(
        self, graph: Graph, device: Chip, budget: Budget, executor: Executor | None = None,
        like: FoldingSearch | None = None,
    ) -> None:
        self._graph, self._device, self._budget = graph, device, budget
        self.price, self._even = (
            np.array([round(PRICE_UNITS * each[n] / max(1, getattr(device, n))) for n in RESOURCES], dtype=np.int64)
            for each in (WEIGHTS, EVEN)
        )
        self._shares = shares(graph)
        self._lanes: list[list[_Lanes]] = []  # the values of each variable
        self._outputs: dict[Node, int] = {}  # the variable of a node's output lanes
        self._inputs: dict[Node, int] = {}
        self._bridges: dict[tuple[Any, ...], dict[int, Resources]] = {} if like is None else like._bridges
        self._converters: dict[tuple[int, int, int, int], Resources] = {} if like is None else like._converters
        explored = explore_foldings(graph, device, executor)
        self._options = {node: self._options_of(node, found) for node, found in zip(graph.nodes, explored, strict=True)}
        self._edges = [self._edge(node, value, reader) for node, value, reader in self._connections()]

    @property
    def foldings(self) -> int:
        """Return the number of foldings of all nodes together."""
        return sum(len(o.foldings) for o in self._options.values())

    def within(self, budget: Budget) -> FoldingSearch:
        """Return the same search for another budget."""
        other = copy(self)
        other._budget = budget
        return other

    @cached_property
    def intervals(self) -> list[int]:
        """Return all candidate intervals, ascending from the fastest that the slowest node can reach."""
        floor = max(int(o.cycles.min()) for o in self._options.values())
        found: IntArray = np.unique(np.concatenate([o.cycles for o in self._options.values()]))
        return [int(c) for c in found if c >= floor]

    def least(self) -> int:
        """Return the least feasible interval. Raises :class:`ModelRefused` if nothing fits."""
        index = bisect_left(range(len(self.intervals)), True, key=lambda i: self._fits(self.intervals[i]))
        if index == len(self.intervals):
            raise DoesNotFit(partial(self.refusal, self.intervals[-1], None))
        return self.intervals[index]

    def best(self) -> tuple[int, dict[Node, Folding]]:
        """Return the least feasible interval with its cheapest foldings. Raises :class:`ModelRefused` if nothing fits.
        """
        return self.for_interval(self.least())

    def for_interval(self, interval: int) -> tuple[int, dict[Node, Folding]]:
        """Return the cheapest foldings of at most ``interval`` cycles. Raises :class:`ModelRefused` if there are none.
        """
        foldings = self.choose(interval)
        if foldings is None:
            best = None if interval < self.intervals[0] else self.least()
            raise ModelRefused(self.refusal(interval, best))
        return interval, foldings

    @cached_property
    def in_circuits(self) -> frozenset[Node]:
        """Return the nodes on circuits through delays: their latencies add up."""
        return circuit_nodes(self._graph)

    def choose(self, interval: int, inside: int | None = None) -> dict[Node, Folding] | None:
        """Return the cheapest foldings of at most ``interval`` cycles that fit, or None. ``inside``: the most cycles of
        those on circuits."""
        found = self._select(interval, self._limits, inside=inside)
        found = found or self._any(interval, inside)  # if the first search ended early
        return None if found is None else found[0]

    def total(self, foldings: dict[Node, Folding]) -> Resources:
        """Return the resources of a combination under the cost model."""
        total = Resources()
        for node, folding in foldings.items():
            total += self.resources(node, folding)
        for node, value, reader in self._connections():
            there = foldings[reader]
            lanes = _lanes_inside(reader, there), there.whole_vector, 0
            total += self._bridges_to(value, reader, [foldings[node].output_lanes], lanes)[0]
        return total

    def resources(self, node: Node, folding: Folding) -> Resources:
        """Return the resources of a node, including the frame synchronisers of the graph inputs that it reads."""
        return resources(node, folding, graph_inputs(self._graph, node), self._device)

    # The selection problem

    @property
    def _limits(self) -> IntArray:
        return np.array([getattr(self._budget, name) for name in RESOURCES], dtype=np.int64)

    def _connections(self) -> list[tuple[Node, Value, Node]]:
        consumers = self._graph.consumers()
        return [(n, value, reader) for n in self._graph.nodes for value in n.outputs for reader, _ in consumers[value]]

    def _variable(self, lanes: Sequence[_Lanes]) -> tuple[int, IntArray]:
        """Add a variable with these values; return its number and the index of each of ``lanes`` among its values."""
        values = sorted(set(lanes))
        places = {value: place for place, value in enumerate(values)}
        self._lanes.append(values)
        return len(self._lanes) - 1, np.array([places[value] for value in lanes], dtype=np.int64)

    def _options_of(self, node: Node, explored: Explored) -> _Options:
        foldings, needs, cycles = explored
        if node in self._shares:  # it has less time
            cycles = np.array([ceil(each / self._shares[node]) for each in cycles.tolist()], dtype=np.int64)
        left_out = [_left_out(node, folding) for folding in foldings]
        inside = [
            (_lanes_inside(node, f), f.whole_vector, less) for f, (less, _) in zip(foldings, left_out, strict=True)
        ]
        outside = [((f.output_lanes,), False, less) for f, (_, less) in zip(foldings, left_out, strict=True)]
        self._inputs[node], left = self._variable(inside)
        if inside == outside:
            self._outputs[node] = self._inputs[node]
            variables: tuple[int, ...] = (self._inputs[node],)
            columns = left[:, None]
        else:
            self._outputs[node], right = self._variable(outside)
            variables = self._inputs[node], self._outputs[node]
            columns = np.stack([left, right], axis=1)
        places = columns @ np.array([len(self._lanes[-1]), 1])[-len(variables) :]
        kept = np.sort(pareto_rows(places, np.column_stack([needs @ self.price, needs, cycles])))
        return _Options(variables, [foldings[k] for k in kept], columns[kept], needs[kept], cycles[kept])

    def _edge(self, node: Node, value: Value, reader: Node) -> Table:
        ends = self._outputs[node], self._inputs[reader]
        here, there = (self._lanes[v] for v in ends)
        places = np.indices((len(here), len(there))).reshape(2, -1).T
        lanes = [own for (own,), _, _ in here]
        needs = np.array([self._bridges_to(value, reader, lanes, each) for each in there], dtype=np.int64)
        needs = needs.transpose(1, 0, 2).reshape(len(places), len(RESOURCES))
        match = np.array([a == b for _, _, a in here for _, _, b in there])
        return Table(ends, places[match], needs[match])

    def _bridges_to(self, value: Value, reader: Node, here: Sequence[int], there: _Lanes) -> list[Resources]:
        """Return the resources of the width converters from each of ``here`` to ``there`` lanes."""
        shape, bits, whole = value.typed.shape, value.typed.element.bits, there[1]
        index = reader.inputs.index(value)
        lanes = there[0][index if len(there[0]) > 1 else 0]
        target = hardware(reader.op).input_view(reader, shape, lanes, whole_vector=whole, index=index)
        known = self._bridges.setdefault((shape[1], bits, target[1], lanes), {})  # independent of the number of pixels
        for own in here:
            if own not in known:
                known[own] = Resources()
                for step in steps_between(shape, target, own, lanes):
                    known[own] += self._converter(value, *step)
        return [known[own] for own in here]

    def _converter(self, value: Value, view: View, here: int, there: int) -> Resources:
        key = value.typed.element.bits, here, there, view[1]  # independent of the number of pixels
        if key not in self._converters:
            self._converters[key] = inserted(WidthConverterAttributes(view), value, Folding(here, there), self._device)
        return self._converters[key]

    def _select(
        self, interval: int, limits: IntArray, *, price: IntArray | None = None, any_at_all: bool = False,
        inside: int | None = None,
    ) -> tuple[dict[Node, Folding], Selection] | None:
        tables, numbers = [], []
        for node, options in self._options.items():
            most = interval if inside is None or node not in self.in_circuits else inside
            rows = np.flatnonzero((options.cycles <= most) & (options.needs <= limits).all(axis=1))
            if not len(rows):
                return None
            tables.append(Table(options.variables, options.places[rows], options.needs[rows]))
            numbers.append(rows)
        sizes = [len(lanes) for lanes in self._lanes]
        price = self.price if price is None else price
        found = cheapest([*tables, *self._edges], sizes, price, limits, any_at_all=any_at_all)
        if found is None:
            return None
        foldings = {
            node: options.foldings[rows[row]]
            for (node, options), rows, row in zip(self._options.items(), numbers, found.rows, strict=False)
        }
        return foldings, found

    def _any(self, interval: int, inside: int | None = None) -> tuple[dict[Node, Folding], Selection] | None:
        return self._select(interval, self._limits, price=self._even, any_at_all=True, inside=inside)

    def is_feasible(self, interval: int | None = None) -> bool:
        """Tell whether there are foldings of at most ``interval`` cycles (None: of any) within the budget."""
        slowest = self.intervals[-1] if interval is None else interval
        return slowest >= self.intervals[0] and self._fits(slowest)

    def _fits(self, interval: int) -> bool:
        return self._any(interval) is not None

    # Refusals

    def refusal(self, interval: int, best: int | None) -> list[Finding]:
        """Explain why nothing fits at ``interval``: the core that is too slow, or which resources are short, by how
        much and where. ``best``: the least interval that fits, None if none does."""
        if interval < self.intervals[0]:
            slow = max(self._options, key=lambda n: int(self._options[n].cycles.min()))
            message = f"the target must be at least {self.intervals[0]} cycles per frame, not {interval}"
            where = f"node {show(slow.name)} ({slow.op})"
            return [Finding("reachable-interval", where, message, "ask for fewer frames per second")]
        enough, need, foldings = self.enough(interval)
        if best is None:
            remedy = enough_text(enough, interval, self._budget, self._device)
        else:
            remedy = f"ask for fewer frames per second: {best} cycles per frame fit"
        short = [name for name, _, _ in self._budget.shortages(need)]
        return [self._short(interval, name, need, foldings, remedy) for name in short]

    def enough(
        self, interval: int, free: Budget | Chip | None = None
    ) -> tuple[Budget, Resources, dict[Node, Folding]]:
        """Return a sufficient budget for ``interval`` (at least the fastest of the slowest node), raised as little as
        possible, with the resources and foldings of a design within it. It exceeds what is ``free`` (None: the device)
        only if no design fits that.

        Raised are the resources that are short whatever is spent of the others. If that does not help, one more is
        raised: of all that help, the one with the least share of the device; else two, and so on.
        """
        limits, share = self._limits, [PRICE_UNITS // max(1, int(getattr(self._device, name))) for name in RESOURCES]
        everything = np.maximum(limits, [getattr(free or self._device, name) for name in RESOURCES])
        known = self._select(interval, everything, price=self._even, any_at_all=True)
        if known is None:
            everything = np.full(len(RESOURCES), UNLIMITED)
            known = self._select(interval, everything, price=self._even, any_at_all=True)
        assert known is not None, "an interval that each node reaches"
        weights = np.array(share, dtype=np.int64)
        short = np.zeros(len(RESOURCES), dtype=bool)
        for index in range(len(RESOURCES)):
            found = self._select(interval, everything, price=weights * (np.arange(len(RESOURCES)) == index))
            found = found or known  # where that search ended early
            short[index] = found[1].needs[index] > limits[index]
        rest = np.flatnonzero(~short)
        for count in range(len(rest) + 1):
            best: tuple[int, dict[Node, Folding], IntArray] | None = None
            for more in combinations(rest, count):
                raised = short.copy()
                raised[list(more)] = True
                found = self._select(interval, np.where(raised, everything, limits), price=weights * raised)
                if found is None and raised.all():
                    found = known
                if found is not None:
                    excess = int(weights @ np.maximum(found[1].needs - limits, 0))
                    if best is None or excess < best[0]:
                        best = excess, found[0], found[1].needs
            if best is not None:
                most = np.maximum(limits, best[2])
                return Budget(*(int(n) for n in most)), Resources(*(int(n) for n in best[2])), best[1]
        raise AssertionError("without limits everything fits")

    def _short(
        self, interval: int, name: str, need: Resources, foldings: dict[Node, Folding], remedy: str
    ) -> Finding:
        parts = {node: int(getattr(self.resources(node, f), name)) for node, f in foldings.items()}
        most = max(parts, key=lambda node: parts[node])
        options = self._options[most]
        least = int(options.needs[options.cycles <= interval, RESOURCES.index(name)].min())
        wanted, there = int(getattr(need, name)), int(getattr(self._budget, name))
        return Finding(
            "device-budget",
            f"model {show(self._graph.name)}",
            f"{name} must be at most {there}, not {wanted}, at {interval} cycles per frame ({wanted - there} too many; "
            f"largest: node {show(most.name)} ({most.op}) with {parts[most]}, at least {least})",
            remedy,
        )


def _lanes_inside(node: Node, folding: Folding) -> tuple[int, ...]:
    """Return the lanes of each input, or one number if they are the same; without inputs those of the outputs."""
    lanes = [hardware(node.op).lanes_of(node, index, folding) for index in range(len(node.inputs))]
    return tuple(lanes) if len(set(lanes)) > 1 else (*lanes, folding.output_lanes)[:1]


def _left_out(node: Node, folding: Folding) -> tuple[int, int]:
    """Return by how many pixels a folding shortens the first input and the first output."""
    chosen, _ = hardware(node.op).as_chosen(node, folding)
    if chosen is node or not node.inputs:
        return 0, 0
    before, after = ((n.inputs[0].typed.shape[0], n.outputs[0].typed.shape[0]) for n in (node, chosen))
    return before[0] - after[0], before[1] - after[1]


def enough_text(enough: Budget, interval: int, limits: Budget, free: Budget | Chip) -> str:
    """Return the remedy that names a sufficient budget. A larger board is named only where more is needed than is
    ``free`` and than the ``limits`` that were asked for."""
    text = ", ".join(f"{name}={getattr(enough, name)}" for name in RESOURCES)
    act = "request it with --budget"
    if any(getattr(enough, name) > max(getattr(limits, name), getattr(free, name)) for name in RESOURCES):
        act = f"use a larger board or a smaller model, or for Verilog alone {act} and --until verilog"
    return f"a budget of {text} suffices at {interval} cycles per frame: {act}"


def free_text(limits: Budget, free: Budget | Chip, names: Sequence[str] = RESOURCES) -> str:
    """Return what of ``names`` is ``free`` beyond the ``limits``, as for --budget; "" if nothing is."""
    more = [name for name in names if getattr(free, name) > getattr(limits, name)]
    return ",".join(f"{name}={getattr(free, name)}" for name in more)
