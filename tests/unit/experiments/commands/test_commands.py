from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cargobike.cli.app import app, load_command
from cargobike.core.facts import ExperimentEnded, TrialEnded, TrialSuggested
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import ExperimentState, TrialState
from cargobike.core.registering.products import commands, own_products
from cargobike.store.history.annotations import annotate
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact
from cargobike.testing.stores import JournalBuilder

COMMANDS = commands(own_products())
FIRST, SECOND = "20270101-000000-aaaa", "20270102-000000-bbbb"


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path)


@pytest.fixture
def filled(project: ProjectFolder) -> ProjectFolder:
    first = JournalBuilder(project, FIRST, name="digits", num_trials=4)
    first.complete(0.5, lr=0.1, act="relu")
    first.complete(0.9, lr=0.2, act="gelu")
    first.complete(math.nan, lr=0.3, act="gelu")
    failed = first.start(lr=0.4)
    first.finish(failed, state=TrialState.FAILED, error='Traceback …\n  File "a.py"\nValueError: \x1b[2Jno')
    first.end()
    second = JournalBuilder(project, SECOND, name="mnist", start_s=1_900_000_000.0)
    second.complete(0.7, lr=0.1)
    second.let_go()
    return project


def call(*words: str, given: str | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words), input=given)
    assert result.exit_code == code, result.output
    return result


def test_ls_lists_the_newest_first(filled: ProjectFolder) -> None:
    lines = call("ls").stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "NAME", "TRIALS", "BEST", "DURATION", "STARTED"]
    assert lines[1].split()[:5] == [SECOND, "lost", "mnist", "1/1", "0.7"]
    assert lines[2].split()[:5] == [FIRST, "completed", "digits", "4/4", "0.9"]


def test_ls_json_has_stable_keys(filled: ProjectFolder) -> None:
    rows = json.loads(call("ls", "--json", "--state", "completed").stdout)
    assert [row["id"] for row in rows] == [FIRST]
    assert set(rows[0]) == {
        *("id", "name", "state", "reason", "function", "optimizer", "direction", "metric", "num_trials"),
        *("trials", "trials_done", "counts", "best", "started_at", "ended_at", "duration_s", "problem"),
        *("user", "tags", "worker_seconds"),
    }
    assert rows[0]["best"] == {"trial": 1, "value": 0.9, "params": {"lr": 0.2, "act": "gelu"}}
    assert rows[0]["started_at"] == "2027-01-15T08:00:00.000+00:00"
    assert (rows[0]["trials_done"], rows[0]["counts"]["failed"]) == (4, 1)


def test_ls_sorts_limits_and_says_what_it_left_out(filled: ProjectFolder) -> None:
    rows = json.loads(call("ls", "--json", "--sort", "name", "--ascending").stdout)
    assert [row["name"] for row in rows] == ["digits", "mnist"]
    assert "1 more; --limit 0 shows all." in call("ls", "--limit", "1").stdout


def test_ls_of_nothing_says_so_and_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "none"))
    assert "no experiments yet" in call("ls").stdout
    assert json.loads(call("ls", "--json").stdout) == []
    assert not (tmp_path / "none").exists()


def test_a_project_can_be_given(filled: ProjectFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", str(tmp_path / "none"))
    assert "digits" in call("--project", str(filled.root), "ls").stdout


def test_a_damaged_journal_is_pointed_out(filled: ProjectFolder) -> None:
    journal = filled.experiment(FIRST).journal
    journal.write_bytes(journal.read_bytes().replace(b'"value":0.9', b'"value":9.9'))
    output = call("ls").stdout
    assert "line 10: damaged" in output
    assert SECOND in output


def test_show_tells_the_whole_story(filled: ProjectFolder) -> None:
    output = call("show", "digits").stdout
    assert re.search(r"best\s+0\.9 in trial 1", output)
    assert re.search(r"with\s+lr=0\.2 act=gelu", output)
    assert re.search(r"0001\s+completed\s+0\.9 ", output)
    assert re.search(r"0002\s+completed\s+nan ", output)
    assert "The only failure: trial 0003, lr=0.4" in output
    assert "ValueError: ␛[2Jno" in output
    assert output.index("0001 ") < output.index("0000 ")


def test_ls_says_that_a_folder_was_left_out(filled: ProjectFolder) -> None:
    assert call("ls").stderr == ""
    filled.experiment("20270103-000000-cccc").root.mkdir()
    assert call("ls").stderr == "1 folder that cannot be read is left out; cargobike doctor says why.\n"
    filled.experiment("20270103-000000-dddd").root.mkdir()
    told = call("ls", "--json")
    assert told.stderr == "2 folders that cannot be read are left out; cargobike doctor says why.\n"
    assert len(json.loads(told.stdout)) == 2


def test_compare_says_lengths_of_time_in_words(filled: ProjectFolder) -> None:
    output = call("compare", FIRST, SECOND, "--no-code").stdout
    assert re.search(r"duration +\d+ s +\d", output)
    assert re.search(r"worker time +\d+ s", output)
    assert "duration_s" not in output
    assert re.search(r"num_trials +4 ", output), "other names are those of the arguments"
    told = json.loads(call("compare", FIRST, SECOND, "--json").stdout)
    assert isinstance(told["results"]["duration_s"][0], float), "programs get numbers"


def test_show_counts_hidden_trials(filled: ProjectFolder) -> None:
    assert "hidden" not in call("show", FIRST).stdout
    annotate(filled.experiment(FIRST), marks={0: "hidden", 2: "star"})
    assert re.search(r"hidden +1 trial, left out of figures and reports", call("show", FIRST).stdout)
    assert json.loads(call("show", FIRST, "--json").stdout)["hidden"] == [0]


def test_show_of_several_goals_lists_all_of_them(project: ProjectFolder) -> None:
    folder = project.experiment(FIRST)
    with JournalWriter(folder.journal) as journal:
        journal.append(
            [
                first_fact(id=FIRST, at=1.0, optimizer="random", objectives={"accuracy": "max", "cost": "min"}),
                TrialSuggested(at=2.0, trial=0, params={"lr": 0.1}, seed=1),
                TrialEnded(at=3.0, trial=0, state="completed", metrics={"accuracy": 0.75, "cost": 12.5}),
                TrialSuggested(at=4.0, trial=1, params={"lr": 0.2}, seed=2),
                ExperimentEnded(at=5.0, state="completed"),
            ]
        )
    output = call("show", FIRST).stdout
    assert "random, max accuracy, min cost, seed 0" in output
    assert re.search(r"TRIAL +STATE +accuracy +cost +LAST", output)
    assert re.search(r"0000 +completed +0\.75 +12\.5 ", output)
    assert re.search(r"trials +1 completed, 1 not run|trials +1 not run, 1 completed", output)
    assert "pending" not in output.split("TRIAL")[0]


def test_show_lists_as_many_trials_as_asked_for(filled: ProjectFolder) -> None:
    shown = json.loads(call("show", FIRST, "--json", "--trials", "2").stdout)
    assert [one["trial"] for one in shown["trial_list"]] == [1, 0]
    everything = json.loads(call("show", FIRST, "--json", "--all").stdout)
    assert [one["trial"] for one in everything["trial_list"]] == [0, 1, 2, 3]
    assert everything["trial_list"][2]["value"] == "nan"
    assert everything["first_failure"]["trial"] == 3
    assert "3 more; --all shows all." in call("show", FIRST, "--trials", "1").stdout


@pytest.mark.parametrize("words", [("show", "digit"), ("logs", "digit"), ("stop", "digit")])
def test_what_is_not_there_is_one_red_line(filled: ProjectFolder, words: tuple[str, ...]) -> None:
    result = call(*words, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("There is no experiment 'digit'. Did you mean 'digits'?")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("lss",), ("ls", "--limit", "x"), ("show",), ("ls", "--state", "odd")])
def test_wrong_calls_exit_with_2(words: tuple[str, ...]) -> None:
    assert "Usage:" in call(*words, code=2).stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_loaded_and_explains_itself(name: str) -> None:
    assert load_command(name).name == name
    assert COMMANDS[name].help in " ".join(call(name, "--help").stdout.split())


def test_rm_asks_first(filled: ProjectFolder) -> None:
    call("rm", "digits", given="n\n", code=1)
    assert filled.experiment(FIRST).root.exists()
    assert f"Removed {FIRST}." in call("rm", "digits", given="y\n").stdout
    assert os.listdir(filled.experiments) == [SECOND]
    assert [row["id"] for row in json.loads(call("ls", "--json").stdout)] == [SECOND]


def test_rm_removes_several_or_none(filled: ProjectFolder) -> None:
    result = call("rm", "digits", "nonsense", "--yes", code=1)
    assert "Nothing was removed" in result.stderr
    assert len(os.listdir(filled.experiments)) == 2
    removed = json.loads(call("rm", "aaaa", "last", "--yes", "--json").stdout)
    assert removed == {"removed": [FIRST, SECOND]}
    assert os.listdir(filled.experiments) == []


def test_rm_refuses_a_running_one(project: ProjectFolder) -> None:
    running = JournalBuilder(project, FIRST).hold()
    assert "end it first: cargobike stop" in call("rm", FIRST, "--yes", code=1).stderr
    assert running.folder.root.exists()
    running.let_go()
    call("rm", FIRST, "--yes")


def test_rm_does_not_follow_links_out_of_the_project(filled: ProjectFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    filled.experiment(FIRST).root.rename(outside)
    filled.experiment(FIRST).root.symlink_to(outside)
    assert "a link out of the project" in call("rm", FIRST, "--yes", code=1).stderr
    assert (outside / "journal.jsonl").exists()
    inside = filled.experiment(SECOND).root / "link"
    inside.symlink_to(outside)
    call("rm", SECOND, "--yes")
    assert (outside / "journal.jsonl").exists()


def test_rm_takes_a_folder_without_a_journal(project: ProjectFolder) -> None:
    project.experiment(FIRST).root.mkdir(parents=True)
    call("rm", FIRST, "--yes")
    assert os.listdir(project.experiments) == []


def test_stop_of_what_has_ended_says_so(filled: ProjectFolder) -> None:
    assert f"{FIRST} was already completed, with 4 trials done." in call("stop", "digits").stdout
    lost = call("stop", "mnist", "--json", code=1)
    assert json.loads(lost.stdout)["state"] == "lost"
    assert "has died: the experiment is lost" in lost.stderr


def test_stop_gives_up_in_the_end(project: ProjectFolder) -> None:
    running = JournalBuilder(project, FIRST).hold()
    result = call("stop", FIRST, "--timeout", "0", code=1)
    assert re.search(r"process \d+ on host \S+ did not end within 0 s", result.stderr)
    assert running.folder.stop_request.exists()
    running.end(ExperimentState.INTERRUPTED)


def test_doctor_is_content_with_a_healthy_project(project: ProjectFolder) -> None:
    JournalBuilder(project, FIRST).end()
    told = json.loads(call("doctor", "--json").stdout)
    assert told["healthy"] is True
    assert {one["name"] for one in told["checks"]} >= {
        *("cargobike", "python", "libraries", "cores", "memory", "gpus", "project", "disk", "index")
    }


def test_doctor_finds_what_is_wrong(filled: ProjectFolder) -> None:
    with filled.experiment(SECOND).journal.open("ab") as file:
        file.write(b'{"fact":"trial-en')
    damaged = filled.experiment(FIRST).journal
    damaged.write_bytes(damaged.read_bytes().replace(b'"value":0.9', b'"value":9.9'))
    empty = filled.experiment("20270103-000000-cccc").root
    empty.mkdir()
    leftover = filled.experiments / ".removing-x-1"
    leftover.mkdir()
    os.utime(leftover, (0, 0))
    told = json.loads(call("doctor", "--json", code=1).stdout)
    found = {one["name"]: (one["status"], one["detail"]) for one in told["checks"] if one["status"] != "ok"}
    assert told["healthy"] is False
    assert set(found) == {FIRST, SECOND, empty.name, "leftovers"}
    assert "damaged" in found[FIRST][1]
    assert "17 bytes of its journal are torn" in found[SECOND][1]
    assert "no journal" in found[empty.name][1]
    assert found["leftovers"][0] == "warning"
    assert "problem" in call("doctor", code=1).stdout


def test_doctor_makes_the_index_anew(filled: ProjectFolder) -> None:
    call("ls")
    before = filled.index.read_bytes()
    filled.index.write_bytes(before[: len(before) // 2])
    output = call("doctor", "--reindex", code=1).stdout
    assert "made anew, 2 experiments, 5 trials" in output


def test_version_is_told() -> None:
    assert re.fullmatch(r"cargobike \S+ \(Python 3\.\d+\.\d+\)\n", call("version").stdout)
    assert set(json.loads(call("version", "--json").stdout)) == {"cargobike", "python"}
