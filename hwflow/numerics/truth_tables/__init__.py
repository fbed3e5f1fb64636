"""Functions of few bits as networks of look-up tables of four inputs: see
:mod:`hwflow.numerics.truth_tables.decomposition`."""

from hwflow.numerics.truth_tables.decomposition import MOST_BITS as MOST_BITS
from hwflow.numerics.truth_tables.decomposition import BitFunction as BitFunction
from hwflow.numerics.truth_tables.decomposition import lut_network as lut_network
from hwflow.numerics.truth_tables.luts import Lut as Lut
from hwflow.numerics.truth_tables.luts import LutNetwork as LutNetwork
