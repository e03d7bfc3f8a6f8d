"""What a journal says about a deployment: its facts, folded once for every reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import NotFoundError, StoreError, nearest, nearest_names
from cargobike.core.layout import ProjectFolder, ThingFolder
from cargobike.serving.facts import (
    SERVING_FACTS,
    AnyServingFact,
    DeploymentChanged,
    DeploymentStarted,
    DeploymentStopped,
    Plan,
    ReleaseEnded,
    ReleaseStarted,
    ReplicaStarted,
    Routed,
    Scaled,
    SupervisorStarted,
)
from cargobike.serving.kind import DEPLOYMENTS
from cargobike.serving.specification import Specification
from cargobike.store.files.things import folders_of
from cargobike.store.journal.journal import JournalReader
from cargobike.store.journal.remembering import Remembered


class DeploymentFolder(ThingFolder, frozen=True):
    """The folder of one deployment."""

    @property
    def logs(self) -> Path:
        """What front, host and replicas print."""
        return self.root / "logs"

    @property
    def secrets(self) -> Path:
        """Values of environment variables, and SHA-256 of tokens; only its owner may read it."""
        return self.root / "secrets.json"


class Moment(msgspec.Struct, frozen=True):
    """Something that happened, for people."""

    at: float
    text: str


class DeploymentRecord(msgspec.Struct):
    """A deployment as its journal tells it.

    Attributes:
        specification: What was asked for last.
        current: The version that serves; 0 before the first.
        previous: The version that served before it, to which a rollback goes.
        candidate: The version that is being brought in; 0 if there is no such version.
        awaited: The version that was asked for with the deployment, until it is being brought in; 0 from then on.
        plan: How it is brought in.
        routed: The versions that requests, or copies of them, go to.
        least: The fewest replicas, as asked for last.
        most: The most replicas.
        port: The port that it listened on last.
        grpc_port: The port that it spoke gRPC on last; 0 if it never did.
        last_replica: The highest number that a replica has had.
        is_stopped: Whether it was ended, and not lost.
        steps: The steps of pipelines that have changed it, by their tokens.
        history: What happened, in words.
    """

    specification: Specification
    started_at: float = 0.0
    current: int = 0
    previous: int = 0
    candidate: int = 0
    awaited: int = 0
    plan: Plan = msgspec.field(default_factory=Plan)
    routed: tuple[int, ...] = ()
    least: int = 1
    most: int = 1
    port: int = 0
    grpc_port: int = 0
    last_replica: int = 0
    is_stopped: bool = False
    steps: set[str] = msgspec.field(default_factory=set)
    history: list[Moment] = msgspec.field(default_factory=list)

    @property
    def url(self) -> str:
        """Where requests go."""
        return f"{'https' if self.specification.tls_certificate else 'http'}://{self._host}:{self.port}"

    @property
    def grpc_address(self) -> str:
        """Where calls over gRPC go; empty if there are none."""
        is_spoken = self.specification.grpc_port is not None and self.grpc_port
        return f"{self._host}:{self.grpc_port}" if is_spoken else ""

    @property
    def _host(self) -> str:
        host = self.specification.host
        return f"[{host}]" if ":" in host else host

    def apply(self, fact: AnyServingFact) -> None:
        """Take a fact in."""
        text = ""
        if step := getattr(fact, "step", ""):
            self.steps.add(step)
        match fact:
            case DeploymentStarted() | DeploymentChanged():
                self.specification, self.awaited = fact.specification, fact.specification.version
                self.least, self.most = fact.specification.scaling.least, fact.specification.scaling.most
                text = "deployed" if isinstance(fact, DeploymentStarted) else "deployed with other settings"
            case SupervisorStarted():
                self.port, self.is_stopped = fact.port, False
                self.grpc_port = fact.grpc_port or self.grpc_port
                text = f"supervised by process {fact.pid}" + (
                    f", which adopted replicas {', '.join(map(str, fact.adopted))}" if fact.adopted else ""
                )
            case ReleaseStarted():
                self.candidate, self.plan, self.awaited = fact.model_version, fact.plan, 0
                text = f"version {fact.model_version} is being brought in"
            case ReleaseEnded():
                self.candidate = 0
                if fact.outcome == "released":
                    self.current, self.previous = fact.model_version, fact.previous
                text = f"version {fact.model_version} {fact.outcome}" + (f": {fact.reason}" if fact.reason else "")
            case Routed():
                shadow = (fact.shadow,) if fact.shadow else ()
                self.routed = (*(share.version for share in fact.routes), *shadow)
            case Scaled():
                self.least, self.most = fact.least, fact.most
                text = f"scaled to {fact.replicas}" + (f": {fact.reason}" if fact.reason else "")
            case ReplicaStarted():
                self.last_replica = max(self.last_replica, fact.replica)
            case DeploymentStopped():
                self.is_stopped, self.routed, self.candidate, self.awaited = True, (), 0, 0
                text = "stopped" + (f": {fact.reason}" if fact.reason else "")
            case _:
                text = "" if getattr(fact, "wanted", False) else _ended(fact)
        if text:
            self.history.append(Moment(fact.at, text))


def _ended(fact: AnyServingFact) -> str:
    replica = getattr(fact, "replica", 0)
    what = f"replica {replica}" if replica else "the front"
    return f"{what} ended: {getattr(fact, 'reason', '')}"


def fold(facts: Iterable[AnyServingFact]) -> DeploymentRecord | None:
    """Return what facts say together; `None` if there are none."""
    record: DeploymentRecord | None = None
    for fact in facts:
        if record is None:
            if not isinstance(fact, DeploymentStarted):
                raise StoreError(f"The journal of a deployment begins with {type(fact).__name__}; is it one?")
            record = DeploymentRecord(fact.specification, fact.at)
        record.apply(fact)
    return record


def folder_of(project: ProjectFolder, name: str) -> DeploymentFolder:
    """Return the folder of a deployment."""
    return DeploymentFolder(project.root / DEPLOYMENTS.folder / name)


def read_record(folder: DeploymentFolder) -> DeploymentRecord | None:
    """Return what the journal of a deployment says; `None` if there is no journal."""
    if not folder.journal.exists():
        return None
    return fold(JournalReader(folder.journal, SERVING_FACTS, of=folder.id).read_new())


def find_record(project: ProjectFolder, name: str) -> DeploymentRecord:
    """Return what the journal of a deployment says.

    Raises:
        NotFoundError: If there is no such deployment; names the nearest.
    """
    record = read_record(folder_of(project, name)) if DEPLOYMENTS.id.fullmatch(name) else None
    if record is None:
        names = [folder.id for folder in all_folders(project)]
        raise NotFoundError(
            f"There is no deployment {name!r} in {project.root}.{nearest(name, names)}",
            wanted=name,
            nearest=nearest_names(name, names),
        )
    return record


def all_records(project: ProjectFolder) -> Iterator[tuple[str, DeploymentRecord | StoreError]]:
    """Yield what the journals of all deployments say, by name, or why one cannot be read.

    Journals that have not changed since this process read them are not opened; the records are not to be changed.
    """
    return _REMEMBERED.all(DEPLOYMENTS, project.root)


def _read_whole(name: str, journal: Path) -> DeploymentRecord:
    record = fold(JournalReader(journal, SERVING_FACTS, of=name).read_new())
    if record is None:
        raise StoreError(f"The journal {journal} has no whole line yet.")
    return record


_REMEMBERED: Final = Remembered(_read_whole)


def all_folders(project: ProjectFolder) -> Iterator[DeploymentFolder]:
    """Yield the folders of all deployments of a project, by name."""
    for root in folders_of(DEPLOYMENTS, project.root):
        folder = DeploymentFolder(root)
        if folder.journal.exists():
            yield folder
