"""Sends updates to subscribers, in order; a failing one is dropped, never the conversation."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import Struct, field

from engine.machine.messages import Role
from engine.updates import LiveTextDropped, MessageSaved, TextArrived, ThinkingArrived, Update, ViewersLeft

Listener = Callable[[Update], None]
log = logging.getLogger(__name__)


class Publisher(Struct, eq=False):
    """The listeners of one conversation and the text that is streaming now."""

    text: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    _listeners: list[Listener] = field(default_factory=list[Listener])
    _watching: int = 0

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Subscribe a viewer, in contrast to the engine's own parts; the result ends it."""
        remove, here = self.add(listener), True
        self._watching += 1

        def leave() -> None:
            nonlocal here
            remove()
            if here:
                here = False
                self._watching -= 1
                if not self._watching:
                    self.publish(ViewersLeft())

        return leave

    def add(self, listener: Listener) -> Callable[[], None]:
        """Subscribe; the returned function ends it."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    @property
    def has_watchers(self) -> bool:
        """True while there are viewers."""
        return self._watching > 0

    def publish(self, update: Update) -> None:
        """Send the update to all listeners, and keep the live text for later subscribers."""
        match update:
            case TextArrived(text):
                self.text.append(text)
            case ThinkingArrived(text):
                self.thinking.append(text)
            case MessageSaved(message) if message.role is not Role.ASSISTANT:
                pass
            case MessageSaved() | LiveTextDropped():
                self.text.clear()
                self.thinking.clear()
            case _:
                pass  # other updates leave the live text unchanged
        for listener in tuple(self._listeners):
            self._tell(listener, update)

    def _tell(self, listener: Listener, update: Update) -> None:
        try:
            listener(update)
        except Exception:  # the app edge: a screen that fails must not stop a conversation
            log.exception("a subscriber failed on %s and was dropped", type(update).__name__)
            if listener in self._listeners:
                self._listeners.remove(listener)
