"""Share modules between the cores of a design: queues and width converters, one module for all equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import NamedTuple

from hdl_lib.memories.storage import StorageStyle
from hwflow.codegen.converted.modules import Common, CoreModule, common_module
from hwflow.codegen.converted.rtlil_text import legal
from hwflow.codegen.emitted.packaging import TOP
from hwflow.processes import shared


def linked(modules: Sequence[CoreModule], executor: Executor | None) -> list[CoreModule]:
    """Add the shared modules, each after the first module that instantiates it. Converted here and by ``executor``."""
    made: dict[Common, _Made] = {}
    waiting = _kinds(modules)
    while waiting:  # what is common may have something in common
        jobs = [_Job(common, _name(common)) for common in waiting]
        made |= zip(waiting, shared(_converted, jobs, executor, lambda job: len(job.name)), strict=True)
        waiting = [common for common in _kinds(made.values()) if common not in made]
    written: set[Common] = set()
    return [_with_common(module, made, written) for module in modules]


class _Job(NamedTuple):
    common: Common
    name: str


class _Made(NamedTuple):
    """A converted module; fields as of :class:`CoreModule`."""

    name: str
    rtlil: str
    common: dict[str, Common]


def _converted(job: _Job) -> _Made:
    return _Made(job.name, *common_module(job.common, job.name))


def _kinds(modules: Iterable[CoreModule | _Made]) -> list[Common]:
    """Return the distinct shared modules that ``modules`` instantiate."""
    return list(dict.fromkeys(common for module in modules for common in module.common.values()))


def _name(common: Common) -> str:
    """Name a shared module: no name of a core or of its submodules has a number after a dot."""
    numbers = "x".join(str(value) for _, value in common.key if isinstance(value, int))
    words = "".join(f"_{value}" for _, value in common.key if isinstance(value, str) and value != StorageStyle.AUTO)
    return f"{TOP}.{common.kind.module_name}.{numbers}{words}"


def _with_common(module: CoreModule, made: dict[Common, _Made], written: set[Common]) -> CoreModule:
    texts: list[str] = []

    def place(rtlil: str, named: dict[str, Common]) -> None:
        """Place ``rtlil``, and after it the modules that it is the first to name."""
        texts.append(_CELL.sub(lambda cell: _renamed(cell, named, made), rtlil))
        for common in named.values():
            if common not in written:
                written.add(common)
                place(made[common].rtlil, made[common].common)

    place(module.rtlil, module.common)
    itself = module.common.get(legal(module.name))
    return replace(module, name=module.name if itself is None else made[itself].name, rtlil="".join(texts), common={})


_CELL = re.compile(r"^  cell \\(\S+) ", re.MULTILINE)


def _renamed(cell: re.Match[str], named: dict[str, Common], made: dict[Common, _Made]) -> str:
    common = named.get(cell[1])
    return cell[0] if common is None else f"  cell \\{legal(made[common].name)} "
