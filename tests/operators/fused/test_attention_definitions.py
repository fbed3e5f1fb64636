"""Attention, MultiHeadAttention, QAttention and RotaryEmbedding of onnxruntime: their definitions give what
onnxruntime's kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hwflow.errors import ModelRefused
from hwflow.onnxspec import resolve_with_graph
from tests.operators.fused.kernels import Array, agrees, by_definition, model_of, reals

FRAMES, LENGTH, SIZE, HEADS = 2, 3, 8, 2
INPUT, WEIGHTS, BIAS = reals(FRAMES, LENGTH, SIZE), reals(SIZE, 3 * SIZE), reals(3 * SIZE)


def ints(*values: Any) -> Array:
    return np.array(values, dtype=np.int32)


RAW = ints([1, 1, 0], [0, 1, 1])
CAUSAL = {"unidirectional": 1}
FILTER = {"mask_filter_value": -1.5}


@pytest.mark.parametrize(
    ("mask", "attributes"),
    [
        (None, {}), (None, CAUSAL), (None, {"scale": 0.8}), (RAW, {}), (RAW, FILTER), (RAW, CAUSAL | FILTER),
        (ints(*[[[1, 0, 1], [0, 0, 1], [1, 1, 1]]] * 2), FILTER), (ints([1], [1]), {}), (ints(2, 3), FILTER),
        (ints(2, 1), CAUSAL), (ints([0, 0, 0], [1, 1, 1]), {}), (ints([0, 0, 1], [1, 1, 1]), CAUSAL),
    ],
)  # fmt: skip
def test_attention(mask: Array | None, attributes: dict[str, Any]) -> None:
    agrees("Attention", [INPUT, WEIGHTS, BIAS, mask], {"num_heads": HEADS} | attributes)


def test_ends_and_starts() -> None:
    mask = ints(2, 3, 1, 0)
    agrees("Attention", [INPUT, WEIGHTS, BIAS, mask], {"num_heads": HEADS} | FILTER, constants=[3])


def test_attention_with_all_its_operands() -> None:
    past = reals(2, FRAMES, HEADS, 2, SIZE // HEADS)
    agrees("Attention", [INPUT, WEIGHTS, BIAS, None, past], {"num_heads": HEADS} | CAUSAL, 2)
    agrees("Attention", [INPUT, WEIGHTS, BIAS], {"num_heads": HEADS}, 2)
    agrees("Attention", [INPUT, WEIGHTS, None, None, None, reals(1, HEADS, LENGTH, LENGTH)], {"num_heads": HEADS})
    sizes = {"num_heads": HEADS, "qkv_hidden_sizes": [4, 4, 6]}
    agrees("Attention", [INPUT, reals(SIZE, 14), reals(14), RAW], sizes | FILTER, opset=12)


def test_a_mask_of_four_axes() -> None:
    """No kernel for processors has it: against the same mask with three axes."""
    mask = np.random.default_rng(0).integers(0, 2, (FRAMES, 1, 5, 5)).astype(np.int32)
    results = [
        by_definition(*model_of("Attention", [INPUT, WEIGHTS, BIAS, each], {"num_heads": HEADS} | FILTER))[0]
        for each in (mask, np.ascontiguousarray(mask[:, 0, :LENGTH, :LENGTH]))
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("more", [{}, CAUSAL | FILTER])
def test_quantized(kind: type, columns: bool, more: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, INPUT.shape).astype(np.uint8)
    weights = rng.integers(-60, 60, WEIGHTS.shape).astype(kind)
    scale = rng.uniform(0.001, 0.02, 3 * SIZE) if columns else np.array(0.01)
    zero = rng.integers(0, 4, 3 * SIZE) if columns else np.array(3)
    operands = [
        x, weights, BIAS, np.array(0.02, np.float32), scale.astype(np.float32), RAW if more else None,
        np.array(131, np.uint8), zero.astype(kind),
    ]  # fmt: skip
    agrees("QAttention", operands, {"num_heads": HEADS} | more, opset=21)  # whose quantizers the evaluator has


Q, K, V = reals(FRAMES, LENGTH, SIZE), reals(FRAMES, 5, SIZE), reals(FRAMES, 5, 6)
PADDED = ints([1, 1, 0, 1, 1], [0, 1, 1, 0, 1])
PAST = reals(FRAMES, HEADS, 2, SIZE // HEADS), reals(FRAMES, HEADS, 2, 3)


@pytest.mark.parametrize(
    ("operands", "attributes", "outputs"),
    [
        ([Q, K, V], {}, 1), ([Q, K[:, :LENGTH], Q], CAUSAL | {"scale": 0.3}, 1),
        ([Q, K, V, reals(22), PADDED], {}, 1),
        ([Q, K, V, None, ints(3, 5)], FILTER, 1),
        ([Q, K, V, None, np.ones((FRAMES, LENGTH, 5), np.int32).cumsum(-1).astype(np.int32) - 2], FILTER, 1),
        ([Q, K, V, None, None, reals(FRAMES, 1, LENGTH, 5)], {}, 1),
        ([Q, K, V, None, None, reals(1, HEADS, LENGTH, 5)], {}, 1),
        ([Q, K[:, :LENGTH], Q, None, None, None, PAST[0], PAST[0] * 2], {}, 3),
        ([Q, reals(FRAMES, HEADS, 5, 4), reals(FRAMES, HEADS, 5, 4)], {}, 1),
    ],
)  # fmt: skip
def test_multi_head(operands: list[Array | None], attributes: dict[str, Any], outputs: int) -> None:
    agrees("MultiHeadAttention", operands, {"num_heads": HEADS} | attributes, outputs)


def test_lengths_of_packed_frames() -> None:
    agrees(
        "MultiHeadAttention", [Q, K, V, None, ints(3, 5, 0, 3, 6, 0, 5, 10)], {"num_heads": HEADS} | FILTER,
        constants=[4],
    )


@pytest.mark.parametrize("bias", [None, reals(3 * SIZE)])
def test_packed(bias: Array | None) -> None:
    """No kernel for processors has it: against the same operands apart."""
    parts = [reals(FRAMES, LENGTH, HEADS, 4) for _ in range(3)]
    flat = [part.reshape(FRAMES, LENGTH, SIZE) for part in parts]
    apart, keys, every = (
        by_definition(*model_of("MultiHeadAttention", operands, {"num_heads": HEADS}))[0]
        for operands in (
            [*flat, bias], [flat[0], np.stack(parts[1:], axis=3), None, bias],
            [np.stack(parts, axis=3), None, None, bias],
        )
    )
    np.testing.assert_array_equal(apart, keys)
    np.testing.assert_array_equal(apart, every)


ANGLES = np.outer(np.arange(16), 10000.0 ** (-np.arange(2) / 2))
TABLES = [np.cos(ANGLES).astype(np.float32), np.sin(ANGLES).astype(np.float32)]
PLACES = np.array([[3, 4, 5], [0, 2, 9]]), np.array([4])


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (Q, {}), (Q, {"interleaved": 1}), (Q, {"num_heads": HEADS}), (reals(FRAMES, HEADS, LENGTH, 4), {}),
        (reals(FRAMES, LENGTH, 12), {"num_heads": 2, "rotary_embedding_dim": 4}),
        (reals(FRAMES, LENGTH, 12), {"num_heads": 2, "rotary_embedding_dim": 4, "interleaved": 1}),
    ],
)  # fmt: skip
def test_rotary(places: Array, x: Array, attributes: dict[str, Any]) -> None:
    agrees("RotaryEmbedding", [x, places, *TABLES], attributes)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "outputs", "said"),
    [
        ("Attention", [INPUT, WEIGHTS, BIAS], {"num_heads": HEADS, "do_rotary": 1}, 1, "do_rotary must be 0, not 1"),
        ("Attention", [INPUT, WEIGHTS, BIAS], {"num_heads": 3}, 1, "a multiple of num_heads, not 8 for 3 heads"),
        ("Attention", [INPUT, WEIGHTS, BIAS, ints(1, 2, 0, 0)], {"num_heads": HEADS}, 1, "must be constants"),
        (
            "Attention", [INPUT, WEIGHTS, BIAS], {"num_heads": HEADS, "past_present_share_buffer": 1}, 1,
            "known at run time only",
        ),
        ("Attention", [INPUT, WEIGHTS, BIAS, ints([1, 1])], {"num_heads": HEADS}, 1, "the mask must be [frames, 3]"),
        ("MultiHeadAttention", [Q], {"num_heads": HEADS}, 1, "must be [frames, length, 2, 3, size]"),
        ("MultiHeadAttention", [Q, K, V], {"num_heads": HEADS}, 4, "output qk must be absent"),
        ("MultiHeadAttention", [Q, K, V], {"num_heads": HEADS} | CAUSAL, 1, "where 3 queries meet 5 other keys"),
        ("RotaryEmbedding", [Q, PLACES[1], *TABLES], {"scale": 2.0}, 1, "scale must be 1, not 2"),
        ("RotaryEmbedding", [Q, PLACES[1], *TABLES], {"is_packed_batching": 1}, 1, "frames have one length"),
        ("RotaryEmbedding", [Q, np.array([[1]]), *TABLES], {}, 1, "position_ids must be [1] or [frames, 3]"),
    ],
)  # fmt: skip
def test_what_is_refused(
    op: str, operands: list[Array], attributes: dict[str, Any], outputs: int, said: str
) -> None:
    model, _ = model_of(op, operands, attributes, outputs)
    with pytest.raises(ModelRefused) as refused:
        resolve_with_graph(model, {}, None, whole=True)
    (finding,) = refused.value.findings
    assert said in finding.message and finding.remedy and "node 'node'" in finding.where
