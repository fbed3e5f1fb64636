"""Tensors to bytes and back, against the test bench's own way; integers to reals and back, by hand."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwflow.host.runtime.host_design import HostStream, HostTensor
from hwflow.host.runtime.host_errors import HostError
from hwflow.host.runtime.tensors.frame_bytes import FrameBytes
from hwflow.host.runtime.tensors.levels import Levels, numpy_type
from hwflow.sim import vectors
from hwflow.sim.manifest import Stream


@st.composite
def streams(draw):
    """A stream as the host and as the test bench has it."""
    pixels, channels, lanes = (draw(st.integers(1, 5)) for _ in range(3))
    width, signed = draw(st.integers(1, 64)), draw(st.booleans())
    shape = draw(st.sampled_from([(pixels, channels), (channels, pixels), (pixels * channels,)]))
    order = tuple(draw(st.permutations(range(pixels * channels))))
    size = -(-width // 8)
    beats = pixels * -(-channels // lanes)
    host = HostStream("x", "s_axis", pixels, channels, lanes, beats, size, signed, shape, order)
    bits = min(width, 63 + signed)
    bench = Stream("x", "s_axis", False, pixels, channels, lanes, beats, bits, signed, size, shape, order)
    return host, bench


@given(streams(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_same_bytes_as_the_test_bench(both, frames, random):
    host, bench = both
    values = [random.randint(bench.low, bench.high) for _ in range(frames * prod(host.shape))]
    integers = np.array(values, np.int64).reshape(frames, *host.shape)
    layout = FrameBytes(host)
    data = layout.encode(integers)
    expected = vectors.pack(bench, vectors.to_stream(bench, integers))
    assert data.shape == (frames, host.frame_bytes)
    np.testing.assert_array_equal(data, expected.reshape(frames, -1))
    np.testing.assert_array_equal(layout.decode(data), integers)
    assert layout.decode(data).shape == integers.shape


def tensor(type_: str, shape: tuple[int, ...], span: tuple[int, int], scale: list[str], zero: list[str], *broadcast):
    return Levels(HostTensor("t", type_, shape, "s_axis", True, span, tuple(scale), tuple(zero), broadcast))


@pytest.mark.parametrize("high", [7, 1 << 40])  # with a table of all integers, and without
def test_each_channel_has_its_scale(high):
    levels = tensor("float32", (2, 3), (-8, high), ["1/3", "2/1"], ["1/2", "0/1"], 2, 1)
    integers = np.array([[[1, 2, -3], [5, 0, 7]]])
    expected = [[[float(np.float32(Fraction(n, 6))) for n in (1, 3, -7)], [10, 0, 14]]]
    found = levels.tensor_of(integers)
    assert found.dtype == np.float32 and found.tolist() == expected
    assert levels.integers(found).tolist() == integers.tolist()


def test_answers_that_no_design_gives_are_shown_all_the_same():
    """A broken board's."""
    assert tensor("float32", (1,), (0, 3), ["1/2"], ["0/1"]).tensor_of(np.array([[200]])).tolist() == [[100.0]]


def test_reals_beyond_their_type_are_infinite():
    found = tensor("float16", (2,), (-9, 9), ["10000/1"], ["0/1"]).tensor_of(np.array([[9, -9]]))
    assert found.dtype == np.float16 and found.tolist() == [[float("inf"), float("-inf")]]
    huge = tensor("float64", (1,), (0, 1), [f"{10**400}/1"], ["0/1"]).tensor_of(np.array([[1]]))
    assert huge.tolist() == [[float("inf")]]


@pytest.mark.parametrize("wrong", [0.3, 4.0, -0.5, float("nan"), float("inf")])
def test_what_is_no_level_is_refused(wrong):
    levels = tensor("float32", (2,), (0, 7), ["1/2"], ["0/1"])
    message = r"value 't': must hold integers from 0 to 7, as 1/2 \* \(integer - 0/1\), not .* in frame 1, index \[0\]"
    with pytest.raises(HostError, match=message):
        levels.integers(np.array([[0.5, 3.5], [wrong, 1.0]], np.float32))


def test_a_declared_input_may_have_been_rounded_twice():
    """A scale of 1/255 is no float."""
    levels = tensor("float32", (256,), (0, 255), ["1/255"], ["0/1"])
    pixels = np.arange(256)
    assert levels.integers((pixels[None] / 255).astype(np.float32)).tolist() == [pixels.tolist()]
    assert levels.integers(pixels[None].astype(np.float32) / np.float32(255)).tolist() == [pixels.tolist()]


@pytest.mark.parametrize(
    ("onnx_type", "numpy_name"),
    [("float32", "float32"), ("bfloat16", "float32"), ("float8e5m2", "float32"), ("float64", "float64"),
     ("int4", "int8"), ("uint2", "uint8"), ("int64", "int64"), ("bool", "bool")],
)  # fmt: skip
def test_types(onnx_type, numpy_name):
    assert numpy_type(onnx_type) == np.dtype(numpy_name)
