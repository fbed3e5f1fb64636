"""Two cores one behind the other, as one."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring


class Chained(wiring.Component):
    """What ``first`` sends goes to ``second``.

    Parameters
    ----------
    first, second: components with a stream ``i`` and a stream ``o`` each; what one sends the other takes.

    Members
    -------
    i: In(stream). Of ``first``. o: Out(stream). Of ``second``.

    Timing
    ------
    That of the two: a beat that ``first`` shows is taken by ``second`` in the same cycle where that is ready.

    Ordering
    --------
    As the cores have it.
    """

    def __init__(self, first: wiring.Component, second: wiring.Component) -> None:
        self.first, self.second = first, second
        super().__init__({"i": first.signature.members["i"], "o": second.signature.members["o"]})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first, m.submodules.second = self.first, self.second
        wiring.connect(m, wiring.flipped(self.i), self.first.i)
        wiring.connect(m, self.first.o, self.second.i)
        wiring.connect(m, self.second.o, wiring.flipped(self.o))
        return m
