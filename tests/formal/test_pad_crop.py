"""Padding and cropping: any beat leaves in its place, unchanged, padding in all others; broken twins fail."""

import pytest
from amaranth.hdl import Array, Assert, Cover, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl_lib.memories import pad_crop
from hdl_lib.memories.pad_crop import Frame, PadCrop, Part
from tests.formal.prover import check_bounded, has_path, refute
from tests.formal.scoreboard import stream_rules

PASS, CROP, PAD = Part.PASS, Part.CROP, Part.PAD
FILL, NOWHERE, MOST = 2, 31, 31
FORMS = [
    ((1, PAD), (2, PASS)),
    ((2, PAD), (1, PASS), (1, CROP)),
    ((1, CROP), (1, PASS), (1, PAD)),
    ((1, PASS), (1, CROP), (1, PAD), (1, PASS)),
]


def places(parts) -> tuple[list[int], list[int]]:
    """For each beat that comes the number of the one that leaves, and the numbers of padding; of many frames."""
    goes, padding, place = [], [], 0
    while len(goes) <= MOST or place <= MOST:
        for count, kind in parts:
            for _ in range(count):
                if kind != PAD:
                    goes.append(place if kind == PASS else NOWHERE)
                if kind == PAD:
                    padding.append(place)
                place += kind != CROP
    return [min(at, NOWHERE) for at in goes], padding


class PadProof(wiring.Component):
    """``parts``: what is to become of a frame's beats."""

    i_valid: In(1)
    i_payload: In(2)
    o_ready: In(1)
    pick: In(1)

    def __init__(self, dut: PadCrop, parts) -> None:
        self.dut, self.parts = dut, parts
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        came, left = Signal(range(MOST + 1)), Signal(range(MOST + 1))
        followed, place, value = Signal(), Signal(range(MOST + 1)), Signal(2)
        payload, goes, padding = dut.o.payload.as_value(), *places(self.parts)
        takes, sends, arrives, pads = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            dut.i.valid.eq(self.i_valid),
            dut.i.payload.as_value().eq(self.i_payload),
            dut.o.ready.eq(self.o_ready),
            takes.eq(dut.i.valid & dut.i.ready),
            sends.eq(dut.o.valid & dut.o.ready),
            arrives.eq(followed & (left == place) & (place != NOWHERE)),
            pads.eq(Array([number in padding for number in range(MOST + 1)])[left]),
        ]
        m.d.sync += [came.eq(came + takes), left.eq(left + sends)]
        with m.If(takes & self.pick & ~followed):
            m.d.sync += [followed.eq(1), place.eq(Array(goes[: MOST + 1])[came]), value.eq(self.i_payload)]
        frame = sum(count for count, kind in self.parts if kind != PAD)
        results = sum(count for count, kind in self.parts if kind != CROP)
        stream_rules(m, "o", dut.o.valid, payload, dut.o.ready)
        m.d.comb += [
            Assert(~(arrives & dut.o.valid) | (payload == value)),
            Assert(~(pads & dut.o.valid) | (payload == FILL)),
            # What leaves is of a frame that has begun to come.
            Assert(~dut.o.valid | Array([came > n // results * frame for n in range(MOST + 1)])[left]),
            Cover(arrives & sends & (value != 0)),
            Cover(pads & sends & (left >= results)),
        ]
        return m


@pytest.mark.parametrize("parts", FORMS)
def test_frames(parts, tmp_path):
    check_bounded(PadProof(PadCrop(2, 1, Frame(parts), 2, fill=FILL, depth=2), parts), tmp_path, depth=12)


def test_padding_in_the_wrong_place_is_refuted(tmp_path):
    dut = PadCrop(2, 1, Frame(((2, PASS), (1, PAD))), 2, fill=FILL, depth=2)
    refute(PadProof(dut, ((1, PASS), (1, PAD), (1, PASS))), tmp_path)


def test_padding_that_does_not_wait_for_its_frame_is_refuted(tmp_path, monkeypatch):
    runs = pad_crop.Frame.runs.fget
    early = property(lambda self: (pad_crop.Run(1, False, pad_crop.Sent.PADDING), *runs(Frame(self.parts[1:]))))
    monkeypatch.setattr(pad_crop.Frame, "runs", early)
    parts = ((1, PAD), (2, PASS))
    refute(PadProof(PadCrop(2, 1, Frame(parts), 2, fill=FILL, depth=2), parts), tmp_path)


def test_a_first_beat_that_is_not_held_is_refuted(tmp_path, monkeypatch):
    monkeypatch.setattr(pad_crop.Frame, "holds_first", property(lambda self: False))
    parts = ((1, PAD), (2, PASS))
    refute(PadProof(PadCrop(2, 1, Frame(parts), 2, fill=FILL, depth=2), parts), tmp_path)


def test_no_combinational_path(tmp_path):
    assert not has_path(PadCrop(2, 1, Frame(((1, PAD), (2, PASS))), 2, fill=FILL, depth=2), tmp_path)
