"""The controller stays within bounds whatever it sees, and does what each phase promises."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.sharing.governor.controller import RETURN, START, STEADY, YIELD, Controller, Look
from cargobike.sharing.governor.delays import MOST_TARGET_S, Counts, Delays
from cargobike.sharing.governor.thresholds import LEAST_FLOOR, MOST_FLOOR

TICK_S = 0.02

LOOKS = st.lists(
    st.builds(
        lambda *values: values,
        st.floats(0.0, 2.0),
        st.none() | st.floats(0.0, 3.0),
        st.integers(0, 10**8),
        st.integers(0, 10**5),
        st.integers(0, 10**5),
        st.booleans(),
        st.integers(0, 65_483),
    ),
    max_size=60,
)


@settings(max_examples=60)
@given(LOOKS)
def test_the_rate_is_finite_and_never_below_the_trickle(
    looks: list[tuple[float, float | None, int, int, int, bool, int]],
) -> None:
    controller, now = Controller(), 0.0
    for elapsed, *rest in looks:
        now += elapsed
        rate = controller.observe(Look(now, *rest))  # type: ignore[arg-type]
        assert math.isfinite(rate)
        assert rate >= LEAST_FLOOR


def test_two_looks_at_one_moment_say_nothing_about_a_rate() -> None:
    counts = Counts()
    for now in (0.0, 5e-324):
        counts.add(now, 10**8, 1, 0, 0.1)
    assert counts.delivered_rate == 0.0
    counts.add(0.1, 10**6, 1, 0, 0.1)
    assert counts.delivered_rate == pytest.approx(1e7)


def drive(controller: Controller, begin_s: float, seconds: float, rtt_s: float, capacity: float = 1e7) -> float:
    """Let a path with a constant round trip deliver what is sent, up to a capacity; return the last moment."""
    ticks = round(seconds / TICK_S)
    for tick in range(1, ticks + 1):
        delivered = round(min(controller.rate, capacity) * TICK_S)
        controller.observe(Look(begin_s + tick * TICK_S, rtt_s, delivered, delivered // 1448))
    return begin_s + ticks * TICK_S


@given(st.floats(0.001, 0.2))
@settings(max_examples=10)
def test_a_queue_that_stays_is_left_to_others_and_an_empty_one_is_taken_again(rtt_s: float) -> None:
    controller = Controller()
    now = drive(controller, 0.0, 8 * max(0.1, rtt_s), rtt_s)
    assert controller.rate > 5e6
    now = drive(controller, now, 10 * (rtt_s + 0.2) + 1, rtt_s + 0.2)
    assert controller.phase == YIELD
    assert controller.rate <= MOST_FLOOR
    drive(controller, now, 20 + 20 * rtt_s, rtt_s)
    assert controller.phase != YIELD
    assert controller.rate > 10 * MOST_FLOOR


def test_a_start_doubles_until_a_queue_shows() -> None:
    controller = Controller()
    now = drive(controller, 0.0, 0.5, 0.02)
    assert controller.phase == START
    assert controller.rate >= 2**3 * 500_000
    drive(controller, now, 0.3, 0.08)
    assert controller.phase != START


def test_a_start_goes_on_while_what_arrives_still_grows_and_ends_when_it_does_not() -> None:
    controller, now, delivered = Controller(), 0.0, 20_000.0
    for _ in range(100):  # a path that follows slowly, as a window that has to open
        now += TICK_S
        delivered = min(1.05 * delivered, 1e7)
        controller.observe(Look(now, 0.005, round(delivered * TICK_S), 10))
    assert controller.phase == START
    drive(controller, now, 1.0, 0.005, capacity=delivered)
    assert controller.phase == STEADY
    assert controller.rate < 2 * delivered


def test_a_confirmation_that_waits_for_our_next_packets_is_no_queue() -> None:
    """A window of ten packets opens on a path of 100 ms: much less is sent than the rate allows."""
    controller, now, delivered = Controller(), 0.0, 2_000.0
    for tick in range(35):
        now, delivered = now + TICK_S, 1.05 * delivered
        controller.observe(Look(now, 0.1 if tick < 15 else 0.109, round(delivered), 4))
        assert controller.phase == START
    drive(controller, now, 1.0, 0.1)
    assert controller.rate > 5e6


def test_what_a_start_has_sent_too_much_is_not_taken_for_another_flow() -> None:
    controller, now = Controller(), 0.0
    while controller.phase == START:
        now = drive(controller, now, TICK_S, 0.1, capacity=6e6)
    for tick in range(1, 6):
        controller.observe(Look(now + tick * TICK_S, 0.1 + 0.004 * tick, round(6e6 * TICK_S), 84))
        assert controller.phase == STEADY


def test_a_line_that_always_loses_some_packets_is_taken_again_in_spite_of_them() -> None:
    for usual, loses in ((2, True), (0, False)):
        controller = Controller()
        now = drive(controller, 0.0, 3.0, 0.1)
        for tick in range(1, 200):
            controller.observe(Look(now + tick * TICK_S, 0.1, round(1e7 * TICK_S), 140, usual if tick % 3 == 0 else 0))
        now += 200 * TICK_S
        now = drive(controller, now, 4.0, 0.3)
        assert controller.phase == YIELD
        while controller.phase != RETURN:
            now = drive(controller, now, TICK_S, 0.1)
        now = drive(controller, now, 1.0, 0.1)
        assert controller.phase == RETURN
        controller.observe(Look(now + TICK_S, 0.1, 20_000, 140, 3))
        assert (controller.phase == RETURN) == loses


def test_a_queue_that_grows_faster_than_we_rise_is_left_at_once_on_a_long_path() -> None:
    for rtt_s, phase in ((0.1, YIELD), (0.005, STEADY)):
        controller = Controller()
        now = drive(controller, 0.0, 4.0, rtt_s)
        assert controller.phase == STEADY
        for tick in range(1, 5):
            controller.observe(Look(now + tick * TICK_S, rtt_s + 0.004 * tick, round(1e7 * TICK_S), 140))
        assert controller.phase == phase


def test_what_was_no_flow_makes_wary_and_the_link_is_taken_again_soon() -> None:
    controller = Controller()
    now = drive(controller, 0.0, 4.0, 0.1)
    for attempt in range(2):
        for tick in range(1, 5):
            controller.observe(Look(now + tick * TICK_S, 0.1 + 0.002 * tick, round(1e7 * TICK_S), 140))
        assert controller.phase == (YIELD if attempt == 0 else STEADY)
        now = drive(controller, now + 4 * TICK_S, 20.0, 0.1)
        assert controller.rate > 5e6


def test_what_a_program_does_not_send_does_not_raise_its_rate() -> None:
    controller = Controller()
    for tick in range(500):
        controller.observe(Look(tick * TICK_S, 0.02, 1000, 1, has_more=False))
    assert controller.rate == 500_000


def test_losses_count_as_a_queue_that_is_too_short_to_be_seen() -> None:
    controller = Controller()
    now = drive(controller, 0.0, 1.0, 0.02)
    before = controller.rate
    for tick in range(1, 40):
        delivered = round(min(controller.rate, 1e7) * TICK_S)
        controller.observe(Look(now + tick * TICK_S, 0.02, delivered, 140, 14))
    assert controller.rate < before


def test_chance_losses_of_a_long_line_do_not_count() -> None:
    controller = Controller()
    now = drive(controller, 0.0, 0.4, 0.02)
    for tick in range(1, 200):
        delivered = round(min(controller.rate, 1e7) * TICK_S)
        controller.observe(Look(now + tick * TICK_S, 0.02, delivered, 140, 1 if tick % 2 else 0))
    assert controller.phase in (START, STEADY)
    assert controller.rate > 5e6


def test_a_short_pause_of_a_process_is_not_a_queue() -> None:
    delays = Delays()
    for tick in range(100):
        delays.add(tick * TICK_S, 0.06 if tick % 20 in (0, 1) else 0.01)
        assert delays.queueing_s <= delays.target_s <= MOST_TARGET_S


def test_the_shortest_round_trip_is_forgotten_after_ten_minutes() -> None:
    delays = Delays()
    delays.add(0.0, 0.01)
    for second in range(1, 600):
        delays.add(float(second), 0.05)
    assert delays.base_s == 0.01
    for second in range(600, 700):
        delays.add(float(second), 0.05)
    assert delays.base_s == 0.05
