"""Every kind of trigger passes the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cargobike import data, features, monitoring, project
from cargobike.core.registering.products import products
from cargobike.core.registering.triggers import Trigger, look_of
from cargobike.monitoring.facts import AlarmRaised, MonitorStarted, Watched
from cargobike.monitoring.record import folder_of
from cargobike.monitoring.running.keeping import Keeper, Kept
from cargobike.store.files.storages import open_storage
from cargobike.testing.triggers import TriggerContract


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> Iterator[None]:
    project.use(tmp_path / "project")
    project.prepare()
    yield
    project.use(None)


class TestChangedGroup(TriggerContract):
    """`features.changed`."""

    def make(self) -> Trigger:
        self.group = features.create_group("teams", key="team", event_time="at")
        self.rows = 0
        self.happen()
        return features.changed("teams")

    def happen(self) -> None:
        self.rows += 1
        self.group.insert({"team": [self.rows], "at": ["2026-01-01"], "budget": [1.5]})

    def count(self, cause: dict[str, object]) -> int:
        commits = cause["commits"]
        assert isinstance(commits, list)
        assert cause["rows"] == len(commits)
        return len(commits)

    def test_what_moves_no_row_is_no_change(self) -> None:
        trigger, here = self.make(), project.current()
        self.happen()
        mark = look_of(trigger)(trigger, "", here).mark
        self.group.compact()
        seen = look_of(trigger)(trigger, mark, here)
        assert seen.cause is None
        assert seen.mark != mark

    def test_a_new_version_of_the_group_is_a_change(self) -> None:
        trigger, here = self.make(), project.current()
        mark = look_of(trigger)(trigger, "", here).mark
        second = features.create_group("teams", key="team", event_time="at", version=2)
        second.insert({"team": [1], "at": ["2026-01-01"], "budget": [1.5]})
        cause = look_of(trigger)(trigger, mark, here).cause
        assert cause == {"group": "teams", "version": 2, "commits": [0], "rows": 1}


class TestDriftedDeployment(TriggerContract):
    """`monitoring.drifted`."""

    def make(self) -> Trigger:
        self.alarms = 0
        self.keeper = Keeper(folder_of(project.current(), "digits"))
        self.keeper.commit(Kept(), [MonitorStarted(at=1.0, id="digits", watched=Watched(subject="digits"))])
        self.happen()
        return monitoring.drifted("digits")

    def happen(self) -> None:
        self.alarms += 1
        raised = AlarmRaised(
            at=2.0,
            id=f"alarm-{self.alarms}",
            kind="drift",
            window=self.alarms,
            windows=(self.alarms,),
            since=1.0,
            first_at=1.0,
            last_at=2.0,
            model_version=1,
            rows=10,
        )
        self.keeper.commit(Kept(), [raised])

    def count(self, cause: dict[str, object]) -> int:
        alarms = cause["alarms"]
        assert isinstance(alarms, list)
        assert cause["alarm"] == alarms[-1]
        return len(alarms)

    @pytest.fixture(autouse=True)
    def _closed(self) -> Iterator[None]:
        yield
        if hasattr(self, "keeper"):
            self.keeper.close()


class TestArrivedFiles(TriggerContract):
    """`data.arrived` of files in a folder."""

    def make(self) -> Trigger:
        self.folder, self.number = project.current().root.parent / "in", 0
        self.folder.mkdir()
        self.happen()
        return data.arrived(f"{self.folder}/*.csv", settle="20ms")

    def happen(self) -> None:
        self.number += 1
        (self.folder / f"{self.number}.csv").write_text("a\n1\n")

    def count(self, cause: dict[str, object]) -> int:
        files = cause["files"]
        assert isinstance(files, list)
        assert cause["count"] == len(files)
        return len(files)


class TestArrivedVersion(TriggerContract):
    """`data.arrived` of versions of a table of the project."""

    def make(self) -> Trigger:
        self.happen()
        return data.arrived("numbers")

    def happen(self) -> None:
        data.write({"x": [1, 2]}, "numbers")

    def count(self, cause: dict[str, object]) -> int:
        versions = cause["versions"]
        assert isinstance(versions, list)
        return len(versions)


class TestArrivedTable(TestArrivedVersion):
    """`data.arrived` of versions of a table that lies elsewhere."""

    def make(self) -> Trigger:
        self.place = str(project.current().root.parent / "tables" / "numbers")
        self.happen()
        return data.arrived(self.place)

    def happen(self) -> None:
        data.write({"x": [1, 2]}, self.place)


class TestArrivedOnS3(TriggerContract):
    """`data.arrived` of files on S3."""

    @pytest.fixture(autouse=True)
    def _bucket(self, storage_url: Callable[[str], str]) -> None:
        self.url = storage_url("moto")
        self.storage, self.number = open_storage(self.url), 0

    def make(self) -> Trigger:
        self.happen()
        return data.arrived(f"{self.url}/**/*.parquet", settle="20ms")

    def happen(self) -> None:
        self.number += 1
        self.storage.write(f"in/{self.number}.parquet", b"rows")

    def count(self, cause: dict[str, object]) -> int:
        files = cause["files"]
        assert isinstance(files, list)
        return len(files)


def test_every_kind_that_a_product_registers_has_its_tests() -> None:
    kinds = {kind for product in products() for kind in product.triggers}
    assert kinds - {"drifted"} == {"changed", "arrived"}  # that of monitoring is tested beside its monitors
