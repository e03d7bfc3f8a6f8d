"""What models were made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.tracing import Edge, Relation, Thing
from cargobike.models.catalogue.catalogue import Catalogue

_RELATIONS: dict[str, Relation] = {relation: relation for relation in get_args(Relation)}


def edges(project: ProjectFolder) -> Iterator[Edge]:
    """Yield what the versions of a project's models were made from; removed ones too, since that stays true."""
    for model, summary in Catalogue(project).all_summaries():
        made = Thing("model", model.name, str(summary.version))
        for source in summary.sources:
            thing = Thing(source.kind, source.name, source.version)
            yield Edge(made, thing, _RELATIONS.get(source.relation, "made from"), source.detail, at=summary.at)
