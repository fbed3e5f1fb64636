"""Where the error of a quantized model comes from: the signal to noise ratio behind every quantizer, and how much of
the outputs' noise is there because of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from hwflow.quantization.calibration import observed, of_any_round
from hwflow.quantization.integer_kinds import IntegerKind
from hwflow.quantization.node_weights import weights_of
from hwflow.quantization.noise.precision import FidelityTarget
from hwflow.quantization.qdq_writer import result_of, written_weights
from hwflow.quantization.sessions import Arrays

MOST_FRAMES = 64  # of the ratios
MOST_SHARES = 64  # quantizers that are measured alone: those with the worst ratios; each takes a run of the model

Kinds = Mapping[str, IntegerKind]
MakeQdq = Callable[[Kinds, Kinds], onnx.ModelProto]
"""Makes a model in which these activations and these weights are quantized."""


@dataclass(frozen=True)
class LayerError:
    """A quantized value, in all rounds of a loop together: an activation, or a layer's weights.

    ``node``: what makes the activation or reads the weights, "" for an input; ``kind``: such as "uint8". ``snr_db``:
    behind its quantizer, against the float model, with the noise of all quantizers before (of weights: of themselves
    alone); infinite without noise. ``noise_share``: of the outputs' noise, 0 to 1: what this quantizer alone makes,
    over the sum of what each alone makes; None where it was not measured.
    """

    name: str
    node: str
    kind: str
    weights: bool
    snr_db: float
    noise_share: float | None


def layer_errors(
    prepared: onnx.ModelProto, quantized: onnx.ModelProto, activations: Kinds, weights: Kinds, target: FidelityTarget,
    make_qdq: MakeQdq,
) -> tuple[LayerError, ...]:
    """Return the errors of each group of quantized values, activations in the order of the graph, then weights.

    ``prepared``: the float model that ``quantized`` was made of; ``target``: its results, on the frames to look at.
    """
    constants = {i.name for i in prepared.graph.initializer}
    names = [name for name in activations if name not in constants]
    powers = _powers(prepared, quantized, names, target.frames[:MOST_FRAMES])
    powers |= _weight_powers(prepared, quantized, weights)
    makers = {name: node for node in prepared.graph.node for name in node.output}
    readers = _weight_readers(prepared.graph)
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in (*names, *weights):
        groups.setdefault((of_any_round(name), name in weights), []).append(name)
    ratios = {key: _decibels(_sum(powers[name] for name in members)) for key, members in groups.items()}
    worst = sorted(groups, key=lambda key: ratios[key])[:MOST_SHARES]
    shares: dict[tuple[str, bool], float] = {}
    for key in worst:
        kinds = weights if key[1] else activations
        only = {name: kinds[name] for name in groups[key]}
        alone = make_qdq({}, only) if key[1] else make_qdq(only, {})
        shares[key] = target.noise_alone(alone)
    total = sum(shares.values())
    return tuple(
        LayerError(
            members[0], _said(readers.get(members[0]) if key[1] else makers.get(members[0])),
            str((weights if key[1] else activations)[members[0]]), key[1], ratios[key],
            shares[key] / total if key in shares and total else None,
        )
        for key, members in groups.items()
    )


def _powers(
    prepared: onnx.ModelProto, quantized: onnx.ModelProto, names: Sequence[str], frames: Sequence[Arrays]
) -> dict[str, tuple[float, float]]:
    """Return the powers of each value and of its error, with the float model's states in every frame."""
    outputs = {o.name for o in quantized.graph.output}
    behind = [name if name in outputs else result_of(name) for name in names]
    found = dict.fromkeys(names, (0.0, 0.0))
    both = zip(observed(prepared, frames, names), observed(quantized, frames, behind), strict=True)
    for (name, exact), (_, noisy) in both:  # frame by frame: all values of all frames would take much memory
        signal, noise = found[name]
        values = exact.astype(np.float64)
        found[name] = signal + float((values**2).sum()), noise + float(((values - noisy) ** 2).sum())
    return found


def _weight_powers(
    prepared: onnx.ModelProto, quantized: onnx.ModelProto, weights: Iterable[str]
) -> dict[str, tuple[float, float]]:
    exact = {i.name: i for i in prepared.graph.initializer}
    found = {}
    for name, written in written_weights(quantized, weights).items():
        values = onnx.numpy_helper.to_array(exact[name]).astype(np.float64)
        found[name] = float((values**2).sum()), float(((values - written) ** 2).sum())
    return found


def _weight_readers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    constants = {i.name: i for i in graph.initializer}
    found: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        weights = weights_of(node, constants)
        if weights is not None:
            found.setdefault(node.input[weights.index], node)
    return found


def _said(node: onnx.NodeProto | None) -> str:
    return "" if node is None else f"{node.name} ({node.op_type})"


def _sum(powers: Iterable[tuple[float, float]]) -> tuple[float, float]:
    pairs = list(powers)
    return sum(signal for signal, _ in pairs), sum(noise for _, noise in pairs)


def _decibels(powers: tuple[float, float]) -> float:
    signal, noise = powers
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf
