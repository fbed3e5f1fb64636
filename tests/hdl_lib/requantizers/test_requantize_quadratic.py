"""Piecewise quadratics in hardware against plain Python integers, and against the issue-slot law."""

import random

import pytest
from amaranth.hdl import signed, unsigned

from hdl_lib.memories.rom import Table
from hdl_lib.requantizers.requantize_quadratic import Coefficients, QuadraticRequantizer
from tests.hdl_lib.bench import STALLS, drive, pack
from tests.hdl_lib.law import Process, cycles
from tests.hdl_lib.protocol import after_reset, check_no_paths
