"""Train two classifiers with scikit-learn and write them as ONNX, beside this file.

    python train.py

A pipeline (StandardScaler, GradientBoostingClassifier) that tells malignant tumours from benign ones, and a random
forest that tells handwritten digits apart; the data come with scikit-learn. Each gets ``NAME.onnx``, as skl2onnx
writes it (the probabilities as a map for each sample, its default), and ``NAME.npz`` with the test split: ``features``,
float32 [samples, features], and ``label``. Needs numpy, scikit-learn and skl2onnx.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).resolve().parent
SEED = 0


def train(name: str, data: Any, classifier: Any) -> None:
    """Train a classifier on ``data`` (features and labels), and write it and its test split."""
    features, labels = data
    split = train_test_split(features.astype(np.float32), labels, test_size=0.3, random_state=SEED, stratify=labels)
    training, test, training_labels, test_labels = split
    classifier.fit(training, training_labels)
    types = [("features", FloatTensorType([None, features.shape[1]]))]
    model = to_onnx(classifier, name=name, initial_types=types)
    imports = sorted(model.opset_import, key=lambda each: each.domain)  # skl2onnx orders them at random
    del model.opset_import[:]
    model.opset_import.extend(imports)
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    np.savez_compressed(HERE / f"{name}.npz", features=test, label=test_labels)
    right = int((classifier.predict(test) == test_labels).sum())
    print(f"{name}: {right} of {len(test)} right ({right / len(test):.2%})")


def main() -> None:
    boosting = GradientBoostingClassifier(n_estimators=50, max_depth=3, random_state=SEED)
    train("tumours", load_breast_cancer(return_X_y=True), make_pipeline(StandardScaler(), boosting))
    train("digits", load_digits(return_X_y=True), RandomForestClassifier(20, max_depth=6, random_state=SEED))


if __name__ == "__main__":
    main()
