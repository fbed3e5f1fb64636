"""The gallery of the documentation: networks with their report pages, a picture of each, and a table of figures.

    python benchmarks/gallery.py [--shared ../shared] [--build build/gallery] [--docs docs] [NAME ...]

Makes each design (what is up to date is not made again), simulates or compares it, and writes DOCS/gallery/NAME.html,
DOCS/gallery/NAME.png and DOCS/gallery.md. Pictures are made by Chromium, which must be there. With NAMEs only these are
made, and the page of all is made of what is there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from hwflow.cli import main as hwflow  # noqa: E402  # the repository's own, found by the path above
from tests.browser import Browser  # noqa: E402

WIDTH, SCALE = 1080, 0.8  # of a page, in pixels, and of its picture
MANY = 100  # frames whose accuracy says something
LARGEST = 200_000  # bytes of a picture
TITLES = (
    "network", "parameters", "cycles a frame", "latency (cycles)", "frames/s", "LUT", "FF", "DSP", "BRAM", "MHz",
    "accuracy",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A network: its ``model``, below the repository or, with ``shared``, below the shared folder. ``options`` of
    synth; ``checks``: commands on the folder, with their options."""

    name: str
    title: str
    model: str
    text: str
    options: tuple[str, ...] = ()
    checks: tuple[tuple[str, ...], ...] = ()
    shared: bool = False


ENTRIES = (
    Entry(
        "digits", "Digits, a convolutional network", "examples/digits/model.onnx",
        "The example of the [tutorial](tutorial.md), placed, routed and simulated.",
        ("--fps", "200000"), (("sim", "--frames", "360"), ("compare",)),
    ),
    Entry(
        "resnet8", "ResNet-8, MLPerf Tiny's image classification",
        "models/mlperf_ic_resnet8_int8/mlperf_ic_resnet8_int8.onnx",
        "All multiplier blocks of the part; the skip connections show in the graph, and as the deepest queues.",
        ("--until", "verilog"), (("compare", "--frames", "8"),), shared=True,
    ),
    Entry(
        "vit_digits", "A vision transformer", "examples/vit_digits/model.onnx",
        "Attention, Softmax and LayerNormalization in hardware: requantizers with their proved epsilon.",
        ("--budget", "lut=50%", "--fps", "20000", "--until", "verilog"), (("compare", "--frames", "8"),),
    ),
    Entry(
        "gru_stream", "A GRU with its state on the chip", "examples/keyword_rnn/gru_stream.onnx",
        "A frame is a step; the circuit through the state limits the interval.",
        ("--until", "verilog"), (("compare", "--frames", "16"),),
    ),
    Entry(
        "forest", "A random forest", "examples/trees/digits.onnx",
        "Trees as comparisons and walks through tables, exact on floats; no multipliers at all.",
        ("--until", "verilog"), (("compare", "--input", str(HERE.parent / "examples" / "trees" / "digits.npz")),),
    ),
)  # fmt: skip
BOARD = "ulx3s_85f"


def made(entry: Entry, shared: Path, build: Path) -> Path | None:
    """Make a design's folder; None where its model is not here."""
    model = (shared if entry.shared else HERE.parent) / entry.model
    if not model.is_file():
        return None
    out = build / entry.name
    if code := hwflow(["synth", str(model), "--board", BOARD, "-o", str(out), *entry.options]):
        sys.exit(code)
    for command, *options in entry.checks:
        if code := hwflow([command, str(out), *options, "--seed", "1"]):
            sys.exit(code)
    return out


def pictured(page: Path, picture: Path) -> None:
    """Write the picture of a page: its head and the dataflow graph."""
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(Path(profile))
        try:
            tab = browser.open(page, WIDTH, 1240)
            assert not tab.wrong, tab.wrong
            height = int(tab("document.getElementById('layers').offsetTop - 14"))
            tab.picture(picture, WIDTH, height, SCALE)
        finally:
            browser.close()
    if picture.stat().st_size > LARGEST:
        sys.exit(f"{picture}: must have at most {LARGEST} bytes, not {picture.stat().st_size}")


def row(entry: Entry, out: Path) -> dict[str, Any]:
    """Return the figures of a folder."""
    report = json.loads((out / "report.json").read_text())
    results = [json.loads(path.read_text()) for name in ("simulation", "comparison")
               if (path := out / f"{name}.json").is_file()]  # fmt: skip
    known = (found["accuracy"] for found in results if found["frames"] >= MANY and found["accuracy"] is not None)
    accuracy = next(known, None)
    used = {
        name: row["predicted"] if row["synthesized"] is None else row["synthesized"]
        for name, row in report["resources"].items()
    }  # fmt: skip
    clock = report["clock"]
    return {
        "parameters": report["model"]["parameters"], "interval": report["timing"]["initiation_interval"],
        "latency": report["timing"]["latency"], "frames": report["timing"]["frames_per_second"], **used,
        "clock": clock["target_mhz"], "routed": clock["fmax_mhz"], "accuracy": accuracy,
        "verdict": all(found["verdict"] == "equal" for found in results),
    }  # fmt: skip


def document(rows: dict[str, dict[str, Any]]) -> str:
    """Return the Markdown of the gallery."""
    lines = [
        "# Gallery", "",
        "Five networks on an LFE5U-85F (ULX3S), each with the [page](how-to/read-report.md) that `synth` writes: open "
        "it for the time line,", "queues, roofline, ranges of values and everything known of each core. `python "
        "benchmarks/gallery.py` makes all of this.", "",
        f"| {' | '.join(TITLES)} |", f"{'|---' * len(TITLES)}|",
    ]  # fmt: skip
    there = [entry for entry in ENTRIES if entry.name in rows]
    for entry in there:
        r = rows[entry.name]
        clock = f"{r['clock']:g}" + (f" (routed {r['routed']:.0f})" if r["routed"] is not None else "")
        accuracy = "" if r["accuracy"] is None else f"{100 * r['accuracy']:.2f} %"
        figures = (f"{r[key]:,}" for key in ("parameters", "interval", "latency"))
        parts = (f"{r[key]:,}" for key in ("lut", "ff", "dsp", "bram"))
        cells = (entry.title, *figures, f"{r['frames']:,.0f}", *parts, clock, accuracy)
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "", "Resources are synthesized where the clock is a routed one, else predicted. On the frames compared all "
        "equal ONNX's reference", "evaluator, or differ by its own float rounding alone.", "",
    ]  # fmt: skip
    for entry in there:
        lines += [
            f"## {entry.title}", "", entry.text, "",
            f"[![The report of {entry.name}](gallery/{entry.name}.png)](gallery/{entry.name}.html)", "",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of networks; all if none is given")
    parser.add_argument("--shared", type=Path, default=HERE.parent.parent / "shared")
    parser.add_argument("--build", type=Path, default=Path("build/gallery"))
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    arguments = parser.parse_args()
    folder = arguments.docs / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for entry in ENTRIES:
        out = arguments.build / entry.name
        if not arguments.names or entry.name in arguments.names:
            if made(entry, arguments.shared, arguments.build) is None:
                print(f"{entry.name}: its model is not here")
                continue
            page = folder / f"{entry.name}.html"
            shutil.copyfile(out / "report.html", page)
            pictured(page.resolve(), folder / f"{entry.name}.png")
        if (out / "report.json").is_file():
            rows[entry.name] = row(entry, out)
    if not all(found["verdict"] for found in rows.values()):
        sys.exit("a design differs")
    (arguments.docs / "gallery.md").write_text(document(rows))


if __name__ == "__main__":
    main()
