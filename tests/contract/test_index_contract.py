from __future__ import annotations

from cargobike.core.layout import ProjectFolder
from cargobike.experiments.index.index import Index
from cargobike.experiments.index.journals import TABLES
from cargobike.experiments.index.opening import open_index
from cargobike.experiments.index.sql import SqlIndex
from cargobike.store.index.database import Database
from cargobike.testing.stores import IndexContract


class TestSqliteIndex(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return SqlIndex(Database(project, TABLES, f"sqlite:///{project.index}"))


class TestIndexOfAProject(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        project.root.mkdir(exist_ok=True)
        return open_index(project)


class TestSqliteIndexInMemory(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return SqlIndex(Database(project, TABLES, "sqlite://"))
