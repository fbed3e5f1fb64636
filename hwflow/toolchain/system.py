"""System programs that simulators need."""

from __future__ import annotations

from hwflow.toolchain.tool import Tool, on_path

MAKE = Tool(
    name="make",
    purpose="compiles simulations (GNU make)",
    minimum=(3, 81),
    install="install GNU make (Debian, Ubuntu: apt install make)",
    version_arguments=("--version",),
    version_pattern=r"GNU Make (\d+(?:\.\d+)+)",
    candidates=(on_path("make"), on_path("gmake")),
)

CXX = Tool(
    name="g++",
    purpose="compiles simulations (C++17)",
    minimum=(9,),
    install="install g++ 9 or newer, or clang++ (Debian, Ubuntu: apt install g++)",
    version_arguments=("--version",),
    version_pattern=r"(?:g\+\+|c\+\+|GCC|clang version|Apple clang version)[^\n]*?\b(\d+(?:\.\d+)+)",
    candidates=(on_path("g++"), on_path("c++"), on_path("clang++")),
)

PERL = Tool(
    name="perl",
    purpose="starts Verilator",
    minimum=(5, 10),
    install="install perl (Debian, Ubuntu: apt install perl)",
    version_arguments=("--version",),
    version_pattern=r"\(v(\d+(?:\.\d+)+)\)",
    candidates=(on_path("perl"),),
)
