"""The Spark context that workers run in: the user's own, left as it was, or one of ours, ended with the engine."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cargobike.core.errors import EngineError, InvalidInputError, MissingLibraryError
from cargobike.core.running.forks import abandon_in_copies
from cargobike.engines.spark.java import java_home
from cargobike.engines.spark.starting import folder_for_starting, temporary_files_in

if TYPE_CHECKING:
    from pyspark import SparkContext

_OURS = {
    "spark.app.name": "cargobike",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # The driver's Java only hands out tasks: compiling its code well takes longer than running it.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_OURS_ON_A_CLUSTER = {"spark.excludeOnFailure.enabled": "true"}
_OURS_ON_THIS_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def import_pyspark() -> Any:
    """Return the module `pyspark`, or say how to install it."""
    try:
        import pyspark  # noqa: PLC0415 - optional, and a second to import
    except ImportError as error:
        raise MissingLibraryError(
            'The Spark engine needs pyspark, which cannot be imported. Install it: pip install "cargobike[spark]".',
            name="pyspark",
        ) from error
    return pyspark


def context_of(given: object) -> SparkContext:
    """Return the context of a session, or a context itself.

    Raises:
        InvalidInputError: If it is neither.
    """
    pyspark = import_pyspark()
    if isinstance(given, pyspark.SparkContext):
        context = given
    elif "connect" in type(given).__module__:
        raise InvalidInputError(
            "A Spark Connect session was given. It cannot start workers: run the driver where there is a classic "
            "session (SparkSession.builder.master(…)), or leave the session out."
        )
    elif hasattr(given, "sparkContext"):
        context = given.sparkContext
    else:
        raise InvalidInputError(
            f"SparkEngine was given {given!r} ({type(given).__name__}); give a SparkSession, a SparkContext, or "
            'nothing and a master, such as SparkEngine(master="local[4]").'
        )
    if context._jsc is None or context._jsc.sc().isStopped():
        raise EngineError("The Spark session that was given has been stopped; make a new one.")
    return context


def active_context() -> SparkContext | None:
    """Return the context that runs in this process already, if there is one."""
    context: SparkContext | None = import_pyspark().SparkContext._active_spark_context
    if context is None or context._jsc is None or context._jsc.sc().isStopped():
        return None
    return context


class OwnContext:
    """A context that was made for an engine, with everything that was started or changed for it.

    Args:
        master: Where Spark runs; what Spark's own settings say if not given, else this machine.
        settings: Spark properties, which win over ours.
    """

    def __init__(self, master: str | None, settings: Mapping[str, str]) -> None:
        pyspark = import_pyspark()
        self._gateway: Any = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as Spark's Java does
        conf = pyspark.SparkConf(loadDefaults=False)
        chosen = master or settings.get("spark.master") or os.environ.get("MASTER") or _configured_master()
        is_local = chosen is None or chosen.startswith("local")
        for name, value in {
            **_OURS,
            **(_OURS_ON_THIS_MACHINE if is_local else _OURS_ON_A_CLUSTER),
            **settings,
            "spark.master": chosen or "local[*]",
        }.items():
            conf.set(name, value)
        try:
            with folder_for_starting() as folder, self._surroundings(folder), warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used here
                if pyspark.SparkContext._gateway is None:
                    from pyspark import java_gateway  # noqa: PLC0415

                    with temporary_files_in(java_gateway, folder):
                        self._gateway = java_gateway.launch_gateway(conf, popen_kwargs={"stderr": self._errors})
                    abandon_in_copies(self)
                self.context: SparkContext = pyspark.SparkContext(conf=conf, gateway=self._gateway)
                if python := self._python_of_executors(is_local):
                    self.context.pythonExec = python
        except Exception as error:
            why = _first_lines(error)  # asked for now: it is Java that knows
            self._end_java()
            words = _with_advice(self.last_words())
            raise EngineError(
                f"Spark could not be started with master {chosen or 'local[*]'}: {why}\n{words}".rstrip()
            ) from error

    def _python_of_executors(self, is_local: bool) -> str | None:
        """Return what runs tasks; `None` for Spark's own choice, the first `python3` that an executor finds.

        Spark itself reads its property only where `spark-submit` starts the driver.
        """
        named: str | None = self.context.getConf().get("spark.pyspark.python")
        if named:
            return named
        return sys.executable if is_local and "PYSPARK_PYTHON" not in os.environ else None

    @property
    def java_pid(self) -> int | None:
        """The process that was started for it; `None` if there was one already."""
        return None if self._gateway is None else int(self._gateway.proc.pid)

    @property
    def is_alive(self) -> bool:
        """Whether tasks can still be given to it."""
        try:
            return self.context._jsc is not None and not self.context._jsc.sc().isStopped()
        except Exception:  # noqa: BLE001 - its Java is gone, and each library below says so in its own way
            return False

    def abandon(self) -> None:
        """Close the pipe by whose end Java learns that this process has ended: a copy of it would hold Java up."""
        if self._gateway is not None:
            with contextlib.suppress(OSError):
                self._gateway.proc.stdin.close()

    def last_words(self) -> str:
        """Return the end of what Spark's Java wrote to its standard error."""
        self._errors.seek(0, os.SEEK_END)
        size = self._errors.tell()
        text = os.pread(self._errors.fileno(), 8000, max(0, size - 8000)).decode(errors="replace")
        return "\n".join([line for line in text.splitlines() if not line.startswith("\tat ")][-10:]).strip()

    def stop(self) -> None:
        """Stop the context and the Java that was started for it."""
        with contextlib.suppress(Exception):  # its Java may be dead already
            self.context.stop()
        self._end_java()
        self._errors.close()

    def _end_java(self) -> None:
        gateway, self._gateway = self._gateway, None
        if gateway is None:
            return
        pyspark = import_pyspark()
        if pyspark.SparkContext._gateway is gateway:
            pyspark.SparkContext._gateway = None
            pyspark.SparkContext._jvm = None
        pyspark.SparkContext._active_spark_context = None
        with contextlib.suppress(Exception):
            gateway.shutdown()
        process = gateway.proc
        with contextlib.suppress(OSError):
            process.stdin.close()  # it ends when the other end is closed
        try:
            process.wait(5.0)
        except Exception:  # noqa: BLE001 - a Java that hangs is of no use
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def _surroundings(self, folder: Path) -> Iterator[None]:
        """Lend Spark what it needs, and take back what it changes in this process."""
        is_main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGINT) if is_main else None
        before = os.environ.get("JAVA_HOME")
        with java_home(parent=folder) as home:
            if home is not None:
                os.environ["JAVA_HOME"] = home
            try:
                yield
            finally:
                if home is not None:
                    os.environ.pop("JAVA_HOME")
                    if before is not None:
                        os.environ["JAVA_HOME"] = before
                if is_main and handler is not None:
                    signal.signal(signal.SIGINT, handler)  # Spark's own cancels all jobs, before we can stop politely


def _configured_master() -> str | None:
    """Return the master of `spark-defaults.conf`, if there is such a file."""
    folder = os.environ.get("SPARK_CONF_DIR") or (
        os.path.join(os.environ["SPARK_HOME"], "conf") if "SPARK_HOME" in os.environ else ""
    )
    with contextlib.suppress(OSError), open(os.path.join(folder, "spark-defaults.conf")) as file:
        for line in file:
            words = line.replace("=", " ", 1).split()
            if len(words) >= 2 and words[0] == "spark.master":
                return words[1]
    return None


def _with_advice(words: str) -> str:
    """Add what to do about the most frequent of Java's complaints."""
    if "UnsupportedClassVersionError" not in words:
        return words
    return f"{words}\nThis Java is too old: Spark 4 needs 17 or later. Set JAVA_HOME to a newer one."


def _first_lines(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if not line.lstrip().startswith("at ")]
    return "\n".join(lines[:3]) or type(error).__name__
