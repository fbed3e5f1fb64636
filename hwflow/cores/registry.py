"""The registry of all operators. One without timing or resources cannot be instantiated, hence not registered."""

from __future__ import annotations

from typing import Any

from hwflow.cores.beat_movers import Fifo, Fork, FrameSync, Relay, WidthConverter
from hwflow.cores.chain import Chain
from hwflow.cores.engine.layer_engine import LayerEngine
from hwflow.cores.external.fetched_matrix import FetchedMatrix
from hwflow.cores.external.fetched_row import FetchedRow
from hwflow.cores.external.memory_delay import MemoryDelay
from hwflow.cores.external.memory_queue import MemoryQueue
from hwflow.cores.external.side_by_side import SideBySide
from hwflow.cores.external.weight_memory import WeightMemory
from hwflow.cores.logical.conv2d import Conv2d
from hwflow.cores.logical.cumulative_sum import CumulativeSum
from hwflow.cores.logical.dense import Dense
from hwflow.cores.logical.interpolate import Interpolate
from hwflow.cores.logical.matrix_product import MatrixProduct
from hwflow.cores.logical.max_pool2d import MaxPool2d
from hwflow.cores.logical.pixel_product import PixelProduct
from hwflow.cores.logical.reindex import Reindex
from hwflow.cores.logical.reshape import Reshape, Transpose
from hwflow.cores.logical.sum_pool2d import SumPool2d
from hwflow.cores.logical.table_lookup import TableLookup
from hwflow.cores.logical.top_k import TopK
from hwflow.cores.loops.by_round import ByRound
from hwflow.cores.loops.followed_by import FollowedBy
from hwflow.cores.loops.loop import Loop
from hwflow.cores.loops.repeated import Repeated
from hwflow.cores.matrix.depthwise import Depthwise
from hwflow.cores.matrix.mvu import Mvu
from hwflow.cores.matrix.neurons import Neurons
from hwflow.cores.matrix.stream_matrix import StreamMatrix
from hwflow.cores.operator import HardwareOperator, LogicalOperator, Operator
from hwflow.cores.requantizers.requantize import Requantize
from hwflow.cores.streams.concat import Concat, StreamConcat
from hwflow.cores.streams.delay import Delay, StreamDelay
from hwflow.cores.streams.digit_recurrence import Quotient, Root
from hwflow.cores.streams.elementwise import Elementwise
from hwflow.cores.streams.product import Product
from hwflow.cores.streams.rearrange import Rearrange
from hwflow.cores.streams.scaled_add import ScaledAdd
from hwflow.cores.streams.softmax_row import SoftmaxRow
from hwflow.cores.streams.stream_top_k import StreamTopK
from hwflow.cores.streams.table_rows import TableRows
from hwflow.cores.trees.tree_ensemble import TreeEnsemble
from hwflow.cores.windows.max_pool import MaxPool
from hwflow.cores.windows.position_sum import PositionSum
from hwflow.cores.windows.running_sum import RunningSum
from hwflow.cores.windows.sliding_window import SlidingWindow
from hwflow.cores.windows.sum_pool import SumPool
from hwflow.cores.windows.weighted_pool import WeightedPool
from hwflow.ir.graph import Stage

OPERATORS: dict[str, Operator[Any]] = {
    operator.attributes.op: operator
    for operator in (
        ByRound(),
        Chain(),
        Concat(),
        Conv2d(),
        CumulativeSum(),
        Delay(),
        Dense(),
        Depthwise(),
        Elementwise(),
        FetchedMatrix(),
        FetchedRow(),
        Fifo(),
        FollowedBy(),
        Fork(),
        FrameSync(),
        Interpolate(),
        LayerEngine(),
        Loop(),
        MatrixProduct(),
        MaxPool(),
        MaxPool2d(),
        MemoryQueue(),
        SideBySide(),
        MemoryDelay(),
        Mvu(),
        Neurons(),
        PixelProduct(),
        PositionSum(),
        Product(),
        Quotient(),
        Rearrange(),
        Reindex(),
        Relay(),
        Repeated(),
        Requantize(),
        Reshape(),
        Root(),
        RunningSum(),
        ScaledAdd(),
        SlidingWindow(),
        SoftmaxRow(),
        StreamConcat(),
        StreamDelay(),
        StreamMatrix(),
        StreamTopK(),
        SumPool(),
        SumPool2d(),
        TableLookup(),
        TableRows(),
        TopK(),
        Transpose(),
        TreeEnsemble(),
        WeightMemory(),
        WeightedPool(),
        WidthConverter(),
    )
}

LEGAL: dict[Stage, frozenset[str]] = {
    stage: frozenset(name for name, operator in OPERATORS.items() if stage in operator.stages) for stage in Stage
}
"""The legality table of operators: what each says of itself."""


def hardware(op: str) -> HardwareOperator[Any]:
    """Return the hardware operator named ``op``."""
    operator = OPERATORS[op]
    assert isinstance(operator, HardwareOperator), f"{op} is no hardware operator"
    return operator


def logical(op: str) -> LogicalOperator[Any]:
    """Return the operator of the quantized stage named ``op``."""
    operator = OPERATORS[op]
    assert isinstance(operator, LogicalOperator), f"{op} is no operator of the quantized stage"
    return operator
