"""The environment that an experiment ran in: Python, packages, operating system, processors.

Read without importing or running any package: names and versions of packages are in the names of their folders, so
that this takes milliseconds however many there are.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.values.undecodable import UNDECODABLE

VARIABLES: Final = (
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "TF_DETERMINISTIC_OPS",
    "XLA_FLAGS",
)
"""Variables that change what a train function computes; no others are looked at, since they may hold secrets."""

_INFO: Final = re.compile(r"(?P<name>[A-Za-z0-9._]+)-(?P<version>[^-]+)(?:-.*)?\.(?:dist|egg)-info")
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What a train function ran in.

    Attributes:
        packages: Versions of installed packages, by normalized name.
        urls: Origins of packages that are not from an index: a folder, a repository.
        variables: Those of `VARIABLES` that were set.
    """

    python: str = ""
    implementation: str = ""
    executable: str = ""
    os: str = ""
    machine: str = ""
    cpu: str = ""
    cores: int = 0
    memory_bytes: int = 0
    gpus: tuple[str, ...] = ()
    gpu_driver: str = ""
    packages: dict[str, str] = {}
    urls: dict[str, str] = {}
    variables: dict[str, str] = {}

    def lock(self) -> str:
        """Return a requirements file for pip; packages that are not from an index are comments in it."""
        lines = [f"# Python {self.python} on {self.os} {self.machine}"]
        for name, version in sorted(self.packages.items()):
            url = self.urls.get(name)
            lines.append(f"{name}=={version}" if url is None else f"# {name}=={version} from {url}")
        return "\n".join(lines) + "\n"


def read_environment(path: Iterable[str] | None = None) -> Environment:
    """Look at this process's environment; `path` is where packages are looked for, by default `sys.path`."""
    packages, urls = _packages(sys.path if path is None else path)
    return Environment(
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        executable=sys.executable,
        os=_system(),
        machine=platform.machine(),
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=_gpus(),
        gpu_driver=_gpu_driver(),
        packages=packages,
        urls=urls,
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
    )


def without_credentials(url: str) -> str:
    """Return a URL without user name and password."""
    return _CREDENTIALS.sub("", url)


def normalized(name: str) -> str:
    """Return a package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _packages(path: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    packages: dict[str, str] = {}
    urls: dict[str, str] = {}
    for folder in dict.fromkeys(path):
        try:
            entries = sorted(entry.name for entry in os.scandir(folder or ".") if entry.name.endswith("-info"))
        except OSError:
            continue
        for entry in entries:
            match = _INFO.fullmatch(entry)
            if match is None or (name := normalized(match["name"])) in packages:
                continue  # the first one on the path is the one that is imported
            packages[name] = match["version"]
            url = _origin(Path(folder, entry))
            if url:
                urls[name] = url
    return packages, urls


def _origin(info: Path) -> str:
    """Return where a package was installed from if that was not an index (PEP 610)."""
    try:
        described = msgspec.json.decode((info / "direct_url.json").read_bytes())
        return without_credentials(str(described["url"]))
    except (OSError, KeyError, TypeError, *UNDECODABLE):
        return ""


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        name = ""
    return f"{name or platform.system()} ({platform.system()} {platform.release()})"


def _cpu() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _gpus() -> tuple[str, ...]:
    """Return the models of NVIDIA's cards as the kernel module lists them, without starting other programs."""
    models = []
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        try:
            lines = file.read_text(errors="replace").splitlines()
        except OSError:
            continue
        models += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return tuple(models)


def _gpu_driver() -> str:
    try:
        match = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", Path("/proc/driver/nvidia/version").read_text(errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""
