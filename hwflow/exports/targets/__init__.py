"""The targets of an export, a file each: ``to_NAME.py`` with a ``TARGET``, found by being there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hwflow.exports.exported_core import ExportedCore

_FILE = "to_"


@dataclass(frozen=True)
class Target:
    """``title``: what it is, a sentence for the README; ``reset``: the top's reset unless another one is asked for;
    ``write``: writes what the target needs beside the Verilog and the weights into a folder, and returns how to use it,
    lines of Markdown. ``bench``: a test bench in Verilog with golden frames is part of it."""

    title: str
    reset: str
    write: Callable[[ExportedCore, Path], Sequence[str]]
    bench: bool = False


def target_names() -> list[str]:
    """Return the names of all targets, sorted."""
    stems = (module.name for module in iter_modules(__path__) if module.name.startswith(_FILE))
    return sorted(stem.removeprefix(_FILE).replace("_", "-") for stem in stems)


def class_name(name: str) -> str:
    """Return a core's name as a class of Python has it: CamelCase."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def target_named(name: str) -> Target:
    """Return one of :func:`target_names`."""
    found: Target = import_module(f"{__name__}.{_FILE}{name.replace('-', '_')}").TARGET
    return found
