"""The door of models: register, find, promote, remove."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cargobike import models, project
from cargobike.core.errors import GateError, InvalidInputError, NotFoundError, PredictionError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.modelling import model_keeper
from cargobike.core.registering.tracing import Edge, Thing
from cargobike.models.naming import read_reference


def double(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def register(name: str = "digits", **said: Any) -> models.ModelVersion:
    return models.register(name, double, **said)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_version_knows_what_it_was_registered_with() -> None:
    version = register(
        metrics={"accuracy": 0.9, "loss": math.nan},
        example=[1.0, 2.0],
        description="Doubles.",
        tags=["fast", "fast", "small"],
        made_from=[Thing("dataset", "numbers", "2")],
    )

    again = models.get("digits:1")
    assert (again.name, again.version, again.flavour, again.description) == ("digits", 1, "python", "Doubles.")
    assert again.metrics["accuracy"] == 0.9
    assert math.isnan(again.metrics["loss"])
    assert again.example == [1.0, 2.0]
    assert again.signature is not None
    assert [field.datatype for field in again.signature.inputs] == ["FP64"]
    assert again.tags == ("fast", "small")
    assert "cloudpickle==" in again.requirements
    assert again.predict([21.0]) == [42.0]
    assert again.predictor()([1.0, 2.0]) == [2.0, 4.0]
    assert again == version
    assert [(edge.source, edge.relation) for edge in again.lineage().sources] == [
        (Thing("dataset", "numbers", "2"), "trained on")
    ]
    assert again.verify() == []
    assert not again.is_imported


def test_equal_content_has_an_equal_fingerprint() -> None:
    assert register(metrics={"a": 1.0}).fingerprint == register(description="other words").fingerprint
    assert register().fingerprint != models.register("digits", sorted).fingerprint


def test_versions_are_found_by_number_alias_and_as_the_newest(tmp_path: Path) -> None:
    for accuracy in (0.1, 0.3, 0.2):
        register(metrics={"accuracy": accuracy, "loss": 1 - accuracy})
    models.get("digits:2").promote("champion")

    assert models.get("digits").version == 3
    assert models.get("digits@latest").version == 3
    assert models.get("digits@champion").version == 2
    assert models.best("digits", "accuracy").version == 2
    assert models.best("digits", "loss").version == 2, "less loss is better"
    assert models.best("digits", "loss", "max").version == 1
    assert [version.version for version in models.list("digits")] == [3, 2, 1]
    register("other")
    assert [version.reference for version in models.list()] == ["digits:3", "other:1"]
    assert model_keeper().get("digits@champion").version == 2
    with pytest.raises(NotFoundError, match=r"no model 'digit'; there are digits, other\. Did you mean 'digits'"):
        models.get("digit")
    with pytest.raises(NotFoundError, match="no version 9; it has 1 to 3"):
        models.get("digits:9")
    with pytest.raises(NotFoundError, match=r"no alias 'champoin'; it has champion\. Did you mean 'champion'"):
        models.get("digits@champoin")
    with pytest.raises(NotFoundError, match=r"has the metric 'acuracy'; they have accuracy, loss\. Did you mean"):
        models.best("digits", "acuracy")
    with pytest.raises(InvalidInputError, match="direction='up' was given"):
        models.best("digits", "accuracy", "up")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "Digits", "digits:0", "digits:x", "di gits", "digits@", "../digits", "a" * 64, 3])
def test_what_is_no_reference_is_refused(text: Any) -> None:
    with pytest.raises(InvalidInputError, match="a version of a model is written digits:3"):
        read_reference(text)


def test_an_alias_moves_through_a_gate_and_keeps_its_history() -> None:
    first = register(metrics={"accuracy": 0.9, "latency_ms": 10})
    worse = register(metrics={"accuracy": 0.8, "latency_ms": 10})
    slower = register(metrics={"accuracy": 0.95, "latency_ms": 30})
    better = register(metrics={"accuracy": 0.95, "latency_ms": 20})
    gate = "accuracy >= champion.accuracy and latency_ms <= 20"

    promotion = first.promote("champion", when=gate)
    assert (promotion.before, promotion.version) == (None, 1)
    assert promotion.remark == "champion points at no version yet, so nothing is compared with it"
    with pytest.raises(
        GateError, match=r"digits:2 does not pass .*accuracy >= champion\.accuracy does not hold"
    ) as info:
        worse.promote("champion", when=gate)
    assert info.value.figures == {"accuracy": 0.8, "champion.accuracy": 0.9, "latency_ms": 10}
    with pytest.raises(GateError, match=r"latency_ms <= 20 does not hold\. \(.*latency_ms = 30\)"):
        slower.promote("champion", when=gate)
    assert models.get("digits@champion").version == 1
    assert better.promote("champion", when=gate).before == 1
    assert better.aliases == ["champion"]
    assert [(move.alias, getattr(move, "version", None), move.before) for move in models.history("digits")] == [
        ("champion", 1, None),
        ("champion", 4, 1),
    ]
    assert models.remove_alias("digits", "champion") == 4
    with pytest.raises(NotFoundError, match="no alias 'champion'; it has none"):
        models.remove_alias("digits", "champion")


def test_aliases_that_cannot_be_are_refused() -> None:
    version = register()
    for alias in ("Champion", "1st", "a-b", "and", ""):
        with pytest.raises(InvalidInputError, match="was given as an alias"):
            version.promote(alias)
    with pytest.raises(InvalidInputError, match="latest always means the newest"):
        version.promote("latest")


def test_tags_notes_and_cards_are_added_later() -> None:
    version = register(tags="fast", description="A <b>bold</b> model | with a pipe", metrics={"accuracy": 0.5})
    version.tag("good", "mine", remove=["fast"])
    version.note("Looked at it.")
    card = version.card
    assert "# digits:1" in card
    assert "| accuracy | 0.5 |" in card
    assert "<b>" not in card
    version.write_card("# Ours\n")

    again = models.get("digits")
    assert again.tags == ("good", "mine")
    assert [note.text for note in again.notes] == ["Looked at it."]
    assert again.card == "# Ours\n"
    assert again.is_card_edited
    assert again.write_card("").card == card.replace("| tags | fast |", "| tags | good, mine |")
    with pytest.raises(InvalidInputError, match="A note is a text"):
        version.note(" ")
    with pytest.raises(InvalidInputError, match="was given as a tag"):
        version.tag("a\nb")


def test_removing_deletes_files_and_keeps_what_was_known(tmp_path: Path) -> None:
    first, second = register(metrics={"accuracy": 0.9}), register()
    second.promote("champion")
    with pytest.raises(InvalidInputError, match=r"digits:2 is digits@champion\. Promote another version first"):
        models.remove("digits:2")
    models.remove("digits:1")

    with pytest.raises(NotFoundError, match="digits:1 was removed"):
        models.get("digits:1")
    with pytest.raises(NotFoundError, match="digits:1 was removed before"):
        models.remove("digits:1")
    with pytest.raises(NotFoundError, match="digits:1 was removed, or never was"):
        first.promote("old")
    with pytest.raises(InvalidInputError, match="name the version that is to be removed, such as digits:1"):
        models.remove("digits")
    assert [version.version for version in models.list("digits")] == [2]
    gone = models.list("digits", removed=True)[1]
    assert (gone.version, gone.is_removed, gone.metrics) == (1, True, {"accuracy": 0.9})
    tokens = {path.split("/")[3] for path in files_below(tmp_path) if path.startswith("models/digits/files/")}
    assert tokens == {second.manifest.token}
    assert register().version == 3, "numbers are never given again"


def test_retention_keeps_the_newest_and_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(6):
        register()
    register("other")
    models.get("digits:1").promote("champion")
    edge = Edge(Thing("deployment", "digits"), Thing("model", "digits", "2"), "serves")
    monkeypatch.setattr("cargobike.core.registering.tracing.all_edges", lambda *_: [edge])
    monkeypatch.setattr("cargobike.models.removing.all_edges", lambda _: [edge])
    with pytest.raises(InvalidInputError, match=r"digits:2 is used by the deployment digits\. Roll that"):
        models.remove("digits:2")
    assert models.retain(keep=2) == ["digits:3", "digits:4"]
    assert [version.version for version in models.list("digits")] == [6, 5, 2, 1]
    with pytest.raises(InvalidInputError, match="keep=0 was given"):
        models.retain(keep=0)


def test_a_version_is_not_taken_from_a_deployment_that_starts_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        models.register("digits", lambda rows, number=number: [number] * len(rows))
    looks: list[int] = []

    def edges_of(*_: object) -> list[Edge]:
        """Return nothing at the first look, and a deployment of versions 1 and 3 from then on."""
        looks.append(1)
        versions = ("1", "3") if len(looks) > 1 else ()
        return [Edge(Thing("deployment", "shop"), Thing("model", "digits", version), "serves") for version in versions]

    def users_of(_: object, thing: Thing) -> list[Edge]:
        return [edge for edge in edges_of() if edge.source == thing]

    monkeypatch.setattr("cargobike.models.removing.all_edges", edges_of)
    monkeypatch.setattr("cargobike.models.removing.users_of", users_of)
    assert models.retain("digits", keep=1) == ["digits:2"]
    assert len(looks) == 2
    assert [version.version for version in models.list("digits")] == [4, 3, 1]
    looks.clear()
    with pytest.raises(InvalidInputError, match="digits:3 is used by the deployment shop"):
        models.remove("digits:3")
    assert len(looks) == 2, "it was not used at the first look"
    assert [models.get(f"digits:{number}").predict([0]) for number in (1, 3)] == [[0], [2]]


def test_files_are_kept_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    (folder / "inner").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(b"1234")
    (folder / "inner" / "words.txt").write_text("hello")

    version = models.register("words", files=folder)
    assert version.flavour == "files"
    assert (version.load() / "inner" / "words.txt").read_text() == "hello"
    assert (
        models.register("words", files=[folder / "weights.bin"]).load().joinpath("weights.bin").read_bytes() == b"1234"
    )
    named = models.register("words", files={"a/b.bin": folder / "weights.bin"})
    assert (named.load() / "a" / "b.bin").exists()
    with pytest.raises(InvalidInputError, match="words:1 holds files and cannot predict"):
        version.predict([1])
    with pytest.raises(InvalidInputError, match=r"there is no file or folder '.*nowhere'"):
        models.register("words", files=[tmp_path / "nowhere"])
    with pytest.raises(InvalidInputError, match=r"cannot be kept as 'model/\.\./up'"):
        models.register("words", files={"../up": folder / "weights.bin"})
    assert len(models.list("words")) == 3


def test_what_cannot_be_registered_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="There is nothing to register: give model=…"):
        models.register("digits")
    with pytest.raises(InvalidInputError, match=r"'Digits' was given as the name of a model.*Did you mean 'digits'"):
        models.register("Digits", double)
    with pytest.raises(PredictionError, match="The model failed on the example of 1 row"):
        models.register("digits", lambda rows: 1 / 0, example=[1.0])
    with pytest.raises(InvalidInputError, match="give a trial of a result"):
        models.register("digits", double, trial="last")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="made_from holds 3"):
        models.register("digits", double, made_from=[3])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="signature="):
        models.register("digits", double, signature={"inputs": 3})
    assert not [path for path in files_below(tmp_path) if path.startswith("models/") and "_names" not in path]
    assert models.list() == []


def test_damaged_and_missing_files_are_noticed(tmp_path: Path) -> None:
    version = register()
    place = tmp_path / "models" / "digits" / "files" / version.manifest.token / "model" / "model.pkl"
    data = place.read_bytes()
    place.write_bytes(data[:-1] + b"x")
    assert [problem.partition("model.pkl ")[2] for problem in version.verify()] == [
        "is damaged: its SHA-256 is not the one in its manifest."
    ]
    place.write_bytes(data + b"more")
    assert [problem.partition("model.pkl ")[2] for problem in version.verify()] == [
        f"has more bytes, and its manifest says {len(data)}."
    ]
    place.write_bytes(data[:-1])
    assert f"has {len(data) - 1} bytes, and its manifest says" in version.verify()[0]
    with pytest.raises(StoreError, match=r"is not whole: model/model\.pkl missing or of another size"):
        version.predictor()
    place.unlink()
    assert "model.pkl is gone" in version.verify()[0]


def test_a_registry_made_anew_is_another_one(tmp_path: Path) -> None:
    import shutil

    register(metrics={"a": 1.0}).promote("champion")
    register()
    shutil.rmtree(tmp_path / "models")
    assert models.list() == []
    register(metrics={"b": 2.0})
    assert [(one.version, dict(one.metrics), one.aliases) for one in models.list("digits")] == [(1, {"b": 2.0}, [])]


def test_the_manifest_is_readable_without_us(tmp_path: Path) -> None:
    version = register(metrics={"accuracy": 0.9}, example=[1.0])
    manifest = json.loads((tmp_path / "models" / "digits" / "1" / "manifest.json").read_text())
    assert manifest["name"] == "digits"
    assert manifest["metrics"] == {"accuracy": 0.9}
    folder = tmp_path / "models" / "digits" / "files" / manifest["token"]
    assert json.loads((folder / "example.json").read_text()) == [1.0]
    assert {file["path"]: file["size_bytes"] for file in manifest["files"]} == {
        path: (folder / path).stat().st_size for path in files_below(folder)
    }
    assert version.as_json()["fingerprint"] == manifest["fingerprint"]


def test_a_version_is_copied_into_another_project_under_its_number(tmp_path: Path) -> None:
    versions = [register(metrics={"accuracy": number / 10}, example=[1.0]) for number in range(3)]
    other = ProjectFolder(tmp_path / "image")
    versions[1].copy_to(other)
    versions[1].copy_to(other)  # again changes nothing

    project.use(other.root)
    assert [(one.version, one.metrics["accuracy"]) for one in models.list("digits")] == [(2, 0.1)]
    assert models.get("digits:2").predict([4.0]) == [8.0]
    assert models.get("digits").verify() == []
    assert register().version == 3
    with pytest.raises(InvalidInputError, match="has another digits:3; choose another place"):
        versions[2].copy_to(other)
