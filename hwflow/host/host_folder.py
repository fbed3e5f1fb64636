"""Write ``OUT/host``: what runs the design on its board where hwflow is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.host import runtime
from hwflow.host.runtime.tensors.map_rows import plain_text

PACKAGE = "hwflow_host"  # what the runtime is called there
_RUN = f'''"""Run the network on its board: python run.py --help

Needs numpy; pyserial for a serial port; onnxruntime where there is a prefix.onnx or suffix.onnx. In Python:

    from {PACKAGE}.board_session import connect
    with connect("..") as board:
        outputs = board.run({{"input": frames}})
"""

import sys
from pathlib import Path

from {PACKAGE}.run_command import main

sys.exit(main(Path(__file__).resolve().parents[1]))
'''


def write_host_folder(out: Path, frames: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write ``out/host``. ``frames``: by model input name, what is run if nothing else is given; unless
    ``out/inputs.npz`` has some."""
    folder = out / "host"
    (folder / PACKAGE).mkdir(parents=True)
    source = Path(runtime.__file__).parent
    for file in sorted(source.rglob("*.py")):
        copy = folder / PACKAGE / file.relative_to(source)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, copy)
    (folder / "run.py").write_text(_RUN)
    if not any((out / name).is_file() for name in ("inputs.npz", "inputs.json")):
        texts = {name: plain_text(array) for name, array in frames.items()}
        with (folder / "frames.npz").open("wb") as archive:
            np.savez_compressed(archive, allow_pickle=False, **dict[str, Any](texts))
