"""Control flow, recurrent operators and sequences: unrolled and written out when a model is resolved."""

from __future__ import annotations

from hwflow.onnxspec.definitions.recurrent import GRU, LSTM, RNN
from hwflow.onnxspec.definitions.reverse_sequence import reverse_sequence
from hwflow.onnxspec.graphs import operator_names as names
from hwflow.onnxspec.resolving.control_flow import MAX_UNROLLED
from hwflow.onnxspec.shapes import size_facts
from hwflow.operators.linear import linear_work
from hwflow.operators.record import Operator, Reason

_STATE = Reason(
    "has gates and states inside that must be quantized, and as a single node no place for quantizers",
    "quantize the model's float original with 'hwflow quantize', which writes the steps out; or write them as a Scan "
    "with quantizers in its body",
)
_RECURRENT = (
    "written out by 'hwflow quantize', with quantizers inside: all attributes, lengths and first states constant or "
    f"streams, at most {MAX_UNROLLED} nodes"
)
_KNOWN = "lengths and positions known when compiling"

RECORDS: tuple[Operator, ...] = (
    Operator(
        "GRU", definition=GRU, defined=_RECURRENT, partly=_STATE, work=linear_work.recurrent,
        sizes=size_facts.recurrent(3),
    ),
    Operator(
        "LSTM", definition=LSTM, defined=_RECURRENT, partly=_STATE, work=linear_work.recurrent,
        sizes=size_facts.recurrent(4),
    ),
    Operator(
        "RNN", definition=RNN, defined=f"{_RECURRENT}; else one step, or functions like Relu", partly=_STATE,
        work=linear_work.recurrent, sizes=size_facts.recurrent(1),
    ),
    Operator(
        "ReverseSequence", definition=reverse_sequence, defined="lengths constant or a stream",
        partly=Reason("takes at most 256 lengths that are known at run time only", "use constant lengths"),
    ),
    Operator(
        names.IF, defined="condition constant, or at run time: both branches are computed and give equal shapes"
    ),
    Operator(
        names.LOOP, defined=f"greatest number of rounds constant; unrolled, to at most {MAX_UNROLLED} nodes; a "
        "condition at run time selects the last states, and what is scanned then has no constant length"
    ),
    Operator(names.SCAN, defined=f"unrolled, to at most {MAX_UNROLLED} nodes"),
    *(
        Operator(name, defined=_KNOWN)
        for name in (
            names.CONCAT_FROM_SEQUENCE, names.OPTIONAL, names.OPTIONAL_GET_ELEMENT, names.OPTIONAL_HAS_ELEMENT,
            names.SEQUENCE_AT, names.SEQUENCE_CONSTRUCT, names.SEQUENCE_EMPTY, names.SEQUENCE_ERASE,
            names.SEQUENCE_INSERT, names.SEQUENCE_LENGTH, names.SEQUENCE_MAP, names.SPLIT_TO_SEQUENCE,
        )
    ),
)
