"""Names for things that are loaded when they are asked for, also from packages of other people.

A registry knows where each of its own names is defined, as `module:attribute`. A package adds a name by an entry point:

```toml
[project.entry-points."cargobike.optimizers"]
mine = "my_package.search:MyOptimizer"
```

Entry points are looked up only when a name is not one of ours, or when all names are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cargobike.core.errors import CargobikeError, InvalidInputError, nearest
from cargobike.core.registering.lazy import load


class Registry:
    """Things by name.

    Args:
        kind: What the things are, for people: `"optimizer"`.
        group: The group of entry points that adds to them: `"cargobike.optimizers"`.
        own: Where each of our own is defined, by name.
        aliases: Other words for names.
        foreign: What to say about words that other tools use: a name of ours, or a sentence.
        otherwise: What can be given instead of a name, for people.

    Names are understood in any case, with or without `_`, `-` and spaces. Our own names win over those of entry
    points, so that installing a package never changes what a program does.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        own: Mapping[str, str],
        *,
        aliases: Mapping[str, str] = MappingProxyType({}),
        foreign: Mapping[str, str] = MappingProxyType({}),
        otherwise: str = "",
    ) -> None:
        self.kind = kind
        self.group = group
        self.own = dict(own)
        self.aliases = dict(aliases)
        self._foreign = dict(foreign)
        self._otherwise = f", or {otherwise}" if otherwise else ""

    def find(self, name: str) -> object:
        """Return what a name stands for, loaded.

        Raises:
            InvalidInputError: If there is no such name; says which there are, and the nearest.
            CargobikeError: If a package has registered it, but it cannot be loaded.
        """
        thing = self.get(name)
        if thing is None:
            raise InvalidInputError(self.unknown(name))
        return thing

    def get(self, name: str) -> object | None:
        """Return what a name stands for, loaded; `None` if there is no such name.

        Raises:
            CargobikeError: If a package has registered it, but it cannot be loaded.
        """
        word = plain_word(name)
        location = self.own.get(self.aliases.get(word, word))
        if location is not None:
            own: object = load(location)
            return own
        others = self._others()
        if word not in others:
            return None
        try:
            other: object = load(others[word])
        except (ImportError, AttributeError) as error:
            raise CargobikeError(
                f"the {self.kind} {name!r} is registered as {others[word]} by an installed package, but it cannot be "
                f"loaded: {error}. Mend or remove that package."
            ) from error
        return other

    def own_name_of(self, kind: type) -> str:
        """Return the name of a class if it is one of ours, else nothing."""
        location = f"{kind.__module__}:{kind.__qualname__}"
        return next((name for name, where in self.own.items() if where == location), "")

    def names(self) -> tuple[str, ...]:
        """Return all names, ours first, without aliases."""
        return (*self.own, *(name for name in self._others() if name not in self.own))

    def unknown(self, name: object) -> str:
        """Say that there is no such name, which there are, and which is the nearest."""
        word, words = plain_word(str(name)), sorted([*self.names(), *self.aliases])
        hint = f" {self._foreign[word]}" if word in self._foreign else nearest(word, words)
        return f"there is no {self.kind} {name!r}; known are {', '.join(words)}{self._otherwise}.{hint}"

    def _others(self) -> dict[str, str]:
        # Reading the metadata of all installed packages takes longer than all else here.
        from importlib.metadata import entry_points  # noqa: PLC0415

        return {plain_word(point.name): point.value for point in entry_points(group=self.group)}


def plain_word(name: str) -> str:
    """Return a name as it is compared: lower case, letters and digits only as far as people write it differently."""
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")
