"""The same joins in time on Spark: rows are read and joined by its executors.

Labels and rows of a group are put into one sequence for each key, ordered by time; each label takes the last row before
it. So a group is shuffled once, and no row meets more than its neighbours, however many labels a key has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.engines.spark.session import import_pyspark
from cargobike.features.joining.side import Side
from cargobike.features.joining.spark_reading import read_rows
from cargobike.features.joining.spine import as_times

if TYPE_CHECKING:
    from cargobike.features.queries.planning import Plan
    from cargobike.features.queries.query import Query

_ROW, _TIME, _KIND, _FOUND = "__row", "__time", "__kind", "__found"


def query(asked: Query, session: Any = None) -> Any:
    """Return the rows of a query as a Spark DataFrame, joined by Spark.

    Args:
        asked: The query.
        session: The `SparkSession`; by default the active one.

    Raises:
        InvalidInputError: If there is no session.
    """
    spark = _session(asked, session)
    plan, commits = asked.plan, asked.commits or {}
    frame = _spine(asked, spark)
    for lookup in plan.lookups:
        side = lookup.side(commits.get(lookup.group.name), plan.known_at)
        rows = read_rows(spark, side.rows, getattr(lookup.group, "url", ""), _needed(side))
        frame = _joined(frame, rows, side, has_times=bool(plan.time) or plan.now_us is not None)
    for step in asked.steps:
        frame = _limited(frame, step) if isinstance(step, int) else _fitting(frame, step)
    return frame.select([_column(name) for name in plan.output])


def _session(asked: Query, given: Any) -> Any:
    if given is not None:
        return given
    if hasattr(asked.labels, "sparkSession"):
        return asked.labels.sparkSession
    import_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = SparkSession.getActiveSession()
    if session is None:
        raise InvalidInputError(
            "There is no Spark session. Make one (SparkSession.builder.getOrCreate()), or give it: to_spark(session)."
        )
    return session


def _spine(asked: Query, spark: Any) -> Any:
    """Return the rows that values are looked up for, with their numbers and times in microseconds since 1970."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    plan: Plan = asked.plan
    if plan.rows is None and isinstance(asked.labels, pa.Table):
        table = asked.labels
        if plan.time:
            table = table.append_column(_TIME, as_times(table[plan.time], plan.time).cast(pa.int64()))
        return spark.createDataFrame(table.append_column(_ROW, pa.array(np.arange(len(table), dtype=np.int64))))
    if plan.rows is None:
        frame = asked.labels
    else:
        rows = plan.rows.dataset((asked.commits or {}).get(plan.rows.name))
        needed = [*plan.rows.definition.key, *([plan.time] if plan.time else [])]
        needed += [key for lookup in plan.lookups for key in lookup.on]
        columns = {name: name for name in needed} | plan.own
        read = read_rows(spark, rows, getattr(plan.rows, "url", ""), list(dict.fromkeys(columns.values())))
        frame = read.select([_column(own).alias(name) for name, own in columns.items()])
    if plan.time:
        frame = frame.withColumn(_TIME, _microseconds(plan.time, dict(frame.dtypes)[plan.time]))
    elif plan.now_us is not None:
        frame = frame.withColumn(_TIME, f.lit(plan.now_us))
    return frame.withColumn(_ROW, f.monotonically_increasing_id())


def _needed(side: Side) -> list[str]:
    """Return the columns of a group that a join reads."""
    moments = [name for name in (side.event_time, side.known_at) if name]
    return list(dict.fromkeys([*side.key, *moments, *side.columns.values()]))


def _joined(frame: Any, rows: Any, side: Side, *, has_times: bool) -> Any:
    """Return rows with the values of one side; see `Side` for which."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    keys = [f"__k{number}" for number in range(len(side.key))]
    times = f.unix_micros(_column(side.event_time)) if side.event_time else f.lit(None).cast("bigint")
    known = f.unix_micros(_column(side.known_at)) if side.known_at else None
    found = f.struct(times.alias("t"), *[_column(own).alias(f"c{n}") for n, own in enumerate(side.columns.values())])
    own = [_column(own).alias(key) for key, own in zip(keys, side.key, strict=True)]
    names = frame.columns
    labels = frame
    for key, name in zip(keys, side.on, strict=True):
        labels = labels.withColumn(key, _column(name).cast(dict(rows.dtypes)[side.key[keys.index(key)]]))
    if not side.event_time or not has_times:
        given = rows.select(*own, found.alias(_FOUND), *([known.alias("__known")] if known is not None else []))
        same = [labels[key].eqNullSafe(given[key]) & labels[key].isNotNull() for key in keys]
        if known is not None and has_times:
            same.append(given["__known"] <= labels[_TIME])
        joined = labels.join(given, _all(same), "left").select(*[labels[name] for name in names], given[_FOUND])
        return _unpacked(joined, names, side)
    since = times if known is None else f.greatest(times, known)
    moment = times if known is None else known
    candidates = rows.select(
        *own, since.alias(_TIME), times.alias("__at"), found.alias(_FOUND), moment.alias("__known")
    )
    if known is not None:
        order = Window.partitionBy(*keys).orderBy(_TIME, "__at")
        before = order.rowsBetween(Window.unboundedPreceding, -1)
        candidates = (
            candidates.filter(f.col("__known").isNotNull())
            .withColumn("__best", f.max("__at").over(before))
            .withColumn("__next", f.lead(_TIME).over(order))
            .filter(f.col("__best").isNull() | (f.col("__at") >= f.col("__best")))
            .filter(f.col("__next").isNull() | (f.col("__next") != f.col(_TIME)))
        )
    packed = f.struct(*[_column(name) for name in names])
    left = labels.select(*keys, _TIME, f.lit(1).alias(_KIND), packed.alias("__label"), f.lit(None).alias(_FOUND))
    kind = dict(left.dtypes)["__label"]
    right = candidates.select(*keys, _TIME, f.lit(0).alias(_KIND), f.lit(None).cast(kind).alias("__label"), _FOUND)
    sequence = Window.partitionBy(*keys).orderBy(f.col(_TIME).asc_nulls_first(), _KIND)
    last = f.last(_FOUND, ignorenulls=True).over(sequence.rowsBetween(Window.unboundedPreceding, 0))
    together = left.withColumn(_FOUND, f.col(_FOUND).cast(dict(right.dtypes)[_FOUND])).unionByName(right)
    answered = together.withColumn(_FOUND, last).filter(f.col(_KIND) == 1)
    fits = _all([f.col(key).isNotNull() for key in keys]) & f.col(_TIME).isNotNull()
    if side.ttl_us is not None:
        fits = fits & (f.col(_TIME) - f.col(f"{_FOUND}.t") <= side.ttl_us)
    answered = answered.select("__label.*", f.when(fits, f.col(_FOUND)).alias(_FOUND))
    return _unpacked(answered, names, side)


def _unpacked(frame: Any, names: list[str], side: Side) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415

    values = [f.col(f"{_FOUND}.c{number}").alias(name) for number, name in enumerate(side.columns)]
    return frame.select(*[_column(name) for name in names], *values)


def _fitting(frame: Any, condition: Any) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415

    if condition.text:
        frame = frame.filter(condition.text)
    for name, value in condition.equal:
        frame = frame.filter(_column(name).eqNullSafe(f.lit(value)))
    return frame


def _limited(frame: Any, rows: int) -> Any:
    return frame.orderBy(_ROW).limit(rows)


def _microseconds(name: str, kind: str) -> Any:
    """Return times as microseconds since 1970; what has no time zone is UTC."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    if kind == "timestamp":
        return f.unix_micros(_column(name))
    quoted = "`" + name.replace("`", "``") + "`"
    start = "timestamp_ntz'1970-01-01 00:00:00'"
    return f.expr(f"timestampdiff(MICROSECOND, {start}, cast({quoted} AS timestamp_ntz))")


def _column(name: str) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415

    return f.col("`" + name.replace("`", "``") + "`")


def _all(conditions: list[Any]) -> Any:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole
