"""Who may import whom (design, section 2), and that hwflow.display alone shows strings, read from the syntax tree
of every module."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Layer:
    """Modules whose dotted name starts with one of ``members`` may import the standard library, themselves and
    ``allowed``, because of ``reason``."""

    members: tuple[str, ...]
    allowed: tuple[str, ...]
    reason: str


COMMON = ("hwflow.display", "hwflow.errors")  # what everything may say, and how

# The first layer that a module belongs to counts.
LAYERS = (
    Layer(("hwflow.display",), (), "it knows strings only"),
    Layer(("hwflow.errors",), ("hwflow.display",), "everything imports it"),
    Layer(
        ("hwflow.processes",), ("hwflow.sim.programs",), "a second process runs whatever it is given"
    ),
    Layer(("hwflow.types",), COMMON, "a value's type is plain data"),
    Layer(
        ("hwflow.numerics",),
        (*COMMON, "flint", "numpy"),
        "exact arithmetic knows nothing of graphs, ONNX or hardware",
    ),
    Layer(
        ("hwflow.onnxspec",), (*COMMON, "hwflow.types", "hwflow.suggestion", "numpy", "onnx"),
        "the ONNX specification knows nothing of what hwflow makes of a model",
    ),
    Layer(
        ("hwflow.ir",), (*COMMON, "hwflow.types", "hwflow.numerics", "numpy", "typing_extensions"),
        "the graph is the same for every operator, dialect and device",
    ),
    Layer(
        ("hwflow.cores",),
        (*COMMON, "hwflow.types", "hwflow.numerics", "hwflow.ir", "hdl_lib", "amaranth", "numpy"),
        "an operator binds its meaning to its core, and knows neither ONNX files nor schedules",
    ),
    Layer(
        ("hwflow.schedule.throughput.firing",),
        ("hwflow.cores.timing", "hwflow.schedule.throughput.events", "numpy", "wasmtime"),
        "the inner loop of schedules knows their events, and what compiles it",
    ),
    Layer(
        ("hwflow.passes", "hwflow.schedule", "hwflow.verify.golden"),
        (*COMMON, "hwflow.types", "hwflow.numerics", "hwflow.ir", "hwflow.cores", "hwflow.processes", "numpy"),
        "what works on graphs asks the operators, and neither reads ONNX nor builds hardware",
    ),
    Layer(
        ("hwflow.frontend", "hwflow.operators"),
        (*COMMON, "hwflow.types", "hwflow.numerics", "hwflow.ir", "hwflow.onnxspec", "numpy", "onnx"),
        "ONNX to IR, whatever hardware comes of it",
    ),
    Layer(
        ("hwflow.codegen.board.usb_device",), ("luna", "amaranth"),
        "LUNA is an optional extra, imported in one place",
    ),
    Layer(
        ("hwflow.codegen",),
        (
            *COMMON, "hwflow.types", "hwflow.numerics", "hwflow.ir", "hwflow.cores", "hwflow.schedule",
            "hwflow.onnxspec.resolving.resolved_model", "hwflow.boards", "hwflow.processes", "hdl_lib", "amaranth",
            "numpy",
        ),
        "what is emitted follows from the scheduled graph; of the ONNX model the report states resolved facts only",
    ),
    Layer(
        ("hwflow.report.dataflow",),
        (*COMMON, "hwflow.ir", "hwflow.cores", "hwflow.schedule", "numpy"),
        "a picture of the plan: what it says is the plan's",
    ),
    Layer(
        ("hwflow.report",), (*COMMON, "hwflow.toolchain.json_file"),
        "a page is made of an output folder's tables, whatever wrote them",
    ),
    Layer(
        ("hwflow.toolchain.ethernet.ethernet_core",), (*COMMON, "hwflow.sim.programs", "liteeth", "litex", "migen"),
        "LiteEth is an optional extra, imported in one place, by a process of its own",
    ),
    Layer(
        ("hwflow.toolchain",), (*COMMON, "hwflow.boards", "hwflow.sim.programs", "hwflow.sim.digests", "numpy"),
        "tools work on files, whatever compiler wrote them",
    ),
    Layer(
        ("hwflow.sim",), ("cocotb", "cocotb_tools", "numpy", "hwflow_host", "hwflow_testbench", "pynq"),
        "it travels with the emitted folder, as hwflow_testbench, and runs there without the compiler",
    ),
    Layer(
        ("hwflow.host.runtime",), ("numpy", "onnxruntime", "serial"),
        "it travels with the output folder, as hwflow_host, and runs there without the compiler",
    ),
    Layer(
        ("hwflow.boards",), ("amaranth", "amaranth_boards", "hdl_lib"), "a board is data that every part may read"
    ),
    Layer(("hdl_lib",), ("amaranth",), "the cores are usable without hwflow"),
    Layer(
        (
            "hwflow.quantization.static_quantizer", "hwflow.quantization.node_weights",
            "hwflow.quantization.integer_kinds", "hwflow.quantization.qdq_writer", "hwflow.quantization.weight_scales",
            "hwflow.quantization.clipping", "hwflow.quantization.bias_correction", "hwflow.quantization.equalization",
            "hwflow.quantization.noise",
            "hwflow.quantization.placement",
            "hwflow.quantization.preparation", "hwflow.quantization.calibration", "hwflow.quantization.masks",
            "hwflow.quantization.sessions", "hwflow.quantization.sum_scales",
        ),
        (*COMMON, "hwflow.onnxspec.graphs", "numpy", "onnx", "onnxruntime"),
        "onnxruntime is an optional extra, imported in one place, and quantizes before hwflow reads a model",
    ),
    Layer(
        ("hwflow.sweep.cluster",), (*COMMON, "hwflow.sim.programs", "distributed"),
        "Dask is an optional extra, imported in one place, by what starts workers",
    ),
    Layer(
        ("hwflow.exports.component",), ("hwflow.api", "hwflow.codegen", "hwflow.cores", "amaranth"),
        "a design as a component is Amaranth's",
    ),
    Layer(("hwflow.suggestion",), ("hwflow.display",), "it knows strings only"),
    Layer(("hwflow.versions",), ("hwflow.boards", "hwflow.toolchain"), "it asks the tools"),
    Layer(
        ("hwflow.loaded_model",), (*COMMON, "hwflow.ir", "hwflow.onnxspec", "hwflow.frontend", "hwflow.passes"),
        "a model is what becomes of an ONNX file, whatever is made of it",
    ),
    Layer(
        ("hwflow.host",),
        (*COMMON, "hwflow.numerics", "hwflow.ir", "hwflow.onnxspec", "hwflow.loaded_model", "numpy"),
        "the host's part follows from the model, and knows no design",
    ),
    Layer(
        ("hwflow.verify.golden_vectors",),
        ("hwflow.ir", "hwflow.sim", "hwflow.loaded_model", "hwflow.verify.golden"),
        "an output folder has them, whatever is compared with them",
    ),
    Layer(
        ("hwflow.api",),
        (
            *COMMON, "hwflow.suggestion", "hwflow.versions", "hwflow.processes", "hwflow.boards", "hwflow.ir",
            "hwflow.cores", "hwflow.schedule", "hwflow.passes", "hwflow.onnxspec", "hwflow.frontend",
            "hwflow.operators", "hwflow.codegen", "hwflow.report", "hwflow.toolchain", "hwflow.sim", "hwflow.host",
            "hwflow.loaded_model", "hwflow.verify.golden_vectors", "numpy",
        ),
        "a design is made of the parts below, and knows nothing of who asks for it",
    ),
    Layer(
        ("hwflow.quantization",),
        (
            *COMMON, "hwflow.types", "hwflow.cores", "hwflow.onnxspec", "hwflow.frontend", "hwflow.report",
            "hwflow.host", "hwflow.loaded_model", "hwflow.api", "numpy", "onnx",
        ),
        "a quantizer makes a model, not a design",
    ),
    Layer(
        ("hwflow.exports",),
        (*COMMON, "hwflow.suggestion", "hwflow.codegen", "hwflow.cores", "hwflow.toolchain", "hwflow.sim", "amaranth"),
        "what is exported lies in an output folder",
    ),
    Layer(
        ("hwflow.verify",),
        (
            *COMMON, "hwflow.numerics", "hwflow.ir", "hwflow.cores", "hwflow.passes", "hwflow.onnxspec",
            "hwflow.frontend", "hwflow.operators", "hwflow.report", "hwflow.toolchain", "hwflow.sim", "hwflow.host",
            "hwflow.loaded_model", "hwflow.api", "hwflow.exports.wave_views", "hwflow.quantization.sessions", "numpy",
        ),
        "it judges designs and models that others make",
    ),
    Layer(
        ("hwflow.sweep",),
        (
            *COMMON, "hwflow.suggestion", "hwflow.versions", "hwflow.onnxspec", "hwflow.frontend", "hwflow.toolchain",
            "hwflow.sim", "hwflow.host", "hwflow.loaded_model", "hwflow.api", "hwflow.quantization", "numpy",
        ),
        "a sweep makes many designs, and knows no command line",
    ),
    Layer(
        ("hwflow.cli",), ("hwflow", "numpy", "rich", "shtab"), "it says what the parts below do; nobody imports it",
    ),
    Layer(("hwflow",), (), "the verbs, each in its place"),  # this one module: every other belongs to a layer above
)


def modules() -> dict[str, Path]:
    """Every module that the wheel installs, by dotted name (``sim`` and ``boards`` under the names they get there)."""
    found = {}
    for folder, prefix in (("hwflow", ""), ("hdl_lib", ""), ("sim", "hwflow."), ("boards", "hwflow.")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[prefix + ".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


class Import(NamedTuple):
    line: int
    name: str


def imports(module: str, path: Path, known: set[str]) -> list[Import]:
    """Everything that a module imports, at once, inside a function, or for the type checker alone."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[Import] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            full = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in known else base for name in full]
        found += [Import(node.lineno, name) for name in names]
    return found


@cache
def all_imports() -> dict[str, list[Import]]:
    """The imports of every module."""
    return {module: imports(module, path, set(MODULES)) for module, path in MODULES.items()}


def inside(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


def layer_of(module: str) -> Layer:
    return next(layer for layer in LAYERS if inside(module, layer.members))


MODULES = modules()


def test_imports() -> None:
    wrong = []
    for module, found in all_imports().items():
        layer = layer_of(module)
        for line, name in found:
            if name.partition(".")[0] in sys.stdlib_module_names or inside(name, layer.members + layer.allowed):
                continue
            where = f"{MODULES[module].relative_to(ROOT)}:{line}"
            allowed = ", ".join(layer.allowed) or "nothing"
            wrong.append(f"{where}: {layer.members[0]} may import {allowed}, not {name}: {layer.reason}")
    assert not wrong, "\n".join(wrong)


def cycle(imported: Mapping[str, Iterable[str]]) -> list[str]:
    """Modules of which each is imported by the one before it, the first by the last; none where there is no cycle."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return [*reversed(error.args[1][1:])]
    return []


def test_no_import_cycle() -> None:
    imported = {module: {each.name for each in found} for module, found in all_imports().items()}
    assert not cycle({module: names & set(MODULES) - {module} for module, names in imported.items()})


def test_the_rules_see_import_cycles() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    found = cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert found[found.index("a") :] + found[: found.index("a")] == ["a", "b", "c"]


def test_every_package_has_a_layer() -> None:
    assert [module for module in MODULES if layer_of(module) is LAYERS[-1]] == ["hwflow"]


def test_every_layer_has_modules() -> None:
    for layer in LAYERS:
        for member in layer.members:
            assert any(inside(module, (member,)) for module in MODULES), member


def test_the_rules_see_imports_of_every_form(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(
        "import numpy as np, onnx.helper\nfrom . import near\n"
        "from ..cores import costs\nfrom hwflow.verify import golden\n"
        "def late():\n    from hwflow.cli import main\n"
        "if TYPE_CHECKING:\n    import onnx\n"
    )
    known = {"hwflow.ir.near", "hwflow.cores.costs", "hwflow.verify.golden"}
    assert imports("hwflow.ir.odd", path, known) == [
        Import(1, "numpy"), Import(1, "onnx.helper"), Import(2, "hwflow.ir.near"), Import(3, "hwflow.cores.costs"),
        Import(4, "hwflow.verify.golden"), Import(6, "hwflow.cli"), Import(8, "onnx"),
    ]  # fmt: skip


FILES = 16  # a folder at the most; of boards there are as many as there are boards
SAME = ("hwflow.cores.costs", "hwflow.cores", "hdl_lib")  # costs, operator and hardware of a core, one file in each
LARGE = ("boards", "sim")


def test_no_folder_is_large() -> None:
    count = Counter(path.parent.relative_to(ROOT) for path in MODULES.values())
    assert {str(folder): n for folder, n in count.items() if n > FILES and str(folder) not in LARGE} == {}


def test_no_two_files_share_a_name_for_different_things() -> None:
    places: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        if path.stem not in ("__init__", "__main__"):
            places.setdefault(path.stem, []).append(next((part for part in SAME if inside(module, (part,))), module))
    # One file has the name, or each that has it is another part of one core.
    wrong = {name: found for name, found in places.items() if len(found) > 1 and not is_core(found)}
    assert wrong == {}


def is_core(parts: Sequence[str]) -> bool:
    return len(parts) == len({*parts} & {*SAME})


def test_the_rules_see_files_of_one_name() -> None:
    assert is_core(["hdl_lib", "hwflow.cores"]) and is_core(["hwflow.cores.costs", "hwflow.cores", "hdl_lib"])
    assert not is_core(["hdl_lib", "hdl_lib"]) and not is_core(["hwflow.cores", "hwflow.schedule.plan"])


BY_SUBJECT = ("formal", "flow", "sim", "examples")  # these folders of tests mirror nothing


def mirrored(path: Path) -> Path:
    """Return where the test of a module lies, relative to ``tests``."""
    inner = path.relative_to(ROOT).parts
    folders = inner[1:-1] if inner[0] == "hwflow" else inner[:-1]
    return Path(*folders, f"test_{path.name}")


def test_tests_mirror_the_code() -> None:
    """One that is named after exactly one module, and imports it, lies where that does."""
    named: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        named.setdefault(f"test_{path.name}", []).append(module)
    wrong = []
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        place, found = test.relative_to(ROOT / "tests"), named.get(test.name, [])
        if len(found) != 1 or place.parts[0] in BY_SUBJECT or place == mirrored(MODULES[found[0]]):
            continue
        if any(each.name == found[0] for each in imports(f"tests.{test.stem}", test, set(MODULES))):
            wrong.append(f"tests/{place} must be tests/{mirrored(MODULES[found[0]])}")
    assert not wrong, "\n".join(wrong)


def test_where_the_tests_of_a_module_lie() -> None:
    places = {"hwflow/ir/graph.py": "ir/test_graph.py", "hdl_lib/links/crc.py": "hdl_lib/links/test_crc.py"}
    assert {path: str(mirrored(ROOT / path)) for path in places} == places


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _around_display(tree: ast.AST) -> list[str]:
    """Values that are put in quotes without `show`, and what is printed but not by the terminal's functions."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for before, value, after in zip(node.values, node.values[1:], node.values[2:], strict=False):
                if (
                    isinstance(value, ast.FormattedValue) and value.conversion != ord("r")
                    and isinstance(before, ast.Constant) and str(before.value).endswith("'")
                    and isinstance(after, ast.Constant) and str(after.value).startswith("'")
                ):
                    found.append(f"{value.lineno}: must be {{show(...)}}, not '{{...}}'")
        elif _calls(node, "print") and not all(isinstance(argument, ast.Constant) for argument in node.args):
            found.append(f"{node.lineno}: must be say(...), not print(...)")
    return found


# What travels without hwflow, and programs that tools run, write for no terminal.
ELSEWHERE = (
    "hwflow.sim", "hwflow.boards", "hwflow.display", "hwflow.cli.terminal", "hwflow.toolchain.packing",
    "hwflow.host.runtime",
)


def test_strings_are_shown_by_display() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{wrong}"
        for module, path in MODULES.items()
        if inside(module, ("hwflow",)) and not inside(module, ELSEWHERE)
        for wrong in _around_display(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


def test_the_rules_see_strings_that_go_around_display() -> None:
    tree = ast.parse("print(name)\nprint('a')\nf\"value '{name}' of {show(name)}\"")
    assert _around_display(tree) == ["1: must be say(...), not print(...)", "3: must be {show(...)}, not '{...}'"]
