"""The output folder of ``explore``: a file for each point that is done, so that nothing is done twice.

``explore.json`` says what was asked for, ``points/KEY.json`` has a point's result, ``models/KEY.onnx`` and
``models/KEY.json`` a quantized model with its quality, ``designs/`` the designs' own folders. Each appears as a whole
or not at all. ``work`` holds temporary files; what a killed process leaves there, the next one removes.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwflow.api.output_folder import claimed
from hwflow.errors import Finding, Severity
from hwflow.sweep.worker_jobs import FAILED, Source
from hwflow.toolchain.json_file import write_json

ASKED = "explore.json"

_KEYS = {"point", "status", "findings", "figures", "seconds", "processor_seconds"}


@dataclass(frozen=True)
class SweepFolder:
    """Such a folder, locked for this process."""

    path: Path

    @property
    def scratch(self) -> Path:
        """The folder of temporary files."""
        return self.path / "work"

    def result(self, key: str) -> dict[str, Any] | None:
        """Return the result of a point; None where it is not done, or ended with a fault that may have passed."""
        try:
            table: dict[str, Any] = json.loads((self.path / "points" / f"{key}.json").read_text())
            return table if table.keys() >= _KEYS and table["status"] != FAILED else None
        except (OSError, ValueError, AttributeError):
            return None

    def keep(self, key: str, table: Mapping[str, Any]) -> None:
        """Write the result of a point."""
        write_json(self.path / "points" / f"{key}.json", table)

    def design(self, name: str) -> Path:
        """Return the folder of a design."""
        return self.path / "designs" / name

    def keep_design(self, name: str, packed: bytes) -> None:
        """Write a design's folder, in place of an earlier one."""
        target = self.design(name)
        new, old = self.scratch / "new", self.scratch / "old"
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(new, filter="data")
        if target.exists():
            target.rename(old)
        new.rename(target)

    def model(self, key: str) -> Source | None:
        """Return a quantized model; None where there is none."""
        model, table = self._model_files(key)
        try:
            about = json.loads(table.read_text())
            findings = (
                Finding(f["clause"], f["where"], f["message"], f["remedy"], Severity(f["severity"]))
                for f in about["findings"]
            )
            files = {"model.onnx": model.read_bytes()} if about["quantized"] else {}
            return Source(files, about["figures"], tuple(findings))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep_model(self, key: str, source: Source) -> None:
        """Write a quantized model, or why there is none."""
        if source.failed:
            return
        model, table = self._model_files(key)
        if source.files:
            beside = self.scratch / model.name
            beside.write_bytes(next(iter(source.files.values())))
            beside.replace(model)
        write_json(table, {
            "quantized": bool(source.files), "figures": dict(source.figures),
            "findings": [finding.table() for finding in source.findings],
        })  # fmt: skip

    def _model_files(self, key: str) -> tuple[Path, Path]:
        folder = self.path / "models"
        return folder / f"{key}.onnx", folder / f"{key}.json"


@contextmanager
def sweep_folder(out: Path, asked: Mapping[str, Any]) -> Iterator[SweepFolder]:
    """Lock ``out``, a new or an earlier folder of ``explore``, and note what is ``asked`` for.

    Raises :class:`UsageError` as :func:`hwflow.api.output_folder.claimed`.
    """
    with claimed(out, ASKED) as output:
        folder = SweepFolder(output.path)
        shutil.rmtree(folder.scratch, ignore_errors=True)
        for name in ("points", "models", "designs", "work"):
            os.makedirs(output.path / name, exist_ok=True)
        write_json(output.path / ASKED, asked)
        try:
            yield folder
        finally:
            shutil.rmtree(folder.scratch, ignore_errors=True)
