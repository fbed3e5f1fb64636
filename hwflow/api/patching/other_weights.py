"""A loadable design with another model's weights: what its tables are, where nothing else differs."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hwflow.api import made_from
from hwflow.api.options.synth_options import synth_options
from hwflow.api.patching.differences import differences
from hwflow.api.patching.patched_output import held_in, written_like
from hwflow.api.request import ALL
from hwflow.display import show, show_path
from hwflow.errors import Finding, ModelRefused, UsageError
from hwflow.toolchain.patching.bitstream import REBUILD, RULE


@contextmanager
def with_weights(
    out: Path, model: str | os.PathLike[str], progress: Callable[[str], None] = lambda line: None
) -> Iterator[Path]:
    """Yield a folder, which is there meanwhile, with what ``synth`` makes of ``model`` for the hardware in the output
    folder ``out``: other tables, vectors, host models, the same hardware.

    Raises :class:`ModelRefused` with what does not fit the hardware, and :class:`UsageError` if ``out`` has no hardware
    that is loaded.
    """
    record = made_from.read(out)
    if record is None:
        message = f"{show_path(out)} must be an output folder of 'hwflow synth', not something else"
        raise UsageError.of("output-folder", "option --weights", message, "build it first with 'hwflow synth'")
    if "load" not in json.loads((out / "manifest.json").read_text()):
        message = f"must be given for a design whose weights can be loaded, but those in {show_path(out)} cannot"
        raise UsageError.of("loadable", "option --weights", message, "build it with 'hwflow synth --loadable all'")
    asked = synth_options(record["request"]["asked"]["given"])
    design = asked.compile(Path(model), progress, known=held_in(out))
    with tempfile.TemporaryDirectory(prefix="hwflow-weights-") as room:
        folder = Path(room) / "out"
        folder.mkdir()
        written_like(out, design, folder, progress, asked.table())
        everything = asked.given["loadable"] == ALL
        findings = [*differences(out, folder), *_fixed_tables(out, folder, everything=everything)]
        if findings:
            raise ModelRefused(findings)
        yield folder


def _fixed_tables(before: Path, now: Path, *, everything: bool) -> Iterator[Finding]:
    """Yield the tables that differ and are not loaded. ``everything``: what can be loaded is."""
    manifest = json.loads((before / "manifest.json").read_text())
    loaded = {memory["file"] for memory in manifest["load"]["memories"]}
    for file in manifest["weights"]:
        there = now / file
        if file not in loaded and (not there.is_file() or there.read_bytes() != (before / file).read_bytes()):
            yield Finding(
                RULE, f"table {show(Path(file).stem)}",
                "must be the same for both models, for its layer is not loadable",
                REBUILD if everything
                else "build the design with this layer named by '--loadable', or with '--loadable all'",
            )
