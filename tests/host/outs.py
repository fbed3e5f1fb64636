"""Output folders without their Verilog, in a moment, and boards in software that hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hwflow.api.compiler import Design, compile
from hwflow.api.model_digests import model_digests
from hwflow.api.output import _write_host_models
from hwflow.codegen.cores import separate
from hwflow.codegen.manifest_file import manifest
from hwflow.codegen.top import Top
from hwflow.host.host_folder import write_host_folder
from hwflow.sim import digests
from hwflow.sim.manifest import Stream, load_design
from hwflow.sim.testbench import VECTORS
from hwflow.sim.vectors import Vectors, pack, to_stream
from hwflow.verify import golden
from hwflow.verify.golden_vectors import golden_vectors
from tests.host.link_peer import Pipes, identity
from tests.host.networks import Network, random_frames


def made(folder: Path, network: Network, frames: int = 4, arrays: dict[str, Any] | None = None) -> Path:
    """The output folder of a network, without what simulators need."""
    out = folder / "out"
    out.mkdir()
    design = compile(network.save(folder / "model.onnx"), "ulx3s_85f")
    top = Top(design.schedule.plan, separate())
    table = manifest(top, design.schedule, "network", "ulx3s_85f", _write_host_models(design, top, out))
    design.model.write(out / "model.onnx")
    table |= {
        "model_file": model_digests(folder / "model.onnx"), "sources": [], "weights": [], "dimensions": {},
        "input_types": {},
    }
    (out / "manifest.json").write_text(json.dumps(table))
    (out / "board").mkdir()
    link = {"carrier": "serial", "baud": 1_000_000, "usb": []}
    (out / "board" / "board.json").write_text(json.dumps({"link": link}))
    arrays = arrays or random_frames(network, frames)
    write_host_folder(out, arrays)
    vectors_of(design, out, arrays).save(out / VECTORS)
    table[digests.KEY] = digests.digests(out, ["model.onnx", VECTORS])
    (out / "manifest.json").write_text(json.dumps(table))
    return out


def vectors_of(design: Design, out: Path, arrays: dict[str, Any]) -> Vectors:
    from hwflow.host.boundary_models import port_inputs

    return golden_vectors(design.model, out, port_inputs(design.model, arrays))


def core(folder: Path) -> Pipes:
    """What a board does that holds the network in ``folder``: the golden model, beat by beat (sim's vectors)."""
    emitted = load_design(folder / "out")
    graph = compile(folder / "model.onnx", "ulx3s_85f").model.quantized
    digest = json.loads((folder / "out" / "manifest.json").read_text())["model_file"]["sha256"]

    def compute(data: Any) -> Any:
        begin, values = 0, {}
        for stream in emitted.inputs:
            end = begin + stream.beats * stream.tdata_bytes
            values[stream.name] = _integers(stream, data[:, begin:end])
            begin = end
        found = golden.evaluate(graph, values)
        parts = [pack(stream, to_stream(stream, found[stream.name])) for stream in emitted.outputs]
        return np.concatenate([part.reshape(len(data), -1) for part in parts], axis=1)

    def shapes(streams: tuple[Stream, ...]) -> list[tuple[int, int]]:
        return [(stream.tdata_bytes, stream.beats) for stream in streams]

    sizes = [sum(a * b for a, b in shapes(streams)) for streams in (emitted.inputs, emitted.outputs)]
    named = identity(shapes(emitted.inputs), shapes(emitted.outputs), sha256=bytes.fromhex(digest))
    return Pipes(named, sizes[0], sizes[1], compute)


def _integers(stream: Stream, data: Any) -> Any:
    """[frames, *shape], element by element."""
    size, values = stream.element_bytes, np.zeros((len(data), *stream.shape), np.int64)
    for beat in range(stream.beats):
        for lane in range(stream.real_lanes(beat)):
            place = (beat * stream.lanes + lane) * size
            for frame, word in enumerate(data[:, place : place + size]):
                at = (frame, *stream.index_of(beat, lane))
                values[at] = int.from_bytes(word.tobytes(), "little", signed=stream.signed)
    return values


