"""Write ``OUT/host``: what runs the design on its board where hwflow is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwflow.host import runtime

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
    for file in sorted(Path(runtime.__file__).parent.glob("*.py")):
        shutil.copyfile(file, folder / PACKAGE / file.name)
    (folder / "run.py").write_text(_RUN)
    if not (out / "inputs.npz").is_file():
        with (folder / "frames.npz").open("wb") as archive:
            np.savez_compressed(archive, allow_pickle=False, **dict[str, Any](frames))
