"""The text of one reply while it arrives: reasoning, answer and calls, separated when the server does not. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, cast

import msgspec
from msgspec import Struct, field

from engine.ports import StreamItem, TextDelta, ThinkingDelta, ToolCallDelta
from engine.providers.openai_compatible.json_protocol import StepReader
from engine.providers.wire import encode_json
from tools.contract import JsonObject, JsonValue, ToolSpec

_TAGS = ("think", "thinking", "thought", "reasoning")
_OPENINGS = tuple(f"<{tag}>" for tag in _TAGS)
_OPENING_TAG = re.compile(rf"<({'|'.join(_TAGS)})>", re.IGNORECASE)
_FENCES = ("```", "~~~")
_LONGEST_TAG_WAIT = 200
"""Characters at the beginning of a line that may wait for classification: blanks have no end."""


class TaggedPiece(Struct, frozen=True):
    """A piece of the answer, or of the reasoning."""

    text: str
    is_thinking: bool = False


class ThinkingSplitter:
    """Feed it the text of one reply, in any pieces.

    A tag counts at the beginning of a line outside code: elsewhere the model writes about tags.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._closing = ""
        """The tag that ends the reasoning under way."""
        self.unclosed = ""
        """The tag that began it, as it was written; empty where it has ended."""
        self._in_code = False
        self._at_line = True
        """True when the next character begins a line."""
        self._trims = False
        """True while blanks are dropped: the reasoning has just ended."""

    def feed(self, text: str) -> list[TaggedPiece]:
        """Feed `text`; returns the pieces classified by now, the rest waits for more."""
        self._rest += text
        found: list[TaggedPiece] = []
        while self._rest and self._next(found):
            pass
        return found

    def finish(self) -> list[TaggedPiece]:
        """Return the text still held."""
        rest, self._rest = self._rest, ""
        return [TaggedPiece(rest, bool(self._closing))] if rest else []

    def _next(self, found: list[TaggedPiece]) -> bool:
        """Take one step; False where more must come first."""
        if self._closing:
            return self._think(found)
        if self._trims:
            self._rest = self._rest.lstrip()
            self._trims = not self._rest
            return bool(self._rest)
        if self._at_line:
            return self._begin_line()
        line, newline, rest = self._rest.partition("\n")
        found.append(TaggedPiece(line + newline))
        self._rest, self._at_line = rest, bool(newline)
        return True

    def _begin_line(self) -> bool:
        head = self._rest.lstrip(" \t")
        start = head[:16].lower()
        opening = None if self._in_code else _OPENING_TAG.match(head)
        if opening is not None:
            self._rest, self._closing = head[opening.end() :], f"</{opening[1].lower()}>"
            self.unclosed = opening[0]
            return True
        begins = _FENCES if self._in_code else (*_FENCES, *_OPENINGS)
        if len(self._rest) <= _LONGEST_TAG_WAIT and any(
            mark.startswith(start) for mark in begins if len(start) < len(mark)
        ):
            return False
        self._in_code ^= start.startswith(_FENCES)
        self._at_line = False
        return True

    def _think(self, found: list[TaggedPiece]) -> bool:
        at = self._rest.lower().find(self._closing)
        if at < 0:
            mark = self._closing
            end = self._rest[-len(mark) :].lower()
            keep = next(
                (size for size in range(min(len(mark) - 1, len(end)), 0, -1) if mark.startswith(end[-size:])), 0
            )
            shown, self._rest = self._rest[: len(self._rest) - keep], self._rest[len(self._rest) - keep :]
            found += [TaggedPiece(shown, True)] if shown else []
            return False
        found += [TaggedPiece(self._rest[:at], True)] if at else []
        self._rest, self._closing = self._rest[at + len(self._closing) :], ""
        self.unclosed = ""
        self._trims = self._at_line = True
        return bool(self._rest)


def split_at_closing(text: str) -> tuple[str, str]:
    """Reasoning and answer of a text whose opening tag was in the prompt (DeepSeek, Qwen); all answer without one."""
    for tag in _TAGS:
        head, closing, rest = text.partition(f"</{tag}>")
        if closing and f"<{tag}" not in head and head.count("`") % 2 == 0 and head.count("```") % 2 == 0:
            return head.strip(), rest.lstrip()
    return "", text


TextCall: TypeAlias = tuple[str, str]
"""Name and arguments, as JSON text."""

_MARKS: Final = ("<tool_call>", "<function_call>", "[tool_calls]", "<|python_tag|>", "<function=")
_MARK: Final = re.compile("|".join(map(re.escape, _MARKS)), re.IGNORECASE)
_LINE_MARK: Final = re.compile(r"[ \t]*((```(json|tool_call)?[ \t]*\n|<tools?>)\s*[\[{]|\{|\[\s*\{)")
"""First characters of a bare call, on its own line."""
_LINE_WAIT: Final = re.compile(
    r"[ \t]*(`{0,3}|~{1,2}|```\w{0,10}[ \t]*|(```(json|tool_call)?[ \t]*\n|<tools?>)\s*|\[\s*|<t?|<to|<too|<tools?)\Z"
)
"""The beginning of a line that may become that, or the fence of a code block."""
_FENCE_WAIT: Final = re.compile(r"[ \t]*[`~]{0,2}\Z")
_NAMES: Final = ("name", "function", "tool", "tool_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_FIELDS: Final = frozenset({*_NAMES, *_ARGUMENTS, "id", "type"})
_AROUND: Final = re.compile(
    r"</?(?:tool_calls?|function_calls?|tools?)>|\[/?TOOL_CALLS\]|<\|python_tag\|>|<\|eom_id\|>|```\w*", re.IGNORECASE
)
"""Markup around calls that has no meaning of its own."""
_BETWEEN: Final = re.compile(rf"(?:[\s,;]|{_AROUND.pattern})*", re.IGNORECASE)
"""Markup before and behind a call; never searched in its arguments, which may contain the same."""
_END: Final = "</tool_call>"
_XML: Final = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER: Final = "<parameter="
_OPENING: Final = re.compile(r"[\s`]*(?:json|tool_call|<tools?>)?[\s\[{]*")
_FIRST: Final = re.compile(r'"(\w*)("?)\s*:?\s*(?:"([^"]*)("?))?')
"""The first key of bare JSON, and its value where that is a text."""
_TOOL_NAME: Final = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"]+)"|<function=([\w.-]+)>')
_LONGEST_WAIT: Final = 200
"""Characters at the beginning of a line that may wait for classification: blanks have no end."""
_HEAD: Final = 2_000
"""Characters used to decide if a text may be a call, and of which tool."""


class FoundCall(Struct, frozen=True):
    """The classification of a whole text."""

    text: str = ""
    calls: list[TextCall] = field(default_factory=list[TextCall])
    is_cut: bool = False
    """True when a call was cut; it is not among `calls`."""


class CallSpotter:
    """Feed it the text of one reply: a possible call is held back until it is decided."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._told: list[str] = []
        self._held = ""
        """May be a call, or the mark of one; its beginning where it is long."""
        self._more: list[str] = []
        self._is_call = False
        """True when `_held` begins with a mark."""
        self._named = False
        self._in_code = False
        self._at_line = True
        self._ticks = 0
        """Backticks on the line under way: an odd number begins code."""

    def feed(self, text: str) -> Iterator[StreamItem]:
        """Feed `text`; yields the visible additions."""
        if self._is_call and len(self._held) > _HEAD:
            self._more.append(text)
            return
        self._held += text
        while self._held:
            if self._is_call and self._may_be_call():
                yield from self._name()
                return
            if self._is_call:
                self._is_call = False
                yield self._tell(self._first_line())
                continue
            shown = self._up_to_mark()
            if shown:
                yield self._tell(shown)
            elif not self._is_call:
                return

    def finish(self, *, cut: bool, called: bool = False) -> FoundCall:
        """Classify the whole text. `cut`: the output limit ended it; `called`: calls came apart from it."""
        before, held = "".join(self._told), self._held + "".join(self._more)
        if self._is_call and not called:
            if calls := read_calls(held, self._tools):
                return FoundCall(before.rstrip(), calls)
            inside, end, behind = held.rpartition(_END)
            if end and (calls := read_calls(inside, self._tools)):
                return FoundCall((before + behind).strip(), calls)
            if cut and self._named:
                return FoundCall(before.rstrip(), is_cut=True)
        return FoundCall(before + held)

    def flush(self, *, cut: bool, called: bool = False) -> Iterator[StreamItem]:
        """Yield held text that is no call; the arguments are those of `finish`."""
        held, found = self._held + "".join(self._more), self.finish(cut=cut, called=called)
        if held and not found.calls and not found.is_cut:
            self._held, self._more, self._is_call = "", [], False
            yield self._tell(held)

    def _tell(self, text: str) -> TextDelta:
        self._told.append(text)
        return TextDelta(text)

    def _first_line(self) -> str:
        """Release a line that is no call, so that the rest is examined again."""
        line, newline, self._held = self._held.partition("\n")
        self._note(line + newline)
        return line + newline

    def _up_to_mark(self) -> str:
        """The text ahead of the next mark, removed from the buffer; empty where more must come first."""
        if self._at_line and not self._in_code and _LINE_MARK.match(self._held[:_HEAD]):
            self._is_call = True
            return ""
        wait = _FENCE_WAIT if self._in_code else _LINE_WAIT
        if self._at_line and len(self._held) <= _LONGEST_WAIT and wait.match(self._held):
            return ""
        line, newline, _ = self._held.partition("\n")
        mark = None if self._in_code else _MARK.search(line)
        if mark is not None and (self._ticks + line[: mark.start()].count("`")) % 2 == 0:
            self._is_call = mark.start() == 0
            size = mark.start()
        else:
            size = len(line) + len(newline) - (0 if newline or self._in_code else _tail(line))
        shown, self._held = self._held[:size], self._held[size:]
        self._note(shown)
        return shown

    def _note(self, shown: str) -> None:
        """Follow lines and code blocks."""
        if shown:
            self._in_code ^= self._at_line and shown.lstrip(" \t").startswith(("```", "~~~"))
            self._at_line = shown.endswith("\n")
            self._ticks = 0 if self._at_line else self._ticks + shown.count("`")

    def _may_be_call(self) -> bool:
        """False as soon as bare JSON shows another first key, or names no tool on offer."""
        if _MARK.match(self._held):
            return True
        opening = _OPENING.match(self._held)
        rest = self._held[opening.end() if opening else 0 :]
        first = _FIRST.match(rest)
        if not rest or first is None:
            return not rest
        key, is_whole, value, ended = first.groups()
        known = (*_FIELDS, "tool_calls")
        if not (key in known if is_whole else first.end() == len(rest) and any(name.startswith(key) for name in known)):
            return False
        return not (key in _NAMES and ended and value not in self._tools)

    def _name(self) -> Iterator[StreamItem]:
        """Report the tool being called, once."""
        found = None if self._named else _TOOL_NAME.search(self._held)
        if found is not None and (name := found[1] or found[2]) in self._tools:
            self._named = True
            yield ToolCallDelta(name, "")


def read_calls(text: str, tools: dict[str, ToolSpec]) -> list[TextCall]:
    """The calls that `text` consists of; none when it contains anything else."""
    if text.startswith("<function=", _skip_blank(text, 0)):
        calls = [_from_xml(name, body, tools) for name, body in _XML.findall(text)]
        left = _AROUND.sub("", _XML.sub("", text)).strip()
        return [call for call in calls if call] if all(calls) and not left else []
    found: list[TextCall] = []
    for value in _values(text):
        call = _from_json(value, tools)
        if call is None:
            return []
        found.append(call)
    return found


def _values(text: str) -> Iterator[JsonValue]:
    """The consecutive JSON values, lists opened; None for anything else, which ends them.

    Qwen 2.5 is shown calls in doubled braces by its own chat template, and closes them with one brace more, or fewer.
    """
    decoder, at = json.JSONDecoder(strict=False), _skip_blank(text, 0)
    while at < len(text):
        doubled = text.startswith("{{", at)
        try:
            value, at = cast("tuple[JsonValue, int]", decoder.raw_decode(text, at + doubled))
        except (ValueError, RecursionError):
            yield None
            return
        while doubled and text[at : at + 1] in {"}", " ", "\n"}:
            at += 1
        at = _skip_blank(text, at)
        fields: JsonObject = value if isinstance(value, dict) else {}
        inner = fields["tool_calls"] if list(fields) == ["tool_calls"] else value
        yield from inner if isinstance(inner, list) else [value]


def _skip_blank(text: str, at: int) -> int:
    """Index at which the next call may begin."""
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _from_json(value: JsonValue, tools: dict[str, ToolSpec]) -> TextCall | None:
    if isinstance(value, dict) and isinstance(value.get("function"), dict) and set(value) <= {"function", "id", "type"}:
        value = value["function"]
    if not isinstance(value, dict) or not set(value) <= _FIELDS:
        return None
    name = next((value[key] for key in _NAMES if key in value), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        try:
            arguments = cast("JsonValue", json.loads(arguments, strict=False))
        except (ValueError, RecursionError):
            return None
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        return None
    return _call(name, arguments)


def _from_xml(name: str, body: str, tools: dict[str, ToolSpec]) -> TextCall | None:
    if name not in tools:
        return None
    arguments: JsonObject = {}
    for part in body.split(_PARAMETER)[1:]:  # no pattern: one without an end would be searched again and again
        key, _, rest = part.partition(">")
        value, end, _ = rest.partition("</parameter>")
        if end:
            arguments[key] = _parse_parameter(tools[name], key, value.removeprefix("\n").removesuffix("\n"))
    return _call(name, arguments)


def _call(name: str, arguments: JsonObject) -> TextCall | None:
    try:
        return name, encode_json(arguments).decode("utf-8")
    except (msgspec.MsgspecError, OverflowError, RecursionError):  # numbers and depths beyond every request
        return None


def _parse_parameter(tool: ToolSpec, key: str, value: str) -> JsonValue:
    """A parameter in the type that its tool requires: everything but a text is JSON."""
    properties = tool.input_schema.get("properties")
    wanted = properties.get(key) if isinstance(properties, dict) else None
    if isinstance(wanted, dict) and wanted.get("type") == "string":
        return value
    try:
        return cast("JsonValue", json.loads(value))
    except (ValueError, RecursionError):
        return value


def _tail(line: str) -> int:
    """Number of characters at the end of an open line that may begin a mark."""
    for size in range(min(max(map(len, _MARKS)) - 1, len(line)), 0, -1):
        if any(mark.startswith(line[-size:].lower()) for mark in _MARKS):
            return size
    return 0


AT_ONCE: Final = 1024
"""Characters processed together: both readers take lines off their buffers, and a reply may come in one piece."""


class WholeText(Struct, frozen=True):
    """The complete text of a reply. `calls` are (id, name, arguments); the id is always empty."""

    thinking: str = ""
    text: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    is_cut: bool = False
    """True when the output limit cut a call."""


class AnswerText:
    """Feed it the text as it arrives. `reader` knows calls: by the JSON protocol, or those left in the text."""

    def __init__(self, reader: StepReader | CallSpotter | None = None) -> None:
        self._reader = reader
        self._splitter = ThinkingSplitter()
        self._plain: list[str] = []
        self._thinking: list[str] = []

    def feed(self, text: str) -> Iterator[StreamItem]:
        """Feed `text`; yields the visible additions."""
        for at in range(0, len(text), AT_ONCE):
            found = self._splitter.feed(text[at : at + AT_ONCE])
            yield from _join_texts(item for piece in found for item in self._take(piece))

    def flush(self, *, cut: bool, called: bool) -> Iterator[StreamItem]:
        """Yield held text that turned out to be plain; the arguments are those of `finish`."""
        for piece in self._splitter.finish():
            yield from self._take(piece)
        if isinstance(self._reader, CallSpotter):
            yield from self._reader.flush(cut=cut, called=called)

    def finish(self, *, cut: bool, called: bool = False) -> WholeText:
        """The whole. `cut`: the output limit ended it; `called`: the server has read calls, so none is in the text."""
        for piece in self._splitter.finish():
            for _ in self._take(piece):
                pass
        whole = self._read(cut=cut, called=called)
        thinking = "".join(self._thinking)
        if self._splitter.unclosed and not cut and not whole.text.strip() and not whole.calls:
            # It never ended, so it may have been the answer (SPEC T-SAN 14).
            return WholeText(text=self._splitter.unclosed + thinking)
        before, text = split_at_closing(whole.text)
        return WholeText(thinking or before, text, whole.calls, whole.is_cut)

    def _take(self, piece: TaggedPiece) -> Iterator[StreamItem]:
        if piece.is_thinking:
            self._thinking.append(piece.text)
            yield ThinkingDelta(piece.text)
        elif self._reader is not None:
            yield from self._reader.feed(piece.text)
        else:
            self._plain.append(piece.text)
            yield TextDelta(piece.text)

    def _read(self, *, cut: bool, called: bool) -> WholeText:
        match self._reader:
            case StepReader() as steps:
                step = steps.finish(cut=cut)
                return WholeText("", step.reply, step.calls, step.truncated)
            case CallSpotter() as spotter:
                found = spotter.finish(cut=cut, called=called)
                return WholeText("", found.text, [("", *call) for call in found.calls], found.is_cut)
            case None:
                return WholeText(text="".join(self._plain))


def _join_texts(items: Iterable[StreamItem]) -> Iterator[StreamItem]:
    """The items with texts that follow each other in one: the readers give one a line."""
    texts: list[str] = []
    for item in items:
        if isinstance(item, TextDelta):
            texts.append(item.text)
            continue
        if texts:
            yield TextDelta("".join(texts))
            texts = []
        yield item
    if texts:
        yield TextDelta("".join(texts))
