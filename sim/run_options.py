"""Checks of the options every runner takes."""

from __future__ import annotations

from pathlib import Path


def check_probability(name: str, value: float) -> None:
    """Raise ValueError unless ``value`` is a probability below 1 (at 1 nothing would ever move)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1, not {value}")


def wave_format(wave: Path | None) -> str | None:
    """Return "vcd" or "fst" by the file's suffix; None without a file; ValueError for another suffix."""
    if wave is None:
        return None
    if wave.suffix not in (".vcd", ".fst"):
        raise ValueError(f"a waveform file must end in .vcd or .fst, not '{wave.name}'")
    return wave.suffix[1:]
