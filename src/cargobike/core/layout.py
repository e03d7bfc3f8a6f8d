"""Where things lie in a project, in one place so that no other file spells a path.

```
<project>/
  index.sqlite                      derived, may be deleted
  settings.toml                     what holds for everybody who works on the project
  project-key                       names the project in a database that serves several
  resources/<sha256>                links to versioned resources, so that equal ones need room once
  data/<name or id>/<version>/      a table: a manifest and Parquet files; an id if it was given to an experiment
  features/<name>.v<version>.<revision>.json   what a feature group is
  models/<name>/<version>/          a version of a model: its manifest; what happened to versions is in facts/
  models/<name>/files/<token>/      the files of a version
  models/_names/<name>              exists for every model
  models.sqlite                     derived, may be deleted: what lists models
  features/<name>/v<version>/       its rows: a Delta table; beside it quarantine/v<version>/
  runs/<id>/                        a run of a pipeline: journal.jsonl, driver.lock, stop, as below
    steps/<number>/                 stdout.log, stderr.log, result-<attempt>.*, outcome-<attempt>.json
  pipelines/cache/<key>.json        what steps of earlier runs returned, by code and inputs; may be deleted
  pipelines/claims/<run>            on shared storage: the process that began a run
  pipelines/schedules/<name>/<number>.json   the state of a schedule; the newest counts
  pipelines/scheduler/              which scheduler is at work, and what one in the background writes
  experiments/<id>/
    journal.jsonl                   the truth
    driver.lock                     held by the living driver
    stop                            exists when the driver was asked to stop
    annotations.jsonl               tags and notes, added by people at any time
    code/                           the function as it was sent, its source, what launched it, the environment
      resources/<sha256>            versioned resources
    tensorboard/                    derived: event files made from the journal
    files/<trial>/                  working directory of the train function, and its artifacts
    files/<trial>/cargobike-models/<name>/   a model that it kept with trial.model.save
    trials/<trial>/
      logs/                         what the train function writes for TensorBoard
      checkpoints/<number>-step<step>/
      servers/<rank>/               checkpoints of a parameter server's share
      stdout.log, stderr.log        of all attempts, in order
      usage.jsonl                   processors, memory and GPUs that it used, over time
      stdout.rank1.log …            of the other ranks of a gang
```
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

JOURNAL = "journal.jsonl"
EXPERIMENTS = "experiments"
TRIALS = "trials"
FILES = "files"
LOGS = "logs"
CHECKPOINTS = "checkpoints"
SERVERS = "servers"
DATA = "data"
MODELS = "models"
PACKED_MODELS = "cargobike-models"
REQUIREMENTS = "requirements.lock"


class TrialFolder(msgspec.Struct, frozen=True):
    """The folder of one trial."""

    root: Path

    @property
    def files(self) -> Path:
        """Working directory of the train function."""
        return self.root.parent.parent / FILES / self.root.name

    @property
    def logs(self) -> Path:
        """What the train function writes for TensorBoard."""
        return self.root / LOGS

    @property
    def checkpoints(self) -> Path:
        """One folder for each checkpoint."""
        return self.root / CHECKPOINTS

    @property
    def stdout(self) -> Path:
        """Captured standard output."""
        return self.root / "stdout.log"

    @property
    def stderr(self) -> Path:
        """Captured standard error."""
        return self.root / "stderr.log"

    @property
    def usage(self) -> Path:
        """What its processes used over time, one sample in each line."""
        return self.root / "usage.jsonl"

    def output(self, stream: str, rank: int = 0) -> Path:
        """Captured `stdout` or `stderr` of one rank; rank 0 speaks for a trial, the others beside it."""
        return self.root / (f"{stream}.log" if rank == 0 else f"{stream}.rank{rank}.log")


class ThingFolder(msgspec.Struct, frozen=True):
    """The folder of one thing that a project keeps: what is the same for every kind of thing."""

    root: Path

    @property
    def project(self) -> ProjectFolder:
        """The project that it belongs to."""
        return ProjectFolder(self.root.parent.parent)

    @property
    def id(self) -> str:
        """The thing's id."""
        return self.root.name

    @property
    def journal(self) -> Path:
        """The truth."""
        return self.root / JOURNAL

    @property
    def lock(self) -> Path:
        """Held by the living driver with `flock`, and named in it."""
        return self.root / "driver.lock"

    @property
    def stop_request(self) -> Path:
        """Exists when the driver was asked to stop."""
        return self.root / "stop"

    @property
    def unsent(self) -> Path:
        """Exists while shared storage does not hold everything that is here."""
        return self.root / "unsent"

    @property
    def remote_head(self) -> Path:
        """What shared storage said last about the driver, in a local copy."""
        return self.root / "remote.json"

    @property
    def annotations(self) -> Path:
        """Tags and notes."""
        return self.root / "annotations.jsonl"


class ExperimentFolder(ThingFolder, frozen=True):
    """The folder of one experiment."""

    @property
    def code(self) -> Path:
        """The function as it was sent, its source, the launching script."""
        return self.root / "code"

    @property
    def snapshot(self) -> Path:
        """What was run, in which environment."""
        return self.code / "snapshot.json"

    @property
    def payload(self) -> Path:
        """The function as it was sent to workers, with what it needs."""
        return self.code / "payload.msgpack"

    @property
    def function(self) -> Path:
        """The train function's source, for people."""
        return self.code / "function.py"

    @property
    def sources(self) -> Path:
        """The user's own files, as they were at launch."""
        return self.code / "sources.zip"

    @property
    def unpacked_sources(self) -> Path:
        """The same files, unpacked for a repetition; derived."""
        return self.code / "unpacked"

    @property
    def requirements(self) -> Path:
        """The packages that it ran with."""
        return self.code / REQUIREMENTS

    @property
    def git_diff(self) -> Path:
        """What had not been committed at launch."""
        return self.code / "git.diff"

    @property
    def resources(self) -> Path:
        """Versioned resources, each under the hash of its content."""
        return self.code / "resources"

    @property
    def tensorboard(self) -> Path:
        """Event files made from the journal; derived."""
        return self.root / "tensorboard"

    @property
    def trials(self) -> Path:
        """One folder for each trial that wrote anything."""
        return self.root / TRIALS

    def trial(self, number: int) -> TrialFolder:
        """Return the folder of one trial."""
        return TrialFolder(self.trials / f"{number:04d}")


class ProjectFolder(msgspec.Struct, frozen=True):
    """The root folder of a project."""

    root: Path

    @property
    def index(self) -> Path:
        """The SQLite index over all journals."""
        return self.root / "index.sqlite"

    @property
    def models_index(self) -> Path:
        """The SQLite file that lists models; derived."""
        return self.root / "models.sqlite"

    @property
    def experiments(self) -> Path:
        """One folder for each experiment."""
        return self.root / EXPERIMENTS

    @property
    def journals(self) -> Iterator[Path]:
        """The journals of all experiments, in no particular order; hidden folders are not looked at."""
        return self.experiments.glob(f"[!.]*/{JOURNAL}")

    @property
    def environments(self) -> Path:
        """Virtual environments made for repetitions, each under a hash of its packages; derived."""
        return self.root / "environments"

    @property
    def tensorboard(self) -> Path:
        """Links to the event files of several experiments; derived."""
        return self.root / "tensorboard"

    @property
    def settings(self) -> Path:
        """What holds for everybody who works on the project."""
        return self.root / "settings.toml"

    @property
    def key(self) -> Path:
        """Names the project in a database that serves several."""
        return self.root / "project-key"

    @property
    def remote_url(self) -> Path:
        """Says which shared storage this is the local copy of, if it is one."""
        return self.root / "remote-url"

    @property
    def resource_pool(self) -> Path:
        """Links to versioned resources of all experiments, by which equal ones are found."""
        return self.root / "resources"

    def experiment(self, experiment_id: str) -> ExperimentFolder:
        """Return the folder of one experiment."""
        return ExperimentFolder(self.experiments / experiment_id)
