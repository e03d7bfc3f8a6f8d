"""What is asked of a cluster beyond what a deployment's specification says."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, get_args

import msgspec

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.serving.kind import DEPLOYMENTS
from cargobike.serving.specification import ScaleBy, Specification
from cargobike.store.history.environment import without_credentials

Target = Literal["kubernetes", "kserve"]

PORT: Final = 8080
GRPC_PORT: Final = 8081
CONFIG: Final = "/etc/cargobike"
TOKENS: Final = f"{CONFIG}/tokens"
TLS: Final = f"{CONFIG}/tls"
SPECIFICATION: Final = "deployment.json"
PROJECT: Final = "/srv/cargobike"
"""Where the image has the project with the model."""
PRE_STOP_S: Final = 5
"""How long a pod goes on as before when it is to end: meanwhile the cluster tells those who send requests."""
LEAVE_S: Final = 3
"""How long it then goes on while it says that it is not ready, and ends the connections of those who still ask."""
_IMAGE: Final = re.compile(r"[a-z0-9]+([._/:-]+[A-Za-z0-9_][A-Za-z0-9._-]*)*(@sha256:[0-9a-f]{64})?")
_QUANTITY: Final = re.compile(r"\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUFFIX_ROOM: Final = 20
_MOST_CONFIG_BYTES: Final = 900_000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment, and how it is to be run on a cluster.

    Attributes:
        specification: What is served, and how.
        image: The image that holds it, as a registry knows it.
        namespace: Where; empty for the cluster's default.
        pull_secret: A Secret with which the image is pulled; empty for none.
        tokens_secret: The Secret that holds tokens, one in each line of its keys `predict` and `administer`; by default
            `<name>-tokens`.
        project_url: The address of the project, if all pods reach it: the inference log lies there, and views are read
            from there. Without it and without Kafka nothing is logged: files in a pod end with it.
        pulls_model: Whether pods take the model from the project when they start, rather than from the image.
        bound_groups: Groups of the view whose rows only this host can look up, with where they are.
        service_account: The account that the pods run as; empty for the namespace's default.
        cpu_target: At how many percent of its processors a pod is busy enough for one more.
        uses_metrics: Whether the number of pods follows `scaling.by`, for which the cluster must have an adapter that
            gives it our figures; otherwise it follows processor use.
    """

    specification: Specification
    image: str
    namespace: str = ""
    pull_secret: str = ""
    tokens_secret: str = ""
    project_url: str = ""
    pulls_model: bool = False
    bound_groups: dict[str, str] = {}
    service_account: str = ""
    cpu_target: int = 70
    uses_metrics: bool = False

    @property
    def name(self) -> str:
        """What all of its objects are called."""
        return object_name(self.specification.name)

    @property
    def tokens(self) -> str:
        """The Secret that holds tokens."""
        return self.tokens_secret or f"{self.name}-tokens"

    @property
    def secrets(self) -> tuple[str, ...]:
        """All Secrets that must be there before it can run."""
        more = [f"{self.name}-environment"] if self.specification.environment else []
        more += [f"{self.name}-tls"] if self.specification.tls_certificate else []
        more += [self.pull_secret] if self.pull_secret else []
        return (self.tokens, *more)


def how_to_make(name: str, asked: Asked, namespace: str = "") -> str:
    """Return the command that makes a Secret which a deployment needs."""
    kubectl = f"kubectl -n {namespace} create secret" if namespace else "kubectl create secret"
    if name == asked.tokens:
        return f'{kubectl} generic {name} --from-literal=predict="$(openssl rand -hex 24)"'
    if name == f"{asked.name}-tls":
        return f"{kubectl} tls {name} --cert=FILE --key=FILE"
    if name == f"{asked.name}-environment":
        values = " ".join(f"--from-literal={one}=…" for one in sorted(asked.specification.environment))
        return f"{kubectl} generic {name} {values}"
    return f"{kubectl} docker-registry {name} --docker-server=… --docker-username=… --docker-password=…"


def object_name(name: str) -> str:
    """Return the name of a deployment as Kubernetes allows it: lower case, digits and `-`.

    Example:
        >>> object_name("Digits_2.large")
        'digits-2-large'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return plain if plain[:1].isalpha() else f"d-{plain}"


def check_asked(asked: Asked, target: Target = "kubernetes") -> None:
    """Refuse what a cluster could not run.

    Raises:
        InvalidInputError: Lists every mistake.
    """
    mistakes = [*_naming(asked), *_reaching(asked), *_scaling(asked, target)]
    if target == "kserve":
        mistakes += _for_kserve(asked)
    if len(msgspec.json.encode(asked.specification)) > _MOST_CONFIG_BYTES:
        mistakes.append("the functions before and after the model are too large for a ConfigMap; make them part of it.")
    if mistakes:
        raise InvalidInputError("This cannot be run on Kubernetes:", mistakes)


def _naming(asked: Asked) -> list[str]:
    specification = asked.specification
    mistakes = []
    if not DEPLOYMENTS.id.fullmatch(specification.name):
        mistakes.append(f"the name {specification.name!r} must be letters, digits, '-', '_' and '.'.")
    if len(asked.name) > 63 - _SUFFIX_ROOM:
        mistakes.append(f"the name {specification.name!r} is too long: at most {63 - _SUFFIX_ROOM} letters fit.")
    if not _IMAGE.fullmatch(asked.image):
        mistakes.append(f"{asked.image!r} is no image; write one as 'registry/team/digits:3'.")
    if not specification.version:
        mistakes.append(f"the version of {specification.model!r} is not known; a cluster runs one version.")
    mistakes += [
        f"resources: {key!r} cannot be {value!r}; write a quantity such as '500m', '2' or '4Gi'."
        for key, value in specification.resources.items()
        if not _QUANTITY.fullmatch(str(value))
    ]
    mistakes += [
        f"environment: {name!r} is no name of a variable; the Secret {asked.name}-environment has its value."
        for name in specification.environment
        if not _VARIABLE.fullmatch(name)
    ]
    return mistakes


def _reaching(asked: Asked) -> list[str]:
    """Return what pods would need and could not reach."""
    specification = asked.specification
    shared = "the project must be on storage that pods reach: --project s3://bucket/path or hdfs://host/path."
    mistakes = []
    if specification.view and not asked.project_url:
        mistakes.append(f"view={specification.view!r}: pods read from the project what a view is; {shared}")
    mistakes += [
        f"view={specification.view!r}: rows of the group {group} are {where}; keep them where pods look them up, too: "
        f"features.group({group!r}).update(online='redis://host:6379/0')."
        for group, where in asked.bound_groups.items()
    ]
    if asked.pulls_model and not asked.project_url:
        mistakes.append(f"pods cannot pull the model: {shared}")
    if specification.logging.url != without_credentials(specification.logging.url):
        mistakes.append("log: the address has credentials, which all readers of the manifests would see.")
    return mistakes


def _scaling(asked: Asked, target: Target) -> list[str]:
    scaling = asked.specification.scaling
    allowed = get_args(ScaleBy)
    mistakes = []
    if scaling.by not in allowed:
        mistakes.append(f"scaling by {scaling.by!r}: there is {', '.join(allowed)}.{nearest(scaling.by, allowed)}")
    if scaling.least > scaling.most:
        mistakes.append(f"replicas {scaling.least}:{scaling.most}: the fewest come first, such as 1:4.")
    if not scaling.target > 0:
        mistakes.append(f"the target of scaling is {scaling.target!r}; it must be above 0.")
    if not 1 <= asked.cpu_target <= 100:
        mistakes.append(f"cpu_target is between 1 and 100 percent; {asked.cpu_target} was given.")
    if scaling.least < 1 and target == "kubernetes":
        mistakes.append(
            f"replicas {scaling.least}:{scaling.most}: the autoscaler of Kubernetes keeps at least one pod; "
            f"say 1:{max(1, scaling.most)}, or render for KServe, which scales to zero (--render kserve)."
        )
    if asked.uses_metrics and scaling.most <= max(1, scaling.least):
        mistakes.append(f"scaling by metrics needs bounds, such as 1:4; {scaling.least} replicas were asked for.")
    return mistakes


def _for_kserve(asked: Asked) -> list[str]:
    specification = asked.specification
    mistakes = []
    if specification.grpc_port is not None:
        mistakes.append("gRPC: KServe routes to one port, which is HTTP; --render kubernetes has both.")
    if asked.uses_metrics:
        mistakes.append("metrics: KServe scales by processor use or, with replicas 0:N, by its own figures.")
    if specification.scaling.least == 0 and specification.scaling.by == "queue":
        mistakes.append("scaling by 'queue': KServe knows concurrency and requests.")
    if specification.scaling.least == 0 and specification.tls_certificate:
        mistakes.append("TLS: with replicas 0:N Knative speaks HTTP to pods, and its gateway encrypts.")
    return mistakes


def in_pod(asked: Asked) -> dict[str, Any]:
    """Return a specification as a pod runs it: one replica in each pod, on all addresses, with mounted files."""
    specification, logging = asked.specification, asked.specification.logging
    if not logging.kafka:
        place = logging.url or asked.project_url
        logging = msgspec.structs.replace(logging, url=place, sample=logging.sample if place else 0.0)
    has_tls = bool(specification.tls_certificate)
    inside = msgspec.structs.replace(
        specification,
        model=f"{specification.model.partition('@')[0].partition(':')[0]}:{specification.version}",
        host="0.0.0.0",  # noqa: S104 - the pod's own network; callers need a token
        port=PORT,
        grpc_port=None if specification.grpc_port is None else GRPC_PORT,
        view_project=asked.project_url if specification.view else "",
        limits=msgspec.structs.replace(specification.limits, leave_s=float(LEAVE_S)),
        scaling=msgspec.structs.replace(specification.scaling, least=1, most=1),
        tls_certificate=f"{TLS}/tls.crt" if has_tls else "",
        tls_key=f"{TLS}/tls.key" if has_tls else "",
        logging=logging,
        resources={},
        environment=dict.fromkeys(specification.environment, ""),
    )
    plain: dict[str, Any] = msgspec.to_builtins(inside)
    return plain
