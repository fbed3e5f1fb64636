"""Train the tree ensembles of the comparison with conifer, and write them as ONNX.

    python benchmarks/trees/train.py FOLDER [NAME ...]

writes for each ensemble ``NAME.onnx`` (float32 features; scores as a tensor), ``NAME_zipmap.onnx`` (scores as a
sequence of maps, skl2onnx's default) and ``NAME.npz`` (``features``: the test split, float32 [samples, features];
``label``). It needs scikit-learn and skl2onnx, which hwflow does not. Data come with scikit-learn and seeds are fixed,
so that the same versions write the same files.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

SEED = 0
CLASSIFIERS = {"gb": GradientBoostingClassifier, "rf": RandomForestClassifier}


@dataclass(frozen=True)
class Ensemble:
    """``trees`` of ``depth`` at most; gradient boosting has so many for each class, of two classes for one."""

    data: str
    kind: str
    trees: int
    depth: int

    @property
    def name(self) -> str:
        return f"{self.data}_{self.kind}_{self.trees}_{self.depth}"


ENSEMBLES = tuple(
    Ensemble(*what)
    for what in (
        ("breast_cancer", "gb", 10, 3),
        ("breast_cancer", "gb", 100, 3),
        ("breast_cancer", "gb", 200, 5),
        ("breast_cancer", "rf", 10, 5),
        ("breast_cancer", "rf", 100, 8),
        ("wine", "gb", 10, 3),
        ("wine", "gb", 50, 3),
        ("wine", "rf", 50, 5),
        ("digits", "gb", 10, 3),
        ("digits", "gb", 50, 3),
        ("digits", "rf", 10, 5),
        ("digits", "rf", 50, 8),
    )
)


def splits(data: str) -> tuple[Any, Any, Any, Any]:
    """Return features and labels: training features, test features, training labels, test labels."""
    features, labels = getattr(datasets, f"load_{data}")(return_X_y=True)
    return tuple(
        train_test_split(features.astype(np.float32), labels, test_size=0.3, random_state=SEED, stratify=labels)
    )


def trained(ensemble: Ensemble) -> Any:
    """Return scikit-learn's classifier, trained on the training split."""
    features, _, labels, _ = splits(ensemble.data)
    kind = CLASSIFIERS[ensemble.kind]
    return kind(n_estimators=ensemble.trees, max_depth=ensemble.depth, random_state=SEED).fit(features, labels)


def write(ensemble: Ensemble, folder: Path) -> None:
    """Train an ensemble, and write its models and inputs to ``folder``."""
    classifier = trained(ensemble)
    _, features, _, labels = splits(ensemble.data)
    types = [("features", FloatTensorType([None, features.shape[1]]))]
    for suffix, zipmap in (("", False), ("_zipmap", True)):
        model = to_onnx(classifier, name=ensemble.name, initial_types=types, options={"zipmap": zipmap})
        imports = sorted(model.opset_import, key=lambda each: each.domain)  # skl2onnx orders them at random
        del model.opset_import[:]
        model.opset_import.extend(imports)
        (folder / f"{ensemble.name}{suffix}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    np.savez_compressed(folder / f"{ensemble.name}.npz", features=features, label=labels)
    trees = [tree.tree_ for tree in np.ravel(classifier.estimators_)]
    inner = sum(int((tree.children_left >= 0).sum()) for tree in trees)
    print(f"{ensemble.name}: {len(trees)} trees, {inner} nodes, accuracy {classifier.score(features, labels):.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train tree ensembles and write them as ONNX.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="ensembles (default: all)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    known = {ensemble.name: ensemble for ensemble in ENSEMBLES}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(known)}, not {', '.join(unknown)}")
    for name in arguments.names or known:
        write(known[name], arguments.folder)


if __name__ == "__main__":
    main()
