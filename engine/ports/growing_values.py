"""A value for each message of a request, computed once while the list only grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from engine.ports.models import ModelMessage

T = TypeVar("T")
LAST: Final = 8
"""Messages at the end of a request that may differ in the next one."""


class GrowingValues(Generic[T]):
    """Values of the messages of the last request; the next one computes those of its new messages only."""

    def __init__(self, value_of: Callable[[ModelMessage], T]) -> None:
        self._value_of = value_of
        self._messages: tuple[ModelMessage, ...] = ()
        self._values: list[T] = []

    def of(self, messages: tuple[ModelMessage, ...]) -> Sequence[T]:
        """The value of each message, in order; not to be kept, for the next request changes it."""
        same = common_start(self._messages, messages)
        del self._values[same:]
        self._values.extend(map(self._value_of, messages[same:]))
        self._messages = messages
        return self._values


def common_start(before: tuple[ModelMessage, ...], now: tuple[ModelMessage, ...]) -> int:
    """Number of messages at the beginning that are equal in both.

    A request ends otherwise than the one before, so the last messages are looked at one by one; the rest is compared
    at once, which takes 10 ns for each message that is the same object.
    """
    count = min(len(before), len(now))
    for _ in range(LAST):
        if not count or before[count - 1] == now[count - 1]:
            break
        count -= 1
    if before[:count] == now[:count]:
        return count
    return next((place for place in range(count) if before[place] != now[place]), count)
