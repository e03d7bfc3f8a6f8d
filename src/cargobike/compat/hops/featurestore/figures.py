"""What is known of feature groups and training datasets: lists, metadata, statistics, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cargobike import features as feature_room
from cargobike.compat.hops.featurestore.groups import check_store, project_featurestore, versions_of
from cargobike.compat.hops.featurestore.training_datasets import TrainingDatasetRecord, every, find_record, read_rows
from cargobike.compat.hops.translating.gone import no_longer
from cargobike.compat.hsfs.frames import ROW
from cargobike.compat.noticing import formerly
from cargobike.features.statistics.states import make_state

_HERE: Final = "hops.featurestore"


@dataclass(frozen=True, slots=True)
class FeaturestoreMetadata:
    """What a feature store holds.

    Attributes:
        featurestore: Its name.
        featuregroups: Groups by name and version, such as `teams_1`.
        training_datasets: Training datasets by name and version.
    """

    featurestore: str
    featuregroups: dict[str, feature_room.Definition]
    training_datasets: dict[str, TrainingDatasetRecord]


def get_project_featurestores() -> list[str]:
    """Return the feature stores of the project: one."""
    return [project_featurestore()]


def get_featuregroups(featurestore: str | None = None, online: bool = False) -> list[str]:
    """Return all feature groups by name and version, such as `teams_1`."""
    check_store(featurestore)
    return [name for name, group in _groups().items() if group.definition.online or not online]


def get_features_list(featurestore: str | None = None, online: bool = False) -> list[str]:
    """Return the names of all features of all groups."""
    check_store(featurestore)
    return [name for group in _groups().values() for name in group.schema.names if name != ROW]


def get_featuregroup_features_list(
    featuregroup: str, version: int | None = None, featurestore: str | None = None
) -> list[str]:
    """Return the names of the features of a group."""
    check_store(featurestore)
    return [name for name in feature_room.group(featuregroup.lower(), version).schema.names if name != ROW]


def get_training_datasets(featurestore: str | None = None) -> list[str]:
    """Return all training datasets by name and version, such as `tour_1`."""
    check_store(featurestore)
    return [f"{one.name}_{one.version}" for one in every()]


def get_featurestore_metadata(featurestore: str | None = None, update_cache: bool = False) -> FeaturestoreMetadata:
    """Return what the feature store holds."""
    check_store(featurestore)
    groups = {name: group.definition for name, group in _groups().items()}
    return FeaturestoreMetadata(project_featurestore(), groups, {f"{one.name}_{one.version}": one for one in every()})


@formerly(f"{_HERE}.get_featuregroup_statistics")
def get_featuregroup_statistics(
    featuregroup: str, featurestore: str | None = None, featuregroup_version: int = 1
) -> feature_room.Statistics:
    """Return statistics of a group; in a notebook a table with a histogram for each feature."""
    check_store(featurestore)
    return feature_room.group(featuregroup.lower(), featuregroup_version).statistics()


@formerly(f"{_HERE}.get_training_dataset_statistics")
def get_training_dataset_statistics(
    training_dataset: str, featurestore: str | None = None, training_dataset_version: int = 1
) -> feature_room.Statistics:
    """Return statistics of a training dataset."""
    check_store(featurestore)
    record = find_record(training_dataset, training_dataset_version)
    state = make_state(read_rows(record.name, record.version))
    return feature_room.Statistics(record.name, record.version, 0, state)


def update_featuregroup_stats(
    featuregroup: str, featuregroup_version: int = 1, featurestore: str | None = None, **more: Any
) -> None:
    """Do nothing but look whether it is there: statistics are kept with each insert."""
    check_store(featurestore)
    feature_room.group(featuregroup.lower(), featuregroup_version)


def update_training_dataset_stats(
    training_dataset: str, training_dataset_version: int = 1, featurestore: str | None = None, **more: Any
) -> None:
    """Do nothing but look whether it is there: statistics are computed when they are asked for."""
    check_store(featurestore)
    find_record(training_dataset, training_dataset_version)


@formerly(f"{_HERE}.visualize_featuregroup_distributions")
def visualize_featuregroup_distributions(
    featuregroup_name: str, featurestore: str | None = None, featuregroup_version: int = 1, **drawing: Any
) -> feature_room.Statistics:
    """Return statistics of a group, which a notebook shows with a histogram for each feature."""
    return get_featuregroup_statistics(featuregroup_name, featurestore, featuregroup_version)


def visualize_featuregroup_correlations(
    featuregroup_name: str, featurestore: str | None = None, featuregroup_version: int = 1, **drawing: Any
) -> dict[str, dict[str, float | None]]:
    """Return how the features of a group are correlated, by both names."""
    return get_featuregroup_statistics(featuregroup_name, featurestore, featuregroup_version).correlations


def visualize_featuregroup_descriptive_stats(
    featuregroup_name: str, featurestore: str | None = None, featuregroup_version: int = 1, **drawing: Any
) -> feature_room.Statistics:
    """Return statistics of a group."""
    return get_featuregroup_statistics(featuregroup_name, featurestore, featuregroup_version)


def visualize_training_dataset_distributions(
    training_dataset_name: str, featurestore: str | None = None, training_dataset_version: int = 1, **drawing: Any
) -> feature_room.Statistics:
    """Return statistics of a training dataset, which a notebook shows with a histogram for each feature."""
    return get_training_dataset_statistics(training_dataset_name, featurestore, training_dataset_version)


def visualize_training_dataset_correlations(
    training_dataset_name: str, featurestore: str | None = None, training_dataset_version: int = 1, **drawing: Any
) -> dict[str, dict[str, float | None]]:
    """Return how the features of a training dataset are correlated, by both names."""
    return get_training_dataset_statistics(training_dataset_name, featurestore, training_dataset_version).correlations


def visualize_training_dataset_descriptive_stats(
    training_dataset_name: str, featurestore: str | None = None, training_dataset_version: int = 1, **drawing: Any
) -> feature_room.Statistics:
    """Return statistics of a training dataset."""
    return get_training_dataset_statistics(training_dataset_name, featurestore, training_dataset_version)


_CLUSTERS: Final = "Clusters are not computed; scikit-learn's KMeans does it on `get_featuregroup(…)`."
visualize_featuregroup_clusters = no_longer(f"{_HERE}.visualize_featuregroup_clusters", _CLUSTERS)
visualize_training_dataset_clusters = no_longer(f"{_HERE}.visualize_training_dataset_clusters", _CLUSTERS)


def _groups() -> dict[str, feature_room.Group]:
    return {
        f"{newest.name}_{version}": feature_room.group(newest.name, version)
        for newest in feature_room.list_groups()
        for version in versions_of(newest.name)
    }
