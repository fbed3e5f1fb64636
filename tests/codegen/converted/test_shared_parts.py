"""Parts of a core that are alike are instances of one module; those that differ in anything are not."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Shape

from hdl_lib.arithmetic.digit_product import Digits
from hdl_lib.arithmetic.packed_product import Packing
from hdl_lib.matrices.mvu import Mvu
from hdl_lib.memories.rom import Table
from hdl_lib.shared import CommonComponent
from hwflow.codegen.converted import modules
from hwflow.codegen.converted.common import linked
from hwflow.codegen.converted.rtlil_text import readable

NAME = "core"
MODULE = re.compile(r"(?ms)^module \\(\S+)\n(.*?)^end\n")
INSTANCE = re.compile(r"^  cell \\(\S*__\S*) ", re.MULTILINE)


def mvu(pe: int, simd: int, form: str, synapse_fold: int = 2) -> Mvu:
    """Of bytes, or for "xnor" of bits."""
    shapes = [Shape(1)] * 2 if form == "xnor" else [Shape(8), Shape(8, True)]
    packing = Packing.of((0, 255), (-128, 127), simd, (26, 18)) if form == "dsp2" else None
    digits = Digits.of((-128, 127)) if form == "digits" else None
    bits = pe * simd * (digits.bits if digits else shapes[1].width)
    if packing:
        bits = simd * (pe // 2 * packing.bits + pe % 2 * packing.low_shape.width)
    return Mvu(
        *shapes, Shape(24, True), pe=pe, simd=simd, synapse_fold=synapse_fold, neuron_fold=1,
        weights=Table.of_words([0] * synapse_fold, bits), multiplier="lut" if digits else form, depth=8,
        packing=packing, digits=digits,
    )


def converted(core: Mvu) -> dict[str, str]:
    """The modules of a core as the compiler makes them, by name."""
    text, common = modules._rtlil(core, NAME)
    (module,) = linked([modules.CoreModule(NAME, text, (), (), (), [], common)], None)
    return dict(MODULE.findall(module.rtlil))


def flat_count(found: dict[str, str], name: str = NAME) -> Counter[str]:
    """How often each module stands in the design below ``name``."""
    total: Counter[str] = Counter([name])
    for below in INSTANCE.findall(found[name]):
        total += flat_count(found, below)
    return total


@pytest.mark.parametrize(
    ("core", "expected"),
    [
        # two lanes and fewer than four stand in the row itself
        (lambda: mvu(3, 2, "dsp"), {"row": 3}),
        # nine lanes: groups of four, and a last one of one; what is alike in different rows is so, too
        (lambda: mvu(3, 9, "dsp"), {"row": 3, "lanes": 6, "lanes_2": 3}),
        (lambda: mvu(2, 8, "lut"), {"row": 2, "lanes": 8}),
        (lambda: mvu(2, 16, "digits"), {"row": 2, "lanes": 8}),
        # five rows of packed weights: two pairs and one, whose lanes differ from those of pairs
        (lambda: mvu(5, 4, "dsp2"), {"rows": 2, "row": 1, "lanes": 4, "lanes_2": 2}),
        # bits are counted by eights
        (lambda: mvu(2, 20, "xnor"), {"row": 2, "lanes": 4, "lanes_2": 2}),
        (lambda: mvu(1, 1, "dsp", synapse_fold=1), {"row": 1}),
    ],
)
def test_modules_and_their_instances(core, expected):
    found = converted(core())
    count = flat_count(found)
    parts = {name.removeprefix(f"{NAME}__"): number for name, number in count.items() if re.search("row|lanes", name)}
    assert parts == expected
    assert set(count) == set(found)  # every module is there once, and used


@pytest.mark.parametrize("form", ["dsp", "dsp2", "lut", "digits", "xnor"])
def test_each_instance_stands_for_what_its_component_would_be(form, monkeypatch):
    """Every component that parts of a core share, converted by itself, gives the module that stands for it."""
    made = []
    share = modules._Parts.share
    monkeypatch.setattr(modules._Parts, "share", lambda self, part: (made.append(part), share(self, part))[1])
    found = converted(mvu(5, 9, form))
    parts = [part for part in made if not isinstance(part, CommonComponent)]  # what follows shares more
    assert len(parts) >= 3
    for part in parts:
        platform = modules._Parts(NAME, part)
        text = readable(modules._converted(part, part, "part", platform))
        body = dict(MODULE.findall(text))["part"]
        assert without_names(body) in {without_names(other) for other in found.values()}


def without_names(body: str) -> str:
    """A module without the names of the modules in it."""
    return re.sub(r"cell \\\S*__\S*", "cell", body)


@pytest.mark.parametrize("form", ["dsp", "dsp2", "lut", "digits", "xnor"])
def test_the_same_registers_as_one_by_one(form):
    """Flip-flop bits of the shared modules, instances counted, and of the core whose parts are all there."""
    core = mvu(5, 9, form)
    found = converted(core)
    shared = sum(number * flip_flops(found[name]) for name, number in flat_count(found).items())
    assert shared == flip_flops(rtlil.convert(mvu(5, 9, form), name=NAME)) > 0


def flip_flops(text: str) -> int:
    """Bits of all flip-flops."""
    cells = re.findall(r"(?ms)^  cell \$\w*dff\w* .*?^  end", text)
    return sum(int(re.search(r"parameter \\WIDTH (\d+)", cell).group(1)) for cell in cells)


def test_attributes_survive():
    """Registers that synthesis must leave stay so in the modules of parts."""
    found = converted(mvu(4, 2, "dsp"))
    wire = re.compile(r"attribute \\keep 1\n(?:  attribute .*\n)*  wire width \d+ (?:signed )?\\(\S+)")
    kept = wire.findall(found["core__row"])
    assert sorted(kept) == ["product_0_output", "product_0_product", "product_1_output", "product_1_product"]
