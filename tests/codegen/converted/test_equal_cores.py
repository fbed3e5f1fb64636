"""Cores that are equal but for their names are converted once."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, signed, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from hdl_lib.memories.rom import Table
from hwflow.codegen.converted import modules
from hwflow.codegen.converted.equal_cores import NoStructure, structure_of
from hwflow.codegen.converted.modules import Job, core_module
from hwflow.cores.operator import Decision
from tests.cores.cases.all_cases import CASES

KINDS = {op: cases[-1] for op, cases in CASES.items()}  # one of each


class Core(wiring.Component):
    def __init__(self, shape=4, **attributes):
        self.__dict__.update(attributes)
        super().__init__({"i": In(stream.Signature(shape))})

    def elaborate(self, platform):
        return Module()


@pytest.mark.parametrize("op", KINDS)
def test_a_renamed_core_is_the_one_converted_by_itself(op, monkeypatch):
    case = KINDS[op]
    node, folding = case.node(), case.foldings[0]
    decision = Decision(folding, (6,) * len(node.outputs))
    jobs = [Job(node, decision, instance, f"hwflow_top.{instance}") for instance in ("first", "a_second_one")]
    monkeypatch.setattr(modules, "_CONVERTED", type(modules._CONVERTED)())
    core_module(jobs[0])
    known = dict(modules._CONVERTED)
    renamed = core_module(jobs[1])
    assert dict(modules._CONVERTED) == known  # taken from there, or neither is kept
    modules._CONVERTED.clear()
    assert core_module(jobs[1]) == renamed


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"depth": 3}, {"depth": 4}),
        ({"ready": True}, {"ready": 1}),
        ({"shape": signed(4)}, {"shape": unsigned(4)}),
        ({"of": unsigned(4)}, {"of": signed(4)}),
        ({"words": (1, 2)}, {"words": (2, 1)}),
        ({"words": np.array([1, 2])}, {"words": np.array([[1, 2]])}),
        ({"table": Table.of_words([1, 2], 3)}, {"table": Table.of_words([1, 3], 3)}),
        ({"table": Table(None, "weights/one_w.mem", 3, 4)}, {"table": Table(None, "weights/other_w.mem", 3, 4)}),
        ({"parts": {"a": 1}}, {"parts": {"b": 1}}),
        ({"inner": Core(depth=1)}, {"inner": Core(depth=2)}),
    ],
)
def test_what_hardware_depends_on_is_told_apart(ours, theirs):
    assert structure_of(Core(**ours), "name") == structure_of(Core(**ours), "name")
    assert structure_of(Core(**ours), "name") != structure_of(Core(**theirs), "name")


def test_files_are_told_apart_by_what_follows_the_cores_name():
    one, other = (Core(table=Table(None, f"weights/{name}_w.mem", 3, 4)) for name in ("one", "other"))
    assert structure_of(one, "one") == structure_of(other, "other") != structure_of(other, "name")


@pytest.mark.parametrize("attribute", [Signal(), lambda: 3, object()])
def test_what_is_not_known_has_no_structure(attribute):
    with pytest.raises(NoStructure):
        structure_of(Core(attribute=attribute), "name")


def test_what_leads_back_has_no_structure():
    parts = {}
    parts["back"] = parts
    with pytest.raises(NoStructure):
        structure_of(Core(parts=parts), "name")


def test_long_texts_and_old_ones_are_not_kept(monkeypatch):
    monkeypatch.setattr(modules, "_CONVERTED", type(modules._CONVERTED)())
    monkeypatch.setattr(modules, "MOST_CONVERTED", 1)
    case = KINDS["product"]
    node = case.node()

    def convert(depth, name="core"):
        core_module(Job(node, Decision(case.foldings[0], (depth,)), name, f"hwflow_top.{name}"))

    convert(2)
    (first,) = modules._CONVERTED
    convert(3)
    assert list(modules._CONVERTED) != [first] and len(modules._CONVERTED) == 1
    monkeypatch.setattr(modules, "LONGEST", 0)
    modules._CONVERTED.clear()
    convert(2)
    assert not modules._CONVERTED
