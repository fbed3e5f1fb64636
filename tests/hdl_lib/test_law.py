"""The law itself against schedules worked out by hand."""

from tests.hdl_lib.law import Process, cycles


def test_two_credits_sustain_one_beat_a_cycle():
    assert cycles(Process([(True, True)] * 4, depth=2, latency=1)) == ([0, 1, 2, 3], [1, 2, 3, 4])


def test_one_credit_comes_back_the_cycle_after_the_handshake():
    assert cycles(Process([(True, True)] * 3, depth=1, latency=3)) == ([0, 4, 8], [3, 7, 11])


def test_a_step_that_produces_nothing_needs_no_credit():
    steps = [(True, False), (True, True)] * 2
    assert cycles(Process(steps, depth=1, latency=5)) == ([0, 1, 2, 7], [6, 12])


def test_a_slow_process_holds_back_the_one_before_it():
    fast = Process([(True, True)] * 4, depth=1, latency=1)
    slow = Process([(True, True), (False, True)] * 4, depth=2, latency=1)
    # The slow one takes at 1, 3, 5, 7; the fast one's only credit is back a cycle later.
    assert cycles(fast, slow) == ([0, 2, 4, 6], [2, 3, 4, 5, 6, 7, 8, 9])
