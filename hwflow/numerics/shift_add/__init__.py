"""Products with a constant matrix as networks of adders: see :mod:`hwflow.numerics.shift_add.search`."""

from hwflow.numerics.shift_add.adder_levels import levels_of as levels_of
from hwflow.numerics.shift_add.network import Adder as Adder
from hwflow.numerics.shift_add.network import Network as Network
from hwflow.numerics.shift_add.network import Output as Output
from hwflow.numerics.shift_add.network import digits_of as digits_of
from hwflow.numerics.shift_add.network import width_of as width_of
from hwflow.numerics.shift_add.search import depth_of as depth_of
from hwflow.numerics.shift_add.search import shift_add_network as shift_add_network
