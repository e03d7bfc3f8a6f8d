"""`cargobike pipelines`: run, resume, ls, show, cancel, graph, logs, rm, export, schedule, schedules."""

from __future__ import annotations

import typer

from cargobike.pipelines.commands.exporting import export
from cargobike.pipelines.commands.listing import ls, rm
from cargobike.pipelines.commands.running import cancel, resume, run
from cargobike.pipelines.commands.scheduling import schedule, schedules
from cargobike.pipelines.commands.showing import graph, logs, show

pipelines = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

pipelines.command("run")(run)
pipelines.command("resume")(resume)
pipelines.command("ls")(ls)
pipelines.command("show")(show)
pipelines.command("graph")(graph)
pipelines.command("logs")(logs)
pipelines.command("cancel")(cancel)
pipelines.command("rm")(rm)
pipelines.command("export")(export)
pipelines.command("schedule")(schedule)
pipelines.add_typer(schedules, name="schedules")
