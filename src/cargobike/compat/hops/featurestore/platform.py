"""What the platform had around its feature store: connections, tags, online groups, connectors."""

from __future__ import annotations

from typing import Any, Final

from cargobike import features as feature_room
from cargobike.compat.hops.translating.gone import no_longer
from cargobike.compat.noticing import notice

_HERE: Final = "hops.featurestore"
_CONNECTORS: Final = "Addresses are given where data is read: `features.create_group(…).insert(url)`, `data.open(url)`."
_IMPORT: Final = "Read the files and insert them: `features.create_group(…).insert('s3://…')`, or a SQL query."


def connect(host: str | None = None, project_name: str | None = None, *args: Any, **said: Any) -> None:
    """Do nothing: there is no server."""
    notice(f"{_HERE}.connect")


def disconnect() -> None:
    """Do nothing: there is no server."""


def enable_featuregroup_online(
    featuregroup: str, featuregroup_version: int = 1, featurestore: str | None = None, online_types: Any = None
) -> None:
    """Keep the newest rows of a group for look-ups."""
    feature_room.group(featuregroup.lower(), featuregroup_version).update(online=True)


def disable_featuregroup_online(
    featuregroup: str, featuregroup_version: int = 1, featurestore: str | None = None
) -> None:
    """Forget what was kept for look-ups."""
    feature_room.group(featuregroup.lower(), featuregroup_version).update(online=False)


def add_tag(
    name: str,
    tag: str,
    value: Any = None,
    featurestore: str | None = None,
    version: int = 1,
    resource: str = "featuregroups",
) -> None:
    """Add a word to find a group by."""
    group = feature_room.group(name.lower(), version)
    group.update(tags=[*group.refresh().tags, tag if value is None else f"{tag}={value}"])


def get_tags(
    name: str, featurestore: str | None = None, version: int = 1, resource: str = "featuregroups"
) -> dict[str, str]:
    """Return the words that `add_tag` added."""
    pairs = (tag.partition("=") for tag in feature_room.group(name.lower(), version).refresh().tags)
    return {key: value for key, _, value in pairs}


get_storage_connectors = no_longer(f"{_HERE}.get_storage_connectors", _CONNECTORS)
get_storage_connector = no_longer(f"{_HERE}.get_storage_connector", _CONNECTORS)
get_online_featurestore_connector = no_longer(f"{_HERE}.get_online_featurestore_connector", _CONNECTORS)
create_on_demand_featuregroup = no_longer(f"{_HERE}.create_on_demand_featuregroup", _IMPORT)
import_featuregroup_s3 = no_longer(f"{_HERE}.import_featuregroup_s3", _IMPORT)
import_featuregroup_redshift = no_longer(f"{_HERE}.import_featuregroup_redshift", _IMPORT)
