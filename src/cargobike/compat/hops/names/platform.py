"""Names of hops for what else the platform around a project offered."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation
from cargobike.core import settings

_GONE: Final = (
    (
        "tls",
        f"name certificates of a Kafka cluster in the file of `{settings.KAFKA_PROPERTIES}`",
        "get_ca_chain_location get_client_certificate_location get_client_key_location "
        "get_key_store get_key_store_cert get_key_store_pwd get_trust_store get_trust_store_pwd",
    ),
    (
        "elasticsearch",
        "experiments are found with `experiment.list()` and `project.open_index()`",
        "get_authorization_token get_elasticsearch_config get_elasticsearch_index",
    ),
    (
        "hive",
        "features are read with `features.group(name).read()`, tables with `data.open(name)`",
        "setup_hive_connection",
    ),
    (
        "beam",
        "start a Flink cluster yourself, or write the steps as a pipeline (`cargobike.pipelines`)",
        "create_runner get_portable_runner_config get_sdk_worker start start_beam_jobserver start_runner stop_runner",
    ),
    (
        "facets",
        "`cargobike features stats` describes columns, `cargobike drift` compares two tables",
        "dive overview",
    ),
    (
        "secret",
        "read secrets from the environment, or with the client of your own store of secrets",
        "create_secret delete_secret get_secret",
    ),
    (
        "xattr",
        "tag experiments (`result.add_tag`) and models (`cargobike models tag`), or write a file beside",
        "get_xattr remove_xattr set_xattr",
    ),
    (
        "user",
        "the users are those of the machine or the storage",
        "create_user",
    ),
)
"""Modules of which each name says that it is gone: what stands in their place, and the names."""
_PROPERTIES: Final = f"the file of `{settings.KAFKA_PROPERTIES}` holds the settings of clients"

TRANSLATIONS: Final[tuple[Translation, ...]] = (
    Translation("hops.kafka.get_broker_endpoints", "", remark=_PROPERTIES),
    Translation("hops.kafka.get_security_protocol", "", remark=_PROPERTIES),
    Translation("hops.kafka.get_kafka_default_config", "", remark=_PROPERTIES),
    Translation("hops.kafka.get_schema", "", remark="keep schemas with the code, or ask your registry"),
    Translation("hops.kafka.parse_avro_msg", "fastavro.schemaless_reader", remark="of `io.BytesIO(message)`"),
    Translation("hops.kafka.convert_json_schema_to_avro", "fastavro.parse_schema", remark="of `json.loads(schema)`"),
    Translation("hops.jobs.create_job", "cargobike.pipelines.step", remark="write a pipeline with a step"),
    Translation(
        "hops.jobs.start_job", "cargobike.pipelines.run", remark="or `cargobike pipelines run FILE.py:FUNCTION`"
    ),
    Translation("hops.jobs.stop_job", "cargobike.pipelines.cancel", remark="by the id of the run"),
    Translation("hops.jobs.get_executions", "cargobike.pipelines.list", remark="of each run its `id` and `state`"),
    Translation(
        "hops.project.connect", "cargobike.project.use", remark="of a folder or an address; there is no server"
    ),
    Translation("hops.project.create", "cargobike.project.use", remark="a project is made when it is first written to"),
    Translation("hops.project.get_project_info", "cargobike.project.current"),
    Translation("hops.dataset.get_path_info", "cargobike.storage.open_storage", remark="`storage.stat(path)`"),
    *(Translation(f"hops.{module}.{name}", "", remark=why) for module, why, names in _GONE for name in names.split()),
    Translation("hops.exceptions.RestAPIError", "cargobike.errors.CargobikeError", same=True),
    Translation("hops.constants", "", remark="it names parts of a Hopsworks server, and there is no such server"),
)
