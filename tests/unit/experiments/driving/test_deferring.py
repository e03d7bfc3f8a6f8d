"""Ctrl-C while the driver and the train function take turns."""

from __future__ import annotations

import signal
import threading

import pytest

from cargobike.experiments.driving.deferring import Deferring


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_comes_at_once_outside_of_what_is_deferred() -> None:
    with Deferring(), pytest.raises(KeyboardInterrupt):
        press()


def test_an_interrupt_waits_for_the_end_of_the_outermost_block() -> None:
    done = []

    def work(deferring: Deferring) -> None:
        with deferring.deferred():
            with deferring.deferred():
                press()
                done.append("inner")
            done.append("outer")
        done.append("never")

    with Deferring() as deferring, pytest.raises(KeyboardInterrupt):
        work(deferring)
    assert done == ["inner", "outer"]


def test_a_second_interrupt_does_not_wait() -> None:
    done = []

    def work() -> None:
        press()
        done.append("first")
        press()
        done.append("never")

    with Deferring() as deferring, pytest.raises(KeyboardInterrupt), deferring.deferred():
        work()
    assert done == ["first"]


def test_an_interrupt_is_delivered_once() -> None:
    with Deferring() as deferring:
        with pytest.raises(KeyboardInterrupt), deferring.deferred():
            press()
        with deferring.deferred():
            pass


def test_the_handler_of_the_program_is_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with Deferring() as deferring, deferring.deferred():
            press()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_other_threads_defer_nothing() -> None:
    done = []

    def work() -> None:
        with Deferring() as deferring, deferring.deferred():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert done == [signal.getsignal(signal.SIGINT)]
