"""``python -m hwflow.toolchain.packing FAMILY IN.json OUT.json``: pack a netlist and print a summary.
``python -m hwflow.toolchain.packing --places DEVICE IN.json OUT.json``: place the blocks of a packed one."""

from __future__ import annotations

import sys

from hwflow.toolchain.packing.files import pack_file, place_file

arguments = sys.argv[1:]
if len(arguments) == 4 and arguments[0] == "--places":
    print(f"{place_file(*arguments[1:])} multiplier blocks placed")
elif len(arguments) == 3:
    print(pack_file(*arguments))
else:
    sys.exit("usage: python -m hwflow.toolchain.packing FAMILY|--places DEVICE IN.json OUT.json")
