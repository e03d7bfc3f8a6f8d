"""What is said about groups that cannot be looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike import features
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Trigger, look_of


def test_a_group_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "teams.v1.1.json").write_text("{}")
    trigger = features.changed("taems")
    with pytest.raises(NotFoundError, match=r"There is no feature group 'taems' .* Did you mean 'teams'"):
        look_of(trigger)(trigger, "", ProjectFolder(tmp_path))


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'\.\./x' is no name of a feature group"):
        features.changed("../x")


def test_a_kind_that_no_product_knows_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"'sunny' is no kind of trigger that is known here; known are .*changed"):
        look_of(Trigger("sunny", "oslo"))
