"""How the image of a deployment is made: the packages of the model's environment, Cargobike, the model."""

from __future__ import annotations

import re
import sys
from typing import Final, NamedTuple

from cargobike.core.version import __version__
from cargobike.serving.kubernetes.asked import PORT, PROJECT
from cargobike.store.history.environment import without_credentials

REQUIREMENTS: Final = "requirements.txt"
PACKAGES: Final = "packages"
"""A folder for wheels that no index has; pip looks there too."""
_PINNED: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==([A-Za-z0-9.!+_-]+)(\s*;.*)?")
_FROM_ELSEWHERE: Final = re.compile(r"# (([A-Za-z0-9][A-Za-z0-9._-]*)==\S+ from .*)")
_PYTHON: Final = re.compile(r"#.*?Python (\d+)\.(\d+)", re.IGNORECASE)


class Lock(NamedTuple):
    """A lock file that can be installed in an image: pinned packages, and the lines that were left out."""

    text: str
    left_out: tuple[str, ...]


def clean_lock(lock: str) -> Lock:
    """Return the packages that an index has; files of this machine, options and addresses with secrets are left out."""
    kept, left_out = [], []
    for line in map(str.strip, lock.splitlines()):
        if recorded := _FROM_ELSEWHERE.fullmatch(line):
            left_out += [without_credentials(recorded[1])] if recorded[2].lower() != "cargobike" else []
        if not line or line.startswith("#"):
            continue
        match = _PINNED.fullmatch(line)
        if match is None:
            left_out.append(without_credentials(line))
        elif match[1].lower() != "cargobike":  # comes with the extra that serves
            kept.append(line)
    return Lock("".join(f"{line}\n" for line in kept), tuple(left_out))


def dockerfile(lock: str, *, extras: tuple[str, ...] = ("serving",), python: str = "") -> str:
    """Return a Dockerfile for a folder with `requirements.txt`, `packages/` and `project/`.

    It holds no secret: where pip needs one, it is mounted while the image is built
    (`docker build --secret id=pip,src=$HOME/.config/pip/pip.conf .`).

    Args:
        lock: The packages that the model needs, as they were recorded.
        extras: What of Cargobike is installed.
        python: Which Python, such as `3.11`; by default that of the lock file, or of this process.
    """
    cleaned = clean_lock(lock)
    recorded = _PYTHON.search(lock)
    version = python or (f"{recorded[1]}.{recorded[2]}" if recorded else "{}.{}".format(*sys.version_info[:2]))
    notes = "".join(f"# Left out of {REQUIREMENTS}, since no index has it: {line}\n" for line in cleaned.left_out)
    own = [line for line in cleaned.text.splitlines() if "+" in line.partition("==")[2]]
    notes += "".join(f"# Of an index of its own, which pip.conf must name: {line}\n" for line in own)
    package = f"cargobike[{','.join(extras)}]=={__version__}"
    pip = "RUN --mount=type=secret,id=pip,target=/etc/pip.conf pip install --no-cache-dir --find-links packages"
    return f"""\
# syntax=docker/dockerfile:1
{notes}FROM python:{version}-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN groupadd --gid 10001 cargobike \\
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin cargobike

WORKDIR /build
COPY {PACKAGES}/ {PACKAGES}/
COPY {REQUIREMENTS} ./
{pip} --requirement {REQUIREMENTS}
{pip} "{package}"

WORKDIR {PROJECT}
COPY --chown=10001:10001 project/ {PROJECT}/

USER 10001:10001
EXPOSE {PORT}
ENTRYPOINT ["cargobike", "serve"]
"""
