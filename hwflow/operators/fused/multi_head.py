"""MultiHeadAttention of onnxruntime: attention of queries, keys and values, apart or packed, with a bias of their
projections."""

from __future__ import annotations

import onnx

from hwflow.onnxspec.definitions.dialect_writer import Call, DialectWriter
from hwflow.onnxspec.definitions.function_writer import Undefined, Use
from hwflow.onnxspec.shapes.dialect_forms import REALS, Form, Operand
from hwflow.operators.fused.heads import Attention, require_divisible, scale_of
from hwflow.operators.record import MICROSOFT, Operator

_QUERY, _KEY, _VALUE, _BIAS, _MASK, _ATTENTION_BIAS, _PAST_KEY, _PAST_VALUE, _PAST_LENGTH, _INDIRECTION = range(10)

_SHAPES = "correct the shapes"


class _Operands:
    """The parts of a call: [frames, heads, length, size] each, with the ``length`` of queries and of new keys."""

    def __init__(self, call: Call, body: DialectWriter, heads: int) -> None:
        self._call, self._body, self._heads = call, body, heads
        query, key, value = (call.shape(place) for place in (_QUERY, _KEY, _VALUE))
        if query is None or len(query) not in (3, 5):
            raise Undefined(f"the query must have 3 axes, or 5 where it is packed, not shape {query}", _SHAPES)
        self.length = query[1]
        self._sizes: list[int] = []
        self._bias_end = 0
        if key is None:
            if len(query) != 5 or query[2:4] != (heads, 3):
                raise Undefined(
                    f"a query without keys must be [frames, length, {heads}, 3, size], not {[*query]}", _SHAPES
                )
            self.parts = [self._packed(_QUERY, query, place) for place in range(3)]
            self.new = self.length
            return
        if len(query) != 3:
            raise Undefined(f"the query must have 3 axes where keys are given, not shape {[*query]}", _SHAPES)
        require_divisible("the queries' last axis", query[2], heads)
        self.parts = [self._apart(_QUERY, query)]
        if len(key) == 5:
            if value is not None or key[2:4] != (heads, 2):
                raise Undefined(
                    f"packed keys must be [frames, length, {heads}, 2, size] and values absent, not {[*key]} and "
                    f"{value}",
                    _SHAPES,
                )
            self.new = key[1]
            self.parts += [self._packed(_KEY, key, place) for place in range(2)]
            return
        if value is None or len(key) != len(value) or len(key) not in (3, 4):
            raise Undefined(f"keys and values must both have 3 or 4 axes, not shapes {[*key]} and {value}", _SHAPES)
        self.new = key[-2]
        self.parts += [self._apart(_KEY, key), self._apart(_VALUE, value)]

    @property
    def size(self) -> int:
        """Of a query and of a key."""
        return self._sizes[0]

    @property
    def value_size(self) -> int:
        """Of a value."""
        return self._sizes[2]

    def _biased(self, value: str, columns: int) -> str:
        begin, self._bias_end = self._bias_end, self._bias_end + columns
        if self._call.shape(_BIAS) is None:
            return value
        addend = self._body.part(self._body.argument(_BIAS), begin, self._bias_end, 0)
        return self._body.let(f"Add ({value}, {addend})")

    def _packed(self, place: int, shape: tuple[int, ...], number: int) -> str:
        """Return one of the parts that lie along axis 3."""
        _, length, heads, _, size = shape
        self._sizes.append(size)
        part = self._body.reshape(
            self._body.part(self._body.argument(place), number, number + 1, 3), [0, length, heads * size]
        )
        return self._split(self._biased(part, heads * size), length, size)

    def _apart(self, place: int, shape: tuple[int, ...]) -> str:
        value = self._body.argument(place)
        if len(shape) == 4:  # [frames, heads, length, size] already
            if self._call.shape(_BIAS) is not None:
                raise Undefined("bias must be absent where keys have 4 axes, but is there", "leave it out")
            self._sizes.append(shape[3])
            return value
        require_divisible("the last axis of queries, keys and values", shape[2], self._heads)
        self._sizes.append(shape[2] // self._heads)
        return self._split(self._biased(value, shape[2]), shape[1], self._sizes[-1])

    def _split(self, value: str, length: int, size: int) -> str:
        return self._body.transposed(self._body.reshape(value, [0, length, self._heads, size]), 0, 2, 1, 3)


def _defined(use: Use) -> onnx.FunctionProto:
    call = Call.of(use)
    for place, name in ((_PAST_LENGTH, "past_sequence_length"), (_INDIRECTION, "cache_indirection")):
        if call.shape(place) is not None:
            raise Undefined(
                f"{name} must be absent, but is there: keys would be written or read at places that are known at run "
                "time only", "export the model with past and present states of their own",
            )
    if call.outputs > 3:
        raise Undefined(
            "the output qk must be absent, but is there: its definition is contradictory",
            "compute the scores by MatMul, or leave it out",
        )
    body, heads = DialectWriter(call), call.integer("num_heads")
    operands = _Operands(call, body, heads)
    query, key, value = operands.parts
    past = call.shape(_PAST_KEY)
    earlier = 0
    if past is not None:
        if len(past) != 4 or call.shape(_PAST_VALUE) is None:
            raise Undefined(
                f"past keys and values must both be [frames, {heads}, length, size], not {[*past]} and "
                f"{call.shape(_PAST_VALUE)}", _SHAPES,
            )
        earlier = past[2]
        key = body.let(f"Concat <axis = 2> ({body.argument(_PAST_KEY)}, {key})")
        value = body.let(f"Concat <axis = 2> ({body.argument(_PAST_VALUE)}, {value})")
    attention = Attention(call, body, heads, operands.length, operands.new + earlier, earlier, _MASK)
    scores = attention.scores(query, key, scale_of(call, operands.size), body.argument(_ATTENTION_BIAS))
    result = attention.result(scores, value, operands.value_size)
    if call.outputs > 1:
        key, value = (body.let(f"Identity ({state})") for state in (key, value))
    return body.returned(result, key, value)


_INDICES = ("int32", "int64")
_OPTIONAL = ("key", "value", "bias"), ("attention_bias", "past_key", "past_value")


def _reals(names: tuple[str, ...]) -> tuple[Operand, ...]:
    return tuple(Operand(name, REALS, optional=True, like=0) for name in names)


RECORDS = (
    Operator(
        "MultiHeadAttention", domains=MICROSOFT, definition=_defined,
        defined="queries, keys and values apart or packed, with states of fixed lengths; masks of any documented form; "
        "no shared buffer, no output qk",
        form=Form(
            (
                Operand("query", REALS), *_reals(_OPTIONAL[0]), Operand("key_padding_mask", _INDICES, optional=True),
                *_reals(_OPTIONAL[1]), Operand("past_sequence_length", _INDICES, optional=True),
                Operand("cache_indirection", _INDICES, optional=True),
            ),
            {"num_heads": "integer", "unidirectional": "integer", "scale": "real", "mask_filter_value": "real"},
        ),
    ),
)
