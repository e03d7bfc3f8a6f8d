"""What an assistant can call: the shape of its arguments, the role that it needs, and what it does with commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.registering.afar import ROLES, RoleName
from cargobike.remote.mcp.running import Launched, Runner
from cargobike.remote.mcp.shapes import (
    TAIL_LINES,
    CancelCommand,
    CompareExperiments,
    ExplainFailure,
    ExplainLineage,
    FollowCommand,
    LaunchExperiment,
    LaunchPipeline,
    ListObjects,
    ModelCard,
    ReadLogs,
    ReadObject,
    ReadTrial,
    RunCommand,
    Search,
    TableHead,
)

LONGEST_TEXT: Final = 60_000
_READ_S: Final = 120.0
_FIRST_S: Final = 15.0
_MOST_HITS: Final = 20

LISTS: Final = {
    "experiments": ("ls", "--limit=0", "--json"),
    "tables": ("data", "ls", "--json"),
    "feature_groups": ("features", "ls", "--json"),
    "feature_views": ("features", "views", "--json"),
    "training_datasets": ("features", "datasets", "--json"),
    "models": ("models", "ls", "--json"),
    "deployments": ("deployments", "ls", "--json"),
    "monitors": ("monitor", "ls", "--json"),
    "pipeline_runs": ("pipelines", "ls", "--all", "--json"),
    "schedules": ("pipelines", "schedules", "ls", "--json"),
}
READS: Final = {
    "experiment": ("show",),
    "table": ("data", "show"),
    "feature": ("features", "show"),
    "model": ("models", "show"),
    "deployment": ("deployments", "show"),
    "monitor": ("monitor", "show"),
    "pipeline_run": ("pipelines", "show"),
    "schedule": ("pipelines", "schedules", "show"),
    "publication": ("share", "show"),
}


class Tool(NamedTuple):
    """Something that an assistant can call."""

    name: str
    arguments: type[msgspec.Struct]
    role: RoleName
    call: Callable[[Any, Runner, threading.Event], str]

    def described(self) -> dict[str, Any]:
        """Return how it is described to a client."""
        schema = msgspec.json.schema(self.arguments)["$defs"][self.arguments.__name__]
        schema.pop("description", None)
        words = " ".join((self.arguments.__doc__ or "").split())
        hints = {"readOnlyHint": self.role == "read", "destructiveHint": self.role != "read", "openWorldHint": False}
        return {"name": self.name, "description": words, "inputSchema": schema, "annotations": hints}


def tools_for(role: RoleName) -> dict[str, Tool]:
    """Return the tools that a session with a role has, by name."""
    return {tool.name: tool for tool in _TOOLS if ROLES.index(tool.role) <= ROLES.index(role)}


def call_tool(tool: Tool, given: object, runner: Runner, cancelled: threading.Event) -> str:
    """Call a tool with what an assistant gave it.

    Raises:
        InvalidInputError: If that does not fit.
        CargobikeError: If it cannot be done; the words are for the assistant.
    """
    try:
        arguments = msgspec.convert(given, tool.arguments)
    except msgspec.ValidationError as error:
        names = ", ".join(tool.arguments.__struct_fields__)
        raise InvalidInputError(f"{tool.name} cannot be called like this: {error}. It takes {names}.") from error
    return shortened(tool.call(arguments, runner, cancelled))


def shortened(text: str) -> str:
    """Return a text that an assistant can read in one go; what is left out is said."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n… {len(text) - LONGEST_TEXT} characters left out …\n{text[-half:]}"


def _printed(runner: Runner, arguments: Sequence[str], cancelled: threading.Event, fine: Collection[int] = (0,)) -> str:
    finished = runner.run(arguments, timeout_s=_READ_S, cancelled=cancelled)
    if finished.exit_code not in fine:
        said = (finished.err + finished.out).strip()
        raise InvalidInputError(said or f"`cargobike {' '.join(arguments)}` ended with exit code {finished.exit_code}.")
    return finished.out


def _list(given: ListObjects, runner: Runner, cancelled: threading.Event) -> str:
    words = given.words.lower().split()
    items = [item for item in _items(runner, given.kind, cancelled) if _fits(item, words)]
    shown = items[given.offset : given.offset + given.limit]
    return _as_json({"total": len(items), "offset": given.offset, "items": shown})


def _items(runner: Runner, kind: str, cancelled: threading.Event) -> list[Any]:
    listed = msgspec.json.decode(_printed(runner, LISTS[kind], cancelled))
    return listed if isinstance(listed, list) else next((x for x in listed.values() if isinstance(x, list)), [])


def _fits(item: Any, words: Sequence[str]) -> bool:
    text = str(item).lower() if words else ""
    return all(word in text for word in words)


def _as_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _search(given: Search, runner: Runner, cancelled: threading.Event) -> str:
    words = given.words.lower().split()

    def found(kind: str) -> dict[str, Any] | str:
        try:
            items = [item for item in _items(runner, kind, cancelled) if _fits(item, words)]
        except (CargobikeError, msgspec.MsgspecError) as error:
            return f"cannot be searched: {error}"
        return {"total": len(items), "items": items[:_MOST_HITS]} if items else {}

    with ThreadPoolExecutor(3) as pool:
        answers = dict(zip(LISTS, pool.map(found, LISTS), strict=True))
    return _as_json({kind: items for kind, items in answers.items() if items})


def _read(given: ReadObject, runner: Runner, cancelled: threading.Event) -> str:
    # A monitor with an open alarm ends with 3: that is news, not a failure.
    fine = (0, 3) if given.kind == "monitor" else (0,)
    return _printed(runner, [*READS[given.kind], "--json", "--", given.name], cancelled, fine)


def _trial(given: ReadTrial, runner: Runner, cancelled: threading.Event) -> str:
    shown = msgspec.json.decode(_printed(runner, ["show", "--all", "--json", "--", given.experiment], cancelled))
    trials = [one for one in shown["trial_list"] if one.get("trial", one.get("number")) == given.trial]
    if not trials:
        raise InvalidInputError(f"{given.experiment} has no trial {given.trial}; it has {len(shown['trial_list'])}.")
    about = msgspec.json.format(msgspec.json.encode(trials[0])).decode()
    return f"{about}\n\nThe end of what it printed:\n{_tail(runner, given.experiment, given.trial, cancelled)}"


def _tail(runner: Runner, experiment: str, trial: int, cancelled: threading.Event, lines: int = TAIL_LINES) -> str:
    text = _printed(runner, ["logs", f"--trial={trial}", "--", experiment], cancelled)
    return "\n".join(text.splitlines()[-lines:])


def _logs(given: ReadLogs, runner: Runner, cancelled: threading.Event) -> str:
    if given.kind == "deployment":
        return _printed(runner, ["deployments", "logs", f"--lines={given.lines}", "--", given.name], cancelled)
    if given.number is None:
        raise InvalidInputError(f"read_logs of a {given.kind} needs its number.")
    if given.kind == "trial":
        return _tail(runner, given.name, given.number, cancelled, given.lines)
    text = _printed(runner, ["pipelines", "logs", f"--step={given.number}", "--", given.name], cancelled)
    return "\n".join(text.splitlines()[-given.lines :])


def _head(given: TableHead, runner: Runner, cancelled: threading.Event) -> str:
    return _printed(runner, ["data", "head", f"--rows={given.rows}", "--json", "--", given.table], cancelled)


def _card(given: ModelCard, runner: Runner, cancelled: threading.Event) -> str:
    return _printed(runner, ["models", "card", "--", given.model], cancelled)


def _lineage(given: ExplainLineage, runner: Runner, cancelled: threading.Event) -> str:
    kind = [f"--kind={given.kind}"] if given.kind else []
    return _printed(runner, ["lineage", *kind, "--json", "--", given.name], cancelled)


def _failure(given: ExplainFailure, runner: Runner, cancelled: threading.Event) -> str:
    shown = msgspec.json.decode(_printed(runner, ["show", "--all", "--json", "--", given.experiment], cancelled))
    state = {key: shown.get(key) for key in ("id", "name", "state", "reason", "counts", "failed") if key in shown}
    trial = shown.get("first_failure")
    if given.trial is not None:
        numbered = {one.get("trial", one.get("number")): one for one in shown["trial_list"]}
        trial = numbered.get(given.trial)
        if trial is None:
            raise InvalidInputError(f"{given.experiment} has no trial {given.trial}; it has {len(numbered)}.")
    parts = [msgspec.json.format(msgspec.json.encode({"experiment": state, "trial": trial})).decode()]
    if trial is None:
        parts.append("No trial has failed.")
    else:
        number = trial.get("trial", trial.get("number"))
        parts += [str(trial.get("error") or ""), f"The end of what trial {number} printed:"]
        parts.append(_tail(runner, given.experiment, number, cancelled))
    return "\n\n".join(part for part in parts if part)


def _compare(given: CompareExperiments, runner: Runner, cancelled: threading.Event) -> str:
    return _printed(runner, ["compare", "--code", "--json", "--", given.first, given.second], cancelled)


def _launch_experiment(given: LaunchExperiment, runner: Runner, cancelled: threading.Event) -> str:
    options = {
        "--space": given.space,
        "--num-trials": given.num_trials,
        "--optimizer": given.optimizer,
        "--metric": given.metric,
        "--workers": given.workers,
        "--name": given.name,
    }
    arguments = [f"{name}={value}" for name, value in options.items() if value not in {"", None}]
    arguments += [f"--param={name}={_plain(value)}" for name, value in given.params.items()]
    return _launched(runner, ["run", *arguments, "--", given.function], cancelled)


def _launch_pipeline(given: LaunchPipeline, runner: Runner, cancelled: threading.Event) -> str:
    values = [f"--set={name}={_plain(value)}" for name, value in given.params.items()]
    return _launched(runner, ["pipelines", "run", *values, "--", given.function], cancelled)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _launched(runner: Runner, arguments: Sequence[str], cancelled: threading.Event) -> str:
    name, command = runner.launch(arguments)
    command.wait(_FIRST_S, cancelled)
    return _state(name, command)


def _follow(given: FollowCommand, runner: Runner, cancelled: threading.Event) -> str:
    command = runner.find(given.command)
    command.wait(given.wait_s, cancelled)
    return _state(given.command, command)


def _cancel(given: CancelCommand, runner: Runner, cancelled: threading.Event) -> str:
    command = runner.find(given.command)
    command.cancel()
    command.wait(_FIRST_S, cancelled)
    return _state(given.command, command)


def _state(name: str, command: Launched) -> str:
    how = "runs" if command.exit_code is None else f"has ended with exit code {command.exit_code}"
    return f"{name} ({command.words}) {how}. It printed:\n{command.printed}"


def _run(given: RunCommand, runner: Runner, cancelled: threading.Event) -> str:
    return _printed(runner, given.arguments, cancelled)


_TOOLS: Final = (
    Tool("list_objects", ListObjects, "read", _list),
    Tool("search", Search, "read", _search),
    Tool("read_object", ReadObject, "read", _read),
    Tool("read_trial", ReadTrial, "read", _trial),
    Tool("read_logs", ReadLogs, "read", _logs),
    Tool("table_head", TableHead, "read", _head),
    Tool("model_card", ModelCard, "read", _card),
    Tool("explain_lineage", ExplainLineage, "read", _lineage),
    Tool("explain_failure", ExplainFailure, "read", _failure),
    Tool("compare_experiments", CompareExperiments, "read", _compare),
    Tool("launch_experiment", LaunchExperiment, "run", _launch_experiment),
    Tool("launch_pipeline", LaunchPipeline, "run", _launch_pipeline),
    Tool("follow_command", FollowCommand, "run", _follow),
    Tool("cancel_command", CancelCommand, "run", _cancel),
    Tool("run_command", RunCommand, "run", _run),
)
