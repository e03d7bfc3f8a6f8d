from __future__ import annotations

from cargobike.store.index import Index
from cargobike.store.layout import ProjectFolder
from cargobike.store.sql_index import SqlIndex
from cargobike.testing.stores import IndexContract


class TestSqliteIndex(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return SqlIndex(project, f"sqlite:///{project.index}")


class TestSqliteIndexInMemory(IndexContract):
    def make_index(self, project: ProjectFolder) -> Index:
        return SqlIndex(project, "sqlite://")
