"""Members of a sharing network for tests: publish a folder, give it to others from this process."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from cargobike.core.layout import ProjectFolder
from cargobike.sharing.hashing import hash_file
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.network.network import Network, make_network
from cargobike.sharing.pieces.holdings import Holdings
from cargobike.sharing.records import FORMAT
from cargobike.sharing.shapes import File, Manifest
from cargobike.sharing.swarm.answering import Answers, Giving
from cargobike.sharing.wire.reception import Reception

SECRET = "a secret of sixteen letters"
PIECE = 64 * 1024


@functools.cache
def lab(secret: str = SECRET) -> Network:
    return make_network("lab", secret=secret)


def project_at(folder: Path) -> ProjectFolder:
    folder.mkdir(parents=True, exist_ok=True)
    return ProjectFolder(folder)


def fill(folder: Path, sizes: dict[str, int], seed: int = 0) -> dict[str, bytes]:
    """Write files of random bytes, and return them."""
    contents = {}
    draw = random.Random(seed)
    for path, size in sizes.items():
        contents[path] = draw.randbytes(size)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(contents[path])
    return contents


def read_folder(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def publish(
    membership: Membership,
    folder: Path,
    name: str = "higgs",
    version: int = 1,
    *,
    piece_size: int = PIECE,
    **more: object,
) -> Manifest:
    """Sign a folder, and enter it in the holdings."""
    files, layers = [], {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        hashed = hash_file(path, piece_size)
        files.append(File(path=str(path.relative_to(folder)), size=hashed.size, root=hashed.root))
        if hashed.size:
            layers[hashed.root] = hashed.pieces

    def make(sequence: int) -> Manifest:
        said = {
            "format": FORMAT,
            "network": membership.network.name,
            "publisher": membership.identity.publisher,
            "name": name,
            "version": version,
            "supersedes": None,
            "sequence": sequence,
            "created": "2026-11-18T00:00:00Z",
            "description": "Collisions",
            "license": "CC-BY-4.0",
            "tags": (),
            "kind": "folder",
            "size": sum(file.size for file in files),
            "rows": None,
            "columns": (),
            "sample": (),
            "piece_size": piece_size,
            "files": tuple(files),
            "web_seeds": (),
            "infohash_v1": "",
            "infohash_v2": "",
        }
        return Manifest(**{**said, **more})  # type: ignore[arg-type]

    manifest = membership.catalogue.append(membership.identity, make)
    assert isinstance(manifest, Manifest)
    membership.holdings.add(manifest, folder, layers)
    return manifest


class Seeder:
    """A member that gives what it holds, in threads of this process."""

    def __init__(
        self, membership: Membership, port: int = 0, wrap: Callable[[Holdings], Holdings] = lambda holdings: holdings
    ) -> None:
        self.membership = membership
        self.giving = Giving()
        answers = Answers(
            membership.catalogue, wrap(membership.holdings), self.giving, known_peers=membership.book.told
        )
        self.reception = Reception("127.0.0.1", port, membership.network, membership.identity, talk=answers.talk)
        self.address = f"127.0.0.1:{self.reception.port}"

    @property
    def pieces_given(self) -> int:
        return sum(given.pieces for given in self.giving.by_member.values())

    def close(self) -> None:
        self.reception.close()


@contextlib.contextmanager
def seeding(
    folder: Path, network: Network | None = None, *, wrap: Callable[[Holdings], Holdings] = lambda holdings: holdings
) -> Iterator[Seeder]:
    """Be a member with a project of its own, until the block ends."""
    with Membership(project_at(folder), network or lab()) as membership:
        seeder = Seeder(membership, wrap=wrap)
        try:
            yield seeder
        finally:
            seeder.close()
