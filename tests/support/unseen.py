"""Screens of pilots that are painted when a test looks: no terminal is there for the frames between, and to paint them
is a third of the time of a pilot.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakSet

from textual._compositor import Compositor
from textual._context import active_app
from textual.app import App

_unseen: WeakSet[App[Any]] = WeakSet()


def leave_unpainted(app: App[Any]) -> None:
    """Paint the screens of this app for `Shell.text` and `Shell.strips` alone."""
    _skip_frames()
    _unseen.add(app)


@cache
def _skip_frames() -> None:
    paint: Any = Compositor.render_update

    def skip(compositor: Compositor, full: bool = False, **more: Any) -> Any:
        if full or active_app.get() not in _unseen:
            return paint(compositor, full, **more)
        dirty = set(compositor._dirty_regions)
        compositor._dirty_regions.clear()
        return dirty or None

    setattr(Compositor, "render_update", skip)  # noqa: B010 - Textual has no door for it
