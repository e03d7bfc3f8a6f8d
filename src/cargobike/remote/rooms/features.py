"""Feature groups, views and training datasets of a project elsewhere."""

from __future__ import annotations

from cargobike.features.pages.answers import GroupDetails, GroupPage, GroupStatistics
from cargobike.features.pages.view_answers import DatasetDetails, DatasetPage, ViewDetails, ViewPage
from cargobike.remote.rooms.room import Room


class Features(Room):
    """What `cargobike.features` is for a project here."""

    def list_groups(self, words: str = "", *, offset: int = 0, limit: int = 50) -> GroupPage:
        """Return feature groups, those in whose words a text occurs."""
        return self._connection.get(["features"], GroupPage, words=words, offset=offset, limit=limit)

    def group(self, name: str, *, version: int | None = None) -> GroupDetails:
        """Return a feature group with its commits, and what uses it."""
        return self._connection.get(["features", name], GroupDetails, version=version)

    def statistics(self, name: str, *, version: int | None = None, as_of: str | None = None) -> GroupStatistics:
        """Return statistics of the rows of a group, now or at an earlier time."""
        return self._connection.get(["features", name, "statistics"], GroupStatistics, version=version, as_of=as_of)

    def list_views(self, words: str = "", *, offset: int = 0, limit: int = 50) -> ViewPage:
        """Return feature views."""
        return self._connection.get(["feature-views"], ViewPage, words=words, offset=offset, limit=limit)

    def view(self, name: str, *, version: int | None = None) -> ViewDetails:
        """Return a view: its features, its label, and what uses it."""
        return self._connection.get(["feature-views", name], ViewDetails, version=version)

    def list_training_datasets(self, words: str = "", *, offset: int = 0, limit: int = 50) -> DatasetPage:
        """Return training datasets."""
        return self._connection.get(["training-datasets"], DatasetPage, words=words, offset=offset, limit=limit)

    def training_dataset(self, name: str, *, version: int | None = None) -> DatasetDetails:
        """Return a training dataset: its parts, the commits that it was made of, and what uses it."""
        return self._connection.get(["training-datasets", name], DatasetDetails, version=version)
