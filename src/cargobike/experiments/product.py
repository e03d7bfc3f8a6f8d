"""What experiments register."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.products import Command, Product

_COMMANDS: Final = {
    "run": "Search a function in a Python file, or run it once.",
    "search": "Search the parameters of a program: python train.py --lr {lr}",
    "ls": "List experiments.",
    "show": "Show one experiment: its best parameters, its trials, its failures.",
    "compare": "Show what differs between two experiments: settings, code, environment, results.",
    "tag": "Add tags to an experiment, take some away, or list them.",
    "note": "Write something down about an experiment, or print what was written.",
    "logs": "Print what the trials of an experiment wrote.",
    "tensorboard": "Show experiments in TensorBoard until Ctrl-C.",
    "stop": "Ask a running experiment to stop, and wait until it has.",
    "resume": "Go on with an experiment that was lost or stopped, or add trials to it.",
    "reproduce": "Run the recorded code of an experiment again, and say whether it comes out the same.",
    "export": "Write an experiment into one file, or in MLflow's format.",
    "import": "Take an exported experiment into this project.",
    "rm": "Remove experiments and everything they wrote.",
    "doctor": "Look for problems with this machine and this project.",
}
_ROOM: Final = "cargobike.experiments.commands"

PRODUCT: Final = Product(
    name="experiments",
    title="Experiments",
    commands=tuple(
        Command(name, f"{_ROOM}.{'import_' if name == 'import' else name}", text) for name, text in _COMMANDS.items()
    ),
    kind="cargobike.experiments.kind:EXPERIMENTS",
    tables="cargobike.experiments.index.journals:TABLES",
    edges="cargobike.experiments.tracing:edges",
    thing_pages={"experiment": "/experiments/{name}"},
    trials="cargobike.experiments.results.named_trial:find_trial",
    opened={
        "experiment": "cargobike.experiments.results.result:open_result",
        "trial": "cargobike.experiments.results.named_trial:open_trial",
    },
    pages="cargobike.experiments.pages.section:experiment_section",
    find_page="cargobike.experiments.finding:find_page",
    list_names="cargobike.experiments.commands.naming:list_names",
    afar="cargobike.experiments.commands.afar:AFAR",
)
