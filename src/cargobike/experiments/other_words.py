"""What other tools call the arguments of ours, so that a call in their words is answered in ours."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cargobike.core.errors import SignatureError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
T = TypeVar("T")

_WORDS = {
    "num_trials": ("n_trials", "num_samples", "max_trials", "max_evals", "n_iter", "trials", "budget"),
    "workers": ("n_jobs", "num_workers", "n_workers", "max_concurrent_trials", "num_proc", "nproc_per_node", "np"),
    "direction": ("mode", "goal", "maximize", "minimize", "directions"),
    "metric": ("objective", "optimization_key", "monitor", "score"),
    "timeout_s": ("timeout", "time_budget_s", "time_limit", "max_time"),
    "trial_timeout_s": ("trial_timeout",),
    "space": ("searchspace", "search_space", "param_space", "config", "hparams", "distributions"),
    "params": ("kwargs", "arguments", "train_loop_config"),
    "optimizer": ("sampler", "search_alg", "algo", "tuner", "strategy"),
    "early_stop": ("pruner", "scheduler", "es_policy", "stopping_rule", "early_stopping"),
    "start_points": ("points_to_evaluate", "enqueue", "initial_points"),
    "max_failures": ("max_failed_trials",),
    "resources": ("resources_per_trial", "resources_per_worker"),
    "gang": ("world_size", "ranks"),
    "seed": ("random_state", "random_seed"),
    "quiet": ("verbose", "show_progress_bar", "progress"),
    "versioned_resources": ("artifacts",),
    "callbacks": ("callback",),
}
"""Our names, and words of Optuna, Ray, Hyperopt, scikit-learn, torchrun, Maggy and Horovod for the same."""


def explains_other_words(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function refuse arguments that it does not have by naming those that were meant."""
    code = function.__code__
    first = code.co_varnames[: code.co_argcount]
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            raise _refusal(function.__name__, unknown, known)
        if len(args) > len(first):
            raise SignatureError(
                f"{function.__name__}() takes {' and '.join(first)} without a name, and {len(args)} things were given "
                f"so; name the others: {', '.join(known[len(first) :])}."
            )
        return function(*args, **kwargs)

    return called


def _refusal(function: str, unknown: Iterable[str], known: tuple[str, ...]) -> Exception:
    ours = {other: name for name, others in _WORDS.items() for other in others if name in known}
    mistakes = [
        f"{word!r}: here it is called {ours[word]!r}" if word in ours else f"{word!r} is unknown.{nearest(word, known)}"
        for word in unknown
    ]
    return SignatureError(f"{function}() has no such arguments; it has {', '.join(known)}.", mistakes)
