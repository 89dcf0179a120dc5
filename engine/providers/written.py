"""Messages as JSON, kept from one request to the next, so that step 400 of a run costs what step 40 does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias, cast

import msgspec

from engine.ports import ModelMessage, ModelRequest
from engine.ports.models import common_start
from engine.providers.wire import encode_json, tool_ids
from tools.contract import JsonObject, JsonValue
from tools.shedding import SheddingOrder, shedding

Write: TypeAlias = Callable[[ModelMessage], Sequence[JsonObject]]
"""A message as the messages of the protocol that it becomes."""


class WrittenMessages:
    """The settled beginning of one request: all but the messages that depend on more than themselves as JSON."""

    def __init__(self, sequence: _Sequence) -> None:
        self.messages = sequence.messages
        self._parts = list(sequence.parts)
        self._left = tuple(sequence.left)
        self._ids = sequence.ids.copy()

    def tool_ids(self, request: ModelRequest) -> set[str]:
        """The ids of every tool use in the messages of the request that begins with these."""
        return self._ids | tool_ids(request.messages[len(self.messages) :])

    def filled(self, write: Write) -> list[JsonValue]:
        """All of them, the others as `write` makes them now."""
        found: list[JsonValue] = []
        start = 0
        for place in self._left:
            found += self._raw(start, place)
            found += write(self.messages[place])
            start = place + 1
        return found + self._raw(start, len(self._parts))

    def _raw(self, start: int, end: int) -> list[JsonValue]:
        # msgspec writes raw JSON unchanged.
        return cast("list[JsonValue]", list(chain.from_iterable(self._parts[start:end])))


class Written:
    """The settled messages of the last requests, a sequence for each conversation.

    Holds `most` bytes, the newest sequences first, and only those of the last `requests`: an abandoned conversation
    frees its memory.
    """

    def __init__(self, most: int = 4_000_000, requests: int = 64) -> None:
        self._most = most
        self._requests = requests
        self._number = 0
        self._sequences: list[_Sequence] = []
        """The one used last is the last one."""
        shedding.add("messages as JSON", SheddingOrder.READ, self.__len__, self.clear)

    def __len__(self) -> int:
        return sum(len(one.messages) for one in self._sequences)

    def clear(self) -> None:
        """Drop all: the next request writes them again."""
        self._sequences.clear()

    def settled(
        self,
        messages: tuple[ModelMessage, ...],
        form: object,
        write: Write,
        depends: Callable[[ModelMessage], bool],
    ) -> WrittenMessages:
        """`messages` as `write` makes them, but for those that depend on the rest of their request.

        `form` is what else decides how a message is written, such as the dialect of the server.
        """
        self._number += 1
        sequence = self._sequence(messages, form)
        sequence.number = self._number
        sequence.extend(messages, write, depends)
        self._make_room(sequence)
        return WrittenMessages(sequence)

    def _sequence(self, messages: tuple[ModelMessage, ...], form: object) -> _Sequence:
        """The sequence that these messages continue, else a new one with the beginning that they share with another."""
        best, count = _Sequence(form), 0
        for one in self._sequences:
            if one.form == form and one.messages[:1] == messages[:1]:
                same = common_start(one.messages, messages)
                if same > count:
                    best, count = one, same
        if count < len(best.messages):
            return best.beginning(count)
        return best

    def _make_room(self, newest: _Sequence) -> None:
        """Keep the newest sequences that fit, and of old ones none."""
        oldest = self._number - self._requests
        others = [one for one in self._sequences if one is not newest and one.number > oldest]
        room = self._most - newest.size
        while others and sum(one.size for one in others) > room:
            others.pop(0)
        self._sequences = [*others, newest] if room >= 0 else others


class _Sequence:
    """Messages of one conversation, the JSON of each, and the places of those that are written for each request."""

    def __init__(self, form: object) -> None:
        self.form = form
        self.messages: tuple[ModelMessage, ...] = ()
        self.parts: list[tuple[msgspec.Raw, ...]] = []
        self.left: list[int] = []
        self.ids: set[str] = set()
        """Ids of their tool uses."""
        self.size = 0
        """Bytes of the JSON."""
        self.number = 0
        """Number of the last request that began with it."""

    def beginning(self, count: int) -> _Sequence:
        """A sequence of its own with the first `count` messages."""
        other = _Sequence(self.form)
        other.messages, other.parts = self.messages[:count], self.parts[:count]
        other.left = [place for place in self.left if place < count]
        other.ids = tool_ids(other.messages)
        other.size = sum(map(_size, other.parts))
        return other

    def extend(self, messages: tuple[ModelMessage, ...], write: Write, depends: Callable[[ModelMessage], bool]) -> None:
        """Write the messages that are new."""
        self.ids |= tool_ids(messages[len(self.messages) :])
        for place in range(len(self.messages), len(messages)):
            message = messages[place]
            if depends(message):
                self.left.append(place)
                self.parts.append(())
                continue
            part = tuple(msgspec.Raw(encode_json(one)) for one in write(message))
            self.parts.append(part)
            self.size += _size(part)
        self.messages = messages


def _size(part: tuple[msgspec.Raw, ...]) -> int:
    return sum(len(bytes(one)) for one in part)
