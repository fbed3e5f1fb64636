"""Cases of ensembles of trees: walked in one unit and in several, target after target, with missing ranks, shared
subtrees, least and greatest values, one leaf alone."""

from __future__ import annotations

from hdl_lib.arithmetic.multiplier import ProductForm
from hwflow.cores.operator import Folding
from hwflow.ir.node_attributes import Aggregate
from hwflow.types import Interval, TensorType
from tests.cores.harness import Case
from tests.cores.random_trees import Grower


def _case(
    name: str, rows: int, reach: tuple[int, ...], depths: tuple[int, ...], foldings: tuple[tuple[int, int, int], ...],
    *, of_one: bool = False, targets: int = 1, at_once: bool = False, lists: tuple[tuple[int, int], ...] = (),
    **kind: object,
) -> Case:
    """Trees of so many tests; ``foldings``: lanes of features, of targets, units, or none ``at_once``;
    ``of_one``: each tree has one target; ``lists``: lanes of features and units where leaves are lists."""
    grower = Grower(len(name), reach, targets, **kind)  # type: ignore[arg-type]
    for number, depth in enumerate(depths):
        grower.tree(depth, number % targets if of_one else None)
    source = TensorType.of((rows, len(reach)), tuple(Interval(0, most) for most in reach), 1)
    made = tuple(Folding(lanes, outputs, units=units) for lanes, outputs, units in foldings)
    made += tuple(Folding(lanes, targets, units=units, multiplier=ProductForm.TABLE) for lanes, units in lists)
    if at_once:
        made = tuple(Folding(len(reach), targets, multiplier=kind) for kind in (ProductForm.NONE, ProductForm.TABLE))
    return Case(name, "tree_ensemble", grower.values(), source, made)


_REACH = (5, 1, 7, 3, 2, 6, 4)

TREE_ENSEMBLES = [
    _case("regressor", 2, _REACH, (3,) * 9, ((1, 1, 1), (2, 1, 1), (7, 1, 2)), full=True),
    _case("uneven", 2, _REACH, (1, 6, 0, 2, 4, 4, 3), ((1, 1, 1), (1, 1, 2), (3, 1, 3))),
    _case("one_tree", 3, (3, 300), (2,), ((1, 1, 1),)),
    _case("classes", 1, _REACH, (4,) * 12, ((1, 3, 1), (1, 1, 1), (4, 1, 2)), targets=3, of_one=True),
    _case("uneven_classes", 2, _REACH, (1, 3, 5, 2, 3, 1, 3), ((1, 1, 1),), targets=4, of_one=True),
    _case("forest", 1, _REACH, (5,) * 8, ((1, 3, 1), (1, 3, 2)), targets=3, whole=True),
    _case("missing", 2, _REACH, (4,) * 6, ((1, 2, 1), (3, 2, 2)), targets=2, missing=True),
    _case("shared", 1, _REACH, (6, 5, 4, 6, 3), ((1, 2, 1),), targets=2, shared=True, missing=True),
    _case("least", 2, _REACH, (3,) * 8, ((1, 2, 1), (2, 2, 3)), targets=2, aggregate=Aggregate.MIN),
    _case("greatest", 1, _REACH, (2, 3) * 4, ((1, 1, 1), (7, 1, 2)), aggregate=Aggregate.MAX, shared=True),
    _case(
        "greatest_apart", 1, _REACH, (2, 3, 2, 3, 4, 3), ((1, 1, 1),), aggregate=Aggregate.MAX, full=True, apart=True
    ),
    _case("lists", 2, _REACH, (3, 5, 1, 0, 4, 2, 2, 3), (), targets=5, lists=((1, 1), (3, 2))),
    _case("long_lists", 2, _REACH, (2, 0, 1) * 4, (), targets=6, whole=True, lists=((1, 1), (7, 1), (1, 2))),
    _case("sparse_lists", 1, _REACH, (4,) * 17, (), targets=9, of_one=True, lists=((1, 1), (2, 2))),
    _case("known_values", 1, _REACH, (4,) * 6, (), targets=3, bits=24, distinct=9, lists=((1, 1), (1, 2))),
    _case(
        "missing_lists", 2, _REACH, (3, 5, 0, 2) * 4, (), targets=2, missing=True, shared=True, lists=((1, 1), (4, 2)),
    ),
    _case("single_feature", 4, (20,), (4,) * 3, ((1, 1, 1),)),
    _case("at_once", 3, _REACH, (3,) * 9, (), full=True, at_once=True, bits=26),
    _case("classes_at_once", 2, _REACH, (2, 4, 0, 3, 3, 2, 3, 4, 3), (), targets=3, of_one=True, at_once=True, bits=20),
    _case("deep_at_once", 1, (*_REACH, 60), (6, 4, 8, 1), (), targets=2, at_once=True),
    _case("missing_at_once", 2, _REACH, (4, 5, 2), (), targets=2, missing=True, shared=True, at_once=True),
    _case("least_at_once", 2, _REACH, (3, 0, 3, 4), (), targets=2, aggregate=Aggregate.MIN, full=True, at_once=True),
    _case(
        "least_apart_at_once", 2, _REACH, (3, 0, 3, 2, 3, 4, 3, 3), (), aggregate=Aggregate.MIN, full=True,
        at_once=True, apart=True,
    ),
    _case("one_tree_at_once", 2, _REACH, (4,), (), full=True, at_once=True),
]
