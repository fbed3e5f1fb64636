"""Rows side by side: any beat of any input leaves in its place, unchanged, padding in all others; broken twins fail."""

import pytest
from amaranth.hdl import Array, Assert, Cover, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.external import rows_side_by_side
from hdl_lib.external.rows_side_by_side import SideBySide
from tests.formal.prover import check_bounded, has_path, refute
from tests.formal.scoreboard import stream_rules

FILL, MOST = 2, 31
FORMS = [
    {"blocks": 1, "width": 1, "rows": 2, "spans": [range(1), range(1, 2)]},
    {"blocks": 1, "width": 2, "rows": 2, "spans": [range(2), range(1, 2)]},
    {"blocks": 2, "width": 1, "rows": 2, "spans": [range(1), range(2)]},
    {"blocks": 1, "width": 1, "rows": 3, "spans": [range(2), range(3), range(1, 3)]},
]


def places(form) -> tuple[list[list[int]], list[int]]:
    """For each input the numbers of the beats that its own are, and those of padding."""
    own, padding, place = [[] for _ in form["spans"]], [], 0
    while place <= MOST or min(map(len, own)) <= MOST:
        for row in range(form["rows"]):
            for _ in range(form["width"]):
                for found, span in zip(own, form["spans"], strict=True):
                    for _ in range(form["blocks"]):
                        (found if row in span else padding).append(min(place, MOST))
                        place += 1
    return [found[: MOST + 1] for found in own], padding


class SideProof(wiring.Component):
    """``form``: what is to stand side by side. ``of``: the input of which a beat is followed."""


    def __init__(self, dut: SideBySide, form, of: int) -> None:
        self.dut, self.form, self.of = dut, form, of
        inputs = range(len(form["spans"]))
        super().__init__({f"valid_{k}": In(1) for k in inputs} | {f"payload_{k}": In(2) for k in inputs} | {
            "o_ready": In(1), "pick": In(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        for k, source in enumerate(dut.i):
            m.d.comb += [
                source.valid.eq(getattr(self, f"valid_{k}")),
                source.payload.as_value().eq(getattr(self, f"payload_{k}")),
            ]
        own, padding = places(self.form)
        came, left = Signal(range(MOST + 1)), Signal(range(MOST + 1))
        followed, place, value = Signal(), Signal(range(MOST + 1)), Signal(2)
        takes, sends, arrives, pads = Signal(), Signal(), Signal(), Signal()
        payload, source = dut.o.payload.as_value(), dut.i[self.of]
        m.d.comb += [
            dut.o.ready.eq(self.o_ready),
            takes.eq(source.valid & source.ready),
            sends.eq(dut.o.valid & dut.o.ready),
            arrives.eq(followed & (left == place)),
            pads.eq(Array([number in padding for number in range(MOST + 1)])[left]),
        ]
        m.d.sync += [came.eq(came + takes), left.eq(left + sends)]
        with m.If(takes & self.pick & ~followed):
            m.d.sync += [followed.eq(1), place.eq(Array(own[self.of])[came]), value.eq(source.payload.as_value())]
        stream_rules(m, "o", dut.o.valid, payload, dut.o.ready)
        # What leaves of an input is no more than what has come.
        needed = Array([sum(at < number for at in own[self.of]) for number in range(MOST + 1)])
        m.d.comb += [
            Assert(~(arrives & dut.o.valid) | (payload == value)),
            Assert(~(pads & dut.o.valid) | (payload == FILL)),
            Assert(needed[Mux(left < MOST, left, MOST)] <= came),
            Cover(arrives & sends & (value != 0)),
            Cover(pads & sends & (left >= 2)),
        ]
        return m


def dut(form) -> SideBySide:
    return SideBySide(2, lanes=1, output_shape=2, fill=FILL, depth=2, **form)


@pytest.mark.parametrize(("form", "of"), [(form, k) for form in FORMS for k in range(len(form["spans"]))])
def test_rows(form, of: int, tmp_path):
    check_bounded(SideProof(dut(form), form, of), tmp_path, depth=12)


def test_rows_in_the_wrong_place_are_refuted(tmp_path):
    other = FORMS[1] | {"spans": [range(2), range(1)]}
    refute(SideProof(dut(other), FORMS[1], 1), tmp_path)


def test_rows_that_do_not_end_are_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_side_by_side, "loop", lambda m, name, count, advance: 1)
    refute(SideProof(dut(FORMS[1]), FORMS[1], 0), tmp_path)


def test_padding_that_takes_a_beat_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(SideBySide, "_elaborate_presence", lambda self, m, row_done: [1] * len(self.spans))
    refute(SideProof(dut(FORMS[0]), FORMS[0], 0), tmp_path)


def test_no_combinational_path(tmp_path):
    assert not has_path(dut(FORMS[3]), tmp_path)
