"""Attention of several heads in operators of ai.onnx, as onnxruntime's operators define it.

Source: the contrib operators' documentation of onnxruntime, and what its kernels do where that leaves it open: an
unmasked number of a raw mask is above 0, later keys have no share at all, and other masked ones a share by
``mask_filter_value``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined

_FILTER = -10000.0


def scale_of(call: Call, size: int) -> float:
    """Return the factor of scores: attribute ``scale``, or one over the root of the heads' ``size``."""
    scale = call.real("scale", 0.0)
    return scale or float(np.float32(1) / np.sqrt(np.float32(size)))


def require_divisible(what: str, size: int, heads: int) -> None:
    """Refuse sizes that heads do not share."""
    if heads < 1 or size % heads:
        raise Undefined(
            f"{what} must be a multiple of num_heads, not {size} for {heads} heads", "correct num_heads or the weights"
        )


@dataclass(frozen=True)
class Attention:
    """``queries``, ``keys`` (those of a past state, ``past`` of them, among them) and ``heads`` are numbers of each;
    ``place``: of the mask among the call's inputs."""

    call: Call
    body: DialectWriter
    heads: int
    queries: int
    keys: int
    past: int
    place: int

    def split(self, value: str, length: int, size: int) -> str:
        """Return [frames, length, heads * size] as [frames, heads, length, size]."""
        return self.body.transposed(self.body.reshape(value, [0, length, self.heads, size]), 0, 2, 1, 3)

    def scores(self, query: str, key: str, scale: float, bias: str) -> str:
        """Return the masked scores of [frames, heads, length, size] each."""
        body = self.body
        scores = body.let(f"MatMul ({query}, {body.transposed(key, 0, 1, 3, 2)})")
        scores = body.let(f"Mul ({scores}, {body.number(scale)})")
        for addend in (bias, self._mask()):
            scores = body.let(f"Add ({scores}, {addend})") if addend else scores
        if not self.call.integer("unidirectional") or self.queries == 1:
            return scores
        if self.keys - self.past != self.queries:
            raise Undefined(
                f"unidirectional must be 0, not 1, where {self.queries} queries meet {self.keys - self.past} other "
                "keys: kernels differ in what it means", "mask later keys by attention_bias or by the mask",
            )
        later = np.arange(self.keys) > self.past + np.arange(self.queries)[:, None]
        return body.let(f"Where ({body.number(~later, 'bool')}, {scores}, {body.number(-np.inf)})")

    def result(self, scores: str, value: str, size: int) -> str:
        """Return the values [frames, heads, length, size] by their shares, as [frames, length, heads * size]."""
        body = self.body
        shares = body.let(f"Softmax <axis = -1> ({scores})")
        together = body.transposed(body.let(f"MatMul ({shares}, {value})"), 0, 2, 1, 3)
        return body.reshape(together, [0, self.queries, self.heads * size])

    def _mask(self) -> str:
        """Return what is added to scores, [frames, 1, 1 or queries, keys]; empty where nothing is masked."""
        shape = self.call.shape(self.place)
        if shape is None:
            return ""
        seen = self._lengths(shape) if len(shape) == 1 else self._raw(shape)
        number = self.call.real("mask_filter_value", _FILTER)
        body = self.body
        return body.let(f"Where ({seen}, {body.number(0.0)}, {body.number(number)})") if seen else ""

    def _raw(self, shape: tuple[int, ...]) -> str:
        """Return where the numbers of a mask are above 0."""
        body, mask, kind = self.body, self.body.argument(self.place), self.call.kind(self.place)
        if len(shape) == 2 and shape[1] == 1 != self.keys:
            return ""  # the same for every key
        if len(shape) == 4 and shape[1] == 1 and min(shape[2:]) >= self.keys:
            mask = body.part(body.part(mask, self.past, self.past + self.queries, 2), 0, self.keys, 3)
        elif shape[1:] not in ((self.keys,), (self.queries, self.keys)):
            raise Undefined(
                f"the mask must be [frames, {self.keys}], [frames, {self.queries}, {self.keys}], [frames, 1, M, M] "
                f"with M of at least {self.keys}, or lengths, not {[*shape]}",
                "give it for all keys, those of a past state too",
            )
        else:
            mask = body.reshape(mask, [0, 1, 1 if len(shape) == 2 else self.queries, self.keys])
        return body.let(f"Greater ({mask}, {body.number(0, kind)})")

    def _lengths(self, shape: tuple[int, ...]) -> str:
        """Return which keys are before the ends that a mask has, and from its starts on."""
        body, mask, kind = self.body, self.body.argument(self.place), self.call.kind(self.place)
        first = self.call.shape(0)
        assert first is not None
        (frames, *_), (count,) = first, shape
        forms = {frames: 1, 2 * frames: 2, 3 * frames + 2: 3}
        form = forms.get(count)
        if form is None:
            raise Undefined(
                f"a mask of lengths must have 1, 2 or, and 2 more, 3 of each frame, not {count} for {frames}",
                "give one length of keys for each frame",
            )
        places = body.integers(range(self.keys), kind)
        if form == 1:
            return body.let(f"Less ({places}, {body.reshape(mask, [0, 1, 1, 1])})")
        if not self.call.constant(self.place):
            raise Undefined(
                "ends and starts of keys must be constants, not computed at run time: they do not lie along the frames",
                "give a mask of 0 and 1 for each key",
            )
        ends, starts = (
            body.reshape(body.part(mask, begin, begin + frames, 0), [frames, 1, 1, 1]) for begin in (0, frames)
        )
        before = body.let(f"Less ({places}, {ends})")
        if form == 3:  # the others count keys of packed frames
            return before
        early = body.let(f"Less ({places}, {starts})")
        late = body.let(f"Not ({early})")
        return body.let(f"And ({before}, {late})")
