"""`hops.elasticsearch`: the Elasticsearch of a Hopsworks cluster; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer

__all__ = ["get_authorization_token", "get_elasticsearch_config", "get_elasticsearch_index"]

_WHY = (
    "There is no Elasticsearch here: experiments are found with experiment.list() and "
    "project.open_index(), tables with data.open()."
)

get_authorization_token = no_longer("hops.elasticsearch.get_authorization_token", _WHY)
get_elasticsearch_config = no_longer("hops.elasticsearch.get_elasticsearch_config", _WHY)
get_elasticsearch_index = no_longer("hops.elasticsearch.get_elasticsearch_index", _WHY)
