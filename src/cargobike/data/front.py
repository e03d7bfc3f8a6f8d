"""The functions that users call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.times import Seconds, read_seconds


def inference(
    predict: Callable[..., Any],
    data: Any,
    *,
    form: Literal["pandas", "arrow"] = "pandas",
    output: str | None = None,
    batch_size: int | None = None,
    output_to: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    timeout_s: Seconds | None = None,
    quiet: bool = False,
) -> Any:
    """Predict for every row of a source, on workers of this machine or Spark's executors; rows keep number and order.

    Without Spark, what is finished is kept until all of it is: a call that was killed, and is made again, goes on.

    Args:
        predict: A function that takes a batch of rows and returns one value for each: a list, an array, a tensor, a
            dict of columns or a table. Or a class whose objects do: one is made per task, for models that take long
            to load.
        data: Anything that has rows: a table that was written or its name, a path, glob, folder or address, a pandas
            or polars DataFrame, an Arrow table, a dict of arrays, a `Loader`; or a Spark DataFrame, also a streaming
            one, which needs `output`.
        form: What a batch is: a pandas DataFrame (`"pandas"`) or an Arrow record batch (`"arrow"`).
        output: Names and types of what predict returns, such as `"label int, score double"`; by default some rows are
            tried to find out, and without Spark all of them.
        batch_size: Most rows in a batch; by default 4096, with Spark what it decides.
        output_to: Where the table of results goes: a name in the project, a path or an address. By default a new
            version of a table that is named after predict; with Spark it stays a DataFrame.
        workers: How many processes predict at once; one per core by default, or per GPU where there are any, which are
            shared by more; 0 for this process. Not with Spark.
        timeout_s: How long a piece of some ten thousand rows may take before its process is ended. Not with Spark.
        quiet: Show no progress.

    Returns:
        The `Table` with the rows and the new columns; `prediction` if predict returns no names. `to_pandas()` reads it
        whole. For a Spark DataFrame a DataFrame, which is computed when it is used, unless `output_to` is given.

    Raises:
        InvalidInputError: If something given cannot be used.
        PredictionError: If predict fails: its own traceback, and the row.
        EngineError: If the processes that predict die again and again.

    Example:
        >>> from cargobike import experiment
        >>> table = experiment.inference(lambda rows: rows["x"] * 2, {"x": [1.0, 2.0]}, workers=0, quiet=True)
        >>> table.to_pandas()["prediction"].tolist()
        [2.0, 4.0]
    """
    mistakes = []
    function: object = predict
    if not callable(function):
        mistakes.append(f"predict={function!r} was given; give a function, or a class whose objects are called.")
    if form not in ("pandas", "arrow"):
        mistakes.append(f"form={form!r} was given; allowed are 'pandas' and 'arrow'.")
    if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
        mistakes.append(f"batch_size={batch_size!r} was given; a batch has at least one row.")
    if workers is not None and (type(workers) is not int or workers < 0):
        mistakes.append(f"workers={workers!r} was given; give a whole number, 0 for this process.")
    if mistakes:
        raise InvalidInputError("Inference cannot begin.", mistakes)
    if hasattr(data, "mapInArrow"):
        from cargobike.data.inference import infer  # noqa: PLC0415 - only a Spark DataFrame needs it

        frame = infer(predict, data, form=form, output=output, batch_size=batch_size)
        return frame if output_to is None else _write(frame, output_to)
    from cargobike.data.inferring.front import infer_locally  # noqa: PLC0415 - only this kind of inference needs it

    return infer_locally(
        predict,
        data,
        form=form,
        output=output,
        batch_size=batch_size,
        output_to=output_to,
        workers=workers,
        timeout_s=read_seconds("timeout_s", timeout_s),
        quiet=quiet,
    )


def _write(frame: Any, output_to: str | os.PathLike[str]) -> Any:
    from cargobike.data.tables.writing import write  # noqa: PLC0415 - only if a DataFrame is to become a table

    return write(frame, output_to)
