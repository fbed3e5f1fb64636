"""Wires folded into the statements that read them: where Verilog's widths allow it, and never where they do not."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import hwflow
from hwflow.codegen import verilog
from hwflow.codegen.emitted.folding import readable_statements
from tests.flow.networks import dense_network
from tests.formal.prover import yosys
from tests.models import Builder


def module(wires: str, statements: str) -> str:
    """A module as yosys writes it."""
    ports = ("input [3:0] a", "input [3:0] b", "input [4:0] c", "input clk", "input rst", "output [4:0] y")
    names = ", ".join(port.split()[-1] for port in ports)
    declared = "".join(f"  {port};\n" for port in ports)
    split = [*re.split("(?<=;) ", wires), *re.split("(?<=[;)]) (?=assign|always|  )", statements)]
    lines = "".join(f"  {line}\n" for line in split)
    return f"module m({names});\n{declared}{lines}endmodule\n"


@pytest.mark.parametrize(
    ("wires", "before", "after"),
    [
        # a place of the wire's bits
        ("wire [3:0] _0_;", "assign _0_ = a & b; assign y = { 1'h0, _0_ };", "assign y = { 1'h0, a & b };"),
        ("wire _0_;", "assign _0_ = a == b; assign y = _0_ ? c : a;", "assign y = (a == b) ? c : a;"),
        ("wire [4:0] _0_;", "assign _0_ = a + b; assign y = _0_ - c;", "assign y = (a + b) - c;"),
        # the whole right side has the same bits, whatever it is
        (
            "wire [4:0] _0_;", "assign _0_ = $signed(a) * $signed(b); assign y = _0_;",
            "assign y = $signed(a) * $signed(b);",
        ),
        # the low bits of a sum, in a place of as many
        (
            "reg [3:0] r; wire [4:0] _0_;", "assign _0_ = a + 1'h1; always @(posedge clk)   "
            "r <= rst ? 4'h0 : _0_[3:0];", "  else r <= a + 1'h1;",
        ),
        # a carry that the place would lose, or that it would add
        ("wire [4:0] _0_;", "assign _0_ = a + b; assign y = { _0_ };", "assign y = { y__part };"),
        ("wire [3:0] _0_;", "assign _0_ = a + b; assign y = _0_ + c;", "assign y = y__part + c;"),
        ("wire [3:0] _0_;", "assign _0_ = ~ a; assign y = _0_ & c;", "assign y = y__part & c;"),
        # a sign that the place would not extend
        (
            "wire [4:0] _0_;", "assign _0_ = $signed(a) + $signed(b); assign y = _0_ - c;", "assign y = y__part - c;"
        ),
        # low bits that depend on the high ones
        ("wire [4:0] _0_;", "assign _0_ = c >> 1'h1; assign y = a + _0_[3:0];", "assign y = a + y__part[3:0];"),
        # read twice
        ("wire [4:0] _0_;", "assign _0_ = a + c; assign y = _0_ & _0_;", "assign y = y__part & y__part;"),
    ],
)  # fmt: skip
def test_where_a_wire_is_folded(wires, before, after):
    found = readable_statements(module(wires, before))
    assert after in [line.removeprefix("  ") for line in found.splitlines()], found
    assert re.search(r"\b_\d+_\b", found) is None


def test_resets_and_enables_are_conditions():
    found = readable_statements(
        module(
            "reg [3:0] r; wire [3:0] _0_; wire [3:0] _1_; wire _2_;",
            "assign _0_ = rst ? 4'h3 : _1_; assign _1_ = _2_ ? a : r; assign _2_ = b == 3'h2; "
            "always @(posedge clk)   r <= _0_;",
        )
    )
    assert "    if (rst) r <= 4'h3;\n    else if (b == 3'h2) r <= a;\n" in found


def test_names_do_not_collide():
    """A wire of the model has the name already that the first one would get."""
    found = readable_statements(
        module(
            "wire y__part; wire [3:0] _0_; wire [3:0] _1_;",
            "assign y__part = a == b; assign _0_ = a + b; assign _1_ = a - b; assign y = { y__part, _0_ ^ _1_ };",
        ).replace("_0_ ^ _1_", "_0_[2:0], _1_[0]")
    )
    assert "assign y__part = a == b;" in found and "assign y = { y__part, y__part_2[2:0], y__part_3[0] };" in found


def random_module(name: str, rng: random.Random) -> str:
    """Cells of random kinds and widths, each result a numbered wire, most of them read once; all that is left is an
    output."""
    widths = {"a": 4, "b": 4, "c": 5, "s": 1}
    lines, wires = [], []

    def operand() -> tuple[str, int]:
        name = wires.pop(rng.randrange(len(wires))) if wires and rng.random() < 0.7 else rng.choice(list(widths))
        if name in wires:
            wires.remove(name)
        form, width = rng.random(), widths[name]
        if form < 0.15 and width > 1:
            high = rng.randrange(width - 1)
            return f"{name}[{high}:0]", high + 1
        if form < 0.25:
            return f"{{ {name}, c }}", width + 5
        return name, width

    kinds = ["+", "-", "*", "&", "|", "^", "==", "<", ">=", ">>", "<<", "?", "~", "!", "&&", "$+", "$<", "$*"]
    for number in range(10):
        kind = rng.choice(kinds)
        (x, wide), (y, wider) = operand(), operand()
        widest = max(wide, wider)
        if kind == "?":
            text = f"s ? {x} : {y}"
        elif kind in "~!":
            text, widest = f"{kind} {x}", wide
        elif kind[0] == "$":
            text = f"$signed({x}) {kind[1]} $signed({y})"
        else:
            text, widest = f"{x} {kind} {y}", wide if kind in (">>", "<<") else widest
        if kind in ("!", "==", "<", ">=", "&&", "$<"):
            widest = 1
        wire = f"_{number:02}_"
        widths[wire] = widest if rng.random() < 0.7 else rng.randrange(1, 8)
        wires.append(wire)
        lines.append(f"  assign {wire} = {text};\n")
    left = sum(widths[wire] for wire in wires)
    declared = "".join(f"  wire [{widths[f'_{k:02}_'] - 1}:0] _{k:02}_;\n" for k in range(10))
    lines.append(f"  assign y = {{ {', '.join(wires)} }};\n")
    return (
        f"module {name}(a, b, c, s, y);\n  input [3:0] a;\n  input [3:0] b;\n  input [4:0] c;\n  input s;\n"
        f"  output [{left - 1}:0] y;\n{declared}{''.join(lines)}endmodule\n"
    )


def same(folder: Path, first: str, second: str, names: list[str]) -> None:
    """Prove by yosys that modules of both texts are equal for every input."""
    (folder / "first.v").write_text(first)
    (folder / "second.v").write_text(second)
    steps = []
    for name in names:
        steps += [
            "design -reset", "read_verilog first.v", f"prep -flatten -top {name}", "design -stash first",
            "design -reset", "read_verilog second.v", f"prep -flatten -top {name}", "design -stash second",
            "design -reset", f"design -copy-from first -as first {name}", f"design -copy-from second -as second {name}",
            "miter -equiv -flatten first second both", "sat -verify -prove trigger 0 both",
        ]
    yosys(folder, "; ".join(steps))


def test_random_expressions_keep_their_meaning(tmp_path):
    """By SAT, for all inputs; most wires are folded, so that there is something to prove."""
    rng = random.Random(7)
    names = [f"m{k}" for k in range(16)]
    text = "\n".join(random_module(name, rng) for name in names)
    found = readable_statements(text)
    assert len(re.findall(r"(?m)^  wire ", found)) < 0.7 * len(re.findall(r"(?m)^  wire ", text))
    same(tmp_path, text, found, names)
    broken = re.sub(r"\+", "-", found, count=1)
    assert broken != found
    with pytest.raises(AssertionError):
        same(tmp_path, text, broken, names)


EQUAL = """
read_verilog {0}; hierarchy -top hwflow_top; proc; flatten; memory -nomap; opt_clean; rename hwflow_top {1};
design -stash {1}; design -reset
""".replace("\n", " ")


def equal(folder: Path) -> None:
    """Prove plain.v and readable.v equal, register by register: those keep their names."""
    scripts = "; ".join(EQUAL.format(f"{name}.v", name) for name in ("plain", "readable"))
    yosys(
        folder,
        f"{scripts}; design -copy-from plain -as plain plain; design -copy-from readable -as readable readable; "
        "equiv_make plain readable both; hierarchy -top both; opt_clean; equiv_simple; equiv_induct; "
        "equiv_status -assert",
    )


def convolution(folder: Path) -> Path:
    b = Builder()
    x = b.requantize(b.input("x", [1, 2, 4, 4]), 0.5, 128)
    weights = b.weights([[[[1, -2, 3], [0, 1, 2], [-1, 2, 1]]] * 2] * 2, 0.25)
    x = b.requantize(b.node("Conv", x, weights, name="conv", pads=[1, 1, 1, 1]), 0.5, 128)
    b.output(b.quantize(b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 0.5, 128))
    return b.save(folder)


@pytest.mark.parametrize("kind", ["dense", "convolution"])
def test_a_design_keeps_its_meaning(kind, tmp_path, monkeypatch):
    """The same design with and without: the same registers with the same next values, and a tenth of the numbers."""
    model = convolution(tmp_path) if kind == "convolution" else dense_network(tmp_path / "model.onnx", (4, 3, 2))
    design = hwflow.compile(model, "ulx3s_85f", fps=100_000, inline_weights=True)
    design.write(tmp_path / "readable")
    monkeypatch.setattr(verilog, "readable_statements", lambda text: text)
    design.write(tmp_path / "plain")
    texts = {name: (tmp_path / name / "design.v").read_text() for name in ("plain", "readable")}
    for name, text in texts.items():
        (tmp_path / f"{name}.v").write_text(text)
    numbered = {name: len(re.findall(r"(?m)^  wire .*\b_\d+_;", text)) for name, text in texts.items()}
    assert numbered["plain"] > 50 and numbered["readable"] <= numbered["plain"] / 10
    equal(tmp_path)
    text = texts["readable"]
    broken = re.sub(r"else if \((\w+)\) (\w+) <= ", r"else if (!\1) \2 <= ", text, count=1)
    assert broken != text
    (tmp_path / "readable.v").write_text(broken)
    with pytest.raises(AssertionError):
        equal(tmp_path)
