"""Keep Amaranth from writing out the initial contents of memories that are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.back import rtlil


class _Emitter(rtlil.ModuleEmitter):  # type: ignore[misc]  # Amaranth has no types
    def emit_memory(self, cell_idx: int, cell: Any) -> None:
        if not self.memories[cell_idx].write_port_ids:
            super().emit_memory(cell_idx, cell)


@contextmanager
def without_initial_contents() -> Iterator[None]:
    """Leave out of RTLIL, while the body runs, the initial contents of written memories, all zeros: no word is read
    before it is written. Amaranth writes them bit by bit, 1.5 s for a megabit."""
    before = rtlil.ModuleEmitter
    rtlil.ModuleEmitter = _Emitter
    try:
        yield
    finally:
        rtlil.ModuleEmitter = before
