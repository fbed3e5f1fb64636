"""The verb ``export``: an output folder's core for other tools and projects."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hwflow.display import show, show_path
from hwflow.errors import UsageError
from hwflow.exports.exported_core import RESETS, core_in
from hwflow.exports.hardware.axis_top import top_text
from hwflow.exports.hardware.bench import write_bench
from hwflow.exports.readme import readme
from hwflow.exports.targets import target_named, target_names
from hwflow.suggestion import did_you_mean
from hwflow.toolchain.json_file import write_json

RECORD = "hwflow_export.json"
"""The file that says what an export made, so that the next one replaces that and nothing else."""


@dataclass(frozen=True)
class Exported:
    """What was written: the ``folder``, the top module's name, and all files, relative to the folder."""

    folder: Path
    target: str
    top: str
    files: tuple[str, ...]


def export(
    out: str | os.PathLike[str], to: str, folder: str | os.PathLike[str] | None = None, *, reset: str | None = None,
) -> Exported:
    """Write the core of the output folder ``out`` for the target ``to`` ("amaranth", "fusesoc", "ipxact", "litex",
    "verilog", "vivado-ip") into ``folder`` (default: ``out``/export/``to``), where it replaces
    what an older export made.

    ``reset``: "rst" (active high, clock "clk") or "aresetn" (active low, clock "aclk"); default: the target's own.

    Raises :class:`UsageError`: an unknown target or reset, ``out`` is no output folder, ``folder`` holds other files.
    """
    names = target_names()
    if to not in names:
        raise UsageError.of(
            "known-target", "option --to", f"must be one of {', '.join(names)}, not {show(to)}",
            f"{did_you_mean(to, names)}choose one",
        )
    if reset is not None and reset not in RESETS:
        raise UsageError.of(
            "known-reset", "option --reset", f"must be one of {', '.join(RESETS)}, not {show(reset)}",
            f"{did_you_mean(reset, RESETS)}choose one",
        )
    target = target_named(to)
    source = Path(out)
    core = core_in(source, reset or target.reset)
    place = source / "export" / to if folder is None else Path(folder)
    _make_way(place)
    before = set(_files(place))
    for name in ("rtl", "weights") if core.weights else ("rtl",):
        (place / name).mkdir(exist_ok=True)
    (place / "rtl" / f"{core.name}.v").write_text(top_text(core))
    for file, name in (*zip(core.sources, core.rtl[1:], strict=True), *zip(core.weights, core.tables, strict=True)):
        shutil.copyfile(file, place / name)
    if target.bench:
        write_bench(core, place)
    use = target.write(core, place)
    (place / "README.md").write_text(readme(core, target.title, use))
    files = sorted({*_files(place), RECORD} - before)
    write_json(place / RECORD, {"target": to, "top": core.name, "reset": core.reset, "files": files})
    return Exported(place, to, core.name, tuple(files))


def _files(folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]


def _make_way(folder: Path) -> None:
    """Make a folder, without the files of an older export. Raises :class:`UsageError` where there is anything but
    that."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            made = json.loads((folder / RECORD).read_text())["files"]
            for name in made:
                file = folder / name
                if file.resolve().is_relative_to(folder.resolve()):
                    file.unlink(missing_ok=True)
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        raise _occupied(folder, "it holds what hwflow did not make") from None
    except OSError as error:
        raise _occupied(folder, error.strerror or str(error)) from None


def _occupied(folder: Path, why: str) -> UsageError:
    return UsageError.of(
        "export-folder", f"folder {show_path(folder)}", f"must be new, empty or an older export, not what it is: {why}",
        "choose another folder with -o",
    )
