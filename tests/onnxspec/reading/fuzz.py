"""Damaged models: checked one after the other in a process of its own, within the limits of limits.py.

``python -m tests.onnxspec.reading.fuzz FOLDER FIRST COUNT`` checks the cases FIRST, FIRST + 1, ... and prints how they
ended; it dies, with the case's number in FOLDER/case and the model in FOLDER/model.onnx, at the first one that gives a
traceback, hangs or wants too much memory. A case is made from its number alone. With ``dialects`` at the end, the cases
are those of quantized models (dialect_seeds.py, dialect_damage.py).
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor

from hwflow.processes import rarely_collected
from tests.onnxspec.reading.dialect_damage import damaged
from tests.onnxspec.reading.dialect_seeds import dialect_seeds
from tests.onnxspec.reading.fuzz_seeds import seeds
from tests.onnxspec.reading.limits import SECONDS, guarded_check, limit_memory, worst

_INTEGERS = [0, 1, 2, -1, -2, 3, 5, 7, 15, 16, 127, 255, 4096, 2**31 - 1, 2**31, -(2**31), 2**60, 2**63 - 1, -(2**63)]
_TEXTS = [
    "", "x", "y", "w", "ai.onnx", "*", "a b", "If", "Relu", "QuantizeLinear", "Loop", "Conv", "\u00e9\u4e2d",
    "then_branch",
]  # fmt: skip
_FLOATS = [0.0, -1.0, 1e38, float("inf"), float("nan"), 1e-45]


def truncated(rng: random.Random, model: onnx.ModelProto) -> bytes:
    """The first part of the file."""
    data = model.SerializeToString()
    return data[: rng.randrange(len(data))]


def flipped(rng: random.Random, model: onnx.ModelProto) -> bytes:
    """A few bits turned over."""
    data = bytearray(model.SerializeToString())
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def spliced(rng: random.Random, model: onnx.ModelProto) -> bytes:
    """A stretch removed, doubled or replaced by random bytes."""
    data = model.SerializeToString()
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice([1, 2, 5, 20, 100]))
    middle = rng.choice([b"", data[start:end] * 2, rng.randbytes(end - start)])
    return data[:start] + middle + data[end:]


def noise(rng: random.Random, model: onnx.ModelProto) -> bytes:
    """No model at all."""
    return rng.randbytes(rng.choice([1, 2, 10, 100, 1000]))


def messages(root: Any) -> list[Any]:
    """The message and all messages inside."""
    found, pending = [], [root]
    while pending:
        message = pending.pop()
        found.append(message)
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                pending.extend(value if field.is_repeated else [value])
    return found


def _scalar(rng: random.Random, field: FieldDescriptor) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_STRING:
            return rng.choice(_TEXTS)
        return rng.randbytes(rng.choice([0, 1, 4, 9]))
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice(_FLOATS)
    low, high = {
        FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
        FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    }.get(kind, (-(2**63), 2**63 - 1))
    return min(max(rng.choice(_INTEGERS), low), high)


def mutated(rng: random.Random, model: onnx.ModelProto) -> bytes:
    """A few fields of the message set to something else, removed, doubled or put in another order."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        message = rng.choice(messages(copy))
        field = rng.choice(message.DESCRIPTOR.fields)
        is_message = field.type == FieldDescriptor.TYPE_MESSAGE
        value = getattr(message, field.name)
        action = rng.choice(["set", "set", "set", "clear", "order"])
        if action == "clear":
            if field.is_repeated and len(value):
                del value[rng.randrange(len(value))]
            else:
                message.ClearField(field.name)
        elif is_message:
            others = [m for m in messages(copy) if m.DESCRIPTOR is field.message_type]
            other = type(others[0])() if others else None
            if other is None:
                continue
            other.CopyFrom(rng.choice(others))
            if other.ByteSize() > 20_000:
                continue  # graphs put into graphs grow without end
            (value.add() if field.is_repeated else value).CopyFrom(other)
        elif field.is_repeated:
            items = list(value)
            if action == "order":
                rng.shuffle(items)
            elif items and rng.random() < 0.7:
                # A name from elsewhere in the model says more than a random one.
                new = rng.choice(items) if rng.random() < 0.3 else _scalar(rng, field)
                items[rng.randrange(len(items))] = new
            else:
                items.append(_scalar(rng, field))
            del value[:]
            value.extend(items)
        else:
            setattr(message, field.name, _scalar(rng, field))
    return copy.SerializeToString()


Mutator = Callable[[random.Random, onnx.ModelProto], bytes]

MUTATORS: tuple[Mutator, ...] = (
    truncated, flipped, flipped, spliced, mutated, mutated, mutated, mutated, mutated, noise,
)  # fmt: skip
DIALECT_SECONDS = 8  # a quantizer of 16 bits after a function takes one, and there are several
DIALECT_MUTATORS: tuple[Mutator, ...] = (flipped, mutated, *(damaged,) * 8)


def case(number: int, models: list[onnx.ModelProto], mutators: tuple[Mutator, ...] = MUTATORS) -> bytes:
    """The bytes of case ``number``."""
    rng = random.Random(number)
    return mutators[number % len(mutators)](rng, rng.choice(models))


def run(folder: Path, first: int, count: int, dialects: bool = False) -> Counter[str]:
    """How the cases ended: by the severity of the worst finding. Raises what a case raises."""
    models, mutators = (dialect_seeds(), DIALECT_MUTATORS) if dialects else (seeds(folder), MUTATORS)
    path = folder / "model.onnx"
    outcomes: Counter[str] = Counter()
    path.write_bytes(models[0].SerializeToString())
    limit_memory(path)
    for number in range(first, first + count):
        path.write_bytes(case(number, models, mutators))
        (folder / "case").write_text(str(number))
        outcomes[worst(guarded_check(path, DIALECT_SECONDS if dialects else SECONDS))] += 1
    return outcomes


if __name__ == "__main__":
    with rarely_collected():
        print(dict(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["dialects"])))
