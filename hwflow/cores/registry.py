"""All operators, found in the modules beside this one: a new one needs its file alone.

One without timing or resources cannot be instantiated, hence not found.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import hwflow.cores
from hwflow.cores.operator import OPERATORS as OPERATORS
from hwflow.cores.operator import HardwareOperator, LogicalOperator, Operator
from hwflow.ir.graph import Stage

for _module in walk_packages(hwflow.cores.__path__, f"{hwflow.cores.__name__}."):
    for _kind in vars(import_module(_module.name)).values():
        # What only others build on has no attributes of its own.
        if isinstance(_kind, type) and issubclass(_kind, Operator) and "attributes" in vars(_kind):
            OPERATORS[_kind.attributes.op] = _kind()

LEGAL: dict[Stage, frozenset[str]] = {
    stage: frozenset(name for name, operator in OPERATORS.items() if stage in operator.stages) for stage in Stage
}
"""The legality table of operators: what each says of itself."""


def hardware(op: str) -> HardwareOperator[Any]:
    """Return the hardware operator named ``op``."""
    operator = OPERATORS[op]
    assert isinstance(operator, HardwareOperator), f"{op} is not a hardware operator"
    return operator


def logical(op: str) -> LogicalOperator[Any]:
    """Return the operator of the quantized stage named ``op``."""
    operator = OPERATORS[op]
    assert isinstance(operator, LogicalOperator), f"{op} is not an operator of the quantized stage"
    return operator
