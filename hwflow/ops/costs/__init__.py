"""Resource models of the cores: formulas over data paths, with each family's constants as data.

``lut`` counts 4-input look-up tables (carry cells count as two, memories made of look-up tables as their LUTs), ``ff``
flip-flops, ``dsp`` multiplier primitives (MULT18X18D, SB_MAC16), ``bram`` block RAM primitives (DP16KD, SB_RAM40_4K).
"""

from hwflow.ops.costs.adder_network import constant_lane as constant_lane
from hwflow.ops.costs.adder_network import constant_matrix as constant_matrix
from hwflow.ops.costs.adder_network import constant_product as constant_product
from hwflow.ops.costs.adder_network import constant_products as constant_products
from hwflow.ops.costs.adder_network import constant_requantizer as constant_requantizer
from hwflow.ops.costs.adder_network import estimated_adder_network as estimated_adder_network
from hwflow.ops.costs.adder_network import estimated_constant_product as estimated_constant_product
from hwflow.ops.costs.basics import adders as adders
from hwflow.ops.costs.basics import bits as bits
from hwflow.ops.costs.basics import count_up as count_up
from hwflow.ops.costs.basics import loop as loop
from hwflow.ops.costs.basics import skid_buffer as skid_buffer
from hwflow.ops.costs.basics import stream_lanes as stream_lanes
from hwflow.ops.costs.basics import useful_lanes as useful_lanes
from hwflow.ops.costs.family import FAMILIES as FAMILIES
from hwflow.ops.costs.family import MEASURED as MEASURED
from hwflow.ops.costs.family import Family as Family
from hwflow.ops.costs.matrix import MOST_KNOWN_BITS as MOST_KNOWN_BITS
from hwflow.ops.costs.matrix import FewWords as FewWords
from hwflow.ops.costs.matrix import mvu as mvu
from hwflow.ops.costs.memory import asynchronous_memory as asynchronous_memory
from hwflow.ops.costs.memory import block_queue as block_queue
from hwflow.ops.costs.memory import block_ram_shape as block_ram_shape
from hwflow.ops.costs.memory import block_rams as block_rams
from hwflow.ops.costs.memory import cheapest_style as cheapest_style
from hwflow.ops.costs.memory import filled_rom as filled_rom
from hwflow.ops.costs.memory import in_block_ram as in_block_ram
from hwflow.ops.costs.memory import memory as memory
from hwflow.ops.costs.memory import queue as queue
from hwflow.ops.costs.memory import read_only_block_rams as read_only_block_rams
from hwflow.ops.costs.memory import rom as rom
from hwflow.ops.costs.multiply_add_shift import Parameters as Parameters
from hwflow.ops.costs.multiply_add_shift import Rows as Rows
from hwflow.ops.costs.multiply_add_shift import multiply_add_shift as multiply_add_shift
from hwflow.ops.costs.products import adder_tree as adder_tree
from hwflow.ops.costs.products import match_counts as match_counts
from hwflow.ops.costs.products import multiplier_blocks as multiplier_blocks
from hwflow.ops.costs.products import operands as operands
from hwflow.ops.costs.products import product_bits as product_bits
from hwflow.ops.costs.products import product_is_cheap_in_luts as product_is_cheap_in_luts
from hwflow.ops.costs.products import products as products
from hwflow.ops.costs.products import split_sums as split_sums
from hwflow.ops.costs.products import sum_tree as sum_tree
from hwflow.ops.costs.products import wide_product as wide_product
from hwflow.ops.costs.requantize import lookup as lookup
from hwflow.ops.costs.requantize import search as search
from hwflow.ops.costs.requantize import thresholds as thresholds
from hwflow.ops.costs.streams import add_multipliers as add_multipliers
from hwflow.ops.costs.streams import concat as concat
from hwflow.ops.costs.streams import fork as fork
from hwflow.ops.costs.streams import frame_sync as frame_sync
from hwflow.ops.costs.streams import interleave as interleave
from hwflow.ops.costs.streams import stream_add as stream_add
from hwflow.ops.costs.streams import stream_product as stream_product
from hwflow.ops.costs.streams import width_converter as width_converter
from hwflow.ops.costs.whole_windows import max_pool_tree as max_pool_tree
from hwflow.ops.costs.whole_windows import sum_pool_tree as sum_pool_tree
from hwflow.ops.costs.whole_windows import window_image as window_image
from hwflow.ops.costs.whole_windows import window_rows as window_rows
from hwflow.ops.costs.windows import max_pool as max_pool
from hwflow.ops.costs.windows import sliding_window as sliding_window
from hwflow.ops.costs.windows import sum_pool as sum_pool
