"""Both simulators on the handwritten designs: hand-computed timing is measured, every defect is found and named."""

import numpy as np
import pytest

from sim.result import Mismatch
from sim.vectors import Vectors
from tests.sim import designs

SIMULATORS = ["verilator", "icarus"]

# defect number: (stall, the first complaint; `*` stands for anything); the right output of `plus` for element k of all
# frames is (37 k + 256) mod 256 = 37 k mod 256.
DEFECTS = {
    1: (
        0.0,
        "m_axis: frame 2, beat 1, lane 0, element [1, 0] of 'y': must be 77, not 93 "  # 37 * 9 = 256 + 77; 77 ^ 16
        "(1 elements wrong or missing in 1 of 4 frames)",
    ),
    2: (0.5, "m_axis: frame 1, beat 2, cycle *: tvalid must stay 1 until tready, not fall to 0 [valid-dropped]"),
    3: (0.5, "m_axis: frame 1, beat 2, cycle *: tdata must not change until tready [data-changed]"),
    4: (0.0, "m_axis: frame 1, beat 2, cycle 12: tlast must be 0 in beat 2 of 4, not 1 [wrong-last]"),
    5: (
        0.0,
        "hang: no handshake for 100 cycles (at cycle 117): "  # last handshake: input beat 11, cycle 17
        "m_axis waits at frame 2, beat 1; s_axis waits at frame 3, beat 0",
    ),
    6: (0.0, "error output must stay 0, not 1 (since cycle 8)"),  # last beat of frame 0 leaves in cycle 6
    7: (
        0.0,
        "m_axis: frame 4, beat 0, cycle 28: there must be no beat after the last frame's last [surplus] (63 in all)",
    ),
    10: (
        0.0,
        "hang: no handshake for 100 cycles (at cycle 117): "  # last handshake: output beat 8, cycle 17
        "m_axis waits at frame 2, beat 1; s_axis waits at frame 2, beat 1",
    ),
    11: (0.0, "m_axis: frame 0, beat 0, cycle 0: tvalid must be 0 after reset, not 1 [valid-in-reset]"),
    12: (0.5, "m_axis: frame 1, beat 2, cycle *: tlast must not change until tready [last-changed]"),
}


@pytest.fixture(params=SIMULATORS)
def run(request):
    return request.getfixturevalue(request.param)


def test_full_rate_timing_is_the_hand_computed_one(run, plus):
    design, vectors, _ = plus
    result = run(design, vectors)
    assert result.complaints() == []
    assert result.ok
    assert (result.frames, result.mismatches, result.mismatching_frames) == (4, 0, 0)
    assert (result.latency, result.initiation_interval, result.cycles) == (3, 7, 28)
    assert result.streams["s_axis"].first == (0, 7, 14, 21)
    assert result.streams["s_axis"].last == (3, 10, 17, 24)
    assert result.streams["m_axis"].first == (3, 10, 17, 24)
    assert result.streams["m_axis"].last == (6, 13, 20, 27)
    assert (result.hang, result.error, result.first_violation) == (None, False, None)


def test_one_frame_has_no_initiation_interval(run, plus):
    design, vectors, _ = plus
    result = run(design, vectors.head(1))
    assert (result.latency, result.initiation_interval, result.cycles, result.ok) == (3, None, 7, True)


@pytest.mark.parametrize(("gap", "stall"), [(0.4, 0.0), (0.0, 0.4), (0.5, 0.5)])
def test_gaps_and_stalls_change_when_and_not_what(run, plus, gap, stall):
    design, vectors, _ = plus
    result = run(design, vectors, gap=gap, stall=stall, seed=3)
    assert result.complaints() == []
    assert result.cycles > 28
    assert (result.seed, result.stall, result.streams["m_axis"].beats) == (3, stall, 16)


@pytest.mark.parametrize("defect", sorted(DEFECTS))
def test_every_defect_is_found_and_named(run, plus, defect):
    design, vectors, set_weights = plus
    set_weights("defect.mem", f"{defect:02x}\n")
    stall, expected = DEFECTS[defect]
    result = run(design, vectors, stall=stall, watchdog=100)
    assert not result.ok
    start, _, end = expected.partition("*")
    complaint = result.complaints()[0]
    assert complaint.startswith(start) and end in complaint
    assert "*" in expected or complaint == expected or complaint.startswith(expected + " (")


@pytest.mark.parametrize("defect", [2, 3, 12])
def test_what_happens_under_backpressure_only_is_not_seen_without(verilator, plus, defect):
    design, vectors, set_weights = plus
    set_weights("defect.mem", f"{defect:02x}\n")
    assert verilator(design, vectors).ok


@pytest.mark.parametrize(
    ("defect", "expected"),
    [
        (
            8,
            "m_axis: frame 1, beat 2, cycle 12: lane 0 of tdata must be of 0 and 1, not 1101111X [unknown]",
        ),  # 37*6 = 222
        (9, "m_axis: frame 1, beat 2, cycle 12: tvalid must be 0 or 1, not X [unknown]"),
    ],
)
def test_unknown_values_are_named(icarus, plus, defect, expected):
    design, vectors, set_weights = plus
    set_weights("defect.mem", f"{defect:02x}\n")
    result = icarus(design, vectors)
    assert result.complaints() == [expected]
    assert result.mismatches == 10  # elements 6 .. 15 never came


def test_tampered_weights_are_a_mismatch(run, plus):
    design, vectors, set_weights = plus
    set_weights("addend.mem", "03\n")
    result = run(design, vectors)
    assert (result.mismatches, result.mismatching_frames) == (16, 4)
    assert result.first_mismatch == Mismatch("m_axis", 0, 0, 0, expected=0, got=2, name="y", index=(0, 0))


def test_missing_elements_count_as_mismatches(run, plus):
    design, vectors, set_weights = plus
    set_weights("defect.mem", "05\n")
    result = run(design, vectors, watchdog=50)
    assert (result.mismatches, result.mismatching_frames) == (7, 2)  # from frame 2, beat 1 on
    assert result.first_mismatch is None
    assert result.initiation_interval is None


def test_several_wide_streams_at_once(run, wide):
    design, vectors = wide
    result = run(design, vectors)
    assert result.complaints() == []
    # One beat a cycle; output 0 ends frame f in cycle 3f + 3, output 1 in cycle 2f + 2: the later one decides.
    assert (result.latency, result.initiation_interval, result.cycles) == (1, 3, 10)
    assert result.streams["m0_axis"].last == (3, 6, 9)
    assert result.streams["m1_axis"].last == (2, 4, 6)
    assert run(design, vectors, stall=0.5, seed=1).ok


def test_the_first_wrong_lane_of_a_wide_word_is_named(run, wide):
    design, vectors = wide
    spoiled = {port: array.copy() for port, array in vectors.expected.items()}
    for place in ((1, 2, 11), (1, 2, 4), (2, 0, 0)):
        spoiled["m0_axis"][place] ^= 1
    spoiled["m1_axis"][2, 1, 4] = 199
    result = run(design, Vectors(vectors.inputs, spoiled))
    want = int(spoiled["m0_axis"][1, 2, 4])
    assert result.first_mismatch == Mismatch("m0_axis", 1, 2, 4, expected=want, got=want ^ 1, name="c", index=(2, 4))
    assert (result.mismatches, result.mismatching_frames) == (4, 2)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_signed_elements_with_padding_lanes(run, narrow, stall):
    design, vectors = narrow
    result = run(design, vectors, stall=stall)
    assert result.complaints() == []
    if not stall:
        assert (result.latency, result.initiation_interval, result.cycles) == (1, 8, 25)


def test_wrong_signed_element_is_shown_with_its_place(run, narrow):
    design, vectors = narrow
    spoiled = vectors["m_axis"].copy()
    spoiled[1, 3, 0] = -16 if spoiled[1, 3, 0] != -16 else 15
    result = run(design, Vectors(vectors.inputs, {"m_axis": spoiled}))
    y = designs.narrow_data()[1]["y"]
    assert result.first_mismatch == Mismatch(
        "m_axis", 1, 3, 0, expected=int(spoiled[1, 3, 0]), got=int(y[1, 2, 0, 1]), name="y", index=(2, 0, 1)
    )
    assert result.mismatches == 1


def test_a_seed_repeats_a_run(verilator, plus):
    design, vectors, _ = plus
    once, twice, other = (verilator(design, vectors, stall=0.3, seed=seed).streams for seed in (1, 1, 2))
    assert once == twice
    assert once != other


def test_a_thousand_frames(verilator, plus):
    design, _, _ = plus
    frames = 1000
    x = np.random.default_rng(0).integers(0, 256, (frames, 4, 1))
    result = verilator(design, Vectors.of(design, {"x": x}, {"y": (x + 1) % 256}))
    assert result.ok
    assert (result.initiation_interval, result.cycles) == (7, 7 * frames)


@pytest.mark.parametrize("stall", [-0.1, 1.0])
def test_probabilities_are_checked(run, plus, stall):
    design, vectors, _ = plus
    with pytest.raises(ValueError, match=f"stall must be at least 0 and less than 1, not {stall}"):
        run(design, vectors, stall=stall)
