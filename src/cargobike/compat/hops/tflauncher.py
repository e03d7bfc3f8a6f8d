"""`hops.tflauncher`: what `hops.experiment` was called in 2017."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cargobike.compat.hops import experiment
from cargobike.compat.noticing import formerly

__all__ = ["launch"]


@formerly("hops.tflauncher.launch")
def launch(
    spark_session: object, map_fun: Callable[..., Any], args_dict: Mapping[str, Sequence[Any]] | None = None
) -> Any:
    """Run a train function once, or once for each row of equally long lists, and return the path of what was kept."""
    return experiment.launch(map_fun, args_dict, spark=spark_session)
