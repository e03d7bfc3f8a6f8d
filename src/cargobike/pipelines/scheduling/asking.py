"""From what a user asks for to a plan that is checked: all mistakes at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, get_args

import msgspec

from cargobike.core.errors import CargobikeError, FunctionError, InvalidInputError, nearest
from cargobike.core.registering.triggers import Trigger
from cargobike.core.values.exact import pack_exactly
from cargobike.core.values.times import Seconds
from cargobike.experiments.asking.importing import load_from_file
from cargobike.pipelines.front import check_call
from cargobike.pipelines.scheduling.plan import CatchUp, Overlap, Plan, Target
from cargobike.pipelines.scheduling.process.run_processes import fingerprint_of
from cargobike.pipelines.scheduling.times.cron import Cron
from cargobike.pipelines.scheduling.times.times import read_period
from cargobike.pipelines.scheduling.times.zones import zone_of
from cargobike.pipelines.values.code import function_place

MOST_TRIGGERS: Final = 20
MOST_ARGUMENT_BYTES: Final = 50_000

Pipeline = Callable[..., Any] | str
T = TypeVar("T")


def make_plan(
    pipeline: Pipeline,
    arguments: dict[str, Any],
    *,
    every: Seconds | None,
    cron: str | None,
    when: Trigger | Sequence[Trigger],
    overlap: str | None,
    catch_up: str | None,
    timezone: str,
    start: float,
) -> Plan:
    """Return what was asked for, checked.

    Raises:
        InvalidInputError: With everything that is wrong.
        FunctionError: If the pipeline cannot be found by another process.
    """
    target = target_of(pipeline, arguments)
    mistakes: list[str] = []
    every_s = 0.0
    if every is not None:
        every_s = _tried(mistakes, lambda: read_period(every), 0.0)
    _tried(mistakes, lambda: zone_of(timezone), None)
    if cron is not None:
        _tried(mistakes, lambda: Cron(cron), None)
    triggers = _triggers(when, mistakes)
    if every is None and cron is None and not triggers:
        mistakes.append('nothing sets it off; give every="1d", cron="0 3 * * *", or when=features.changed("teams")')
    if every is not None and cron is not None:
        mistakes.append("every= and cron= are given; give one of them, or two schedules with different names")
    if catch_up == "all" and overlap not in (None, "queue"):
        mistakes.append(f"catch_up='all' needs overlap='queue': with {overlap!r} most of what was missed would not run")
    plan_overlap: Overlap = _chosen("overlap", overlap or ("queue" if catch_up == "all" else "skip"), Overlap, mistakes)
    plan_catch_up: CatchUp = _chosen("catch_up", catch_up or "last", CatchUp, mistakes)
    if catch_up is not None and every is None and cron is None:
        mistakes.append("catch_up= is for every= and cron=; what triggers saw is never missed")
    if len(msgspec.json.encode(pack_exactly(arguments))) > MOST_ARGUMENT_BYTES:
        mistakes.append(
            f"its arguments are longer than {MOST_ARGUMENT_BYTES} bytes; write them to a file, and give that"
        )
    if mistakes:
        raise InvalidInputError(f"{target.function} cannot be scheduled so:", mistakes)
    return Plan(
        target=target,
        arguments=arguments,
        every_s=every_s,
        cron=(cron or "").strip(),
        timezone=timezone,
        when=triggers,
        overlap=plan_overlap,
        catch_up=plan_catch_up,
        start=start,
    )


def target_of(pipeline: Pipeline, arguments: dict[str, Any]) -> Target:
    """Return how another process finds a pipeline.

    Raises:
        FunctionError: If it cannot: a function of a notebook, of a prompt, or inside another function.
        InvalidInputError: If the arguments do not fit it.
    """
    function = load_from_file(pipeline) if isinstance(pipeline, str) else pipeline
    check_call(function, arguments)
    place = function_place(function)
    if isinstance(pipeline, str):
        path, _, name = pipeline.rpartition(":")
        place = f"{os.path.abspath(os.path.expanduser(path))}:{name}"
    if not place:
        title = getattr(function, "__qualname__", repr(function))
        raise FunctionError(
            f"{title} cannot be scheduled, since another process cannot import it: it is defined in a notebook, at a "
            "prompt, or inside another function. Write it at the top of a file, and schedule it from there, or with "
            "`cargobike pipelines schedule FILE.py:FUNCTION`."
        )
    where, _, name = place.rpartition(":")
    return Target(where, name, os.getcwd(), fingerprint_of(where), socket.gethostname())


def _triggers(when: Any, mistakes: list[str]) -> tuple[Trigger, ...]:
    given = [when] if isinstance(when, Trigger) or not isinstance(when, Iterable) or isinstance(when, str) else when
    triggers = []
    for one in given:
        if isinstance(one, Trigger):
            triggers.append(one)
        else:
            mistakes.append(
                f"when= has {one!r}, which is no trigger; give features.changed(…), data.arrived(…) or "
                "monitoring.drifted(…), or several in a list"
            )
    if len(triggers) > MOST_TRIGGERS:
        mistakes.append(f"when= has {len(triggers)} triggers; {MOST_TRIGGERS} are the most")
    return tuple({str(one.options) + str(one): one for one in triggers}.values())


def _chosen(name: str, given: str, kind: Any, mistakes: list[str]) -> Any:
    choices = get_args(kind)
    if given not in choices:
        mistakes.append(
            f"{name}={given!r} was given; {', '.join(map(repr, choices))} are known{nearest(given, choices)}"
        )
    return given


def _tried(mistakes: list[str], read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except CargobikeError as error:
        mistakes.append(str(error).replace("\n", "\n  "))
        return otherwise
