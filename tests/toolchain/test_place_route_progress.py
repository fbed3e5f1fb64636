"""What nextpnr's log tells about how far it is: lines as nextpnr 0.11 prints them."""

from __future__ import annotations

import pytest

from hwflow.toolchain.place_route_progress import PlaceRouteProgress, read_progress, read_shortage


@pytest.mark.parametrize(
    ("line", "progress", "text"),
    [
        ("Info: Packing LUT5-7s...\n", PlaceRouteProgress("packing"), "packing"),
        ("Info: Running Static placer...\n", PlaceRouteProgress("placing"), "placing, iteration 0"),
        (
            "Info: iter=102 steplen=1.435650 a=52.989037 penalty=[0.00, 0.00, 0.00, 0.00]\n",
            PlaceRouteProgress("placing", 102), "placing, iteration 102",
        ),
        (
            "Info:     at iteration #12, type ALL: wirelen solved = 72, spread = 91, legal = 95; time = 0.01s\n",
            PlaceRouteProgress("placing", 12), "placing, iteration 12",
        ),
        (
            "Info:   at iteration #5: temp = 0.000000, timing cost = 511, wirelen = 262667\n",
            PlaceRouteProgress("placing", 5), "placing, iteration 5",
        ),
        ("Info: Routing..\n", PlaceRouteProgress("routing"), "routing, iteration 0"),
        ("Info: Running router2...\n", PlaceRouteProgress("routing"), "routing, iteration 0"),
        (
            "Info: Routing 22383 arcs.\n",
            PlaceRouteProgress("routing", 0, 22383), "routing, iteration 0, 22,383 wires left",
        ),
        (
            "Info:      16000 |      418      14581 |   97   903 |     13318|       0.59       4.36|\n",
            PlaceRouteProgress("routing", 16, 13318), "routing, iteration 16, 13,318 wires left",
        ),
        (
            "Info:     iter=3 wires=912345 overused=1203 overuse=1401 archfail=NA\n",
            PlaceRouteProgress("routing", 3, 1203), "routing, iteration 3, 1,203 wires left",
        ),
        (
            "Info:     iter=44 wires=912345 overused=0 overuse=0 tmgfail=17 archfail=NA\n",
            PlaceRouteProgress("routing", 44, 0, 17), "routing, iteration 44, 0 wires left, 17 too slow",
        ),
    ],
)
def test_a_line_that_tells(line, progress, text):
    assert read_progress(line) == progress
    assert str(progress) == text


@pytest.mark.parametrize(
    "line",
    [
        "", "\n", "Info: Checksum: 0x68c04daf\n", "Info:    update_chains distance 83.44\n",
        "Info:    IterCnt |  w/ripup   wo/ripup |  w/r  wo/r |      arcs| batch(sec) total(sec)|\n",
        "Info: [ 51353,  52935) |*+\n", "ERROR: Unable to place cell, no BELs remaining\n",
    ],
)
def test_a_line_that_does_not(line):
    assert read_progress(line) is None


@pytest.mark.parametrize(("line", "said"), [
    ("Info: \t         ICESTORM_LC:    5477/   5280   103%\n", "ICESTORM_LC must be at most 5,280, not 5,477"),
    ("Info: \t          TRELLIS_FF:   90000/  83640   107%\n", "TRELLIS_FF must be at most 83,640, not 90,000"),
    ("Info: \t            BSRAM:    26/   26   100%\n", None),
    ("Info: Device utilisation:\n", None),
    ("Info:      setup  0.10  23.61 Source a/b: 9/ 8 1%\n", None),
])  # fmt: skip
def test_a_shortage(line: str, said: str | None) -> None:
    assert read_shortage(line) == said
