"""A name that there is none of: the finding says what may have been meant."""

from __future__ import annotations

import pytest

from hwflow.suggestion import did_you_mean


@pytest.mark.parametrize(
    ("arguments", "program", "meant"),
    [
        (("snth", "m.onnx"), "hwflow", "did you mean 'synth'? "),
        (("--versoin",), "hwflow", "in place of '--versoin' did you mean '--version'? "),
        (("synth", "m.onnx", "--bord", "ulx3s_85f"), "hwflow synth", "in place of '--bord' did you mean '--board'? "),
        (("check", "m.onnx", "--pedntic=1"), "hwflow check", "in place of '--pedntic' did you mean '--pedantic'? "),
        (("sim", "out", "--simulator", "Icarus"), "hwflow sim", "did you mean 'icarus'? "),
        (("completion", "bahs"), "hwflow completion", "did you mean 'bash'? "),
        (("frobnicate",), "hwflow", ""),
        (("check", "m.onnx", "--colour"), "hwflow check", ""),
    ],
)
def test_of_the_command_line(hwflow, arguments, program, meant):
    ran = hwflow(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {program}: ")
    assert ran.err.endswith(f" [command-line]\n  remedy: {meant}see '{program} --help'\n")


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--board", "ULX3S_85"), "did you mean 'ulx3s_85f'? see 'hwflow boards'"),
        (("--board", "ulx3s"), "did you mean 'ulx3s_85f', 'ulx3s_45f' or 'ulx3s_25f'? see 'hwflow boards'"),
        (("--board", "de1"), "did you mean 'de10_nano'? see 'hwflow boards'"),
        (("--board", "ulx3s_85f", "--until", "bitsream"), "did you mean 'bitstream'? choose one"),
    ],
)
def test_of_values_of_synth(hwflow, options, remedy):
    ran = hwflow("synth", "m.onnx", *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"  remedy: {remedy}\n")


def test_names():
    assert did_you_mean("ab", ["abc", "xab"]) == "did you mean 'abc'? "
    assert did_you_mean("", ["abc"]) == ""
    assert did_you_mean("q", ["abc"]) == ""
    assert did_you_mean("ABD", ["abc", "abd"]) == "did you mean 'abd'? "
