"""What was asked for, as data: whole in the first line of a journal, and lifted from lines of version 1."""

from __future__ import annotations

import msgspec
import pytest

from cargobike.core.asked import Aim, Asked, Feeding, Gang, Keeping, Limits, Named, Placement, Search
from cargobike.core.facts import EXPERIMENT_FACTS, JOURNAL_VERSION, ExperimentStarted, decode_header, encode_fact
from cargobike.core.records import Resources

EVERYTHING = Asked(
    name="digits",
    description="a try",
    function="train.py:train",
    reproduces="20270101-000000-aaaa",
    search=Search(
        space=[{"name": "x", "type": "DOUBLE", "low": 0.0, "high": 1.0}],
        params={"x": 1},
        optimizer=Named("asha", settings={"reduction_factor": 4, "searchspace": None}),
        stop_rules=(Named("median", settings={"interval": 2}), Named("Mine", path="script:Mine")),
        num_trials=5,
        start_points=({"x": 0.5},),
        warm_start=("20270101-000000-bbbb",),
        seed=7,
        deterministic=True,
        repeats=3,
    ),
    aim=Aim(direction="min", metric="loss", objectives={"a": "max", "b": "min"}, constraints=("latency <= 50",)),
    placement=Placement(
        workers=4,
        gang=Gang(size=2, least=1, servers=1, roles=("chief", "worker"), is_distributed=True, options={"staleness": 8}),
        engine="spark",
        resources=Resources(cpus=2, gpus=0.5),
        isolation="reuse",
    ),
    limits=Limits(timeout_s=60.0, trial_timeout_s=5.0, stall_timeout_s=1.0, max_failures=3),
    keeping=Keeping(
        durability="power",
        working_directory="launch",
        versioned_resources=("a.csv",),
        tensorboard=True,
        data="data/1",
    ),
    feeding=Feeding(
        source="hdfs://h/t",
        version="3",
        fingerprint="abc",
        rows=7,
        options={"batch_size": 32},
        kind="dataset",
        part="train",
    ),
)


def test_everything_comes_back_from_a_journal() -> None:
    header = ExperimentStarted(at=1.0, id="x", asked=EVERYTHING, cargobike="1", user="u", host="h", pid=3)
    again = EXPERIMENT_FACTS.decode(encode_fact(header))
    assert again == header
    assert header.version == JOURNAL_VERSION


def test_this_test_leaves_no_field_at_its_default() -> None:
    """A field that is added to the record is to be added above."""

    def check(record: msgspec.Struct, plain: msgspec.Struct) -> None:
        for name in record.__struct_fields__:
            value, default = getattr(record, name), getattr(plain, name)
            assert value != default, f"{type(record).__name__}.{name}"
            if isinstance(value, msgspec.Struct) and isinstance(default, msgspec.Struct):
                check(value, default)

    check(EVERYTHING, Asked())


def test_what_is_not_asked_for_takes_no_room() -> None:
    assert len(encode_fact(ExperimentStarted(at=1.0, id="x", asked=Asked(name="n")))) < 150


def test_settings_hold_every_part_of_the_record() -> None:
    """Each leaf of the record changes some setting: nothing that was asked for is kept from `compare`."""
    plain = Asked().settings()
    groups = ("search", "aim", "placement", "limits", "keeping", "feeding")
    changed = 0
    for group in groups:
        filled = getattr(EVERYTHING, group)
        for name in filled.__struct_fields__:
            part = msgspec.structs.replace(getattr(Asked(), group), **{name: getattr(filled, name)})
            assert msgspec.structs.replace(Asked(), **{group: part}).settings() != plain, name
            changed += 1
    assert changed > 20
    settings = EVERYTHING.settings()
    assert settings["optimizer.reduction_factor"] == 4
    assert settings["early_stop"] == ["median(interval=2)", "Mine()"]
    assert settings["options.staleness"] == 8
    assert settings["data.batch_size"] == 32
    assert settings["reproduces"] == "20270101-000000-aaaa"


FLAT = b"""{"fact":"experiment-started","at":1.5,"id":"20270101-000000-aaaa","name":"digits","cargobike":"0.1",
"description":"d","function":"train.py:train","space":[{"name":"x"}],"optimizer":"asha","num_trials":9,
"direction":"min","metric":"loss","constraints":["latency <= 50"],"warm_start":["old"],"seed":3,"workers":4,"gang":2,
"engine":"spark","isolation":"reuse","deterministic":true,"user":"u","host":"h","pid":7}"""


def test_the_first_line_of_version_1_is_lifted_into_a_record() -> None:
    header = decode_header(FLAT)
    assert (header.version, header.at, header.id, header.cargobike) == (1, 1.5, "20270101-000000-aaaa", "0.1")
    assert (header.user, header.host, header.pid) == ("u", "h", 7)
    asked = header.asked
    assert (asked.name, asked.description, asked.function) == ("digits", "d", "train.py:train")
    assert asked.search.optimizer == Named("asha")
    assert (header.num_trials, header.seed, header.deterministic, header.warm_start) == (9, 3, True, ("old",))
    assert (header.direction, header.metric, header.constraints) == ("min", "loss", ("latency <= 50",))
    assert (header.workers, header.gang, header.engine, header.isolation) == (4, 2, "spark", "reuse")
    assert header.space == [{"name": "x"}]


def test_a_lifted_line_is_written_in_the_new_form_and_read_again() -> None:
    header = decode_header(FLAT)
    assert decode_header(encode_fact(header).decode()) == header


def test_a_first_line_that_is_neither_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        EXPERIMENT_FACTS.decode(b'{"fact":"experiment-started","at":1.0}')
    with pytest.raises(msgspec.ValidationError, match="asked"):
        EXPERIMENT_FACTS.decode(b'{"fact":"experiment-started","at":1.0,"id":"x","asked":{"search":{"seed":"high"}}}')
    with pytest.raises(msgspec.ValidationError, match="begins with"):
        decode_header(b'{"fact":"trial-paused","at":1.0,"trial":0}')


@pytest.mark.parametrize(
    ("written", "kind", "source", "version", "part"),
    [
        ({"source": "points:3", "version": "3"}, "table", "points", "3", ""),
        ({"source": "team_value:2/train", "version": "1"}, "dataset", "team_value", "2", "train"),
        ({"source": "/data/rows.parquet"}, "", "/data/rows.parquet", "", ""),
        ({"source": "a table in memory"}, "", "a table in memory", "", ""),
        ({"source": "s3://host:9000/t", "version": "1"}, "", "s3://host:9000/t", "1", ""),
        ({"source": "points:3", "version": "3", "kind": "table"}, "table", "points:3", "3", ""),
        ({}, "", "", "", ""),
    ],
)
def test_what_older_journals_say_about_data_is_read_as_it_was_meant(
    written: dict[str, str], kind: str, source: str, version: str, part: str
) -> None:
    """They had name, version and part of the data in one text, and the version once more beside it."""
    line = {"fact": "experiment-started", "at": 1.0, "id": "x", "version": 3, "asked": {"feeding": written}}
    feeding = decode_header(msgspec.json.encode(line)).asked.feeding
    assert (feeding.kind, feeding.source, feeding.version, feeding.part) == (kind, source, version, part)
