"""report.json: the design, its throughput, resources and proofs. The keys are a contract; an unknown figure is null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hwflow.codegen.host_models import host_nodes
from hwflow.codegen.memories import memory_report, queue_style
from hwflow.codegen.multiplier_use import macs_of_data, multipliers_by_kind, utilization
from hwflow.cores.chain import ChainAttributes, instances
from hwflow.cores.loops.followed_by import FollowedByAttributes
from hwflow.cores.loops.repeated import core_of, rounds_of
from hwflow.cores.matrix.dot_products import MvuAttributes
from hwflow.cores.matrix.stream_matrix import StreamMatrixAttributes
from hwflow.cores.operator import Decision, Folding, MemoryFile, Resources, beats
from hwflow.cores.registry import OPERATORS, hardware
from hwflow.cores.requantizers.requantize import Requantize
from hwflow.ir.graph import Delaying, Graph, Node, Recurring
from hwflow.ir.node_attributes import RequantizeAttributes
from hwflow.numerics.requantizers.form import Form
from hwflow.onnxspec.resolving.resolved_model import ResolvedModel
from hwflow.schedule.plan import Plan
from hwflow.schedule.schedule import Schedule

FORMAT = 1
"""Of report.json: a key that goes, or means something else, makes a new one."""

RESOURCES = ("lut", "ff", "dsp", "bram")


@dataclass
class Seconds:
    """Wall-clock seconds of each step; None where it did not run."""

    steps: dict[str, float | None] = field(
        default_factory=lambda: dict.fromkeys(("import", "schedule", "verilog", "synthesis", "place_route"))
    )


def report(
    model: ResolvedModel,
    schedule: Schedule,
    *,
    board: str | None,
    device: str | None,
    toolchain: str | None,
    target_mhz: float | None,
    available: Mapping[str, int],
    seconds: Seconds,
    family: str,
    files: Sequence[MemoryFile],
    host_work: Mapping[str, Any],
    names: Mapping[str, str],
    interleave: int = 1,
) -> dict[str, Any]:
    """Return the report before synthesis; :func:`add_synthesis` fills in the rest. ``files``: the tables of the cores;
    ``host_work``: the entries of `host` besides the nodes' names; ``names``: of the nodes' instances in the top
    level; ``interleave``: frames of the model in one of the design."""
    plan, graph = schedule.plan, schedule.graph
    macs = macs_of_data(plan.cores)
    multipliers = multipliers_by_kind(schedule, macs)
    interval = schedule.initiation_interval
    places = _places(graph, names)
    return {
        "format": FORMAT,
        "model": {
            "name": model.name,
            "ir_version": model.ir_version,
            "opset": model.opsets.get("", None),
            "parameters": model.parameters,
            "macs": sum(OPERATORS[n.op].macs(n) for n in macs),
            "macs_without_padding": sum(macs.values()),
        },
        "board": board,
        "device": device,
        "toolchain": toolchain,
        "clock": {"target_mhz": target_mhz, "fmax_mhz": None},
        "timing": {
            "initiation_interval": interval,
            "latency": schedule.latency,
            "frames_per_second": target_mhz * 1e6 * interleave / interval if target_mhz else None,
            **({"interleave": interleave} if interleave > 1 else {}),
            **({} if schedule.run.exact else {"exact": False}),
            **({} if (circuit := _circuit(schedule)) is None else {"circuit": circuit}),
        },
        "resources": _resources(schedule.resources, available),
        "multipliers": multipliers,
        "multiplier_utilization": utilization(multipliers),
        "layers": [
            _layer(n, plan[n], macs.get(n, 0)) | {"instance": places[n], "resources": _of_core(_predicted(schedule, n))}
            for n in plan.cores
        ],
        "fifos": [_fifo(n, plan[n], i) for n in graph.nodes for i in range(len(n.outputs))],
        "memories": memory_report(plan, files, family),
        "exactness": _exactness(plan),
        "larger_design": None,  # what was not routed, where this one took its place
        "host": {**host_nodes(graph), **host_work},
        "seconds": dict(seconds.steps),
    }


def _circuit(schedule: Schedule) -> dict[str, Any] | None:
    """Return what is kept from frame to frame, or from round to round of a loop, and whether the circuit through it,
    rather than a core, limits the interval; None where there is nothing. ``rounds``: in a frame, of the loop with the
    most."""
    kept = [node for node in schedule.graph.nodes if isinstance(node.attributes, Recurring)]
    if not kept:
        return None
    delays = [node.attributes for node in kept if isinstance(node.attributes, Delaying)]
    loops = [node.attributes for node in kept if isinstance(node.attributes, FollowedByAttributes)]
    return {
        "states": [node.name for node in kept],
        "frames": min((len(delay.first_frames) for delay in delays), default=1),
        "rounds": max((loop.rounds for loop in loops), default=1),
        "limits": schedule.limited_by_circuit,
    }


def add_synthesis(
    table: dict[str, Any],
    *,
    fmax_mhz: float | None,
    clock_mhz: float | None,
    resources: Mapping[str, int],
    cells: Mapping[str, Mapping[str, float]],
    seconds: Mapping[str, float],
) -> None:
    """Add the results of synthesis and place and route: resources of the design alone, the target clock. ``cells``: the
    resources of the design's cells by the beginnings of their hierarchical names in the design; {}: unknown."""
    if clock_mhz is not None:
        table["clock"]["target_mhz"] = clock_mhz
        timing = table["timing"]
        frames = timing.get("interleave", 1)
        timing["frames_per_second"] = clock_mhz * 1e6 * frames / timing["initiation_interval"]
    table["clock"]["fmax_mhz"] = fmax_mhz
    for name, used in resources.items():
        table["resources"][name]["synthesized"] = used
    if cells:
        _add_cores(table, cells)
    for step in ("synthesis", "place_route"):
        if step in seconds:
            table["seconds"][step] = seconds[step]


def with_limit(link: Mapping[str, Any], frames_per_second: float | None) -> dict[str, Any]:
    """Return report.json's ``link``: board.json's, and whether the link or the core is what limits the frames."""
    slower = frames_per_second is None or link["frames_per_second"] < frames_per_second
    return {**link, "limit": "link" if slower else "core"}


def _resources(predicted: Resources, available: Mapping[str, int]) -> dict[str, Any]:
    return {
        name: {
            "predicted": getattr(predicted, name), "synthesized": None, "glue": None, "available": available.get(name),
        }
        for name in RESOURCES
    }


def _places(graph: Graph, names: Mapping[str, str]) -> dict[Node, str]:
    """Return the hierarchical name of each core's instance in the top level."""
    places: dict[Node, str] = {}
    for node in graph.nodes:
        if isinstance(node.attributes, ChainAttributes):
            inside = zip(node.attributes.members, instances(node.attributes), strict=True)
            places |= {member.node: f"{names[node.name]}.{instance}" for member, instance in inside}
        else:
            places[node] = names[node.name]
    return places


def _predicted(schedule: Schedule, core: Node) -> Resources:
    """Return the resources of a core; the queue of a chain is that of its last one."""
    queue = (
        schedule.parts[node] for node in schedule.graph.nodes
        if isinstance(node.attributes, ChainAttributes) and node.attributes.members[-1].node is core
    )
    return sum(queue, schedule.parts[core])


def _of_core(predicted: Resources) -> dict[str, Any]:
    return {name: {"predicted": getattr(predicted, name), "synthesized": None} for name in RESOURCES}


def _add_cores(table: dict[str, Any], cells: Mapping[str, Mapping[str, float]]) -> None:
    """Give each cell to the core whose signals name it; what is left is the glue between them."""
    cores = {layer["instance"]: number for number, layer in enumerate(table["layers"])}
    cores |= {place.partition(".")[0]: number for place, number in cores.items()}  # a chain's queue is its last core's
    found: list[dict[str, float]] = [dict.fromkeys(RESOURCES, 0.0) for _ in table["layers"]]
    for path, counts in cells.items():
        first, _, rest = path.partition(".")
        number = cores.get(f"{first}.{rest.partition('.')[0]}", cores.get(first))
        if number is not None:
            for name, count in counts.items():
                found[number][name] += count
    if not any(any(counts.values()) for counts in found):  # yosys had to hide the names
        return
    for name, row in table["resources"].items():
        for layer, counts in zip(table["layers"], found, strict=True):
            layer["resources"][name]["synthesized"] = _whole(counts[name])
        row["glue"] = _whole(row["synthesized"] - sum(counts[name] for counts in found))


def _whole(count: float) -> float | int:
    """Return an integer where it is one: half a block may be a core's."""
    return int(count) if count == int(count) else count


_SUMS = (MvuAttributes, StreamMatrixAttributes)
"""Of cores that sum up products."""


def _layer(node: Node, decision: Decision, macs_without_padding: int) -> dict[str, Any]:
    folding, timing, core = decision.folding, hardware(node.op).timing(node, decision), core_of(node)
    details: dict[str, Any] = {"input_lanes": folding.input_lanes, "output_lanes": folding.output_lanes}
    if folding.multipliers:
        details |= {"pe": folding.output_lanes, "simd": folding.input_lanes, "multiplier": folding.multiplier}
        details["whole_vector"] = folding.whole_vector
        details["clipped"] = isinstance(core.attributes, MvuAttributes) and core.attributes.clipped is not None
    return {
        "name": node.name,
        "op": core.op,
        "rounds": rounds_of(node),
        "onnx_nodes": list(node.sources),
        "folding": details,
        "initiation_interval": timing.cycles,
        "latency": max(timing.latency, default=0),
        "macs": OPERATORS[node.op].macs(node),
        "macs_without_padding": macs_without_padding,
        "multipliers": folding.multipliers,
        "accumulator_bits": node.outputs[0].typed.element.bits if isinstance(core.attributes, _SUMS) else None,
        "requantizer": _requantizer(core, folding) if isinstance(core.attributes, RequantizeAttributes) else None,
    }


def _fifo(node: Node, decision: Decision, index: int) -> dict[str, Any]:
    value, lanes, depth = node.outputs[index], decision.folding.output_lanes, decision.depths[index]
    return {
        "name": value.name,
        "width": lanes * value.typed.element.bits,
        "depth": depth,
        "bits": lanes * value.typed.element.bits * depth,
        "style": queue_style(node, decision, index),
        "beats_per_frame": beats(hardware(node.op).output_view(node, value.typed.shape, lanes), lanes),
    }


def _exactness(plan: Plan) -> dict[str, Any]:
    """Return every requantizer with its form, and that it was proved equal to its step functions (an unproved one is
    never built)."""
    forms = []
    for node in plan.cores:
        core = core_of(node)
        if isinstance(core.attributes, RequantizeAttributes):
            source, result, form = core.inputs[0].typed, core.outputs[0].typed, _form(core, plan[node].folding)
            forms.append({
                "name": core.name,
                "form": form.title,
                "input_interval": [source.interval.lo, source.interval.hi],
                "output_interval": [result.interval.lo, result.interval.hi],
                **form.details(),
            })
    return {"requantizers": forms, "proved": len(forms)}


def _form(core: Node[RequantizeAttributes], folding: Folding) -> Form:
    """Return the form of a requantizer with that folding."""
    form: Form = Requantize().implementation(core, folding).form
    return form


def _requantizer(core: Node[RequantizeAttributes], folding: Folding) -> dict[str, Any]:
    """Return form, widths and proof of a requantizer."""
    form, source = _form(core, folding), core.inputs[0].typed
    return {
        "form": form.title,
        "input_bits": source.element.bits,
        "output_bits": core.outputs[0].typed.element.bits,
        **form.details(),
        "epsilon": float(core.attributes.epsilon),
        "proved": True,
    }
