"""Tool calls put together from their pieces, in all the ways servers send them. Pure."""

from __future__ import annotations

import msgspec

from engine.providers.bounds import MOST_NAME
from engine.providers.carried import value_of
from engine.providers.wire import parse_object
from tools.contract import JsonValue


class WireFunction(msgspec.Struct, gc=False):
    """Name and arguments; the arguments are text, or an object where a server does not follow the API."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()


class WireCall(msgspec.Struct, gc=False):
    """A piece of a call, or a whole one."""

    index: int | None = None
    id: str | None = None
    function: WireFunction | None = None
    extra_content: msgspec.Raw = msgspec.Raw()
    """Signature of the reasoning behind it (Gemini)."""


class _Call(msgspec.Struct):
    index: int | None
    id: str
    name: str
    arguments: list[str] = msgspec.field(default_factory=list[str])
    extra: JsonValue = None

    @property
    def text(self) -> str:
        return "".join(self.arguments).strip() or "{}"


class CallList:
    """The calls of one reply, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def characters(self) -> int:
        """Number of characters written for calls."""
        return sum(len(call.name) + sum(map(len, call.arguments)) for call in self._calls)

    @property
    def is_open(self) -> bool:
        """True while the arguments of the last call are incomplete."""
        return bool(self._calls) and parse_object(self._calls[-1].text) is None

    def add(self, piece: WireCall) -> tuple[str, str]:
        """Add a piece; returns its new parts: the name, if a call begins with it, and the arguments."""
        function = piece.function or WireFunction()
        name, arguments = (function.name or "")[:MOST_NAME], _text(function.arguments)
        call = self._continued(piece, name)
        if call is None:
            extra = value_of(bytes(piece.extra_content))
            self._calls.append(_Call(piece.index, piece.id or "", name, [arguments], extra))
            return name, arguments
        late_name = "" if call.name else name
        call.name = call.name or name
        call.id = call.id or piece.id or ""
        call.extra = call.extra or value_of(bytes(piece.extra_content))
        call.arguments.append(arguments)
        return late_name, arguments

    def drop_cut_call(self) -> bool:
        """Drop the last call if the output limit fell into it."""
        if not self._calls:
            return False
        last = self._calls[-1]
        cut = not any(last.arguments) or parse_object(last.text) is None
        if cut:
            self._calls.pop()
        return cut

    def whole(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of each call; an empty id is one the server did not give."""
        return [(call.id, call.name, call.text) for call in self._calls]

    def extras(self) -> list[JsonValue]:
        """The `extra_content` of each call, None where it had none; empty where no call had any."""
        extras = [call.extra for call in self._calls]
        return extras if any(extras) else []

    def _continued(self, piece: WireCall, name: str) -> _Call | None:
        """The call that `piece` belongs to; None where it begins a new one.

        An index normally decides. Servers that send whole calls repeat index 0, or send none: there a new id, or
        a name after whole arguments, begins the next call.
        """
        if not self._calls:
            return None
        if piece.index is None:
            call = self._calls[-1]
        else:
            found = [call for call in self._calls if call.index == piece.index]
            if not found:
                return None
            call = found[-1]
        if piece.id and call.id and piece.id != call.id:
            return None
        repeats = bool(name and call.name) and (not piece.id or not call.id)
        return None if repeats and (name != call.name or parse_object(call.text) is not None) else call


def _text(arguments: msgspec.Raw) -> str:
    raw = bytes(arguments)
    if not raw or raw == b"null":
        return ""
    try:
        return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode("utf-8")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return raw.decode("utf-8", "replace")
