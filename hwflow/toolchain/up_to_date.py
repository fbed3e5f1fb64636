"""Tell which steps of a build are up to date: same inputs, same settings, outputs untouched.

``OUT/board/steps.json`` has for each step its ``settings``, the digests of its ``inputs`` and ``outputs``, and
``facts`` that are not in its files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hwflow.sim.digests import digests
from hwflow.toolchain.json_file import write_json

FILE = "board/steps.json"


class UpToDate:
    """The steps of the build in ``out``."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._steps = _read(out)

    def facts(self, step: str, settings: Any, inputs: Iterable[str]) -> dict[str, Any] | None:
        """Return the facts of ``step`` if it is up to date, else None."""
        noted = self._steps.get(step)
        if noted is None or noted["settings"] != settings or noted["inputs"] != digests(self._out, inputs):
            return None
        facts: dict[str, Any] = noted["facts"]
        return facts if digests(self._out, noted["outputs"]) == noted["outputs"] else None

    def note(
        self, step: str, settings: Any, inputs: Iterable[str], outputs: Iterable[str], facts: Mapping[str, Any]
    ) -> None:
        """Record that ``step`` is done."""
        self._steps[step] = {
            "settings": settings, "inputs": digests(self._out, inputs), "outputs": digests(self._out, outputs),
            "facts": dict(facts),
        }
        write_json(self._out / FILE, self._steps)


def intact(out: Path) -> bool:
    """Tell whether the outputs of every step are intact."""
    steps = _read(out).values()
    return all(digests(out, step["outputs"]) == step["outputs"] for step in steps)


def carry_over(before: Path, now: Path) -> None:
    """Copy into ``now`` the results of the steps in ``before`` whose inputs are the same."""
    carried = {}
    for name, step in _read(before).items():
        outputs = step["outputs"]
        if digests(now, step["inputs"]) == step["inputs"] and digests(before, outputs) == outputs:
            for file in outputs:
                (now / file).unlink(missing_ok=True)
                os.link(before / file, now / file)  # nothing is copied: what was before goes away
            carried[name] = step
    if carried:
        write_json(now / FILE, carried)


def restate(before: Path, now: Path) -> None:
    """Record in ``now`` the steps in ``before`` whose files are all there, with their digests as they are there."""
    steps = {}
    for name, step in _read(before).items():
        inputs, outputs = digests(now, step["inputs"]), digests(now, step["outputs"])
        if inputs.keys() == step["inputs"].keys() and outputs.keys() == step["outputs"].keys():
            steps[name] = {**step, "inputs": inputs, "outputs": outputs}
    write_json(now / FILE, steps)


def _read(out: Path) -> dict[str, dict[str, Any]]:
    try:
        steps = json.loads((out / FILE).read_text())
        keys = {"settings", "inputs", "outputs", "facts"}
        return {name: step for name, step in steps.items() if keys <= step.keys()}
    except (OSError, ValueError, AttributeError):
        return {}
