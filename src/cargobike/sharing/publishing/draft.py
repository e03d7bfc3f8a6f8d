"""A publication before it is signed: hashed and described, and what would become visible to whom."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.catalogue.entry import Entry
from cargobike.sharing.catalogue.store import Catalogue
from cargobike.sharing.checks import check_files, check_name, check_web_seed
from cargobike.sharing.hashing import Hashed, choose_piece_size, hash_file
from cargobike.sharing.identity.counting import next_number, note_number
from cargobike.sharing.identity.keys import Identity, load_identity
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.places import check_network, network_folder
from cargobike.sharing.publishing.content import Content
from cargobike.sharing.publishing.rows import Rows, describe_rows
from cargobike.sharing.publishing.sources import open_content
from cargobike.sharing.publishing.visible import Said, describe_visible
from cargobike.sharing.records import FORMAT, File, Manifest
from cargobike.sharing.torrents.hybrid import Torrent, in_order, make_torrent
from cargobike.sharing.torrents.kept import keep_torrent
from cargobike.sharing.tracing import note_published

_MOST_SAMPLE_ROWS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Something that can be published; nothing of it is visible to others yet."""

    project: ProjectFolder
    network: str
    said: Said
    content: Content
    hashed: dict[str, Hashed]
    rows: Rows
    piece_size: int
    torrent: Torrent

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(one.size for one in self.hashed.values())

    def visible(self) -> str:
        """Say what becomes visible to whom, for people."""
        members = network_folder(self.project, self.network) / "members"
        return describe_visible(
            self.said,
            self.content,
            self.rows,
            paths=list(self.hashed),
            size=self.size,
            network=self.network,
            members=members,
        )

    def publish(self, catalogue: Catalogue, holdings: Holdings) -> Entry:
        """Sign it, and enter it in the catalogue; what is already published unchanged is not published again."""
        identity = load_identity(self.project)
        newest = self._newest(catalogue, identity)
        if newest is not None and self._is_same(catalogue.manifest(newest)):
            holdings.add(catalogue.manifest(newest), self.content.place, self._layers())
            return newest

        def make(sequence: int) -> Manifest:
            manifest = self._manifest(identity.publisher, sequence, self._newest(catalogue, identity))
            holdings.add(manifest, self.content.place, self._layers())
            keep_torrent(network_folder(self.project, self.network), self.torrent)
            if self.content.made_from is not None:
                note_published(self.project, manifest, self.content.made_from)
            return manifest

        least = next_number(self.project, self.network, identity.publisher)
        manifest = catalogue.append(identity, make, least=least)
        note_number(self.project, self.network, identity.publisher, manifest.sequence)
        assert isinstance(manifest, Manifest)
        return catalogue.entry(manifest.name, manifest.publisher, manifest.version)

    def _newest(self, catalogue: Catalogue, identity: Identity) -> Entry | None:
        return catalogue.newest_version(self.said.name, identity.publisher)

    def _files(self) -> tuple[File, ...]:
        return tuple(
            File(path=path, size=self.hashed[path].size, root=self.hashed[path].root)
            for path in in_order(list(self.hashed))
        )

    def _layers(self) -> dict[str, Sequence[bytes]]:
        return {one.root: one.pieces for one in self.hashed.values() if one.size}

    def _is_same(self, other: Manifest) -> bool:
        said = self.said
        return (other.files, other.description, other.license, other.tags, other.web_seeds, other.piece_size) == (
            self._files(),
            said.description,
            said.license,
            said.tags,
            said.web_seeds,
            self.piece_size,
        )

    def _manifest(self, publisher: str, sequence: int, newest: Entry | None) -> Manifest:
        return Manifest(
            format=FORMAT,
            network=self.network,
            publisher=publisher,
            name=self.said.name,
            version=newest.version + 1 if newest else 1,
            supersedes=newest.version if newest else None,
            sequence=sequence,
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            description=self.said.description,
            license=self.said.license,
            tags=self.said.tags,
            kind=self.content.kind,  # type: ignore[arg-type]
            size=self.size,
            rows=self.rows.rows,
            columns=self.rows.columns,
            sample=self.rows.sample,
            piece_size=self.piece_size,
            files=self._files(),
            web_seeds=self.said.web_seeds,
            infohash_v1=self.torrent.infohash_v1,
            infohash_v2=self.torrent.infohash_v2,
        )


def make_draft(
    said: Said,
    source: Any,
    *,
    project: ProjectFolder,
    network: str,
    sample_rows: int = 5,
    redact: Sequence[str] = (),
    hidden: bool = False,
    watch: Callable[[str, int], None] | None = None,
) -> Draft:
    """Read and hash a source, and return what would be published.

    Raises:
        InvalidInputError: If it cannot be published; says why.
        NotFoundError: If there is no such source.
        StoreError: If it cannot be read, or changes meanwhile.
    """
    check_network(network)
    check_name(said.name)
    for address in said.web_seeds:
        check_web_seed(address)
    if not 0 <= sample_rows <= _MOST_SAMPLE_ROWS:
        raise InvalidInputError(f"sample_rows={sample_rows} was given; allowed are 0 to {_MOST_SAMPLE_ROWS}.")
    content = open_content(source, project, hidden=hidden)
    sizes = _sizes(content)
    piece_size = choose_piece_size(sum(sizes.values()))
    hashed = _hash_all(content, sizes, piece_size, watch)
    check_files([File(path=path, size=one.size, root=one.root) for path, one in hashed.items()])
    seeds = tuple(dict.fromkeys((*said.web_seeds, *content.web_seeds)))
    rows = describe_rows(content, sample_rows=sample_rows, redact=redact)
    unknown = [name for name in redact if name not in {column.name for column in rows.columns}]
    if unknown:
        raise InvalidInputError(f"There is no column {', '.join(map(repr, unknown))} to be left out of the sample.")
    return Draft(
        project=project,
        network=network,
        said=Said(name=said.name, description=said.description, license=said.license, tags=said.tags, web_seeds=seeds),
        content=content,
        hashed=hashed,
        rows=rows,
        piece_size=piece_size,
        torrent=make_torrent(said.name, hashed, piece_size, web_seeds=seeds, comment=said.description[:500]),
    )


def _sizes(content: Content) -> dict[str, int]:
    """Return the bytes of files of this machine; those on a storage are counted while they are read."""
    folder = Path(content.place)
    return {path: (folder / path).stat().st_size for path in content.files} if "://" not in content.place else {}


def _hash_all(
    content: Content, sizes: dict[str, int], piece_size: int, watch: Callable[[str, int], None] | None
) -> dict[str, Hashed]:
    hashed = {}
    for path, opened in content.files.items():
        try:
            with opened() as file:
                hashed[path] = hash_file(file, piece_size)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error
        if sizes and hashed[path].size != sizes[path]:
            raise StoreError(f"{path} has changed while it was read; publish it when it is not written any more.")
        if watch is not None:
            watch(path, hashed[path].size)
    return hashed
