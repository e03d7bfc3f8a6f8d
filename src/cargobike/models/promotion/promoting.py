"""Moves aliases, and keeps them from moving where a gate is not passed."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.registering.steps import step_token
from cargobike.core.running.accounts import user_name
from cargobike.core.values.packed_numbers import pack_number
from cargobike.models.catalogue.catalogue import Catalogue, Model
from cargobike.models.facts import AliasMoved, AliasRemoved
from cargobike.models.naming import check_alias
from cargobike.models.promotion.gates import Gate, Judgement, check_aliases

_log = logging.getLogger(__name__)


class Promotion(msgspec.Struct, frozen=True):
    """What a promotion did.

    Attributes:
        alias: The alias.
        version: The version that it points at now.
        before: The version that it pointed at before; `None` if it is new.
        figures: What was compared, by name.
        remark: What there is to say about the gate, such as that there was nothing to compare with.
    """

    alias: str
    version: int
    before: int | None = None
    figures: dict[str, float | None] = {}
    remark: str = ""


def promote(catalogue: Catalogue, name: str, version: int, alias: str, when: str = "") -> Promotion:
    """Let an alias point at a version, if that passes a gate against what aliases point at in that very moment.

    Raises:
        GateError: If it does not pass.
        InvalidInputError: If alias or gate cannot be understood.
        NotFoundError: If the version was removed.
    """
    check_alias(alias)
    gate = Gate(when) if when else None
    measured: dict[int, Mapping[str, float]] = {}
    made = Promotion(alias, version)

    def figures_of(number: int) -> Mapping[str, float]:
        if number not in measured:
            measured[number] = catalogue.manifest(name, number).figures
        return measured[number]

    def decide(model: Model) -> AliasMoved:
        nonlocal made
        if not 0 < version <= model.versions or version in model.state.removed:
            raise NotFoundError(f"{name}:{version} was removed, or never was.", wanted=f"{name}:{version}")
        before = model.state.aliases.get(alias)
        judgement = Judgement(True, {})
        if gate is not None:
            check_aliases(gate, model.state.aliases, alias)
            pointed = {other: model.state.aliases.get(other) for other in gate.others}
            others = {other: None if number is None else figures_of(number) for other, number in pointed.items()}
            judgement = gate.judge(figures_of(version), others)
            if not judgement.passes:
                raise judgement.refusal(f"{name}:{version}", gate.text)
        made = Promotion(alias, version, before, judgement.figures, "; ".join(judgement.remarks))
        figures = {key: None if value is None else pack_number(value) for key, value in judgement.figures.items()}
        return AliasMoved(
            at=time.time(),
            by=user_name(),
            alias=alias,
            version=version,
            before=before,
            when="" if gate is None else gate.text,
            figures=figures,
            remark=made.remark,
            step=step_token(),
        )

    catalogue.add_fact(name, decide)
    if made.remark:
        _log.info("%s@%s is version %d now: %s", name, alias, version, made.remark)
    return made


def remove_alias(catalogue: Catalogue, name: str, alias: str) -> int:
    """Take an alias away, and return the version that it pointed at.

    Raises:
        NotFoundError: If there is no such alias.
    """
    check_alias(alias)

    def decide(model: Model) -> AliasRemoved:
        if alias not in model.state.aliases:
            aliases = ", ".join(sorted(model.state.aliases)) or "none"
            raise NotFoundError(f"The model {name} has no alias {alias!r}; it has {aliases}.", wanted=f"{name}@{alias}")
        return AliasRemoved(at=time.time(), by=user_name(), alias=alias, before=model.state.aliases[alias])

    fact = catalogue.add_fact(name, decide)
    if not isinstance(fact, AliasRemoved) or fact.before is None:
        raise InvalidInputError(f"{alias!r} pointed at nothing.")
    return fact.before
