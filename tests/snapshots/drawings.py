"""Ten screens as SVG beside their rows of text: what a person sees of spacing and colour.

They are made with Textual's own `export_screenshot`. pytest-textual-snapshot 1.1 (MIT) makes the same pictures, but its
fixture is not asynchronous and runs the app itself, where a scene opens one over its own engine and looks several
times; it needs syrupy 4.8.0 and jinja2, and makes a folder in every session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.shell import Shell

DRAWINGS: Final = Path(__file__).parent / "drawings"
DRAWN: Final = frozenset({
    "approval-bash/approval-bash-80x24",
    "approval-patch/approval-patch-120x40",
    "blocks/diff-80x24",
    "conversations/list-120x40",
    "light-theme/light-theme-80x24",
    "new/new-80x24",
    "plan/long-80x24",
    "tabs-permissions/permissions-80x24",
    "tabs-plan/todo-list-80x24",
    "welcome/welcome-80x24",
})
"""Scene and name of each; none of work in progress, whose seconds and rates differ each time."""
LARGEST: Final = 60_000
"""Bytes of a drawing of 80 columns; others have as many more as they have cells."""


def drawing_of(scene: str, name: str) -> Path | None:
    """The file of a screen that is kept as a drawing; None for any other."""
    return DRAWINGS / f"{name}.svg" if f"{scene}/{name}" in DRAWN else None


def draw(shell: Shell, name: str) -> str:
    """The screen as SVG. The ids in it are a checksum of what it shows, so equal screens have equal texts."""
    return shell.app.export_screenshot(title=name, simplify=True) + "\n"
