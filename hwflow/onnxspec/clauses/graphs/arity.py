"""Clauses about the number of a node's inputs and outputs, and which of them may be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from hwflow.onnxspec.clauses.graphs.form_hits import Complaint, form_hits
from hwflow.onnxspec.clauses.graphs.operators import operator_of
from hwflow.onnxspec.clauses.rules import Context, Hit, Rule
from hwflow.onnxspec.graphs.node_forms import NodeForm
from hwflow.onnxspec.graphs.operator_facts import facts_of
from hwflow.onnxspec.graphs.schemas import Parameter
from hwflow.onnxspec.graphs.scopes import Scope

Side = Literal["input", "output"]

_NAME: dict[Side, str] = {"input": "name the value to read", "output": "name the output"}


class _Signature(NamedTuple):
    """The inputs or outputs of a node's operator or function, with those that the node has."""

    title: str
    side: Side
    parameters: Sequence[Parameter]
    fewest: int
    most: int | None  # None: a variadic parameter is the last
    given: Sequence[bool]
    counts: Sequence[int] = ()  # the only legal numbers; empty: all from the fewest to the most


def _signature(context: Context, scope: Scope, form: NodeForm, side: Side) -> _Signature | None:
    given = form.inputs if side == "input" else form.outputs
    function = context.functions.get((form.domain, form.op_type, form.overload))
    if function is not None:
        # All inputs and outputs of a function are optional: the trailing ones may be left out.
        names = function.inputs if side == "input" else function.outputs
        parameters = [Parameter(name, optional=True) for name in names]
        return _Signature(function.title, side, parameters, 0, len(names), given)
    operator = operator_of(context, scope, form)
    if operator is None:
        return None
    if side == "input":
        return _Signature(str(operator), side, operator.inputs, operator.fewest_inputs, operator.most_inputs, given)
    return _Signature(
        str(operator),
        side,
        operator.outputs,
        operator.fewest_outputs,
        operator.most_outputs,
        given,
        facts_of(operator.domain, operator.name).output_counts.get(operator.since, ()),
    )


def _number(count: int, side: Side) -> str:
    return f"{count} {side}" if count == 1 else f"{count} {side}s"


def _wrong_number(signature: _Signature) -> Iterator[Complaint]:
    title, side, parameters, fewest, most, given, counts = signature
    count = len(given)
    if fewest <= count and (most is None or count <= most) and (not counts or count in counts):
        return
    if counts:
        expected = f"{' or '.join(map(str, counts))} {side}s"
    elif most == 0:
        expected = f"no {side}s"
    elif most is None:
        expected = f"at least {_number(fewest, side)}"
    elif fewest == most:
        expected = _number(most, side)
    elif fewest == 0:
        expected = f"at most {_number(most, side)}"
    else:
        expected = f"{fewest} to {_number(most, side)}"
    names = f" ({', '.join(str(parameter)[:40] for parameter in parameters[:12])})" if parameters else ""
    if count < fewest:
        remedy = f"add the missing {side}" if fewest - count == 1 else f"add the missing {side}s"
    elif most is not None and count < most:
        remedy = f"name all {side}s, or only the first"
    else:
        excess = count - (most or 0)
        remedy = f"remove the last {side}" if excess == 1 else f"remove the last {excess} {side}s"
    yield Complaint(f"{title} must have {expected}{names}, not {count}", remedy)


def _variadic_minimum(signature: _Signature) -> Iterator[Complaint]:
    """Complain as :func:`_wrong_number`, for a variadic parameter with too few values."""
    parameters, count = signature.parameters, len(signature.given)
    if parameters and parameters[-1].variadic and count < len(parameters) - 1 + parameters[-1].minimum:
        yield from _wrong_number(signature)


def _absent(signature: _Signature) -> Iterator[Complaint]:
    """Yield complaints about empty strings at positions that are not optional."""
    title, side, parameters, _, most, given, _ = signature
    if all(given):
        return
    rest: list[int] = []  # positions of the variadic parameter
    for position, named in enumerate(given):
        if named or not parameters or (most is not None and position >= most):
            continue  # NOD-30 and NOD-31 report those beyond the last
        parameter = parameters[min(position, len(parameters) - 1)]
        if parameter.variadic:
            rest.append(position)
        elif not parameter.optional:
            yield Complaint(
                f"{side} {position} ({parameter.name}) of {title} is not optional and must have a name, but it is the "
                "empty string",
                _NAME[side],
            )
    if rest:
        which = f"{side} {rest[0]} is" if len(rest) == 1 else f"{len(rest)} {side}s from {rest[0]} on are"
        yield Complaint(
            f"all {side}s of {title} for its variadic parameter {parameters[-1].name} must have names, but {which} the "
            "empty string",
            _NAME[side],
        )


def _rule(side: Side, check: Callable[[_Signature], Iterable[Complaint]]) -> Callable[[Context], Iterator[Hit]]:
    def run(context: Context) -> Iterator[Hit]:
        def check_form(scope: Scope, form: NodeForm) -> Iterable[Complaint]:
            signature = _signature(context, scope, form, side)
            return check(signature) if signature is not None else ()

        return form_hits(context, check_form)

    return run


def _absent_values(context: Context) -> Iterator[Hit]:
    yield from _rule("input", _absent)(context)
    yield from _rule("output", _absent)(context)


RULES = (
    Rule("NOD-30", "MUST", _rule("input", _wrong_number), "add the missing inputs"),
    Rule("VAR-03", "MUST", _rule("input", _variadic_minimum), "add the missing inputs"),
    Rule("NOD-31", "MUST", _rule("output", _wrong_number), "add the missing outputs"),
    Rule("VAR-04", "MUST", _rule("output", _variadic_minimum), "add the missing outputs"),
    Rule("OPT-04", "MUST", _absent_values, "name the value"),
)
