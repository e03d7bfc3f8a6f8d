"""Tables of data as a kind of thing that a project keeps."""

from __future__ import annotations

import re
from typing import Final

from cargobike.core import layout
from cargobike.core.registering.kinds import Kind
from cargobike.data.facts import DATA_FACTS

DATA: Final = Kind(name="table", folder=layout.DATA, id=re.compile("[0-9a-f]{12}"), facts=DATA_FACTS)
