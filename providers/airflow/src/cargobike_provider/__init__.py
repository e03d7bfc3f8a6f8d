"""Cargobike in Airflow 3: operators, sensors, triggers, a hook, and assets. The modules of these folders are public.

Cargobike itself runs in a process of its own (`program/`), in this Python or another; nothing here imports it.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_HOOK = "cargobike_provider.hooks.cargobike.CargobikeHook"
_INTEGRATION = "Cargobike"


def get_provider_info() -> dict[str, Any]:
    """Return what Airflow is told of this package."""
    return {
        "package-name": "airflow-provider-cargobike",
        "name": _INTEGRATION,
        "description": "Run functions, experiments, pipelines and notebooks; register, deploy and roll models.",
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://github.com/cargobike/cargobike/tree/main/docs/guides/airflow.md",
                "tags": ["software"],
            }
        ],
        "operators": [_modules("operators", "functions", "experiments", "pipelines", "models", "deployments")],
        "sensors": [_modules("sensors", "cargobike")],
        "hooks": [_modules("hooks", "cargobike")],
        "triggers": [_modules("triggers", "cargobike")],
        "connection-types": [
            {
                "connection-type": "cargobike",
                "hook-class-name": _HOOK,
                "hook-name": _INTEGRATION,
                "conn-fields": {
                    "python": {"label": "Python", "schema": {"type": ["string", "null"]}},
                    "create_project": {
                        "label": "Make the project if it is not there",
                        "schema": {"type": ["boolean", "null"], "default": False},
                    },
                },
                "ui-field-behaviour": {
                    "hidden-fields": ["port", "login", "schema"],
                    "relabeling": {"host": "Project", "password": "Token of deployments"},
                    "placeholders": {
                        "host": "/data/project, s3://bucket/project or hdfs://host:9000/project",
                        "python": "/opt/cargobike/bin/python; by default the one that Airflow runs in",
                        "extra": '{"paths": ["/opt/code"], "environment": {"AWS_REGION": "eu-north-1"}}',
                    },
                },
            }
        ],
        "asset-uris": [
            {
                "schemes": ["cargobike"],
                "handler": "cargobike_provider.assets.cargobike.sanitize_uri",
                "factory": "cargobike_provider.assets.cargobike.create_asset",
            }
        ],
    }


def _modules(room: str, *names: str) -> dict[str, Any]:
    return {
        "integration-name": _INTEGRATION,
        "python-modules": [f"cargobike_provider.{room}.{name}" for name in names],
    }
