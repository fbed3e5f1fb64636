"""Build the programs that simulate a design: compile Verilator's C++ and ours into one.

Verilator's own makefiles are not used: they need `python` and `make`, compile files sequentially, and compile
Verilator's run-time library again for every design. Here the library is compiled once into the user's cache folder, and
the rest in a few parallel compiler calls, by the size of the design. A program is cached under a hash of all that it
depends on; weights are read at run time and need no build.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import programs
from .sim_errors import SimulatorFailed, tail_of

_HERE = Path(__file__).resolve().parent / "verilator"
_SMALL = 300_000  # bytes of generated C++ below which one compiler call is fastest: each call parses the same headers
_FUNCTION, _FILE = 500, 5_000  # statements: compilers take more than twice as long for twice as long a function
# g++ guesses that branches are foreseen. A design's are not, whose handshakes go and wait: selections are faster.
_SELECT = ["--param", "max-rtl-if-conversion-unpredictable-cost=200"]  # the highest that g++ takes
_TRACE = {None: [], "vcd": ["--trace"], "fst": ["--trace-fst"]}


@dataclass(frozen=True)
class Build:
    """A program ready to run. ``seconds``: of the build; ``reused``: it was cached."""

    program: Path
    seconds: float
    reused: bool


@dataclass(frozen=True)
class Recipe:
    """What a program is made of.

    ``name``: the program's; ``prefix``: of Verilator's C++; ``top``: the module that is simulated; ``verilog``: the
    files with it and all below; ``cpp``: our C++, with headers beside it; ``headers``: generated ones, {name: text};
    ``common``: C++ of ours that knows nothing of what is simulated, so that it is compiled once as the library is.
    """

    name: str
    prefix: str
    top: str
    verilog: tuple[Path, ...]
    cpp: tuple[Path, ...]
    headers: Mapping[str, str]
    common: tuple[Path, ...] = ()

    def files(self) -> list[Path]:
        """Return all files that decide the program."""
        folders = sorted({file.parent for file in (*self.cpp, *self.common)})
        return [*self.verilog, *(file for folder in folders for file in sorted(folder.iterdir()) if file.is_file())]


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the compiled run-time library: HWFLOW_CACHE, or `hwflow` in the user's cache folder."""
    if environment.get("HWFLOW_CACHE"):
        return Path(environment["HWFLOW_CACHE"])
    base = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME", os.path.expanduser("~")), ".cache")
    return Path(base) / "hwflow"


class _Builder:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: list[str], log_path: Path) -> None:
        self.command = list(command)
        self.environment = {**os.environ, **environment}
        self.compiler = self.environment.get("CXX", "").split() or ["c++"]
        self.log = log
        self.log_path = log_path

    def call(self, step: str, arguments: Sequence[str], cwd: Path) -> str:
        try:
            status, printed = programs.run(arguments, cwd=cwd, environment=self.environment)
        except OSError as error:
            raise SimulatorFailed(step, self.log_path, f"    {arguments[0]}: {error.strerror}") from None
        self.log.append(f"# {step}\n{' '.join(arguments)}\n{printed}")
        if status != 0:
            errors = [line for line in printed.splitlines() if "error" in line.lower()]
            raise SimulatorFailed(step, self.log_path, tail_of("\n".join(errors[:12]) or printed))
        return printed

    def root(self) -> Path:
        """Return Verilator's installation folder (its C++ sources are in ``include``)."""
        return Path(
            self.call("ask Verilator for its folder", [*self.command, "--getenv", "VERILATOR_ROOT"], Path.cwd()).strip()
        )


def build(
    recipe: Recipe,
    *,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    wave: str | None = None,
    optimize: str | None = None,
    jobs: int | None = None,
) -> Build:
    """Make (or find) the program of ``recipe`` under ``folder``.

    ``command``: how Verilator is called (prefix and environment additions); ``wave``: "vcd" or "fst" to support;
    ``optimize``: the C++ compiler's level (default: -O1 for small designs, whose compilation dominates, else -O2).

    Raises :class:`SimulatorFailed` with the log's tail.
    """
    begin = time.monotonic()
    flags = ["--cc", "--prefix", recipe.prefix, "--top-module", recipe.top, "-O3", "--no-timing", "-Wno-fatal"]
    flags += ["--output-split-cfuncs", str(_FUNCTION), "--output-split", str(_FILE), *_TRACE[wave]]
    hashed = hashlib.sha256()
    switches = *command, *sorted(map(str, environment.items())), *flags, str(optimize), *_SELECT
    for part in (*switches, *recipe.headers.values()):
        hashed.update(part.encode() + b"\0")
    for file in recipe.files():
        hashed.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    target = folder / hashed.hexdigest()[:16]
    if (target / recipe.name).is_file():
        return Build(target / recipe.name, time.monotonic() - begin, True)

    folder.mkdir(parents=True, exist_ok=True)
    work = folder / f"{target.name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    log: list[str] = []
    log_path = folder / "build.log"
    builder = _Builder(command, environment, log, log_path)
    try:
        for name, text in recipe.headers.items():
            (work / name).write_text(text)
        arguments = [*flags, "--Mdir", str(work), str(_HERE / "waivers.vlt"), *map(str, recipe.verilog)]
        builder.call("verilate the design", [*builder.command, *arguments], work)
        _compile(builder, recipe, work, optimize, jobs or programs.core_count())
        for file in work.iterdir():
            if file.name != recipe.name:
                file.unlink()
        with contextlib.suppress(OSError):  # someone else was faster: theirs is as good
            work.rename(target)
    finally:
        log_path.write_text("\n".join(log))
        shutil.rmtree(work, ignore_errors=True)
    return Build(target / recipe.name, time.monotonic() - begin, False)


def _compile(builder: _Builder, recipe: Recipe, work: Path, optimize: str | None, jobs: int) -> None:
    """Compile the generated C++, ours and (if not cached) the run-time library; link the program."""
    root = builder.root()
    makefiles = "".join((work / f"{recipe.prefix}{ending}.mk").read_text() for ending in ("_classes", ""))
    defines = {"VM_COVERAGE": "0", "VM_SC": "0", "VM_TIMING": "0", "VM_TRACE_SAIF": "0", "VERILATOR": "1"}
    defines |= dict(re.findall(r"^(VM_(?:TRACE\w*|TIMING|SC|COVERAGE)) *= *([01])$", makefiles, re.MULTILINE))
    include = [
        f"-I{work}",
        f"-I{root / 'include'}",
        f"-I{root / 'include' / 'vltstd'}",
        *(f"-D{k}={v}" for k, v in defines.items()),
    ]
    library = [
        name
        for group in re.findall(r"^VM_GLOBAL_(?:FAST|SLOW) \+= \\\n((?:\s+\w+ \\\n)*)", makefiles, re.MULTILINE)
        for name in re.findall(r"\w+", group)
    ]

    generated = sorted(work.glob("*.cpp"))
    slow = [f for f in generated if f.stem.endswith("__Slow")]
    fast = [f for f in generated if f not in slow]
    units: list[tuple[list[Path], str]] = []
    size = sum(f.stat().st_size for f in generated)
    small = size < _SMALL
    level = optimize or ("-O1" if small else "-O2")
    if small:
        units.append(([*generated, *recipe.cpp], level))
    else:
        groups: list[list[Path]] = [[*recipe.cpp], *([] for _ in range(jobs - 1))]
        for file in sorted(fast, key=lambda f: -f.stat().st_size):
            min(groups, key=lambda g: sum(f.stat().st_size for f in g)).append(file)
        units += [(group, level) for group in groups if group]
        units += [(slow, "-O0")] if slow else []

    tasks: list[tuple[str, list[str]]] = []
    objects = [work / f"unit{i}.o" for i in range(len(units))]
    for (files, unit_level), target in zip(units, objects, strict=True):
        source = target.with_suffix(".cc")
        source.write_text("".join(f'#include "{file}"\n' for file in files))
        tasks.append(
            (
                f"compile {source.name}",
                [*builder.compiler, unit_level, *_SELECT, "-w", *include, "-c", str(source), "-o", str(target)],
            )
        )

    # Newer FST writers (fstcpp) ask for two libraries' headers, ours will do; older ones for all of zlib.
    ours = (root / "include" / "fstcpp").is_dir()
    compression = [f"-I{_HERE}"] if ours else []
    libraries = ["-lz"] if defines.get("VM_TRACE_FST") == "1" and not ours else []
    kept = _library_folder(builder, root, defines)
    once = [(kept / f"{name}.o", root / "include" / f"{name}.cpp", "-O1") for name in library]
    once += [(kept / f"{file.stem}-{_digest(file)}.o", file, "-O2") for file in recipe.common]
    moves: list[tuple[Path, Path]] = []
    for target, source, once_level in once:
        if not target.is_file():
            fresh = target.with_suffix(f".{os.getpid()}.o")
            moves.append((fresh, target))
            tasks.insert(
                0,
                (
                    f"compile {source.name}",
                    [*builder.compiler, once_level, "-w", *include, *compression, "-c", str(source), "-o", str(fresh)],
                ),
            )
        objects.append(target)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda task: builder.call(task[0], task[1], work), tasks))
    for fresh, target in moves:
        fresh.replace(target)
    builder.call(
        "link", [*builder.compiler, *map(str, objects), *libraries, "-pthread", "-o", str(work / recipe.name)], work
    )


def _digest(source: Path) -> str:
    """Digest a C++ file and the headers beside it."""
    files = [source, *sorted(source.parent.glob("*.h"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _library_folder(builder: _Builder, root: Path, defines: Mapping[str, str]) -> Path:
    """Return the cache folder of the run-time library's objects for this Verilator, compiler and set of switches."""
    compiler = builder.call("ask the C++ compiler for its version", [*builder.compiler, "--version"], Path.cwd())
    hashed = hashlib.sha256(repr((compiler, str(root), sorted(defines.items()))).encode())
    names = ("verilated.h", "verilated.cpp", "verilated_types.h", "verilated_config.h")
    for file in (*(root / "include" / name for name in names), _HERE / "lz4.h", _HERE / "zlib.h"):
        hashed.update(file.read_bytes() if file.is_file() else b"")
    folder = cache_folder(builder.environment) / f"verilated-{hashed.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    fallback = builder.log_path.parent / folder.name
    fallback.mkdir(parents=True, exist_ok=True)
    return fallback
