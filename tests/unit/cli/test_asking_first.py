from __future__ import annotations

import typer
from typer.testing import CliRunner

from cargobike.cli.asking import Yes, confirm

app = typer.Typer()


@app.command()
def forget(yes: Yes = False, as_json: bool = False) -> None:
    confirm("Forget everything?", yes=yes, as_json=as_json)
    typer.echo("forgotten")


def test_a_person_is_asked_and_a_program_is_not() -> None:
    runner = CliRunner()
    asked = runner.invoke(app, input="y\n")
    assert "Forget everything?" in asked.stdout
    assert "forgotten" in asked.stdout
    refused = runner.invoke(app, input="n\n")
    assert (refused.exit_code, "forgotten" in refused.stdout) == (1, False)
    for option in ("--yes", "-y"):
        assert runner.invoke(app, [option]).stdout == "forgotten\n"
    assert runner.invoke(app, ["--yes", "--as-json"]).stdout == "forgotten\n"
    told = runner.invoke(app, ["--as-json"])
    assert told.exit_code == 2
    assert "--json cannot ask; give --yes as well" in told.stderr
