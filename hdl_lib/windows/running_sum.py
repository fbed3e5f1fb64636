"""Running sums over groups of pixels."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import data

from hdl_lib.windows.pool import GroupPool


class RunningSum(GroupPool):
    """The running sum within each group of ``window`` consecutive pixels, by channel: for each pixel the sum of the
    group's pixels up to it.

    Exact modulo ``2**result_shape.width``: correct wherever the sums lie in the range of ``result_shape``.

    Parameters
    ----------
    shape, result_shape: of an element and of a sum, integer shapes.
    channels, lanes: elements per pixel and elements per beat; ``blocks = ceil(channels / lanes)`` beats per pixel.
    window: pixels of a group, at least 1.
    exclusive: a pixel itself does not count: the first one of a group gives 0.
    depth: beats of the output queue; one beat per cycle needs ``latency + 1``.

    Members
    -------
    i: In(stream). The pixels of each group.
    o: Out(stream). As many pixels; lanes beyond ``channels`` in a pixel's last beat are unspecified.

    Timing
    ------
    One step per input beat, which needs a credit; :attr:`latency` cycles later the beat shows on ``o.valid``: 3 with up
    to 4 beats per pixel, else 4. Initiation interval 1 cycle per beat. Under backpressure no step begins; those begun
    continue.

    Ordering
    --------
    Beats leave in the order they came.
    """

    _name = "sum"
    _every = True

    def __init__(
        self, shape: Shape, result_shape: Shape, channels: int, lanes: int, window: int, *, exclusive: bool = False,
        depth: int,
    ) -> None:
        self.exclusive = exclusive
        super().__init__(shape, result_shape, channels, lanes, window, depth=depth)
        self._before = Signal(self.o.payload.shape(), name="sum_before", reset_less=True)

    def _update(
        self, m: Module, result: data.View, terms: Sequence[Value], before: data.View, first: Value
    ) -> None:
        for lane, term in enumerate(terms):
            so_far = Mux(first, 0, before[lane])
            m.d.sync += result[lane].eq(so_far + term)
            if self.exclusive:
                m.d.sync += self._before[lane].eq(so_far)

    def _payload(self, running: data.View) -> Value:
        return Value.cast(self._before) if self.exclusive else running.as_value()
