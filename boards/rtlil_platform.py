"""Make a platform of amaranth-boards give RTLIL and constraints only, not scripts and Verilog.

The vendors' platforms would call yosys; hwflow does that itself, with the yosys that it found.
"""

from __future__ import annotations

from typing import Any

_CONSTRAINTS = (".xdc", ".qsf", ".sdc")


class RtlilPlatform:
    """Mix-in, before a platform's class."""

    required_tools: tuple[str, ...] = ()
    command_templates: tuple[str, ...] = ()

    @property
    def file_templates(self) -> dict[str, Any]:
        """The templates of the constraints, and one for ``top.il``."""
        templates = super().file_templates  # type: ignore[misc]  # Amaranth carries no annotations
        kept = {name: text for name, text in templates.items() if name.endswith(_CONSTRAINTS)}
        return kept | {"{{name}}.il": "{{emit_rtlil()}}"}
