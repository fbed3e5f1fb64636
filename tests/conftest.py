"""What all tests share: a cache of their own, no lines that time makes, and a garbage collector that seldom looks."""

from __future__ import annotations

import gc
import os
import sys

import pytest

from hwflow import processes
from hwflow.cli import terminal
from hwflow.toolchain import json_file, routing, tool
from tests import compiler, schemas, wasm_start
from tests.shared import shared_folder

# numpy starts a thread a core in every process that imports it; workers take the cores already.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
tool._ENDS_WITH_PARENT += wasm_start.START  # what every wheel's process begins with
terminal.EVERY = 3600.0  # a slow machine must not add lines to what a command says
json_file.write_json = schemas.checked(json_file.write_json)  # every design's report and manifest
routing.ALONE_SECONDS = 3600.0  # nor start a second place and route beside the first
# Workers take the cores already; a second process for each design imported the compiler anew, a second of its time.
processes.core_count = lambda: 1
# Most of what tests make, cases and netlists, stays, or goes at once: looking through all of it again and again took a
# tenth of the time. What is young is looked at while it is still in the processor's cache, which takes half as long.
gc.set_threshold(20_000, 10, 50)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Verilator's run-time library is compiled once a session, and not into the user's own cache; its headers are read
    once."""
    folder = shared_folder(tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HWFLOW_CACHE", str(folder))
        if "CXX" not in os.environ:
            patch.setenv("CXX", f"{sys.executable} -S {compiler.__file__} {folder}")
        # Others build with Verilator's own makefiles, which know no CXX. Such programs run for a moment.
        patch.setenv("MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0")
        yield
