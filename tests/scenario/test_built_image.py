"""The rendered Dockerfile, instruction by instruction, in a folder and a fresh environment instead of an image."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import yaml

from cargobike import models, project
from cargobike.core.errors import InvalidInputError
from cargobike.core.settings import CACHE, PROJECT
from cargobike.serving.commands.shipping import Shipping, ship
from cargobike.serving.kubernetes.wheel import write_wheel
from cargobike.serving.specification import Specification
from support.pods import HEADERS, TOKEN, Pod, free_port

LONGEST_S = 900.0


def twice(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


class Image:
    """What the instructions of a Dockerfile make, below a folder that stands for `/`.

    Args:
        context: The folder that it is built from.
        root: The folder to build in.
    """

    def __init__(self, context: Path, root: Path) -> None:
        self._context, self._root = context, root
        self._here = "/"
        self.entrypoint: list[str] = []
        self.done: list[str] = []
        subprocess.run([sys.executable, "-m", "venv", root / "python"], check=True, timeout=LONGEST_S)
        text = (context / "Dockerfile").read_text().replace("\\\n", " ")
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, _, words = line.partition(" ")
                getattr(self, f"_{name.lower()}")(words.strip())
                self.done.append(name)

    def place(self, path: str) -> Path:
        """Return where something of the image is."""
        return self._root / os.path.join(self._here, path).lstrip("/")

    def _from(self, words: str) -> None:
        assert words == f"python:{sys.version_info[0]}.{sys.version_info[1]}-slim"

    def _env(self, words: str) -> None:
        self.environment = dict(pair.split("=") for pair in words.split())

    def _workdir(self, words: str) -> None:
        self._here = words
        self.place(".").mkdir(parents=True, exist_ok=True)

    def _copy(self, words: str) -> None:
        owner, source, target = re.fullmatch(r"(--chown=10001:10001 )?(\S+) (\S+)", words).groups()  # type: ignore[union-attr]
        assert bool(owner) == (source == "project/"), "the one who serves may read the project, however strict it is"
        kept = (self._context / ".dockerignore").read_text().splitlines()
        assert f"!{source.rstrip('/')}" in kept, "what is left out of the context cannot be copied"
        place = self.place(target)
        if source.endswith("/"):
            shutil.copytree(self._context / source, place, dirs_exist_ok=True)
        else:
            shutil.copy(self._context / source, place)

    def _run(self, words: str) -> None:
        if words.startswith("groupadd"):
            assert "--uid 10001" in words
            return
        mount, _, command = words.partition(" pip install ")
        assert mount == "--mount=type=secret,id=pip,target=/etc/pip.conf"
        arguments = [word.strip('"') for word in command.split()]
        pip = [str(self._root / "python" / "bin" / "python"), "-m", "pip", "install", "--quiet", *arguments]
        subprocess.run(pip, check=True, cwd=self.place("."), timeout=LONGEST_S)

    def _user(self, words: str) -> None:
        assert words == "10001:10001"

    def _expose(self, words: str) -> None:
        assert words == "8080"

    def _entrypoint(self, words: str) -> None:
        program, *arguments = json.loads(words)
        self.entrypoint = [str(self._root / "python" / "bin" / program), *arguments]


@pytest.mark.slow
def test_every_instruction_works_and_what_is_built_serves(tmp_path: Path) -> None:
    project.use(tmp_path / "project")
    version = models.register("digits", twice, example=[1.0])
    assert version.requirements
    ship(
        Specification(name="digits", model="digits:1"),
        Shipping(target="kubernetes", output=tmp_path / "ship", image="registry.example/digits:1"),
    )
    # All that this process has would be gigabytes; the lock of the image is what the model needs of it.
    needed = f"numpy=={metadata.version('numpy')}\n"
    (tmp_path / "ship" / "requirements.txt").write_text(needed)
    image = Image(tmp_path / "ship", tmp_path / "image")
    assert image.done.count("COPY") == 3
    assert image.done.count("RUN") == 3
    assert image.done[-1] == "ENTRYPOINT"
    (config, deployment, *_) = yaml.safe_load_all((tmp_path / "ship" / "kubernetes.yaml").read_text())
    answer, output, code = _serve(image, config, deployment, tmp_path)
    assert answer == [2.0, 5.0]
    assert code == 0, output
    assert TOKEN not in output


def _serve(image: Image, config: Any, deployment: Any, tmp_path: Path) -> tuple[Any, str, int]:
    """Run the entrypoint with the arguments and the environment of the pod alone."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    inside = msgspec.json.decode(config["data"]["deployment.json"], type=Specification)
    port = free_port()
    limits = msgspec.structs.replace(inside.limits, leave_s=0.2)
    local = msgspec.structs.replace(inside, host="127.0.0.1", port=port, limits=limits)
    mounted = tmp_path / "mounted"
    (mounted / "tokens").mkdir(parents=True)
    (mounted / "tokens" / "predict").write_text(TOKEN)
    (mounted / "deployment.json").write_bytes(msgspec.json.encode(local))
    arguments = list(container["args"])
    arguments[1], arguments[3] = str(mounted / "deployment.json"), str(mounted / "tokens")
    environment = {one["name"]: one["value"] for one in container["env"]}
    environment[PROJECT] = str(image.place(environment[PROJECT]))
    (mounted / "tmp").mkdir()
    paths = {"PATH": os.environ["PATH"], "HOME": str(mounted / "tmp"), "TMPDIR": str(mounted / "tmp")}
    process = subprocess.Popen(
        [*image.entrypoint, *arguments],
        env={**environment, **image.environment, **paths, CACHE: str(mounted / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    pod = Pod.of(process, port)
    try:
        pod.await_ready()
        answer = httpx.post(f"{pod.address}/predict", json=[1, 2.5], headers=HEADERS).json()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        output = pod.close()
    return answer, output, process.returncode


def test_the_wheel_of_what_runs_here_is_the_same_each_time_and_whole(tmp_path: Path) -> None:
    (tmp_path / "cargobike-0.0.1-py3-none-any.whl").touch()
    first = write_wheel(tmp_path, ["serving"])
    assert [one.name for one in tmp_path.iterdir()] == [first.name]
    content = first.read_bytes()
    assert write_wheel(tmp_path).read_bytes() == content
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(first)], check=True, capture_output=True, text=True
    ).stdout
    for name in ("cargobike/serving/front/web/static/try.html", "entry_points.txt", "RECORD", "METADATA"):
        assert name in listed
    with pytest.raises(InvalidInputError, match=r"does not know its own extras nonsense"):
        write_wheel(tmp_path, ["nonsense"])
