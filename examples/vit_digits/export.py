"""Write the trained network as a float ONNX model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from vit import CLASSES, HEADS, TOKENS, WIDTH, Block, VisionTransformer

OPSET = 20
"""The first with Gelu."""


class Graph:
    """Nodes and initializers; every node is named by its value."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, operator: str, name: str, *inputs: str, **attributes: Any) -> str:
        """Append a node and return the name of its value."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def constant(self, name: str, values: Tensor | float | list[int]) -> str:
        """Append float32 values, or an int64 shape, and return their name."""
        array = values.detach().numpy() if isinstance(values, Tensor) else np.asarray(values)
        kind = np.int64 if array.dtype.kind == "i" else np.float32
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array, kind), name))
        return name

    def dense(self, name: str, layer: nn.Linear, value: str) -> str:
        """Append a dense layer of the last axis."""
        product = self.node("MatMul", f"{name}_product", value, self.constant(f"{name}_weight", layer.weight.T))
        return self.node("Add", name, product, self.constant(f"{name}_bias", layer.bias))

    def norm(self, name: str, layer: nn.LayerNorm, value: str) -> str:
        """Append a norm of the last axis."""
        constants = self.constant(f"{name}_gain", layer.weight), self.constant(f"{name}_offset", layer.bias)
        return self.node("LayerNormalization", name, value, *constants, axis=-1, epsilon=layer.eps)

    def block(self, name: str, block: Block, tokens: str) -> str:
        """Append a block: what :meth:`Block.forward` does."""
        read = self.norm(f"{name}_norm1", block.norm1, tokens)
        split = self.constant(f"{name}_split", [0, TOKENS, HEADS, WIDTH // HEADS])
        heads = {}
        for part, layer, order in (
            ("query", block.query, [0, 2, 1, 3]), ("key", block.key, [0, 2, 3, 1]), ("value", block.value, [0, 2, 1, 3])
        ):
            parts = self.node("Reshape", f"{name}_{part}_parts", self.dense(f"{name}_{part}", layer, read), split)
            heads[part] = self.node("Transpose", f"{name}_{part}_heads", parts, perm=order)
        products = self.node("MatMul", f"{name}_products", heads["query"], heads["key"])
        scores = self.node(
            "Mul", f"{name}_scores", products, self.constant(f"{name}_factor", (WIDTH // HEADS) ** -0.5)
        )
        shares = self.node("Softmax", f"{name}_shares", scores, axis=-1)
        mixed = self.node("Transpose", f"{name}_turned", self.node("MatMul", f"{name}_values", shares, heads["value"]),
                          perm=[0, 2, 1, 3])
        mixed = self.node("Reshape", f"{name}_mixed", mixed, self.constant(f"{name}_joined", [0, TOKENS, WIDTH]))
        tokens = self.node("Add", f"{name}_attended", tokens, self.dense(f"{name}_mix", block.mix, mixed))
        hidden = self.dense(f"{name}_expand", block.expand, self.norm(f"{name}_norm2", block.norm2, tokens))
        hidden = self.node("Gelu", f"{name}_gelu", hidden)
        return self.node("Add", name, tokens, self.dense(f"{name}_contract", block.contract, hidden))


def export_model(network: VisionTransformer) -> onnx.ModelProto:
    """Return the checked float model: ``image`` [N, 1, 8, 8] to ``logits`` [N, CLASSES], both float32."""
    graph = Graph()
    weights = graph.constant("embed_weight", network.embed.weight), graph.constant("embed_bias", network.embed.bias)
    value = graph.node("Conv", "embed", "image", *weights, kernel_shape=[2, 2], strides=[2, 2])
    value = graph.node("Reshape", "patches", value, graph.constant("flat", [0, WIDTH, TOKENS]))
    value = graph.node("Transpose", "rows", value, perm=[0, 2, 1])
    value = graph.node("Add", "tokens", value, graph.constant("positions", network.positions))
    for i, block in enumerate(network.blocks):
        assert isinstance(block, Block)
        value = graph.block(f"block{i}", block, value)
    value = graph.norm("norm", network.norm, value)
    value = graph.node("ReduceMean", "mean", value, graph.constant("token_axis", [1]), keepdims=0)
    graph.dense("logits", network.classify, value)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "vit_digits",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
            graph.constants, doc_string="Reads 8x8 grey images of hand-written digits.",
        ),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9, producer_name="hwflow-examples",
        domain="org.hwflow.examples",
    )
    onnx.checker.check_model(model, full_check=True)
    return model
