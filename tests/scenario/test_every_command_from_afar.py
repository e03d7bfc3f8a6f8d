"""Every command of the command line, on a project that a real server has, over TLS and with a token."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from cargobike import client, data, features, models
from cargobike import project as project_door
from cargobike.core.errors import CargobikeError, InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.remote.answers import CommandState
from cargobike.remote.calling.running import call
from cargobike.remote.commands.rules import declared
from cargobike.serving.handle import Deployment
from support.mock_cluster import MockCluster
from support.remote_server import make_certificate
from support.watched_monitors import make_monitor

pytestmark = pytest.mark.timeout(900)
SECRET = "the secret of the lab"
TOKEN = "a-token-for-tests-0123456789"

TRAIN = """
from helper import FACTOR


def main(x=1):
    print("printed there")
    return x * FACTOR
"""
PREDICT = """
def answer(rows):
    return [2.0 * row for row in rows]
"""
PIPELINE = """
from cargobike import pipelines


@pipelines.step
def double(x):
    print("doubled there")
    if x < 0:
        raise ValueError("below zero")
    return 2 * x


def retrain(x=1):
    return double(x)
"""
PROGRAM = """
import sys

print("score=" + sys.argv[1])
"""


class Row(NamedTuple):
    """A command as a user types it.

    Attributes:
        words: What it is called.
        line: Everything.
        shows: A pattern that is found in what it prints, or in why it is refused.
        code: Its exit code; `None` if it runs only where it is called.
    """

    words: str
    line: str
    shows: str
    code: int | None = 0


ROWS = (
    Row("version", "version --json", '"cargobike"'),
    Row("doctor", "doctor --json", '"healthy"', 0),
    # Experiments.
    Row("run", "run train.py:main --param x=14 --workers 0 --name far", "Best: 42"),
    Row("search", "search --param x=1..3 --num-trials 2 --workers 1 --pattern 'score=(?P<score>\\S+)' --name prog -- "
        "python program.py {x}", "Best"),
    Row("ls", "ls --json", '"far"'),
    Row("show", "show far", "x"),
    Row("compare", "compare far prog", "prog"),
    Row("tag", "tag far good", "good"),
    Row("note", "note far 'looks well'", "looks well"),
    Row("logs", "logs far --stdout", "printed there"),
    Row("stop", "stop far --json", '"was_running": ?false'),
    Row("resume", "resume prog --num-trials 3 --workers 1 --json", '"trials_done": ?3'),
    Row("reproduce", "reproduce far --workers 1 --json", '"is_same": ?true'),
    Row("export", "export far kept/far.zip", "Brought kept/far.zip"),
    Row("rm", "rm far --yes --json", "removed"),
    Row("import", "import kept/far.zip --json", '"id"'),
    Row("demo", "demo --num-trials 2 --workers 1 --quiet", ""),
    Row("bench train", "bench train --model mnist --way one --workers 1 --steps 2 --warmup 1 --batch 8 --json", "runs"),
    Row("tensorboard", "tensorboard", "listens on a port", None),
    # Data.
    Row("data write", "data write rows.csv points --json", "points"),
    Row("data pack", "data pack pictures packed --json", "packed"),
    Row("data ls", "data ls", "points"),
    Row("data show", "data show points", "amount"),
    Row("data head", "data head points --json", "amount"),
    Row("data verify", "data verify points --json", '"is_whole": ?true'),
    Row("data rm", "data rm packed --yes --json", "removed"),
    # Features.
    Row("features insert", "features insert teams teams.csv --message 'from afar' --json", "inserted"),
    Row("features ls", "features ls", "teams"),
    Row("features show", "features show teams", "budget"),
    Row("features search", "features search budget", "teams"),
    Row("features stats", "features stats teams --json", "budget"),
    Row("features views", "features views", "team_value"),
    Row("features datasets", "features datasets", "season"),
    Row("features lineage", "features lineage season", "teams"),
    Row("features materialize", "features materialize teams --json", "{"),
    Row("features vector", "features vector team_value team_id=1 --json", "budget"),
    Row("features verify", "features verify teams --json", "{"),
    Row("features compact", "features compact teams --json", "{"),
    Row("features delete", "features delete teams 3 --yes --json", "{"),
    Row("features vacuum", "features vacuum teams --older-than 1d --yes --json", "{"),
    Row("lineage", "lineage teams", "season"),
    # Models.
    Row("models register", "models register twice --model predict.py:answer --example rows.json --metric accuracy=0.9 "
        "--json", '"twice"'),
    Row("models ls", "models ls", "twice"),
    Row("models show", "models show twice:1", "accuracy"),
    Row("models verify", "models verify twice:1", "twice"),
    Row("models promote", "models promote twice:1 champion --when 'accuracy > 0.5' --json", "champion"),
    Row("models compare", "models compare twice:1 digits:1", "accuracy"),
    Row("models tag", "models tag twice:1 fast", "fast"),
    Row("models note", "models note twice:1 'a good one'", "a good one"),
    Row("models card", "models card twice:1 --from card.md", ""),
    Row("models export", "models export twice:1 kept/twice --json", "twice"),
    Row("models import", "models import kept/twice again --json", "again"),
    Row("models rm", "models rm again:1 --yes --json", "again"),
    # Serving.
    Row("serve", "serve digits:1 --name digits --detach --json", "http"),
    Row("deployments ls", "deployments ls", "digits"),
    Row("deployments show", "deployments show digits", "serving"),
    Row("deployments roll", "deployments roll digits digits:2 --json", '"version": ?2'),
    Row("deployments rollback", "deployments rollback digits --json", '"version": ?1'),
    Row("deployments promote", "deployments promote digits", "no version|nothing|watched", 1),
    Row("deployments scale", "deployments scale digits 2 --json", '"least": ?2'),
    Row("deployments logs", "deployments logs digits", ""),
    Row("deployments log", "deployments log digits --json", r"\["),
    Row("deployments tidy", "deployments tidy digits --json", "{"),
    Row("deployments ship", "deployments ship digits --render kubernetes --image x:1", "kind: Deployment"),
    Row("deployments stop", "deployments stop digits", "is stopped"),
    Row("deployments start", "deployments start digits --json", "serving"),
    # On a cluster: what `serve --apply` puts there.
    Row("kubernetes ls", "kubernetes ls --json", "\\["),
    Row("kubernetes status", "kubernetes status nothing", "nothing", 1),
    Row("kubernetes show", "kubernetes show nothing", "nothing", 1),
    Row("kubernetes logs", "kubernetes logs nothing", "nothing", 1),
    Row("kubernetes rollback", "kubernetes rollback nothing", "nothing", 1),
    Row("kubernetes scale", "kubernetes scale nothing 2", "nothing", 1),
    Row("kubernetes rm", "kubernetes rm nothing --yes", "nothing", 1),
    # Monitoring.
    Row("drift", "drift usual now.csv --json --report kept/drift.html", "Brought kept/drift.html"),
    Row("monitor start", "monitor start digits --reference usual --window 50 --json", "digits"),
    Row("monitor ls", "monitor ls", "people"),
    Row("monitor show", "monitor show people", "alarm", 3),
    Row("monitor report", "monitor report people -o kept/people.html", "Brought kept/people.html"),
    Row("monitor ack", "monitor ack people --note 'seen from afar'", "alarm"),
    Row("monitor label", "monitor label digits labels.csv --json", "labels"),
    Row("monitor compare", "monitor compare digits digits:1 digits:2", "label", 1),
    Row("monitor stop", "monitor stop digits", "digits"),
    Row("monitor rm", "monitor rm digits --yes", "digits"),
    Row("deployments rm", "deployments rm digits --yes", "is gone"),
    # Pipelines.
    Row("pipelines run", "pipelines run pipeline.py:retrain --set x=3 --run-id far-1 --json", "completed"),
    Row("pipelines ls", "pipelines ls", "far-1"),
    Row("pipelines show", "pipelines show far-1", "double"),
    Row("pipelines graph", "pipelines graph far-1", "double"),
    Row("pipelines logs", "pipelines logs far-1", "doubled there"),
    Row("pipelines cancel", "pipelines cancel far-1 --json", "completed"),
    Row("pipelines resume", "pipelines resume far-1", "completed"),
    Row("pipelines export", "pipelines export far-1 --airflow --output kept/dag.py", "Brought kept/dag.py"),
    Row("pipelines schedule", "pipelines schedule pipeline.py:retrain --every 1d --json", "retrain"),
    Row("pipelines schedules", "pipelines schedules", "retrain"),
    Row("pipelines schedules ls", "pipelines schedules ls --json", "retrain"),
    Row("pipelines schedules show", "pipelines schedules show retrain", "1d"),
    Row("pipelines schedules pause", "pipelines schedules pause retrain", "retrain"),
    Row("pipelines schedules resume", "pipelines schedules resume retrain", "retrain"),
    Row("pipelines schedules rm", "pipelines schedules rm retrain --yes", "retrain"),
    Row("pipelines rm", "pipelines rm far-1 --yes --json", "far-1"),
    Row("scheduler", "scheduler --detach", "scheduler"),
    Row("scheduler status", "scheduler status --json", "{"),
    Row("scheduler stop", "scheduler stop", ""),
    Row("scheduler unit", "scheduler unit", "systemd", None),
    # Sharing; its daemon is started beside the table.
    Row("share publish", "share publish points table:points --network lab --license CC0 --yes --json", "points"),
    Row("share ls", "share ls", "points"),
    Row("share find", "share find points --network lab", "points"),
    Row("share show", "share show points", "amount"),
    Row("share status", "share status --json", "{"),
    Row("share who", "share who points --json", ""),
    Row("share limit", "share limit --send 20MB/s", ""),
    Row("share pause", "share pause", ""),
    Row("share resume", "share resume", ""),
    Row("share get", "share get points --to kept/points --json", "Brought kept/points"),
    Row("share rate", "share rate points 5 'clean rows'", "others rate it", 1),
    Row("share comment", "share comment points 'thank you'", "others rate it", 1),
    Row("share torrent", "share torrent points --to kept/points.torrent", "Brought kept/points.torrent"),
    Row("share publishers", "share publishers --json", ""),
    Row("share withdraw", "share withdraw points 'no longer right' --yes", ""),
    Row("share trust", "share trust {publisher} --as us", ""),
    Row("share mute", "share mute {publisher}", ""),
    Row("share block", "share block {publisher}", ""),
    Row("share forget", "share forget {publisher}", ""),
    Row("share key", "share key", "ed25519"),
    Row("share stop", "share stop", ""),
    # Tokens, and what makes sense only here.
    Row("tokens create", "tokens create ada --role read", "."),
    Row("tokens ls", "tokens ls", "ada"),
    Row("tokens revoke", "tokens revoke ada", "ada"),
    Row("ui", "ui", "it is the server", None),
    Row("mcp", "mcp", "assistant on this machine", None),
    Row("migrate", "migrate train.py", "rewrites a script", None),
    Row("horovodrun", "horovodrun -np 2 python train.py", "program of yours", None),
)  # fmt: skip
BESIDE = {"share serve", "share rendezvous"}
"""Commands that run until they are interrupted: started beside the table."""


def _fill(root: Path) -> None:
    project_door.use(root)
    try:
        data.write({"amount": [1.0, 2.0, 3.0], "account": [1, 2, 3]}, "points")
        data.write({"input": [number / 40 for number in range(40)]}, "usual")
        teams = features.create_group("teams", key="team_id", event_time="at", online=True)
        teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [10.0, 4.0]})
        view = features.create_view("team_value", features=["budget"], label="value")
        view.create_training_dataset("season", {"team_id": [1, 2], "at": ["2026-02-01"] * 2, "value": [1.0, 2.0]})
        for factor in (2, 3):
            models.register(
                "digits", lambda rows, by=factor: [by * row for row in rows], metrics={"accuracy": 0.8}, example=[1.0]
            )
    finally:
        project_door.use(None)
    make_monitor(ProjectFolder(root), "people")


def _write_files(here: Path) -> None:
    (here / "kept").mkdir()
    (here / "pictures").mkdir()
    (here / "pictures" / "a.txt").write_text("a")
    files = {
        "train.py": TRAIN,
        "helper.py": "FACTOR = 3\n",
        "predict.py": PREDICT,
        "pipeline.py": PIPELINE,
        "program.py": PROGRAM,
        "rows.csv": "amount,account\n1.5,1\n2.5,2\n3.5,3\n",
        "teams.csv": "team_id,at,budget\n3,2026-01-02,7.5\n",
        "now.csv": "input\n" + "".join(f"{number / 40}\n" for number in range(40)),
        "labels.csv": "request_id,label\nnothing,1\n",
        "rows.json": "[1.0, 2.0]",
        "card.md": "# Twice\n\nIt doubles.\n",
    }
    for name, text in files.items():
        (here / name).write_text(text)


@contextmanager
def _server(root: Path, folder: Path, kubeconfig: Path) -> Iterator[str]:
    """Run `cargobike ui` with a certificate of its own; gives its address."""
    certificate = make_certificate(folder)
    variables = {
        **os.environ,
        "CARGOBIKE_PROJECT": str(root),
        "CARGOBIKE_UI_TOKEN": TOKEN,
        "CARGOBIKE_SHARE_SECRET": SECRET,
        "KUBECONFIG": str(kubeconfig),
    }
    command = [sys.executable, "-m", "cargobike.cli", "ui", "--port", "0"]
    command += ["--certificate", str(certificate.file), "--key", str(certificate.key)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True, cwd=folder) as server:
        try:
            assert server.stdout is not None
            yield next(match[0] for line in server.stdout if (match := re.search(r"https://[^\s/]+", line)))
        finally:
            server.terminate()
            server.wait(60)


@contextmanager
def _beside(remote: client.RemoteProject, *arguments: str) -> Iterator[str]:
    """Run a command that goes on until it is interrupted; gives the first line that it prints."""
    body = {"arguments": list(arguments), "detached": True}
    state = remote.connection.post(["commands"], CommandState, body)
    printed, give_up_at = "", time.monotonic() + 60
    while "\n" not in printed:
        printed += "".join(frame.text for frame in state.frames)
        assert state.exit_code is None, printed
        assert time.monotonic() < give_up_at, printed
        state = remote.connection.get(["commands", state.id], CommandState, after=state.next, wait_s=5)
    try:
        yield printed
    finally:
        remote.connection.post(["commands", state.id, "cancel"], CommandState)
        while state.exit_code is None:
            assert time.monotonic() < give_up_at + 60
            state = remote.connection.get(["commands", state.id], CommandState, after=state.next, wait_s=5)


def _called(row: Row, server: str, fill: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> str:
    """Call a command as `cargobike --server` does, and return what is wrong; empty if all is well."""
    arguments = [fill(word) for word in shlex.split(row.line)]
    try:
        code: int | None = call(arguments, server, ["helper.py"] if row.words == "run" else ())
        said = "".join(capsys.readouterr())
    except InvalidInputError as error:
        code, said = None, str(error)
    except CargobikeError as error:
        code, said = 1, str(error)
    except OSError as error:  # a question that is not expected
        code, said = 1, repr(error)
    if code == row.code and re.search(row.shows, said):
        return ""
    return f"`{row.line}` ended with {code}, and said {said[-600:]!r}"


def test_the_table_has_every_command() -> None:
    assert sorted([row.words for row in ROWS] + list(BESIDE)) == sorted(declared())
    assert {row.words for row in ROWS if row.code is None} == {
        words for words, afar in declared().items() if afar.only_here
    }


@pytest.mark.slow
def test_every_command_works_on_a_project_that_a_server_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there, root = tmp_path / "here", tmp_path / "there", tmp_path / "there" / ".cargobike"
    for folder in (here, there):
        folder.mkdir()
    _fill(root)
    _write_files(here)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    cluster = MockCluster()
    wrong: list[str] = []
    try:
        with _server(root, there, cluster.kubeconfig(tmp_path / "kubeconfig")) as server:
            monkeypatch.chdir(here)
            monkeypatch.setenv("CARGOBIKE_TOKEN_FILE", str(token))
            monkeypatch.setenv("CARGOBIKE_CA_FILE", str(there / "server.pem"))
            monkeypatch.setenv("CARGOBIKE_PROJECT", str(here / "none"))
            with client.connect(server) as remote:
                at_once = [row for row in ROWS if not row.words.startswith("share ")]
                wrong += filter(None, (_called(row, server, str, capsys) for row in at_once))
                wrong += _shared(remote, server, capsys)
    finally:
        cluster.close()
        Deployment("digits", ProjectFolder(root)).stop()  # what was detached outlives a test that failed in between
    assert not wrong, "\n\n".join(wrong)
    assert not (here / "none").exists(), "a command ran here"
    for made in ("far.zip", "drift.html", "people.html", "dag.py", "points.torrent", "points", "twice"):
        assert (here / "kept" / made).exists(), made


def _shared(remote: client.RemoteProject, server: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    rows = [row for row in ROWS if row.words.startswith("share ")]
    wrong = [_called(rows[0], server, str, capsys)]
    with _beside(remote, "share", "rendezvous", "--network", "lab") as meeting:
        assert "127.0.0.1" in meeting
    with _beside(remote, "share", "serve", "--network", "lab") as serving:
        assert "Serving lab" in serving
        found = remote.sharing.search("lab", "points").publications
        publisher = found[0].publisher
        wrong += [_called(row, server, lambda word: word.replace("{publisher}", publisher), capsys) for row in rows[1:]]
    return [one for one in wrong if one]
