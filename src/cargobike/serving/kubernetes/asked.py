"""What is asked of a cluster beyond what a deployment's specification says."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.serving.specification import Specification

PORT: Final = 8080
CONFIG: Final = "/etc/cargobike"
TOKENS: Final = f"{CONFIG}/tokens"
TLS: Final = f"{CONFIG}/tls"
SPECIFICATION: Final = "deployment.json"
PROJECT: Final = "/srv/cargobike"
"""Where the image has the project with the model."""
PRE_STOP_S: Final = 5
"""How long a pod goes on taking requests after it was told to end: so long the cluster may still send some."""
_IMAGE: Final = re.compile(r"[a-z0-9]+([._/:-]+[A-Za-z0-9_][A-Za-z0-9._-]*)*(@sha256:[0-9a-f]{64})?")
_QUANTITY: Final = re.compile(r"\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
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
        log_url: Where the inference log lies, an address that all pods reach. Without it and without Kafka nothing is
            logged: files in a pod end with it.
        service_account: The account that the pods run as; empty for the namespace's default.
        cpu_target: At how many percent of its processors a pod is busy enough for one more.
    """

    specification: Specification
    image: str
    namespace: str = ""
    pull_secret: str = ""
    tokens_secret: str = ""
    log_url: str = ""
    service_account: str = ""
    cpu_target: int = 70

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


def object_name(name: str) -> str:
    """Return the name of a deployment as Kubernetes allows it: lower case, digits and `-`.

    Example:
        >>> object_name("Digits_2.large")
        'digits-2-large'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return plain if plain[:1].isalpha() else f"d-{plain}"


def check_asked(asked: Asked) -> None:
    """Refuse what a cluster could not run.

    Raises:
        InvalidInputError: Lists every mistake.
    """
    specification = asked.specification
    mistakes = []
    if len(asked.name) > 63 - _SUFFIX_ROOM:
        mistakes.append(f"the name {specification.name!r} is too long: at most {63 - _SUFFIX_ROOM} letters fit.")
    if not _IMAGE.fullmatch(asked.image):
        mistakes.append(f"{asked.image!r} is no image; write one as 'registry/team/digits:3'.")
    mistakes += [
        f"resources: {key!r} cannot be {value!r}; write a quantity such as '500m', '2' or '4Gi'."
        for key, value in specification.resources.items()
        if not _QUANTITY.fullmatch(str(value))
    ]
    if not specification.version:
        mistakes.append(f"the version of {specification.model!r} is not known; a cluster runs one version.")
    if specification.view:
        mistakes.append(
            f"view={specification.view!r}: features are looked up in files of this machine, which pods do not have."
        )
    if specification.grpc_port is not None:
        mistakes.append(f"grpc={specification.grpc_port!r}: services on a cluster have a port for HTTP only.")
    if not 1 <= asked.cpu_target <= 100:
        mistakes.append(f"cpu_target is between 1 and 100 percent; {asked.cpu_target} was given.")
    if len(msgspec.json.encode(specification)) > _MOST_CONFIG_BYTES:
        mistakes.append("the functions before and after the model are too large for a ConfigMap; make them part of it.")
    if mistakes:
        raise InvalidInputError("This cannot be run on Kubernetes:", mistakes)


def in_pod(asked: Asked) -> dict[str, Any]:
    """Return a specification as a pod runs it: one replica in each pod, on all addresses, with mounted files."""
    specification, logging = asked.specification, asked.specification.logging
    if not logging.kafka:
        place = logging.url or asked.log_url
        logging = msgspec.structs.replace(logging, url=place, sample=logging.sample if place else 0.0)
    has_tls = bool(specification.tls_certificate)
    inside = msgspec.structs.replace(
        specification,
        model=f"{specification.model.partition('@')[0].partition(':')[0]}:{specification.version}",
        host="0.0.0.0",  # noqa: S104 - the pod's own network; callers need a token
        port=PORT,
        scaling=msgspec.structs.replace(specification.scaling, least=1, most=1),
        tls_certificate=f"{TLS}/tls.crt" if has_tls else "",
        tls_key=f"{TLS}/tls.key" if has_tls else "",
        logging=logging,
        resources={},
        environment=dict.fromkeys(specification.environment, ""),
    )
    plain: dict[str, Any] = msgspec.to_builtins(inside)
    return plain
