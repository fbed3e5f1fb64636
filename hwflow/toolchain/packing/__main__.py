"""``python -m hwflow.toolchain.packing FAMILY IN.json OUT.json``: pack a netlist, and print what was done."""

from __future__ import annotations

import sys

from hwflow.toolchain.packing.files import pack_file

if len(sys.argv) != 4:
    sys.exit("usage: python -m hwflow.toolchain.packing FAMILY IN.json OUT.json")
print(pack_file(sys.argv[1], sys.argv[2], sys.argv[3]))
