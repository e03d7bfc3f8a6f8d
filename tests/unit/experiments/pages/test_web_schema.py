"""The OpenAPI document holds: schemathesis finds no answer that it does not describe, and no crash."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import positive_data_acceptance
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode

from cargobike.ui.web.access import Access
from cargobike.ui.web.app import create_app
from cargobike.ui.web.state import ServerState
from support.web_project import ASKING, HOSTILE_ID, LIVELY, sample_project

_FOLDER = tempfile.TemporaryDirectory(prefix="cargobike-schema-")
# The name by which schemathesis calls an application that listens nowhere.
_ACCESS = Access(hosts=frozenset({"testserver", "localhost"}))
schema = schemathesis.openapi.from_asgi(
    "/api/v1/openapi.json",
    create_app(ServerState.of(sample_project(Path(_FOLDER.name)), _ACCESS)),
    config=SchemathesisConfig.from_dict({"cache": {"enabled": False}}),  # it would lie beside the code
)


@schema.parametrize()
@settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_nothing_is_answered_that_the_document_does_not_describe(case: schemathesis.Case[Any]) -> None:
    mode = None if case.meta is None else case.meta.generation.mode
    if mode is GenerationMode.POSITIVE and "experiment_id" in case.path_parameters:
        # Made-up ids would be answered with 404 and nothing else would ever be looked at.
        case.path_parameters["experiment_id"] = LIVELY if len(str(case.query)) % 2 else HOSTILE_ID
        if "number" in case.path_parameters:
            case.path_parameters["number"] = int(case.path_parameters["number"]) % 16
    if case.path.endswith("/events"):
        case.query = {**(case.query or {}), "once": "true"}
    # A filter has a grammar, tags and marks have rules, and command lines a parser, that a schema cannot say.
    has_rules = case.path.endswith(("/trials", "/trials.csv", "/annotations")) or case.path.startswith(
        "/api/v1/commands"
    )
    case.call_and_validate(
        headers=ASKING if case.method == "POST" else None,
        timeout=300,
        excluded_checks=[positive_data_acceptance] if has_rules else [],
    )
