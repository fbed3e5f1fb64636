"""Ways to place and route side by side: the first in time wins, the others end, what leads nowhere is given up. The
tool is stood in for by programs that do what nextpnr was seen to do."""

from __future__ import annotations

import os
import sys

import pytest

from hwflow.errors import ToolError
from hwflow.sim import programs
from hwflow.toolchain import routing
from hwflow.toolchain.nextpnr import MORE_SEEDS, NEXTPNR_ECP5, STRATEGIES
from hwflow.toolchain.place_route_progress import PlaceRouteProgress
from hwflow.toolchain.routing import Files, NotRouted, Watch, place_route
from hwflow.toolchain.tool import Found

FILES = Files("placed", "report.json", "route.log")
PROGRAM = """
import json, os, sys, time
placed, report, *what = sys.argv[1:]
def say(line): print(line, flush=True)
def reached(mhz):
    open(placed, "w").write(" ".join(what))
    fmax = {"clk": {"constraint": 100.0, "achieved": mhz}}
    open(report, "w").write(json.dumps({"fmax": fmax, "utilization": {}}))
def row(thousands, left): say(f"Info: {1000 * thousands:10} | 1 2 | 3 4 | {left:9}| 0.1 0.1|")
def hang():
    open(f"hangs_{os.getpid()}", "w").close()
    time.sleep(60)
def stuck():
    say("Info: Running Static placer...")
    say("Info: Routing..")
    for n in range(1, 60): row(n, max(87, 1000 - 100 * n))
    hang()
def lost():
    say("Info: Running Static placer...")
    sys.exit(3)
exec("; ".join(what))
"""
STUCK = "place_route: routing does not converge, 87 wires left"
START = "place_route: nextpnr-ecp5 9.9"


@pytest.fixture
def routed(tmp_path, monkeypatch):
    """routed(ways, alone, another): what place_route returns, and the lines that it says. ``alone``: seconds after
    which another way starts."""

    def route(*ways: str, alone: float = 600.0, another=None, heard=None, seeds=(), **options):
        monkeypatch.setattr(routing, "ALONE_SECONDS", alone)
        monkeypatch.setattr(routing, "LEAST_SECONDS", 1.0)
        monkeypatch.setattr(routing, "POLL_SECONDS", 0.1)
        monkeypatch.setattr(programs, "core_count", lambda: 2)
        said: list[str] = []
        found = Found((sys.executable, "-c", PROGRAM), "PATH", (9, 9), "9.9")
        result = place_route(
            tmp_path, NEXTPNR_ECP5, found, FILES, lambda files, way: [files.placed, files.report, *way],
            [[way] for way in ways], said.append, heard, another, [[seed] for seed in seeds], **options,
        )
        return result, said

    yield route
    for process in (int(name.removeprefix("hangs_")) for name in os.listdir(tmp_path) if name.startswith("hangs_")):
        with pytest.raises(ProcessLookupError):  # each was killed and waited for
            os.kill(process, 0)


def test_what_is_fast_enough_at_once_needs_no_other_way(routed, tmp_path):
    result, said = routed("reached(100)", "reached(120)")
    assert result.strategy == ["reached(100)"] and result.missed == 0
    assert said == [START]
    assert sorted(os.listdir(tmp_path)) == ["placed", "report.json", "route.log"]


def test_the_first_in_time_wins_and_the_other_one_ends(routed, tmp_path):
    result, said = routed("hang()", "say('me'); reached(110)", alone=0.0)
    assert result.strategy == ["say('me'); reached(110)"]
    assert said == [START, f"{START}, attempt 2"]
    assert (tmp_path / "placed").read_text() == "say('me'); reached(110)"
    assert (tmp_path / "route.log").read_text() == "me\n" and (tmp_path / "route_1.log").exists()
    assert {name for name in os.listdir(tmp_path) if not name.startswith("hangs")} == {
        "placed", "report.json", "route.log", "route_1.log",
    }


def test_what_leads_nowhere_makes_place_for_the_next(routed, tmp_path):
    result, said = routed("stuck()", "reached(100)")
    assert result.strategy == ["reached(100)"]
    assert said == [START, STUCK, f"{START}, attempt 2"]
    assert "1000 |" in (tmp_path / "route_1.log").read_text()


@pytest.mark.parametrize(
    ("ways", "kept", "missed"),
    [
        (("reached(80)", "reached(90)"), "reached(90)", ["20%", "10%"]),
        (("reached(90)", "reached(80)"), "reached(90)", ["10%", "20%"]),
        (("reached(90)", "hang()"), "reached(90)", ["10%"]),
        (("reached(90)", "sys.exit(3)"), "reached(90)", ["10%"]),
        (("stuck()", "reached(90)", "reached(100)"), "reached(90)", ["10%"]),  # there is a result: no third way
        (("reached(98)", "reached(97)", "reached(100)", "hang()"), "reached(100)", ["2%", "3%"]),  # nearly
        (("reached(97)", "reached(98)", "reached(90)"), "reached(98)", ["3%", "2%", "10%"]),
        (("reached(97)", "sys.exit(3)"), "reached(97)", ["3%"]),  # no third way
    ],
)
def test_what_misses_its_timing_is_done_once_more(routed, tmp_path, ways, kept, missed):
    result, said = routed(*ways)
    assert result.strategy == [kept]
    assert [line.removeprefix("place_route: timing missed by ") for line in said if "missed" in line] == missed
    assert (tmp_path / "placed").read_text() == kept


def test_where_the_clock_was_asked_for_a_miss_is_larger_until_it_counts(routed):
    ways = "reached(88)", "reached(87)", "reached(84)", "reached(100)"
    assert routed(*ways)[0].strategy == ["reached(88)"]
    assert routed(*ways, nearly=0.15)[0].strategy == ["reached(100)"]
    assert routed("reached(84)", "reached(83)", *ways[2:], nearly=0.15)[0].strategy == ["reached(84)"]


def test_a_quick_design_that_nearly_meets_its_clock_gets_other_seeds(routed, monkeypatch):
    seeds = ("reached(95)", "reached(101)", "hang()")
    result, said = routed("reached(93)", "reached(92)", "hang()", seeds=seeds)
    assert result.strategy == ["reached(101)"]
    assert [line for line in said if "attempt" in line] == [f"{START}, attempt {number}" for number in (2, 4, 5)]
    # Those that miss more, or took long, do not.
    assert routed("reached(91)", "reached(90)", "hang()", seeds=seeds)[0].strategy == ["reached(91)"]
    monkeypatch.setattr(routing, "QUICK_SECONDS", 0.0)
    assert routed("reached(93)", "reached(92)", "hang()", seeds=seeds)[0].strategy == ["reached(93)"]


def test_of_seeds_that_all_run_the_best_clock_is_kept(routed, tmp_path):
    """Where the first that meets its clock would do, those after it would not run."""
    result, said = routed("reached(104)", "reached(99)", "sys.exit(3)", "reached(131)", "reached(120)", every=True)
    assert result.strategy == ["reached(131)"] and result.missed == pytest.approx(-0.31)
    assert (tmp_path / "placed").read_text() == "reached(131)"
    started = {line for line in said if line.startswith(START)}
    assert started == {START, *(f"{START}, attempt {number}" for number in (2, 3, 4, 5))}
    assert routed("reached(104)", "reached(131)")[0].strategy == ["reached(104)"]
    with pytest.raises(NotRouted):
        routed("lost()", "lost()", "lost()", every=True)


def test_a_better_result_beside_one_that_misses_is_waited_for(routed):
    result, _ = routed("reached(90)", "time.sleep(0.3); reached(100)", alone=0.0)
    assert result.missed == 0


def test_where_there_is_another_design_no_third_way_is_tried(routed):
    with pytest.raises(NotRouted, match="routing does not converge, 87 wires left"):
        routed("stuck()", "stuck()", "reached(100)", alone=0.0, another=lambda: True)


def test_where_there_is_none_all_ways_are(routed):
    asked = []
    result, said = routed("stuck()", "stuck()", "reached(100)", alone=0.0, another=lambda: asked.append(1))
    assert result.strategy == ["reached(100)"] and asked == [1]
    assert said == [START, f"{START}, attempt 2", STUCK, STUCK, f"{START}, attempt 3"]


def test_the_last_way_may_take_as_long_as_it_likes(routed):
    patient = "say('Info: Routing..'); [row(n, 87) for n in range(1, 99)]; reached(100)"
    assert routed("stuck()", "stuck()", patient, alone=0.0)[0].strategy == [patient]


def test_a_tool_that_fails_before_it_places_is_an_error_at_once(routed):
    with pytest.raises(ToolError) as error:
        routed("say('no such file'); sys.exit(3)", "reached(100)")
    assert error.value.findings[0].rule == "tool-run" and not isinstance(error.value, NotRouted)
    assert "exit status must be 0, not 3" in str(error.value) and "no such file" in str(error.value)


def test_a_part_with_too_few_cells_is_told_before_placing(routed, tmp_path):
    """No other way is tried: each has as many cells. An easier design is asked for."""
    full = (
        "say('Info: Packing constants..'); say('Info: \t          ICESTORM_LC:    5280/   5280   100%'); "
        "say('Info: \t         ICESTORM_RAM:      31/     30   103%'); hang()"
    )
    asked = []
    with pytest.raises(NotRouted) as error:
        routed(full, "reached(100)", "reached(100)", another=lambda: asked.append(1))
    finding = error.value.findings[0]
    said = f"ICESTORM_RAM must be at most 30, not 31 (log: {tmp_path / 'route.log'})"
    assert (finding.rule, finding.message) == ("part-room", said)
    assert asked == [1]


def test_a_way_that_fails_later_is_followed_by_another(routed):
    result, said = routed("lost()", "reached(100)")
    assert result.strategy == ["reached(100)"]
    assert said == [START, "place_route: exit status must be 0, not 3", f"{START}, attempt 2"]


def test_the_first_that_runs_is_heard(routed):
    heard: list[PlaceRouteProgress] = []
    place = "say('Info: Routing 5 arcs.'); "
    routed("time.sleep(0.3); row(1, 4); reached(100)", place + "hang()", alone=0.0, heard=heard.append)
    assert heard == [PlaceRouteProgress("routing", 1, 4)]


def test_ways_differ_in_what_they_do():
    assert all(len({*map(tuple, (*ways, *MORE_SEEDS))}) == len(ways) + len(MORE_SEEDS) for ways in STRATEGIES.values())
    assert all(len({tuple(way) for way in ways}) == len(ways) > routing.FIRST for ways in STRATEGIES.values())
    assert [("router2" in way, "--tmg-ripup" in way) for way in STRATEGIES["ecp5"]] == [
        (False, False), (False, False), (True, True), (True, False),
    ]


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def watched(left: list[int], placing: float = 200.0, each: float = 1.0, late: int = 0):
    """At which of these numbers of wires left, ``each`` seconds apart, a watch gives up, and what it says."""
    clock = Clock()
    watch = Watch(clock)
    clock.seconds = placing
    for progress in (PlaceRouteProgress("placing", 7), PlaceRouteProgress("routing")):
        watch.hear(progress)
        assert watch.hopeless() is None
    for number, wires in enumerate(left, 1):
        clock.seconds += each
        watch.hear(PlaceRouteProgress("routing", number, wires, late))
        if reason := watch.hopeless():
            return number, reason
    return None


def test_a_router_that_says_nothing():
    clock = Clock()
    watch = Watch(clock)
    clock.seconds = 5000.0
    assert watch.hopeless() is None  # it is placing
    watch.hear(PlaceRouteProgress("routing"))
    clock.seconds += 7499.0
    assert watch.hopeless() is None
    clock.seconds += 2.0
    assert watch.hopeless() == "not routed within 7501 s"


def test_what_becomes_less_is_waited_for():
    assert watched(list(range(121_000, 0, -850))) is None  # as seen of a design that was routed
    # Of a large one a tenth is more than thirty thousand wires that are tried, of which a quarter takes others' place.
    assert watched(list(range(275_000, 0, -580)), placing=600.0) is None
    number, _ = watched([275_000 - 100 * number for number in range(300)], placing=600.0)
    assert number == 138  # by hand: 275,000 of 2,000 each, behind the first
    # The first wires are the most critical ones, of which nearly half take others' place.
    assert watched([*range(144_000, 125_000, -370), *range(125_000, 0, -700)], placing=600.0) is None
    assert watched([5000, 1800, 900, 500, 300, 200, 150, 110, 80, 60, 40, 20, 10, 5, 2, 1, 0]) is None


def test_wires_that_are_taken_from_each_other_without_end():
    assert watched([1000, 400, 100] + [87, 95, 80, 91] * 50) == (34, "routing does not converge, 80 wires left")
    creeping = [3000 - n for n in range(100)]
    assert watched(creeping) == (31, "routing does not converge, 2,970 wires left")
    assert watched([0] * 40, late=1) == (31, "routing does not converge, 1 wire left")


def test_routing_that_takes_much_longer_than_placing():
    shrinking = [int(1e9 * 0.99**n) for n in range(1000)]
    for placing, spent, report in ((200.0, 310, 31), (3.0, 70, 7)):
        reason = f"not routed within {spent} s, {shrinking[report - 1]:,} wires left"
        assert watched(shrinking, placing=placing, each=10.0) == (report, reason)


def test_routing_that_will_have_ended_soon():
    left = list(range(144_000, 0, -330))
    assert watched(left, each=1.8) is None  # 785 s, of at most 900
    number, reason = watched(left, each=3.0)  # 1,309 s: given up at the limit
    assert (number, reason) == (101, f"not routed within 303 s, {left[100]:,} wires left")
    # Where it begins to slow down, it is given up before nine hundred seconds have gone by.
    slow = [*range(144_000, 20_000, -330), *range(20_000, 0, -60)]
    number, _ = watched(slow, each=1.8)
    assert 300 < number * 1.8 < 900
