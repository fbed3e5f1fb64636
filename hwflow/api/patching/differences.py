"""What differs in the hardware of two output folders, besides the contents of their tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hwflow.display import show
from hwflow.errors import Finding
from hwflow.toolchain.patching.bitstream import REBUILD, RULE

_MODULE = re.compile(r"^module (\w+)(.*?)^endmodule", re.MULTILINE | re.DOTALL)
_MOST = 20  # findings
_IDENTITY = re.compile(r'(cell \$meminit_v2 \S+\n\s*parameter \\MEMID "\\+identity".*?connect \\DATA )\S+', re.DOTALL)


def differences(before: Path, now: Path) -> list[Finding]:
    """Return why the hardware in ``now`` is not that in ``before``, both written up to the Verilog: a finding for each
    layer, or for what else differs."""
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (before, now)]
    shapes = list(_shapes(*manifests))
    if shapes:  # what else differs follows from them
        return shapes
    source = manifests[1]["sources"][0]
    was, became = (_modules(folder / source) for folder in (before, now))
    differing = [name for name in sorted({*was, *became}) if was.get(name) != became.get(name)]
    findings = list(_layers(before, now, differing)) if differing else []
    if not findings:
        findings = [
            _finding(f"module {show(name)}", "must be the same hardware for both models, not another one")
            for name in differing
        ]
    if not findings:
        findings = list(_board(before / "board", now / "board"))
    if len(findings) > _MOST:
        rest = len(findings) - _MOST
        findings = [*findings[:_MOST], _finding("hardware", f"must be the same in {rest} more places, not another one")]
    return findings


def _shapes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the inputs and outputs of other shapes."""
    for side in ("inputs", "outputs"):
        if len(before[side]) != len(now[side]):
            yield _finding(f"the model's {side}", f"must be {len(before[side])}, not {len(now[side])}")
            continue
        for was, became in zip(before[side], now[side], strict=True):
            if was["shape"] != became["shape"]:
                where = f"{side[:-1]} {show(became['name'])}"
                yield _finding(where, f"must have shape {was['shape']}, not {became['shape']}")


def _modules(path: Path) -> dict[str, str]:
    """Return the bodies of the modules of a design, by name; its comments, which name the model, are no part of them.
    """
    return dict(_MODULE.findall(path.read_text()))


def _layers(before: Path, now: Path, differing: list[str]) -> Iterator[Finding]:
    """Yield a finding for each layer with a module among ``differing``; without any, for each whose facts in the report
    differ. (Facts of layers with room for others may differ.)"""
    was, became = (
        {layer["name"]: layer for layer in json.loads((folder / "report.json").read_text())["layers"]}
        for folder in (before, now)
    )
    instances = {name: str(layer.get("instance", name)).rpartition(".")[2] for name, layer in was.items()}
    different = {
        name for name, instance in instances.items() for module in differing if f"__{instance}__" in f"{module}__"
    }
    for name in dict.fromkeys([*was, *became]):
        where = f"layer {show(name)}"
        if name not in was or name not in became:
            yield _finding(where, "must be in both models" + (", not in the old one only" if name in was else ""))
            continue
        facts = list(_facts(was[name], became[name]))
        if facts and (name in different or not different):
            yield _finding(where, "; ".join(facts))
        elif name in different:
            yield _finding(where, "must be the same hardware for both models, not one that differs in its constants")


def _facts(was: Mapping[str, Any], became: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in dict.fromkeys([*was, *became]):
        old, new = was.get(key), became.get(key)
        if key == "resources":  # follow from the rest
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _facts(old, new, f"{prefix}{key}.")
        elif old != new and not isinstance(old, float):
            yield f"{prefix}{key} must be {show(str(old))}, not {show(str(new))}"


def _board(before: Path, now: Path) -> Iterator[Finding]:
    """Yield what differs in the boards' tops besides what they say of themselves."""
    was, became = (json.loads((folder / "board.json").read_text()) for folder in (before, now))
    for table in (was, became):
        table.get("link", {}).pop("identity", None)
    for key in dict.fromkeys([*was, *became]):
        if was.get(key) != became.get(key):
            yield _finding(f"the board's {show(key)}", "must be the same for both models, not another one")
            return
    constraints = Path(was["constraints"]).name
    for name in (Path(was["rtlil"]).name, constraints):
        one, other = (_IDENTITY.sub(r"\1", (folder / name).read_text()) for folder in (before, now))
        if one != other:
            yield _finding(f"the board's {show(name)}", "must be the same for both models, not another one")


def _finding(where: str, message: str) -> Finding:
    return Finding(RULE, where, message, REBUILD)
