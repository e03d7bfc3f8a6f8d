from __future__ import annotations

import re

from cargobike.core.version import __version__
from cargobike.serving.kubernetes.dockerfile import clean_lock, dockerfile

LOCK = """\
# Python 3.12.4 on Debian x86_64
# cargobike==0.1.0 from file:///home/me/cargobike
# mine==1.0 from https://git.example/mine.git
--extra-index-url https://me:sesame@index.example/simple
numpy==2.4.0
torch==2.13.0+cpu
secret @ https://me:sesame@index.example/secret.whl
-e /home/me/project
"""


def test_only_what_an_index_has_is_installed_and_what_is_left_out_is_said() -> None:
    lock = clean_lock(LOCK)
    assert lock.text == "numpy==2.4.0\ntorch==2.13.0+cpu\n"
    assert lock.left_out == (
        "mine==1.0 from https://git.example/mine.git",
        "--extra-index-url https://index.example/simple",
        "secret @ https://index.example/secret.whl",
        "-e /home/me/project",
    )


def test_the_image_is_made_from_the_folder_alone_and_runs_as_nobody_special() -> None:
    text = dockerfile(LOCK, extras=("serving", "s3"))
    assert "sesame" not in text
    assert "# Of an index of its own, which pip.conf must name: torch==2.13.0+cpu\n" in text
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert lines[0] == "FROM python:3.12-slim"
    copied = re.findall(r"^COPY (?:--chown=10001:10001 )?(\S+)", text, re.MULTILINE)
    assert copied == ["packages/", "requirements.txt", "project/"]
    assert f'"cargobike[serving,s3]=={__version__}"' in text
    users = [line for line in lines if line.startswith("USER")]
    assert users == ["USER 10001:10001"]
    assert lines.index(users[0]) > max(place for place, line in enumerate(lines) if line.startswith(("COPY", "RUN")))
    assert lines[-1] == 'ENTRYPOINT ["cargobike", "serve"]'
    assert not re.search(r"^(ARG|ENV) .*(TOKEN|PASSWORD|SECRET)", text, re.MULTILINE)


def test_without_a_recorded_python_it_is_this_one() -> None:
    assert re.search(r"FROM python:3\.\d+-slim", dockerfile(""))
    assert "FROM python:3.13-slim" in dockerfile(LOCK, python="3.13")
