"""Days in production: payments come in, are judged before they are paid, and are counted every hour."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bank import FIRST_DAY, Bank, Habits
from learning import DEPLOYMENT
from signals import COUNTED, PAYMENT, TABLE, counted_since, make_groups

from cargobike import serving
from cargobike.errors import CargobikeError

THREADS = 4


@dataclass
class Day:
    """What became of the requests of a day."""

    asked: int = 0
    failed: int = 0
    flagged: int = 0
    errors: list[str] = field(default_factory=list)

    def note(self, answer: dict[str, Any] | str) -> None:
        """Count an answer, or an error."""
        self.asked += 1
        if isinstance(answer, str):
            self.failed += 1
            self.errors.append(answer)
        else:
            self.flagged += bool(answer["flagged"])


class Production:
    """Replays days against the deployment, as fast as it answers.

    Args:
        bank: Where payments come from.
        delivered: The folder of the bank's files.
        requests: How many payments of a day are asked about; all of them are counted.
    """

    def __init__(self, bank: Bank, delivered: Path, requests: int) -> None:
        self.bank, self.delivered, self.requests = bank, delivered, requests
        self._groups = make_groups()
        self._clients = threading.local()

    def live(self, day: int, habits: Habits) -> Day:
        """Let a day pass: hour by hour, payments are judged, and then counted for those that follow."""
        payments = self.bank.days(day, day, habits)
        path = deliver(payments, self.delivered, day)
        chosen = _some(payments, self.requests, day)
        counted = self._counted(day)
        outcome = Day()
        with ThreadPoolExecutor(THREADS) as threads:
            for hour in range(24):
                end = moment(day, hour + 1)
                rows = _within(chosen, moment(day, hour), end).to_pylist()
                for answer in threads.map(self._ask, rows):
                    outcome.note(answer)
                for name, group in counted.items():
                    known = group.filter(pa.compute.equal(group["moment"], pa.scalar(end, group["moment"].type)))
                    if known.num_rows:
                        self._groups[name].insert(known, made_from=[("file", str(path))])
        return outcome

    def _ask(self, row: dict[str, Any]) -> dict[str, Any] | str:
        """Return what the model says of a payment, or what went wrong."""
        if not hasattr(self._clients, "deployment"):
            self._clients.deployment = serving.deployment(DEPLOYMENT)
        try:
            answer: dict[str, Any] = self._clients.deployment.predict({name: row[name] for name in PAYMENT})
            return answer
        except CargobikeError as error:
            return str(error)

    def _counted(self, day: int) -> dict[str, pa.Table]:
        """Return what is counted in each hour of a day, by the same queries as in training."""
        files = str(self.delivered / "days" / "*.parquet")
        since = moment(day).isoformat()
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"CREATE VIEW {TABLE} AS SELECT * FROM read_parquet('{files}')")
            return {name: connection.sql(counted_since(name, since)).to_arrow_table() for name in COUNTED}


class Traffic:
    """Goes on asking while other things happen: one request after the other on plain connections, none tried again.

    Args:
        payments: What is asked about, again and again.
        pause_s: How long each of the two askers waits after an answer; so some of the machine is left for others.
    """

    def __init__(self, payments: pa.Table, pause_s: float = 0.1) -> None:
        self.outcome = Day()
        self._bodies = [json.dumps(row).encode() for row in payments.select(PAYMENT).to_pylist()]
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._noting = threading.Lock()

    def __enter__(self) -> Traffic:
        address = urlsplit(serving.deployment(DEPLOYMENT).url)
        self._threads = [threading.Thread(target=self._go_on, args=(address.netloc, part)) for part in range(2)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, netloc: str, part: int) -> None:
        connection = http.client.HTTPConnection(netloc, timeout=30)
        for body in itertools.cycle(self._bodies[part::2]):
            try:
                connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                answer = json.loads(response.read())
                said = answer if response.status == HTTPStatus.OK else f"{response.status}: {answer}"
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                said = f"{type(error).__name__}: {error}"
            with self._noting:
                self.outcome.note(said)
            if self._ended.wait(self._pause_s):
                break
        connection.close()


def deliver(payments: pa.Table, folder: Path, first: int) -> Path:
    """Write payments as the bank delivers them, and return the file."""
    (folder / "days").mkdir(parents=True, exist_ok=True)
    path = folder / "days" / f"from-{first:03d}.parquet"
    pq.write_table(payments, path, compression="zstd")
    return path


def moment(day: int, hour: int = 0) -> datetime:
    """Return the time of an hour of a day, counted from the first day."""
    return (FIRST_DAY + timedelta(days=day, hours=hour)).astimezone(UTC)


def _some(payments: pa.Table, requests: int, seed: int) -> pa.Table:
    """Return some payments of a day, drawn at random, in the order of time."""
    chosen = np.random.default_rng([seed, 9]).choice(payments.num_rows, requests, replace=False)
    return payments.take(pa.array(np.sort(chosen)))


def _within(payments: pa.Table, start: datetime, end: datetime) -> pa.Table:
    kind = payments["moment"].type
    late = pa.compute.greater_equal(payments["moment"], pa.scalar(start, kind))
    early = pa.compute.less(payments["moment"], pa.scalar(end, kind))
    return payments.filter(pa.compute.and_(late, early))
