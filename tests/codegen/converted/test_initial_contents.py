"""RTLIL without the initial contents of memories that are written: those of a table, which nobody writes, stay."""

from __future__ import annotations

from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.lib import memory

from hwflow.codegen.converted.initial_contents import without_initial_contents


def _text(*, written: bool) -> str:
    m = Module()
    m.submodules.cells = cells = memory.Memory(shape=8, depth=4, init=[5, 6, 7])
    read, address, result = cells.read_port(), Signal(2), Signal(8)
    m.d.comb += [read.addr.eq(address), result.eq(read.data)]
    if written:
        write = cells.write_port()
        m.d.comb += [write.addr.eq(address), write.data.eq(result), write.en.eq(1)]
    return str(rtlil.convert(m, ports=[address, result]))


def test_what_is_written_has_none():
    with without_initial_contents():
        text = _text(written=True)
    assert "$memwr" in text
    assert "$meminit" not in text


def test_a_table_keeps_its_own():
    with without_initial_contents():
        text = _text(written=False)
    assert f"{0:08b}{7:08b}{6:08b}{5:08b}" in text
    assert text == _text(written=False)


def test_others_conversions_are_as_they_were():
    with without_initial_contents():
        pass
    assert "$meminit" in _text(written=True)
