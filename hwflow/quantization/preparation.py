"""Prepare a float model for the quantizer, and finish what comes out of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import inliner, version_converter

from hwflow.onnxspec.graphs.operator_facts import STANDARD_DOMAIN, facts_of
from hwflow.onnxspec.graphs.operator_names import GEMM, SHAPE, WHERE
from hwflow.quantization.sessions import MOST_IR_VERSION, open_session, refusing

NEWEST_OPSET = 21
"""4 and 16 bits, operators for norms and Gelu."""


def of_fused_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``model`` at the newest operator set used here, if it has operators of dialects that have a definition,
    which may be of norms newer than the model; else itself."""
    if all(not n.domain or facts_of(n.domain, n.op_type).definition is None for n in model.graph.node):
        return model
    return raised(model, NEWEST_OPSET)


def decomposed(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Replace operators whose definition has values that must be quantized (Attention) by it, and masks that are
    computed of sizes (as torch's exporter makes causal ones) by constants; return the model itself where there are
    neither.

    Definitions compute shapes, too. So that all these become constants, the model then takes one frame.
    """
    composed = {n.op_type for n in model.graph.node if facts_of(STANDARD_DOMAIN, n.op_type).composed and not n.domain}
    if not composed and not _computes_reals_of_sizes(model):
        return model
    with refusing(model, "be what onnx can decompose"):
        result = inliner.inline_selected_functions(model, [("", name) for name in sorted(composed)], False, True)
    for info in (*result.graph.input, *result.graph.output):
        if info.type.tensor_type.shape.dim:
            info.type.tensor_type.shape.dim[0].dim_value = 1
    del result.graph.value_info[:]
    for _ in range(2):  # the first round leaves constants that depend on what it folds
        result = optimized(result, folder)
    _drop_selections(result.graph)
    return result


def _computes_reals_of_sizes(model: onnx.ModelProto) -> bool:
    """Tell whether some float values depend on constants and on shapes alone."""
    fixed = {i.name for i in model.graph.initializer} | {""}  # constants, and what is computed of sizes
    of_sizes: set[str] = set()
    for node in model.graph.node:
        if node.op_type == SHAPE or fixed.issuperset(node.input):
            fixed.update(node.output)
            if node.op_type == SHAPE or not of_sizes.isdisjoint(node.input):
                of_sizes.update(node.output)
    if not of_sizes:
        return False
    typed = onnx.shape_inference.infer_shapes(model).graph.value_info
    return any(v.name in of_sizes and v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT for v in typed)


def _drop_selections(graph: onnx.GraphProto) -> None:
    """Remove selections whose constant condition always takes a value that is computed: of rows masked altogether."""
    constants = {i.name: i for i in graph.initializer}
    renamed: dict[str, str] = {}
    for node in list(graph.node):
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        if node.op_type == WHERE and node.input[0] in constants:
            chosen = set(onnx.numpy_helper.to_array(constants[node.input[0]]).reshape(-1).tolist())
            taken = node.input[1 if chosen == {True} else 2]
            other = node.input[2 if chosen == {True} else 1]
            single = other in constants and all(size == 1 for size in constants[other].dims)
            if len(chosen) == 1 and single and taken not in constants:
                renamed[node.output[0]] = taken
                graph.node.remove(node)


def raised(model: onnx.ModelProto, least: int) -> onnx.ModelProto:
    """Return the model at version ``least`` of the default operator set, or its own where that is newer."""
    default = [o for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if all(o.version >= least for o in default):
        return model
    remedy = f"export the model for operator set {least} or newer"
    with refusing(model, f"be what onnx can convert to operator set {least}", remedy):
        if model.functions:
            model = inliner.inline_local_functions(model)
        _drop_unused_opsets(model)  # the converter knows none but ONNX's own
        converted: onnx.ModelProto = version_converter.convert_version(model, least)
        least_ir = onnx.helper.find_min_ir_version_for(converted.opset_import, True)  # whatever the dialects
        converted.ir_version = max(converted.ir_version, least_ir)
        return converted


def optimized(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Fold constants, and BatchNormalization into Conv; write LayerNormalization and Gelu where they are spelled out in
    other operators (from operator sets 17 and 20 on): ONNX operators still."""
    with refusing(model, "run in onnxruntime"):
        file = folder / "optimized.onnx"
        open_session(model, file)
        result = onnx.load(file)
    result.ir_version = max(model.ir_version, result.ir_version)
    _drop_unused_opsets(result)
    return result


def _drop_unused_opsets(model: onnx.ModelProto) -> None:
    """Drop opsets without operators: onnxruntime imports every domain that it knows."""
    used = {""}
    graphs = [model.graph]
    while graphs:
        for node in graphs.pop().node:
            used.add("" if node.domain == "ai.onnx" else node.domain)
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    kept = [o for o in model.opset_import if ("" if o.domain == "ai.onnx" else o.domain) in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _drop_leftovers(graph: onnx.GraphProto) -> None:
    """Drop initializers that nothing reads, and types of values that are gone."""
    graphs, read = [graph], {output.name for output in graph.output}
    while graphs:
        for node in graphs.pop().node:
            read.update(node.input)
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    values = {name for node in graph.node for name in node.output} | {tensor.name for tensor in kept}
    infos = [info for info in graph.value_info if info.name in values]
    del graph.value_info[:]
    graph.value_info.extend(infos)


def name_nodes(model: onnx.ModelProto) -> None:
    """Give every node a unique name: the quantizer knows nodes by name."""
    taken = {node.name for node in model.graph.node}
    seen: set[str] = set()
    for node in model.graph.node:
        if not node.name or node.name in seen:
            stem, number = node.name or node.op_type, 1
            while f"{stem}_{number}" in taken:
                number += 1
            node.name = f"{stem}_{number}"
            taken.add(node.name)
        seen.add(node.name)


def plain_biases(model: onnx.ModelProto) -> None:
    """Write every constant addend of a Gemm as one value per column, to be added as it is.

    The quantizer takes an addend's first axis for the channels, and (onnxruntime 1.31) loses a beta other than 1.
    """
    graph = model.graph
    constants = {i.name: i for i in graph.initializer}
    for node in graph.node:
        if node.op_type != GEMM or len(node.input) < 3 or not constants.keys() >= {*node.input[1:3]}:
            continue
        weights, addend = (constants[name] for name in node.input[1:3])
        attributes = {a.name: a for a in node.attribute}
        columns = weights.dims[0 if "transB" in attributes and attributes["transB"].i else 1]
        beta = attributes["beta"].f if "beta" in attributes else 1.0
        if len(addend.dims) == 2 and addend.dims[0] != 1:  # one value per row: frames of several rows
            continue
        if [*addend.dims] == [columns] and beta == 1.0:
            continue
        values = onnx.numpy_helper.to_array(addend)
        flat = np.broadcast_to(values.reshape(-1) * values.dtype.type(beta), (columns,))
        name = f"{node.input[2]}_of_{node.name}"
        graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(flat), name))
        node.input[2] = name
        if "beta" in attributes:
            attributes["beta"].f = 1.0


def finished(model: onnx.ModelProto, source: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``model`` under the name and with the documentation of the model that it was made of."""
    _drop_unused_opsets(model)
    model.ir_version = min(
        max(model.ir_version, onnx.helper.find_min_ir_version_for(model.opset_import, True)), MOST_IR_VERSION
    )
    model.producer_name = "hwflow quantize"
    model.graph.name = source.graph.name
    for old, new, fields in (
        (source, model, ("producer_version", "domain", "model_version", "doc_string")),
        (source.graph, model.graph, ("doc_string",)),
    ):
        for field in fields:
            new.ClearField(field)
            if old.HasField(field) and field != "producer_version":
                setattr(new, field, getattr(old, field))
    _drop_leftovers(model.graph)
    del model.metadata_props[:]
    model.metadata_props.extend(source.metadata_props)
    return model
