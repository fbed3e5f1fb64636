"""Every operator, one line each. An operator without timing or resources cannot be instantiated, so not registered."""

from __future__ import annotations

from hwflow.ir.graph import Stage
from hwflow.ops.concat import Concat, StreamConcat
from hwflow.ops.conv2d import Conv2d
from hwflow.ops.dense import Dense
from hwflow.ops.depthwise import Depthwise
from hwflow.ops.elementwise import Elementwise
from hwflow.ops.interpolate import Interpolate
from hwflow.ops.max_pool import MaxPool
from hwflow.ops.max_pool2d import MaxPool2d
from hwflow.ops.mvu import Mvu
from hwflow.ops.operator import HardwareOperator, LogicalOperator, Operator
from hwflow.ops.pixel_product import PixelProduct
from hwflow.ops.plumbing import Fifo, Fork, FrameSync, Relay, WidthConverter
from hwflow.ops.position_sum import PositionSum
from hwflow.ops.product import Product
from hwflow.ops.rearrange import Rearrange
from hwflow.ops.reindex import Reindex
from hwflow.ops.requantize import Requantize
from hwflow.ops.reshape import Reshape, Transpose
from hwflow.ops.scaled_add import ScaledAdd
from hwflow.ops.sliding_window import SlidingWindow
from hwflow.ops.stream_top_k import StreamTopK
from hwflow.ops.sum_pool import SumPool
from hwflow.ops.sum_pool2d import SumPool2d
from hwflow.ops.top_k import TopK
from hwflow.ops.weighted_pool import WeightedPool

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Concat(),
        Conv2d(),
        Dense(),
        Depthwise(),
        Elementwise(),
        Fifo(),
        Fork(),
        FrameSync(),
        Interpolate(),
        MaxPool(),
        MaxPool2d(),
        Mvu(),
        PixelProduct(),
        PositionSum(),
        Product(),
        Rearrange(),
        Reindex(),
        Relay(),
        Requantize(),
        Reshape(),
        ScaledAdd(),
        SlidingWindow(),
        StreamConcat(),
        StreamTopK(),
        SumPool(),
        SumPool2d(),
        TopK(),
        Transpose(),
        WeightedPool(),
        WidthConverter(),
    )
}

LEGAL: dict[Stage, frozenset[str]] = {
    stage: frozenset(name for name, operator in OPERATORS.items() if stage in operator.stages) for stage in Stage
}
"""The legality table of operators: what each says of itself."""


def hardware(op: str) -> HardwareOperator:
    """The hardware operator called ``op``."""
    operator = OPERATORS[op]
    assert isinstance(operator, HardwareOperator), f"{op} is no hardware operator"
    return operator


def logical(op: str) -> LogicalOperator:
    """The operator of the quantized stage called ``op``."""
    operator = OPERATORS[op]
    assert isinstance(operator, LogicalOperator), f"{op} is no operator of the quantized stage"
    return operator
