"""Cargobike's environment variables: their names, what they mean and how they are read, in one place.

Workers wait until this file is loaded, so it imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

PROJECT = "CARGOBIKE_PROJECT"
INDEX_URL = "CARGOBIKE_INDEX_URL"
CACHE = "CARGOBIKE_CACHE"
STORAGE_TIMEOUT_S = "CARGOBIKE_STORAGE_TIMEOUT_S"
UI_TOKEN = "CARGOBIKE_UI_TOKEN"  # noqa: S105 - the name of a variable, not a secret
SERVER = "CARGOBIKE_SERVER"
TOKEN = "CARGOBIKE_TOKEN"  # noqa: S105 - the name of a variable, not a secret
TOKEN_FILE = "CARGOBIKE_TOKEN_FILE"  # noqa: S105 - the name of a variable, not a secret
CA_FILE = "CARGOBIKE_CA_FILE"
ALLOW_HTTP = "CARGOBIKE_ALLOW_HTTP"
SERVE_TOKEN = "CARGOBIKE_SERVE_TOKEN"  # noqa: S105 - the name of a variable, not a secret
REDIS_USER = "CARGOBIKE_REDIS_USER"
REDIS_PASSWORD = "CARGOBIKE_REDIS_PASSWORD"  # noqa: S105 - the name of a variable, not a secret
SMTP_USER = "CARGOBIKE_SMTP_USER"
SMTP_PASSWORD = "CARGOBIKE_SMTP_PASSWORD"  # noqa: S105 - the name of a variable, not a secret
FAKE_GPUS = "CARGOBIKE_FAKE_GPUS"
KAFKA_PROPERTIES = "CARGOBIKE_KAFKA_PROPERTIES"
SHARE_SECRET = "CARGOBIKE_SHARE_SECRET"  # noqa: S105 - the name of a variable, not a secret
COMPAT_QUIET = "CARGOBIKE_COMPAT_QUIET"
COMPAT_ENGINE = "CARGOBIKE_COMPAT_ENGINE"
COMPAT_WORKERS = "CARGOBIKE_COMPAT_WORKERS"
HOPS_VERSION = "CARGOBIKE_HOPS_VERSION"

COLUMNS = "CARGOBIKE_COLUMNS"
CPUS = "CARGOBIKE_CPUS"
SCRATCH = "CARGOBIKE_SCRATCH"
MARK = "CARGOBIKE_MARK"
STEPS_OF = "CARGOBIKE_STEPS_OF"
REGROUPING = "CARGOBIKE_REGROUPING"
PACKAGE_PATH = "CARGOBIKE_PACKAGE_PATH"

FOLDER = "CARGOBIKE_FOLDER"
TRIAL = "CARGOBIKE_TRIAL"
ATTEMPT = "CARGOBIKE_ATTEMPT"
SEED = "CARGOBIKE_SEED"
PARAMS = "CARGOBIKE_PARAMS"

_STORAGE_TIMEOUT_S = 60.0
_token = ""

FOR_PEOPLE = {
    PROJECT: "which project to use: a folder, or a URL of [shared storage](guides/storage.md); by default "
    "`.cargobike` in the working directory, or in the nearest folder above that has one",
    INDEX_URL: "where the index is: `postgresql://user@host/database`; a SQLite file in the project by default",
    CACHE: "where local copies of shared storage lie; `~/.cache/cargobike` by default",
    STORAGE_TIMEOUT_S: "for how many seconds storage that does not answer is asked again; 60 by default",
    UI_TOKEN: "the token that `cargobike ui` asks for, at least 16 characters; a new one each time by default",
    SERVER: "the address of a server that has the project, such as `https://tower:8520`, for "
    "[commands](guides/remote-commands.md) and the [client](guides/client.md)",
    TOKEN: "the token for that server; taken out of the environment as soon as it is read",
    TOKEN_FILE: "a file with that token, which only its owner can read (mode 600)",
    CA_FILE: "a file with the certificates of authorities that this server is checked against, in PEM form",
    ALLOW_HTTP: "`1`, to send the token to another machine over unencrypted HTTP",
    SERVE_TOKEN: "the token that `cargobike serve` asks callers for, at least 16 characters",
    REDIS_USER: "the user for the Redis server that features are looked up in; the server's default user by default",
    REDIS_PASSWORD: "the password for that server; none by default",
    SMTP_USER: "the user for the mail server that [monitors](guides/monitoring.md) send alarms through, and the sender",
    SMTP_PASSWORD: "the password for that server; it is sent only if the server encrypts",
    FAKE_GPUS: "made-up GPUs, such as `0,1,2`, in place of the machine's own, to try out how trials share them",
    KAFKA_PROPERTIES: "a file with settings of the Kafka client of [inference logs](guides/inference-log.md), such as "
    "user and password: `name=value` in each line",
    SHARE_SECRET: "what the members of a network share that data is exchanged in, at least 16 characters",
    COMPAT_QUIET: "anything, to hear nothing of what older libraries' calls are called here; workers do not repeat it",
    COMPAT_ENGINE: "where calls of older libraries run: `local`, `spark` or the address of a Spark master; by default "
    "on Spark if the program has started it, else on this machine",
    COMPAT_WORKERS: "how many workers such calls have; by default as many as ours",
    HOPS_VERSION: "the version of hops that a script was written for, where its calls do not say what they return",
}
"""What people may set, with what it says; the reference documents exactly these."""

BETWEEN_PROCESSES = {
    COLUMNS: "how wide the terminal is that a command prints for, on the other machine that asked for it",
    CPUS: "how many threads a worker may keep busy; its engine sets it",
    MARK: "a random word and the driver's process, by which engines find what workers have left behind",
    STEPS_OF: "the folder of a run, by which a pipeline finds what its steps have left behind",
    PACKAGE_PATH: "folders inside the package, on other machines as well, in which a program's workers find modules: "
    "what stands in for older libraries",
    REGROUPING: "how a program that a rank has started reaches the launcher of a job whose ranks come and go",
    SCRATCH: "the folder that stands for the project on a machine that does not see it; the Spark engine sets it",
}
"""What Cargobike sets for its own processes. In a train function, `CARGOBIKE_PROJECT` is set too."""

FOR_PROGRAMS = {
    FOLDER: "the trial's folder of files",
    TRIAL: "the trial's id",
    ATTEMPT: "how often the trial has been started, this time included",
    SEED: "the trial's own seed",
    PARAMS: "its parameters, as JSON",
}
"""What a program that is searched finds in its environment."""


def project_url() -> str:
    """Return the folder or URL of the project that was named, empty if none was."""
    return os.environ.get(PROJECT, "")


def index_url() -> str:
    """Return the address of the database that the index is to be kept in, empty for the project's own choice."""
    return os.environ.get(INDEX_URL, "").strip()


def cache_folder() -> str:
    """Return the absolute path of the folder for local copies of shared storage."""
    return os.path.abspath(os.environ.get(CACHE) or os.path.expanduser("~/.cache/cargobike"))


def storage_timeout_s() -> float:
    """Return for how long storage that does not answer is asked again; what is no number counts as the default."""
    try:
        seconds = float(os.environ.get(STORAGE_TIMEOUT_S, ""))
    except ValueError:
        return _STORAGE_TIMEOUT_S
    return seconds if 0 <= seconds < float("inf") else _STORAGE_TIMEOUT_S


def config_folder() -> str:
    """Return the absolute path of the folder for what this user has decided, on this machine, for all projects."""
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "cargobike")


def take_ui_token() -> str:
    """Return the token for the dashboard, empty if none was set, and remove it from the environment.

    What this process starts afterwards cannot read it there.
    """
    return os.environ.pop(UI_TOKEN, "")


def columns() -> int:
    """Return how wide the terminal on another machine is that a command prints for; 0 if there is none."""
    text = os.environ.get(COLUMNS, "")
    return min(int(text), 1000) if text.isdecimal() else 0


def server() -> str:
    """Return the address of the server that has the project, empty if none was named."""
    return os.environ.get(SERVER, "").strip()


def token() -> str:
    """Return the token for that server, empty if none was set, and remove it from the environment.

    What this process starts afterwards cannot read it there.
    """
    global _token
    _token = os.environ.pop(TOKEN, "") or _token
    return _token


def token_file() -> str:
    """Return the file with the token for that server, empty if none was named."""
    return os.environ.get(TOKEN_FILE, "")


def ca_file() -> str:
    """Return the file with certificates that servers are checked against, empty for those of this machine."""
    return os.environ.get(CA_FILE, "")


def allows_http() -> bool:
    """Tell whether a token may be sent to another machine unencrypted."""
    return os.environ.get(ALLOW_HTTP, "") == "1"


def redis_credentials() -> tuple[str, str]:
    """Return the user and the password for Redis servers, each empty if it was not set."""
    return os.environ.get(REDIS_USER, ""), os.environ.get(REDIS_PASSWORD, "")


def smtp_credentials() -> tuple[str, str]:
    """Return the user and the password for the mail server, each empty if it was not set."""
    return os.environ.get(SMTP_USER, ""), os.environ.get(SMTP_PASSWORD, "")


def take_serve_token() -> str:
    """Return the token for callers of an endpoint, empty if none was set, and remove it from the environment.

    What this process starts afterwards cannot read it there.
    """
    return os.environ.pop(SERVE_TOKEN, "")


def fake_gpus(variables: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the made-up GPUs, `None` where the machine's own count."""
    names = variables.get(FAKE_GPUS)
    return None if names is None else names_in(names)


def kafka_properties() -> str:
    """Return the path of the file with settings of the Kafka client, empty if there is none."""
    return os.environ.get(KAFKA_PROPERTIES, "")


def share_secret() -> str:
    """Return the secret of a sharing network, empty if none is set."""
    return os.environ.get(SHARE_SECRET, "")


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a list that is separated by commas, each once.

    Example:
        >>> names_in("0, 1,,2, 1")
        ('0', '1', '2')
    """
    names = (name.strip() for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def cpus() -> int | None:
    """Return how many threads this worker may keep busy, `None` outside a worker."""
    share = os.environ.get(CPUS, "").strip()
    return int(share) if share.isdecimal() and int(share) > 0 else None


def scratch_folder() -> str:
    """Return the folder that stands for the project on this machine; one of this process's own if none was named."""
    return os.environ.get(SCRATCH) or os.path.join(os.getcwd(), f"cargobike-{os.getpid()}")
