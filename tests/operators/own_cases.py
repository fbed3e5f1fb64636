"""What the test of one operator (``tests/operators/<family>/test_<operator>.py``) says for the tests of all of them:
found by being there, so that an operator is one record and one test.

* ``HONOURED``: (operator, make, attributes) for test_honoured: attributes that its handler honours, in a node that
  ``make(builder, x, **attributes)`` adds behind reals of [N, 2, 3, 4].
* ``NODES``: (operator, constants, attributes) for test_every_node: ``constants(size, rank)`` are (values, type) of the
  inputs behind the first one, whose last axis has ``size`` elements, ``attributes(rank)`` the node's.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def declared(what: str) -> Iterator[Any]:
    """The cases of that name in every operator's own test."""
    for path in sorted(HERE.glob("*/test_*.py")):
        yield from getattr(import_module(f"tests.operators.{path.parent.name}.{path.stem}"), what, ())
