"""How a design's modules and files are called, and whether its weights are files."""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "hwflow"
"""What every module's name begins with, unless a name is asked for."""

TOP = f"{PREFIX}_top"
"""The top-level module."""

LAYERS_TOP = f"{PREFIX}_layers"
"""The same with every core's output at its ports (:mod:`hwflow.codegen.tapped_streams`)."""

ROM = f"{PREFIX}_rom"
"""The Verilog module of tables that are read from files."""

RAM = f"{PREFIX}_ram"
"""The one of tables that are loaded while the design runs."""

_OWN = "|".join((TOP, LAYERS_TOP, ROM, RAM))
_MODULE = re.compile(rf"(?m)^((?:attribute .*\n)*module |  cell )\\({_OWN})(?=__| |$)")


@dataclass(frozen=True)
class Packaging:
    """``name``: the prefix of every module and of every file of the hardware, a Verilog identifier (None: modules have
    hwflow's own prefix, files none); ``inline_weights``: tables stand in the Verilog instead of files of their own."""

    name: str | None = None
    inline_weights: bool = False

    @property
    def top(self) -> str:
        """The top module."""
        return self.module(TOP)

    @property
    def layers(self) -> str:
        """The top module with every core's output at its ports."""
        return self.module(LAYERS_TOP)

    @property
    def source(self) -> str:
        """The file of the design, in the output folder."""
        return self.file("design.v")

    def module(self, name: str) -> str:
        """Return the name of a module whose own prefix is :data:`PREFIX`."""
        return name if self.name is None else self.name + name.removeprefix(PREFIX)

    def file(self, name: str) -> str:
        """Return the name of a file."""
        return name if self.name is None else f"{self.name}_{name}"

    def weights(self, table: str) -> str:
        """Return the path of a table's file, in the output folder."""
        return f"weights/{self.file(table)}.mem"

    def renamed(self, rtlil: str) -> str:
        """Rename the modules of a text of RTLIL, and what instantiates them."""
        if self.name is None:
            return rtlil
        return _MODULE.sub(lambda found: f"{found[1]}\\{self.module(found[2])}", rtlil)


OWN_NAMES = Packaging()
"""Modules and files have hwflow's own names."""
