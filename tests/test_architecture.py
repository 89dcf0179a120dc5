"""ARCHITECTURE.md and CONTRIBUTING.md lead to files that are there, and to every folder of the source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = {
    str(path.relative_to(ROOT))
    for package in ("phoenix_tui", "engine", "tools", "tests", "screenshots")
    for path in (ROOT / package).rglob("*")
    if path.suffix == ".py" or path.is_dir()
}
NAMED = re.compile(r"`([\w./]+(?:\.py|/))`|`((?:phoenix_tui|engine|tools|tests)(?:/\w+)*)`")


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_is_there(document: str) -> None:
    named = {(one or other).rstrip("/") for one, other in NAMED.findall((ROOT / document).read_text("utf-8"))}
    lost = {name for name in named if not any(place == name or place.endswith(f"/{name}") for place in PLACES)}
    assert lost - {"open"} == set()  # a folder of the installation


def test_every_folder_of_the_source_is_named() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = [path.parent for package in ("phoenix_tui", "engine", "tools") for path in (ROOT / package).rglob("*.py")]
    assert {folder.name for folder in folders if not re.search(rf"\b{folder.name}\b", text)} == set()
