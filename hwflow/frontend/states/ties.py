"""State: an output of the model that is an input of a later frame, so that its tensor stays on the chip.

A tie is asked for by an option, or by the model itself: its metadata's key :data:`KEY` has the same texts. What state
is at first are the input's own default (ONNX's initializer of an input), or what a file says, or zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from onnx import helper, numpy_helper

from hwflow.display import show, show_path
from hwflow.errors import Finding, ModelRefused, UsageError
from hwflow.onnxspec import ModelProto, ResolvedModel
from hwflow.onnxspec.resolving.resolved_model import Array, Tie

OPTION = "option --state"
KEY = "hwflow.state"
CHANNELS_KEY = "hwflow.channels"

_SEPARATOR = re.compile(r"[;\n]")
_FORM = "OUTPUT=INPUT[:INITIAL.npz]"
MOST_CHANNELS = 1 << 16
INITIAL = "initial_states.npz"


@dataclass(frozen=True)
class States:
    """Texts of the form OUTPUT=INPUT[:INITIAL.npz], and how many independent ``channels`` take turns, frame by frame
    (None: as the model's metadata says, or one)."""

    texts: tuple[str, ...] = ()
    channels: int | None = None

    def within(self, proto: ModelProto) -> States:
        """Merge with the model's metadata; where both are about an input, these win."""
        metadata = {entry.key: entry.value for entry in proto.metadata_props}
        texts = tuple(text for text in map(str.strip, _SEPARATOR.split(metadata.get(KEY, ""))) if text)
        channels = metadata.get(CHANNELS_KEY, "").strip()
        own = {text.partition("=")[2].partition(":")[0] for text in self.texts}
        kept = tuple(text for text in texts if text.partition("=")[2].partition(":")[0] not in own)
        known = int(channels) if channels.isdecimal() and len(channels) < 9 else None
        return States(kept + self.texts, known if self.channels is None else self.channels)

    @staticmethod
    def of_manifest(table: Mapping[str, Any]) -> States:
        """Return the states of an output folder's manifest (:func:`in_manifest`)."""
        states = table.get("states", {})
        return States(tuple(map(str, states.get("ties", ()))), int(states["channels"]) if states else None)

    @property
    def files(self) -> list[Path]:
        """Return the files that may have first states."""
        return [Path(match[1]) for text in self.texts if (match := re.search(r":([^:=]+)$", text))]


STATELESS = States()


@dataclass(frozen=True, eq=False)
class Asked:
    """A tie of the model: output ``source`` becomes input ``target``. ``initial``: of any shape that broadcasts, None
    for zeros."""

    source: str
    target: str
    initial: Array | None


@dataclass(frozen=True, eq=False)
class Ties:
    """The ties asked for, with so many independent ``channels``."""

    asked: tuple[Asked, ...] = ()
    channels: int = 1

    def of(self, model: ResolvedModel, *, whole: bool = False) -> ResolvedModel:
        """Return the model with its ties, whose ends are neither inputs nor outputs. ``whole``: a frame's axis was
        added in front of the model's own.

        Raises :class:`ModelRefused` with all findings.
        """
        if not self.asked:
            return model
        made = [_tie(model, each, self.channels, whole=whole) for each in self.asked]
        ties, findings = tuple(m for m in made if isinstance(m, Tie)), [m for m in made if isinstance(m, Finding)]
        inputs = tuple(name for name in model.inputs if all(name != tie.target for tie in ties))
        outputs = tuple(name for name in model.outputs if all(name != tie.source for tie in ties))
        if not findings and not (inputs and outputs):
            message = "at least one input and one output must be left to the host, which sends frames, not none"
            findings.append(Finding("state-type", f"model {show(model.name)}", message, "tie fewer outputs to inputs"))
        if findings:
            raise ModelRefused(findings)
        return replace(model, inputs=inputs, outputs=outputs, ties=ties)


UNTIED = Ties()


def ties_of(proto: ModelProto, states: States, folder: Path | None) -> Ties:
    """Return the ties of a model, and take the defaults of their inputs out of it: they are no constants.

    ``folder``: where the files of its metadata lie. Raises :class:`UsageError` with all findings.
    """
    channels = 1 if states.channels is None else states.channels
    require_channels(channels)
    findings: list[Finding] = []
    found: list[Asked] = []
    defaults = {tensor.name: tensor for tensor in proto.graph.initializer}
    for text in states.texts:
        try:
            source, target, file = _parts(proto, text)
            if any(source == other.source or target == other.target for other in found):
                raise ValueError(f"must name each output and input once, not {show(text)} too")
            initial = numpy_helper.to_array(defaults[target]) if target in defaults else None
            found.append(Asked(source, target, initial if file is None else _initial(file, folder, target)))
        except ValueError as error:
            remedy = f"give {_FORM} with an output and an input of the model"
            findings.append(Finding("state-option", OPTION, str(error), remedy))
    if findings:
        raise UsageError(findings)
    tied = {each.target for each in found}
    kept = [tensor for tensor in proto.graph.initializer if tensor.name not in tied]
    if len(kept) < len(proto.graph.initializer):
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
    if not found and channels > 1:
        message = "must be with --state, which says what there is one of for each channel"
        raise UsageError.of("channels-option", "option --channels", message, "tie outputs to inputs, or leave it out")
    return Ties(tuple(found), channels)


def require_channels(channels: int) -> None:
    """Raise :class:`UsageError` for a wrong number of channels."""
    if not 1 <= channels <= MOST_CHANNELS:
        message = f"must be 1 to {MOST_CHANNELS}, not {channels}"
        raise UsageError.of("channels-option", "option --channels", message, "for example --channels 16")


def in_manifest(model: ResolvedModel, folder: Path) -> dict[str, Any]:
    """Return the manifest's ``states``, and write what they are at first beside it."""
    initial = {tie.target: tie.initial for tie in model.ties if tie.initial.any()}
    if initial:
        np.savez(folder / INITIAL, **cast(Any, initial))
    texts = [f"{t.source}={t.target}" + (f":{INITIAL}" if t.target in initial else "") for t in model.ties]
    return {"states": {"ties": texts, "channels": max(tie.frames for tie in model.ties)}}


def with_ties(proto: ModelProto, model: ResolvedModel, *, whole: bool) -> ModelProto:
    """Return a copy of ``proto``, which has the inputs and outputs of ``model``, with metadata about its states, and
    what they are at first as the inputs' defaults. ``whole``: as of :meth:`Ties.of`."""
    made = ModelProto()
    made.CopyFrom(proto)
    if not model.ties:
        return made
    channels = max(tie.frames for tie in model.ties)
    texts = tuple(f"{tie.source}={tie.target}" for tie in model.ties)
    entries = {entry.key: entry.value for entry in made.metadata_props} | {KEY: ";".join(texts)}
    if channels > 1:
        entries[CHANNELS_KEY] = str(channels)
    helper.set_model_props(made, entries)
    for tie in model.ties:
        if tie.initial.any():
            first = tie.initial.astype(model.values[tie.target].dtype)
            made.graph.initializer.append(numpy_helper.from_array(first if whole else first[np.newaxis], tie.target))
    return made


def _parts(proto: ModelProto, text: str) -> tuple[str, str, str | None]:
    """Return output, input and the file of the first state. Names may hold the signs. Raises ValueError."""
    outputs, inputs = ([info.name for info in infos] for infos in (proto.graph.output, proto.graph.input))
    for place in [match.start() for match in re.finditer("=", text)]:
        source, rest = text[:place], text[place + 1 :]
        if source not in outputs:
            continue
        if rest in inputs:
            return source, rest, None
        for target in sorted(inputs, key=len, reverse=True):
            if rest.startswith(f"{target}:") and len(rest) > len(target) + 1:
                return source, target, rest[len(target) + 1 :]
    source, sign, rest = text.partition("=")
    if not (source and sign and rest):
        raise ValueError(f"must be {_FORM}, not {show(text)}")
    if source not in outputs:
        there = ", ".join(map(show, outputs)) or "none"
        raise ValueError(f"OUTPUT must be an output of the model ({there}), not {show(source)}")
    target = rest.partition(":")[0]
    there = ", ".join(map(show, inputs)) or "none"
    raise ValueError(f"INPUT must be an input of the model ({there}), not {show(target)}")


def _initial(file: str, folder: Path | None, target: str) -> Array:
    """Read the first state: the array of the input's name, or the only one. Raises ValueError."""
    path = Path(file)
    if not path.is_absolute() and folder is not None and not path.exists():
        path = folder / path
    try:
        with path.open("rb") as stream:
            read = np.load(stream, allow_pickle=False)
            arrays = {name: read[name] for name in read.files} if isinstance(read, np.lib.npyio.NpzFile) else {"": read}
    except OSError as error:
        raise ValueError(f"file {show_path(path)} must be readable, but: {error.strerror or 'it is not'}") from None
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for damaged files
        raise ValueError(f"file {show_path(path)} must be a .npz file, but: {type(error).__name__}") from None
    if target in arrays:
        return np.asarray(arrays[target])
    if len(arrays) == 1:
        return np.asarray(next(iter(arrays.values())))
    raise ValueError(f"file {show_path(path)} must hold an array {show(target)}, not {', '.join(map(show, arrays))}")


def _tie(model: ResolvedModel, asked: Asked, channels: int, *, whole: bool) -> Tie | Finding:
    """Return the tie of a resolved model, or what is wrong with it."""
    where = f"state {show(asked.source)} = {show(asked.target)}"
    a, b = (model.values.get(name) for name in (asked.source, asked.target))
    if a is None or b is None or asked.source in model.fixed or asked.target not in model.inputs:
        message = "its output must be computed by a node that is not constant"
        return Finding("state-type", where, message, "leave out the option --state for it")
    if a.shape != b.shape or a.dtype != b.dtype:
        message = f"both must be of one shape and type, not {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
        return Finding("state-type", where, message, "export the model with a state of one shape")
    shape = b.shape[1:]
    first = np.zeros((), dtype=np.float32) if asked.initial is None else asked.initial
    if not whole and first.ndim == len(b.shape) and first.shape[:1] == (1,):
        first = first[0]
    if first.dtype.kind not in "biuf" or (first.dtype.kind == "f" and not np.isfinite(first).all()):
        message = f"what it is at first must be finite numbers, not {first.dtype}"
        return Finding("state-type", where, message, "give numbers")
    try:
        return Tie(asked.source, asked.target, np.broadcast_to(first, shape), channels)
    except ValueError:
        message = f"what it is at first must have shape {list(shape)}, not {list(first.shape)}"
        return Finding("state-type", where, message, "give a first state of the input's shape")
