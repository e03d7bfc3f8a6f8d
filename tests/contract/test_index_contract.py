from __future__ import annotations

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.index import Index
from cargobike.experiments.index.journals import TABLES
from cargobike.experiments.index.sql import SqlIndex
from cargobike.store.index.database import Database
from cargobike.testing.stores import IndexContract


class TestSqliteIndex(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return SqlIndex(Database(project, TABLES, f"sqlite:///{project.index}"))


class TestSqliteIndexInMemory(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return SqlIndex(Database(project, TABLES, "sqlite://"))
