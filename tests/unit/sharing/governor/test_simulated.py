"""What the governor promises, in virtual time: exact, so that figures may be asserted."""

from __future__ import annotations

import pytest

from cargobike.sharing.governor.simulated.flows import Cubic, Flow, Noise, Ours, Reno
from cargobike.sharing.governor.simulated.link import Link, Run

BUSY = Noise(usual_s=0.001, pause_s=0.03, pauses_in_s=1.0)


def link(mbit: float, rtt_ms: float, buffer_ms: float, loss: float = 0.0) -> Link:
    return Link(mbit * 1e6 / 8, rtt_ms / 1e3, buffer_ms / 1e3, loss)


def assert_gives_way(at: Link, foreground: type[Flow], noise: Noise | None = None, after_s: float = 10.0) -> None:
    """From its fifth second on a flow has nine tenths of what it has alone in the same seconds of its life."""
    run = Run(at, [Ours(noise=noise), foreground(15.0, 45.0)]).advance(45 + after_s + 5)
    alone = Run(at, [foreground(0.0)]).advance(30)
    assert run.taken(5, 15)[0] >= 0.9
    assert run.taken(20, 45)[1] >= 0.9 * alone.taken(5, 30)[0]
    assert run.taken(45 + after_s, 45 + after_s + 5)[0] >= 0.8


def test_a_free_link_is_filled_and_left_within_five_seconds() -> None:
    at = link(80, 20, 300)
    assert_gives_way(at, Cubic)
    assert Run(at, [Ours(), Cubic(15.0)]).advance(25).taken(20, 25)[1] >= 0.9  # of the link, too


@pytest.mark.parametrize("buffer_ms", [5, 50, 300, 500])
@pytest.mark.parametrize("foreground", [Cubic, Reno])
def test_short_paths_are_left_whatever_the_queue(foreground: type[Flow], buffer_ms: float) -> None:
    assert_gives_way(link(80, 1, buffer_ms), foreground)


@pytest.mark.parametrize(("mbit", "rtt_ms", "buffer_ms"), [(80, 20, 50), (80, 20, 500), (10, 20, 300), (5, 50, 500)])
@pytest.mark.parametrize("noise", [None, BUSY], ids=["quiet", "busy"])
def test_longer_paths_are_left_also_when_processes_are_busy(
    mbit: float, rtt_ms: float, buffer_ms: float, noise: Noise | None
) -> None:
    assert_gives_way(link(mbit, rtt_ms, buffer_ms), Cubic, noise)


@pytest.mark.parametrize("rtt_ms", [50, 100, 200])
@pytest.mark.parametrize("buffer_ms", [50, 150, 500])
@pytest.mark.parametrize("foreground", [Cubic, Reno])
def test_a_slow_start_on_a_long_path_is_seen_before_it_ends(
    foreground: type[Flow], rtt_ms: float, buffer_ms: float
) -> None:
    assert_gives_way(link(80, rtt_ms, buffer_ms), foreground, after_s=40)


@pytest.mark.parametrize("rtt_ms", [1, 5, 20, 50, 100, 200])
@pytest.mark.parametrize("buffer_ms", [5, 50, 500])
def test_an_idle_link_is_filled(rtt_ms: float, buffer_ms: float) -> None:
    assert Run(link(80, rtt_ms, buffer_ms), [Ours()]).advance(40).taken(10, 40)[0] >= 0.9


def fairness(shares: list[float]) -> float:
    """Jain's index: 1 for equal shares."""
    return sum(shares) ** 2 / len(shares) / sum(share**2 for share in shares)


def assert_fair(at: Link, flows: list[Ours], begin_s: float, end_s: float) -> None:
    run = Run(at, flows).advance(end_s)
    shares = [share for share, flow in zip(run.taken(begin_s, end_s), flows, strict=True) if flow.ends_s > end_s]
    assert fairness(shares) >= 0.9
    assert sum(shares) >= 0.9


def test_two_transfers_share_a_link() -> None:
    assert_fair(link(80, 20, 300), [Ours(seed=1), Ours(5.0, seed=2)], 30, 60)


@pytest.mark.parametrize("rtt_ms", [1, 20, 50])
def test_four_transfers_share_a_link(rtt_ms: float) -> None:
    flows = [Ours(begin, seed=number) for number, begin in enumerate((0.0, 0.0, 10.0, 20.0))]
    assert_fair(link(80, rtt_ms, 300), flows, 60, 120)


@pytest.mark.parametrize("rtt_ms", [1, 20, 100])
def test_what_one_transfer_leaves_the_others_share(rtt_ms: float) -> None:
    flows = [Ours(seed=1), Ours(3.0, 30.0, seed=2), Ours(6.0, seed=3)]
    assert_fair(link(80, rtt_ms, 300), flows, 60, 100)


@pytest.mark.parametrize("count", [2, 4])
def test_several_transfers_give_way_together(count: int) -> None:
    flows = [Ours(2.0 * number, seed=number) for number in range(count)]
    run = Run(link(80, 20, 300), [*flows, Cubic(30.0)]).advance(45)
    assert sum(run.taken(20, 30)[:count]) >= 0.9
    assert run.taken(35, 45)[count] >= 0.9


def test_a_long_fat_link_that_loses_packets_is_used_better_than_by_tcp() -> None:
    at = link(100, 100, 100, loss=0.005)
    ours, cubic = (Run(at, [flow]).advance(20).taken(0, 20)[0] for flow in (Ours(), Cubic()))
    assert ours >= 0.8
    assert ours >= 5 * cubic


def test_a_link_that_loses_packets_is_taken_again_after_another_flow() -> None:
    run = Run(link(100, 100, 100, loss=0.005), [Ours(), Cubic(20.0, 25.0)]).advance(60)
    assert run.taken(45, 60)[0] >= 0.8


def test_tcp_in_virtual_time_behaves_like_tcp() -> None:
    shares = Run(link(80, 20, 50), [Cubic(), Cubic(5.0)]).advance(60).taken(30, 60)
    assert fairness(shares) >= 0.8
    assert sum(shares) >= 0.95
    halved = Run(link(80, 100, 1), [Reno()]).advance(20).taken(0, 20)[0]
    assert halved < 0.8  # a short queue does not carry Reno over its cuts
