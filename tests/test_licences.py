"""Licences of the installed packages, none of which is under the GPL or the AGPL."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

NAME = re.compile(r"[\w.-]+")
SHIPPED = ("local", "keyring", "serve", "otel", "mcp", "acp")
"""Extras that a user may install; what only the tests use is not given on."""


def needed(name: str, extras: tuple[str, ...] = ()) -> set[str]:
    """The names of everything that installing this brings along."""
    found: set[str] = set()
    for line in distribution(name).requires or []:
        requirement, _, marker = line.partition(";")
        if "extra ==" in marker and not any(f'"{extra}"' in marker.replace("'", '"') for extra in extras):
            continue
        match = NAME.match(requirement)
        assert match is not None, line
        found.add(match[0])
    return found


def closure() -> dict[str, str]:
    """Licence of each package, from its metadata."""
    licences: dict[str, str] = {}
    waiting = needed("phoenix-tui", SHIPPED)
    while waiting:
        name = waiting.pop()
        try:
            metadata = distribution(name).metadata
        except PackageNotFoundError:
            continue  # for another system
        classifiers = [one for one in metadata.get_all("Classifier", []) if one.startswith("License")]
        licences[name.lower()] = " ".join([
            *metadata.get_all("License-Expression", []),
            *metadata.get_all("License", []),
            *classifiers,
        ])
        waiting |= {one for one in needed(name) if one.lower() not in licences}
    return licences


def test_nothing_that_is_installed_stands_under_the_gpl() -> None:
    licences = closure()
    assert {"textual", "msgspec", "httpx2"} <= set(licences)
    assert {name: said for name, said in licences.items() if re.search(r"\bA?GPL|Affero|GNU General", said)} == {}
