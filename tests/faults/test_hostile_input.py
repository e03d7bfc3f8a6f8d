"""Every parser is given what nobody would write on purpose: it refuses in its own words, and does nothing else."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cargobike.core.errors import CargobikeError, FunctionError, InvalidInputError
from cargobike.core.facts import ExperimentStarted, TrialSuggested
from cargobike.core.goals import read_constraints
from cargobike.core.layout import ProjectFolder
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.asking.remote_source import load_function
from cargobike.experiments.trial.checkpoints.folder import DamagedError, read_meta, verify
from cargobike.experiments.trial.messages import Assignment, Point, decode_assign, decode_from_worker
from cargobike.search.spaces.formats import read_space
from cargobike.search.spaces.space import Searchspace
from cargobike.store.history.archive import take_in
from cargobike.store.journal.journal import JournalWriter, read_journal
from cargobike.testing.journals import first_fact
from cargobike.workers.wire.inner import decode_from_runner
from cargobike.workers.wire.link import Link
from cargobike.workers.wire.messages import (
    Assign,
    NoMessage,
    Said,
    decode_driver_message,
    decode_worker_message,
    encode_message,
)

# The same folder is written to again and again, which is fine here.
fuzzed = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12) | st.integers(), inner, max_size=5)
    ),
    max_leaves=20,
)
TEXTS = st.text(max_size=12)
CELLS = st.fixed_dictionaries({"cell_type": st.just("code") | TEXTS, "source": st.lists(TEXTS) | TEXTS | SCALARS})
WORDS = st.sampled_from(
    ["lr", "DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE", "log", "parameters", "space", "when", "type", "range", "min"]
)
SPACES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | TEXTS, inner, max_size=5),
    max_leaves=25,
)


class TestMessages:
    @fuzzed
    @given(st.binary(max_size=300))
    def test_noise_is_no_message(self, data: bytes) -> None:
        for decode in (decode_from_worker, decode_from_runner, decode_assign, decode_driver_message, Link().unpack):
            with contextlib.suppress(*NoMessage):
                decode(data)

    @pytest.mark.parametrize(
        "data", [b"\x91" * 100_000, b"\x81\xa1m" * 50_000, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"]
    )
    def test_neither_endless_nesting_nor_boasted_lengths_do_harm(self, data: bytes) -> None:
        for decode in (decode_from_worker, decode_from_runner, decode_assign, decode_driver_message, Link().unpack):
            with pytest.raises(NoMessage):
                decode(data)

    @fuzzed
    @given(st.lists(SCALARS, max_size=8), st.sampled_from(["said", "hello", "ended", "died", "beat", "x"]))
    def test_well_formed_nonsense_is_refused_or_has_the_right_types(self, fields: list[Any], tag: str) -> None:
        fields = [value for value in fields if type(value) is not int or abs(value) < 2**63]
        data = msgspec.msgpack.encode([tag, *fields])
        try:
            message = decode_from_worker(data)
        except NoMessage:
            return
        assert msgspec.msgpack.decode(encode_message(message), type=type(message)) == message

    @fuzzed
    @given(st.lists(st.binary(max_size=60), max_size=20), st.data())
    def test_a_link_survives_noise_repeats_losses_and_reordering(self, noise: list[bytes], data: st.DataObject) -> None:
        sender, receiver = Link(), Link()
        sent = [sender.pack([encode_message(Said(1, 1, Point(step, {"a": float(step)})))]) for step in range(8)]
        heard: list[int] = []

        def deliver(envelope: bytes) -> None:
            try:
                items = receiver.unpack(envelope)
            except NoMessage:
                return
            for item in items:
                message = decode_from_worker(item)
                assert isinstance(message, Said)
                assert isinstance(message.body, Point)
                heard.append(message.body.step)

        for envelope in data.draw(st.lists(st.sampled_from([*sent, *noise]), max_size=40)):
            deliver(envelope)
        for envelope in sender.unacknowledged():  # as after a reconnect
            deliver(envelope)
        assert heard == list(range(8))

    @fuzzed
    @given(st.binary(min_size=1, max_size=8), st.integers(0, 100))
    def test_a_message_damaged_behind_its_kind_is_of_that_kind_or_refused(self, patch: bytes, at: int) -> None:
        data = bytearray(ASSIGN)
        at = KIND_ENDS + at % (len(data) - KIND_ENDS)
        data[at : at + len(patch)] = patch
        for decode in (decode_driver_message, decode_assign):
            with contextlib.suppress(*NoMessage):
                assert type(decode(bytes(data))) is Assign
        with pytest.raises(NoMessage):
            decode_worker_message(bytes(data))

    @fuzzed
    @given(st.binary(min_size=6, max_size=6))
    def test_a_message_of_no_known_kind_is_refused(self, kind: bytes) -> None:
        assume(kind not in (b"assign", b"output"))
        data = ASSIGN.replace(b"assign", kind, 1)
        for decode in (decode_driver_message, decode_worker_message, decode_assign):
            with pytest.raises(NoMessage):
                decode(data)


ASSIGN = encode_message(Assign(1, 1, Assignment({"lr": 0.1}, seed=3)))
KIND_ENDS = ASSIGN.index(b"assign") + len(b"assign")


class TestSpaces:
    @fuzzed
    @given(st.text(max_size=200))
    def test_any_text_is_a_space_or_refused(self, tmp_path: Path, text: str) -> None:
        for name in ("space.yaml", "space.json"):
            path = tmp_path / name
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
            _refuses_or_reads(lambda path=path: read_space(path))  # type: ignore[misc]

    @fuzzed
    @given(SPACES)
    def test_any_document_is_a_space_or_refused(self, tmp_path: Path, document: object) -> None:
        path = tmp_path / "space.json"
        path.write_text(json.dumps(document, default=str))
        _refuses_or_reads(lambda: read_space(path))
        path = tmp_path / "space.yaml"
        path.write_text(yaml.safe_dump(document))
        _refuses_or_reads(lambda: read_space(path))

    @fuzzed
    @given(st.dictionaries(st.text(max_size=10), SPACES, max_size=5))
    def test_any_dict_is_a_space_or_refused(self, given: dict[str, Any]) -> None:
        _refuses_or_reads(lambda: Searchspace(given))

    @pytest.mark.parametrize(
        "text",
        [
            "!!python/object/apply:os.system ['touch hacked']",
            "lr: !!python/name:os.system",
            "&a [*a]",
            "a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n",
        ],
    )
    def test_yaml_cannot_run_code_or_grow(self, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "space.yaml"
        path.write_text(text)
        with pytest.raises((CargobikeError, ValueError)):
            read_space(path)
        assert not (tmp_path / "hacked").exists()

    @fuzzed
    @given(st.text(max_size=30) | st.lists(st.text(max_size=20), max_size=3))
    def test_any_text_is_a_constraint_or_refused(self, given: str | list[str]) -> None:
        try:
            read_constraints(given)
        except InvalidInputError:
            pass


class TestNotebooks:
    @fuzzed
    @given(DOCUMENTS | st.fixed_dictionaries({"cells": DOCUMENTS}) | st.fixed_dictionaries({"cells": st.lists(CELLS)}))
    def test_any_document_is_a_notebook_or_refused(self, tmp_path: Path, document: object) -> None:
        path = tmp_path / "notebook.ipynb"
        path.write_text(json.dumps(document, default=str))
        with pytest.raises(FunctionError, match=r"cannot be read|cannot be imported|no function"):
            load_function(f"{path}:surely_not_there")

    @pytest.mark.parametrize(
        "text", ["", "[" * 100_000, "{", '{"cells": 3}', "\x00", '{"cells": [{"cell_type": "code"}]}']
    )
    def test_broken_ones_are_refused(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "notebook.ipynb"
        path.write_text(text)
        with pytest.raises(FunctionError, match=r"cannot be read|no function"):
            load_function(str(path))


class TestArchives:
    @fuzzed
    @given(st.binary(max_size=300), st.integers(0, 5000))
    def test_a_damaged_archive_is_refused_and_leaves_nothing(self, tmp_path: Path, damage: bytes, at: int) -> None:
        archive = tmp_path / "archive.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("manifest.json", "{}")
            packed.writestr("journal.jsonl", "x" * 500)
        whole = archive.read_bytes()
        at %= len(whole)
        archive.write_bytes(whole[:at] + damage + whole[at + len(damage) :])
        project = ProjectFolder(tmp_path / "elsewhere")
        with pytest.raises(CargobikeError):
            take_in(archive, project)
        assert not list((tmp_path / "elsewhere").rglob("journal.jsonl"))


class TestJournals:
    @fuzzed
    @given(st.binary(max_size=200), st.integers(0, 400), st.booleans())
    def test_a_damaged_journal_is_refused_or_read_up_to_the_damage(
        self, tmp_path: Path, damage: bytes, at: int, is_appended: bool
    ) -> None:
        path = tmp_path / "journal.jsonl"
        path.unlink(missing_ok=True)
        with JournalWriter(path) as journal:
            journal.append([first_fact(at=1.0, id="x", name="x"), *_suggestions(5)])
        whole = path.read_bytes()
        at %= len(whole)
        path.write_bytes(whole + damage if is_appended else whole[:at] + damage + whole[at + len(damage) :])
        try:
            header, *facts = read_journal(path)
        except CargobikeError:
            return
        assert isinstance(header, ExperimentStarted)
        record = ExperimentRecord(header)
        for fact in facts:
            record.apply(fact)
        assert [trial.params for trial in record.trials.values()] == [{"x": n} for n in range(len(record.trials))]


class TestCheckpoints:
    @fuzzed
    @given(st.binary(max_size=200) | DOCUMENTS.map(lambda given: json.dumps(given, default=str).encode()))
    def test_a_description_that_is_none_is_damage(self, tmp_path: Path, data: bytes) -> None:
        folder = tmp_path / "000001-step3"
        folder.mkdir(exist_ok=True)
        (folder / "meta.json").write_bytes(data)
        with pytest.raises(DamagedError):
            read_meta(folder)

    @pytest.mark.parametrize("name", ["../../outside", "/etc/hostname", "a/../../outside"])
    def test_a_description_cannot_lead_out_of_its_folder(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "outside").write_text("secret")
        folder = tmp_path / "checkpoints" / "000001-step3"
        folder.mkdir(parents=True)
        meta = {
            "kind": "file", "step": 3, "entry": name, "created_at": 0.0, "size_bytes": 6,
            "sizes": {}, "sha256": {},
        }  # fmt: skip
        (folder / "meta.json").write_text(json.dumps(meta))
        with pytest.raises(DamagedError, match="lies outside"):
            verify(folder)


def _suggestions(count: int) -> list[TrialSuggested]:
    return [TrialSuggested(at=1.0 + number, trial=number, params={"x": number}) for number in range(count)]


def _refuses_or_reads(read: Callable[[], object]) -> None:
    with contextlib.suppress(CargobikeError):
        read()
