#!/bin/sh
# Builds a simulation of the board, build/board here: needs Verilator (5.36 or newer) and a C++17 compiler (CXX, CXXFLAGS).
# Started in the output folder, as board/simulation/build/board [--faults RATE] [--seed NUMBER] [--status FILE],
# it prints the port that a host opens as it would open the board's, and runs until it is interrupted.
set -e
cd "$(dirname "$0")"
verilator --cc --prefix Vboard --top-module board_simulation -O3 --no-timing -Wno-fatal -Wno-lint --Mdir build \
    -Wno-COMBDLY -Wno-UNOPTFLAT waivers.vlt -F sources.f
root=$(verilator --getenv VERILATOR_ROOT)
${CXX:-c++} ${CXXFLAGS:--O2} -w -I. -Ibuild -I"$root/include" -I"$root/include/vltstd" -o build/board \
    build/*.cpp *.cpp "$root/include/verilated.cpp" "$root/include/verilated_threads.cpp" -pthread
