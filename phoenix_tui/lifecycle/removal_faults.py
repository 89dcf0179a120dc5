"""Faults of widgets that are being removed: their targets have gone before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual._callback import invoke
from textual._context import active_message_pump
from textual.css.query import NoMatches
from textual.dom import DOMNode, NoScreen
from textual.worker import (
    WorkerFailed,
    active_worker,  # pyright: ignore[reportUnknownVariableType] - Textual leaves a worker's result open
)

if TYPE_CHECKING:
    from textual._types import CallbackType

MISSED: Final = NoMatches, NoScreen
"""Exceptions of Textual for a removed widget."""


def is_being_removed(node: object) -> bool:
    """True while a widget or screen is being removed or has been: its children go before it does."""
    # Textual offers no other sign before the node is detached, which is after its children.
    return isinstance(node, DOMNode) and (node._pruning or not node.is_attached)  # pyright: ignore[reportPrivateUsage] - as said


def is_fault_of_removal(error: BaseException) -> bool:
    """True when the widget whose handler or worker failed is being removed, and missed one that went before it.

    The same fault of a widget that stays is real: its messages end with it, and it would ignore all keys.
    """
    if isinstance(error, WorkerFailed):
        node: Any = active_worker.get().node  # pyright: ignore[reportUnknownMemberType] - as above
        return isinstance(error.error, MISSED) and is_being_removed(node)
    return isinstance(error, MISSED) and is_being_removed(active_message_pump.get(None))


def unless_removed(callback: CallbackType, goes_on_after: Callable[[Exception], bool]) -> CallbackType:
    """The callback without its widget's faults of removal, and those that are contained: the screen that runs it for
    the widget stays, and runs those behind it.
    """
    called: Any = callback
    owner = getattr(getattr(called, "func", called), "__self__", None)  # a partial of it, or the method itself

    async def run() -> None:
        try:
            await invoke(called)
        except Exception as error:
            is_removal = isinstance(error, MISSED) and is_being_removed(owner)
            if not is_removal and not goes_on_after(error):
                raise

    return run
