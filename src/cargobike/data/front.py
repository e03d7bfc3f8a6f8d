"""The functions that users call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal


def inference(
    predict: Callable[..., Any],
    data: Any,
    *,
    form: Literal["pandas", "arrow"] = "pandas",
    output: str | None = None,
    batch_size: int | None = None,
) -> Any:
    """Predict for every row of a Spark DataFrame, on its executors; rows keep their number and order.

    Args:
        predict: A function that takes a batch of rows and returns one value for each: a list, an array, a tensor, a
            dict of columns or a table. Or a class whose objects do: one is made per task, for models that take long
            to load.
        data: A Spark DataFrame.
        form: What a batch is: a pandas DataFrame (`"pandas"`) or an Arrow record batch (`"arrow"`).
        output: Names and types of what predict returns, such as `"label int, score double"`; by default some rows are
            tried to find out.
        batch_size: Most rows in a batch; by default Spark decides.

    Returns:
        The DataFrame with the new columns; `prediction` if predict returns no names. As always in Spark, it is computed
        when it is used.

    Raises:
        InvalidInputError: If something given cannot be used.
    """
    from cargobike.data.inference import infer  # noqa: PLC0415 - only a Spark DataFrame needs it

    return infer(predict, data, form=form, output=output, batch_size=batch_size)
