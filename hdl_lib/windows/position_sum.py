"""Weighted sums over groups of pixels, with weights by the group's position: interpolation after a rearranger."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Signal, Value

from hdl_lib.arithmetic.multiplier import PART, ProductForm
from hdl_lib.blocks import block_count
from hdl_lib.memories.address_walk import AddressWalk, LoopAxis
from hdl_lib.memories.rom import Table
from hdl_lib.windows.weighted_pool import WeightedPool


class PositionSum(WeightedPool):
    """The weighted sum over each ``window`` consecutive pixels. A pixel has one weight for all channels; the weights
    change from group to group.

    Exact modulo ``2**result_shape.width``: correct wherever the sums lie in the range of ``result_shape``.

    Parameters
    ----------
    shape, weight_shape, result_shape, channels, lanes, window, multiplier, part, depth: as for
        :class:`hdl_lib.windows.weighted_pool.WeightedPool`.
    weights: one word per weight: for each position its ``window`` weights.
    repeat: consecutive groups with one position's weights; then the next position follows, after the last the first.

    Members
    -------
    i: In(stream). ``window`` pixels for each output pixel.
    o: Out(stream). The sums; lanes beyond ``channels`` in a pixel's last beat are unspecified.

    Timing
    ------
    As of :class:`hdl_lib.windows.weighted_pool.WeightedPool`: one step per input beat, the steps of a group's last
    pixel produce :meth:`weighted_latency_of` cycles later and need a credit. Initiation interval 1 cycle per input
    beat. Under backpressure the steps that would produce wait.

    Ordering
    --------
    Pixels leave in the order of their groups, beats of a pixel in the order they came.
    """

    def __init__(
        self,
        shape: Shape,
        weight_shape: Shape,
        result_shape: Shape,
        channels: int,
        lanes: int,
        window: int,
        *,
        repeat: int,
        weights: Table,
        multiplier: ProductForm,
        part: int = PART,
        depth: int,
    ) -> None:
        if repeat < 1:  # uncovered: a defect of ours
            raise ValueError(f"repeat must be at least 1 group, not {repeat}")
        self.repeat = repeat
        super().__init__(
            shape, weight_shape, result_shape, channels, lanes, window, weights=weights, multiplier=multiplier,
            part=part, depth=depth,
        )

    def _check_weights(self, blocks: int, window: int, lanes: int) -> None:
        if self.weights.width != self.weight_shape.width or self.weights.depth % window:  # uncovered: a defect of ours
            raise ValueError(
                f"weights must be words of {self.weight_shape.width} bits (weight bits), a multiple of {window} "
                f"(window) of them, not {self.weights.depth} words of {self.weights.width} bits"
            )

    @staticmethod
    def walk_of(positions: int, repeat: int, window: int, blocks: int) -> AddressWalk:
        """Return the order in which the weights are read, step by step."""
        axes = (LoopAxis(positions, window), LoopAxis(repeat, 0), LoopAxis(window, 1), LoopAxis(blocks, 0))
        return AddressWalk(axes)

    def _weights(self, m: Module, step: Value, ahead: int) -> list[Value]:
        walk = self.walk_of(
            self.weights.depth // self.window, self.repeat, self.window, block_count(self.channels, self.lanes)
        )
        address, _, _ = walk.elaborate_on(m, step)
        weight = Signal(self.weight_shape, name="weight")
        m.d.comb += weight.eq(self._word(m, address, ahead))
        return [weight] * self.lanes
