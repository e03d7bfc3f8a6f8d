"""Which GPUs a machine has, and who holds which of them."""

from __future__ import annotations

import functools
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from cargobike.core import settings
from cargobike.core.errors import EngineError, InvalidInputError

_NVIDIA_SMI_TIMEOUT_S = 3.0
_SMALLEST_SHARE = Fraction(1, 1_000_000)


def detect_gpus(*, environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> tuple[str, ...]:
    """Return the names of the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` spells them.

    A variable that limits the visible devices is believed: `CUDA_VISIBLE_DEVICES`, then
    `HIP_VISIBLE_DEVICES`. Without one, the machine is looked at: what the container runtime was asked for
    (`NVIDIA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES`), the NVIDIA driver's files, `nvidia-smi`, the ROCm
    driver's files. Neither CUDA nor torch is initialized, so a process may fork afterwards.

    Args:
        environ: Environment variables; this process's own if not given.
        root: Where `/proc` and `/sys` are.
    """
    variables = os.environ if environ is None else environ
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if name in variables:
            return _visible(variables[name])
    fakes = settings.fake_gpus(variables)
    if fakes is not None:
        return fakes
    return _nvidia_gpus(variables, root) or _rocm_gpus(variables, root)


class GpuPool:
    """Lends GPUs to owners: whole ones exclusively, fractions of one side by side up to a full device.

    Guarantees: no device is ever lent beyond 1; the holder of a whole GPU is alone on it; what is given back
    can be lent again at once. Shares are exact fractions, so ten owners of 0.1 or three of 1/3 fill a device.
    Not thread-safe.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        twice = sorted({device for device in devices if devices.count(device) > 1})
        if twice:
            raise InvalidInputError(f"Each GPU may be named once; named more than once: {', '.join(twice)}.")
        self.devices = tuple(devices)
        self._lent = dict.fromkeys(self.devices, Fraction(0))
        self._held: dict[str, tuple[tuple[str, ...], Fraction]] = {}

    def capacity(self, share: float) -> int:
        """Return how many owners of this share fit at once if no GPU is held.

        An owner that needs no GPU is not limited by the pool: a share of 0 gives `sys.maxsize`.
        """
        part = _exact_share(share)
        if part == 0:
            return sys.maxsize
        if part >= 1:
            return len(self.devices) // int(part)
        return len(self.devices) * (1 // part)

    def take(self, owner: str, share: float) -> tuple[str, ...]:
        """Lend GPUs to an owner and return their names; a fraction goes where it fills a device best.

        Raises:
            InvalidInputError: If it is not a share, or the owner already holds GPUs.
            EngineError: If not enough is free at the moment.
        """
        part = _exact_share(share)
        if owner in self._held:
            held = ", ".join(self._held[owner][0])
            raise InvalidInputError(f"{owner} already holds GPU {held}; give that back first.")
        if part == 0:
            return ()
        if part >= 1:
            each = Fraction(1)
            taken = tuple(device for device in self.devices if self._lent[device] == 0)[: int(part)]
            missing = len(taken) < int(part)
        else:
            each = part
            fitting = [device for device in self.devices if self._lent[device] + part <= 1]
            taken = (max(fitting, key=self._lent.__getitem__),) if fitting else ()
            missing = not fitting
        if missing:
            raise EngineError(f"{owner} asks for {share:g} GPUs, which are not free. {self._describe()}")
        for device in taken:
            self._lent[device] += each
        self._held[owner] = (taken, each)
        return taken

    def give_back(self, owner: str) -> None:
        """Take back what an owner holds; does nothing for one who holds nothing."""
        devices, each = self._held.pop(owner, ((), Fraction(0)))
        for device in devices:
            self._lent[device] -= each

    def _describe(self) -> str:
        if not self.devices:
            return "There are no GPUs here: ask for gpus=0, or run where there are some."
        states = ", ".join(f"{device}: {float(1 - self._lent[device]):.3g} free" for device in self.devices)
        return f"This machine has {len(self.devices)} ({states})."


def _exact_share(share: float) -> Fraction:
    """Turn a share such as 0.1 or 1/3 into the fraction that was meant, or refuse it."""
    if isinstance(share, bool) or not math.isfinite(share) or share < 0:
        raise InvalidInputError(
            f"gpus={share!r} is not a number of GPUs. Allowed are whole numbers, and fractions such as 0.5."
        )
    part = Fraction(share).limit_denominator(_SMALLEST_SHARE.denominator)
    if part == 0 and share > 0:
        raise InvalidInputError(f"gpus={share!r} is too small a share; the smallest is {_SMALLEST_SHARE}.")
    if part > 1 and part.denominator != 1:
        raise InvalidInputError(
            f"gpus={share!r} is neither whole nor a share of one GPU. "
            f"Ask for {math.floor(part)} or {math.ceil(part)}: only fractions below 1 can share a device."
        )
    return part


def _visible(text: str) -> tuple[str, ...]:
    """Read a list of visible devices as CUDA does: everything after the first invalid name is invisible."""
    names: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        if not (name.isdecimal() or name.startswith(("GPU-", "MIG-"))):
            break
        names.append(name)
    return tuple(dict.fromkeys(names))


def _nvidia_gpus(environ: Mapping[str, str], root: Path) -> tuple[str, ...]:
    asked_for = environ.get("NVIDIA_VISIBLE_DEVICES")
    # "void" says that the container runtime left the devices alone, not that there are none, and images set
    # "all" even where no GPU was passed in: neither tells anything.
    if asked_for is not None and asked_for.strip() not in {"all", "void"}:
        names = () if asked_for.strip() == "none" else settings.names_in(asked_for)
        # Indices are the host's; inside the container the devices are numbered from 0.
        return tuple(name if name.startswith(("GPU-", "MIG-")) else str(i) for i, name in enumerate(names))
    try:
        found = sum(1 for _ in (root / "proc/driver/nvidia/gpus").iterdir())
    except OSError:
        found = 0
    if found:
        return _numbered(found)
    return _ask_nvidia_smi(shutil.which("nvidia-smi", path=environ.get("PATH")))


@functools.cache
def _ask_nvidia_smi(program: str | None) -> tuple[str, ...]:
    if program is None:
        return ()
    import subprocess  # noqa: PLC0415 - only where there is such a program

    try:
        answer = subprocess.run(
            [program, "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=_NVIDIA_SMI_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip().isdecimal())


def _rocm_gpus(environ: Mapping[str, str], root: Path) -> tuple[str, ...]:
    if "ROCR_VISIBLE_DEVICES" in environ:
        return _numbered(len(settings.names_in(environ["ROCR_VISIBLE_DEVICES"])))
    found = 0
    for node in (root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties"):
        try:
            lines = node.read_text().splitlines()
        except OSError:  # devices that a container may not use cannot be read
            continue
        properties = dict(line.split(maxsplit=1) for line in lines if " " in line.strip())
        found += properties.get("simd_count", "0") != "0"  # processors are nodes too, without such units
    return _numbered(found)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(index) for index in range(count))
