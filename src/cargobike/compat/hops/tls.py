"""`hops.tls`: certificates of a Hopsworks project; each call says what stands in its place."""

from __future__ import annotations

from cargobike.compat.hops.translating.gone import no_longer
from cargobike.core import settings

__all__ = [
    "get_ca_chain_location",
    "get_client_certificate_location",
    "get_client_key_location",
    "get_key_store",
    "get_key_store_cert",
    "get_key_store_pwd",
    "get_trust_store",
    "get_trust_store_pwd",
]

_WHY = (
    "Certificates of a Hopsworks project do not exist here: name those of a Kafka cluster in the file "
    "that " + settings.KAFKA_PROPERTIES + " names."
)

get_ca_chain_location = no_longer("hops.tls.get_ca_chain_location", _WHY)
get_client_certificate_location = no_longer("hops.tls.get_client_certificate_location", _WHY)
get_client_key_location = no_longer("hops.tls.get_client_key_location", _WHY)
get_key_store = no_longer("hops.tls.get_key_store", _WHY)
get_key_store_cert = no_longer("hops.tls.get_key_store_cert", _WHY)
get_key_store_pwd = no_longer("hops.tls.get_key_store_pwd", _WHY)
get_trust_store = no_longer("hops.tls.get_trust_store", _WHY)
get_trust_store_pwd = no_longer("hops.tls.get_trust_store_pwd", _WHY)
