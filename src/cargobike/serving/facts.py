"""The facts of a deployment: what it was to be, what was released, and what became of its processes."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from cargobike.core.facts import Fact, Facts
from cargobike.serving.specification import Specification

VERSION: Final = 1

Outcome = Literal["released", "failed", "rolled back"]


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a version is brought in beside the one that serves.

    Attributes:
        canary: The share of requests that it gets at first; 0 to get all of them as soon as it is ready.
        shadow: Whether it gets copies of all requests, and its answers are compared and not served.
        by: A field of rows: equal values always meet the same version. Empty: requests are shared out by chance.
        requests: How many requests it must have answered before it is judged good.
        watch_s: How long it must have answered them.
        errors: By how much the share of its requests that fail may be above that of the version that serves.
        slower: How many times as long as the other it may take.
        decide: Whether it is promoted, or taken back, by these figures; else only a user does.
    """

    canary: float = 0.0
    shadow: bool = False
    by: str = ""
    requests: int = 100
    watch_s: float = 30.0
    errors: float = 0.02
    slower: float = 2.0
    decide: bool = True

    @property
    def is_watched(self) -> bool:
        """Whether it stands beside the other for a while."""
        return bool(self.canary) or self.shadow


class DeploymentStarted(Fact, frozen=True, tag="deployment-started"):
    """The first line of the journal of a deployment; `environment` holds names and no values."""

    id: str
    specification: Specification
    version: int = VERSION
    cargobike: str = ""
    user: str = ""
    host: str = ""


class DeploymentChanged(Fact, frozen=True, tag="deployment-changed"):
    """Something else was asked for under the same name."""

    specification: Specification
    user: str = ""


class SupervisorStarted(Fact, frozen=True, tag="supervisor-started"):
    """A supervisor took the deployment over; `adopted` are replicas that it found running.

    Here and below `step` names the step of a pipeline that asked for it; empty if none did.
    """

    pid: int
    host: str
    port: int
    adopted: tuple[int, ...] = ()
    grpc_port: int = 0
    step: str = ""


class ReleaseStarted(Fact, frozen=True, tag="release-started"):
    """A version is being brought in."""

    model_version: int
    plan: Plan = Plan()
    step: str = ""


class ReleaseEnded(Fact, frozen=True, tag="release-ended"):
    """A version serves, or does not and why; `previous` is the one that it took the place of."""

    model_version: int
    outcome: Outcome
    previous: int = 0
    reason: str = ""
    step: str = ""


class Share(msgspec.Struct, frozen=True):
    """A version and its share of requests."""

    version: int
    weight: float = 1.0


class Routed(Fact, frozen=True, tag="routed"):
    """Where requests went from then on."""

    routes: tuple[Share, ...]
    shadow: int = 0
    by: str = ""


class Scaled(Fact, frozen=True, tag="scaled"):
    """How many replicas there were to be from then on; `least` and `most` are the bounds."""

    replicas: int
    least: int
    most: int
    reason: str = ""


class ReplicaStarted(Fact, frozen=True, tag="replica-started"):
    """A replica was started."""

    replica: int
    model_version: int


class ReplicaEnded(Fact, frozen=True, tag="replica-ended"):
    """A replica ended; `wanted` if the supervisor ended it."""

    replica: int
    model_version: int
    reason: str
    wanted: bool = False


class FrontEnded(Fact, frozen=True, tag="front-ended"):
    """The process that answers requests ended, and is started again."""

    reason: str


class DeploymentStopped(Fact, frozen=True, tag="deployment-stopped"):
    """Nothing serves any more, because a user wanted that or because nothing could be served."""

    reason: str = ""


AnyServingFact = (
    DeploymentStarted
    | DeploymentChanged
    | SupervisorStarted
    | ReleaseStarted
    | ReleaseEnded
    | Routed
    | Scaled
    | ReplicaStarted
    | ReplicaEnded
    | FrontEnded
    | DeploymentStopped
)

SERVING_FACTS: Final[Facts[AnyServingFact, DeploymentStarted]] = Facts(
    AnyServingFact, first=DeploymentStarted, version=VERSION
)
