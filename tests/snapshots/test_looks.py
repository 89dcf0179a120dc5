"""Every screen a person lives in looks as it did, at every size; what changed is shown as a diff."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.snapshots.booth import RENEW, SCREENS, Booth
from tests.snapshots.drawings import DRAWINGS, DRAWN, LARGEST
from tests.snapshots.scenes import SCENES

WAY_OUT = "If this is how it should look: `make snapshots`, then read the diff of tests/snapshots/screens."


@pytest.mark.parametrize("scene", SCENES)
async def test_a_screen_looks_as_it_did(scene: str, booth: Callable[[str], Booth]) -> None:
    place = booth(scene)
    await SCENES[scene](place)
    stale = {path.stem: path for path in place.folder.glob("*.txt") if path.stem not in place.taken}
    if os.environ.get(RENEW):
        for path in stale.values():
            path.unlink()
        stale.clear()
    assert not place.differences, "\n".join(["", *place.differences, WAY_OUT])
    assert not stale, f"no scene takes {', '.join(stale)}. {WAY_OUT}"


def test_every_drawing_is_of_a_screen_that_is_taken_and_small() -> None:
    screens = {f"{path.parent.name}/{path.stem}" for path in SCREENS.rglob("*.txt")}
    assert screens >= DRAWN
    stored = {path.stem: path.stat().st_size for path in DRAWINGS.glob("*.svg")}
    assert stored.keys() <= {name.partition("/")[2] for name in DRAWN}
    for name, size in stored.items():
        columns, _, rows = name.rpartition("-")[2].partition("x")
        assert size <= LARGEST * max(int(columns) * int(rows) / (80 * 24), 1), name


def test_every_folder_of_snapshots_belongs_to_a_scene() -> None:
    assert {path.name for path in SCREENS.iterdir()} == set(SCENES)
