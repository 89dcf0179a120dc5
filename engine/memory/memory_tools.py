"""memory_search and memory_get: notes, and messages that the model no longer sees whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.memory.memory import USER, Memory, NoteRefused
from engine.memory.passages import read_message, search_unseen, words_of
from engine.ports import StorageError
from engine.ports.profiles import MEMORY_TOOLS
from tools.arguments import Arguments, failure_output, object_schema
from tools.contract import (
    JsonObject,
    Tool,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.wording import LONGEST_NUMBER, one_line, pluralize

if TYPE_CHECKING:
    from engine.store.store import Store


SEARCH, GET = MEMORY_TOOLS
MOST_HITS: Final = 20
USUAL_HITS: Final = 8
MOST_LINES: Final = 400
USUAL_LINES: Final = 80
MOST_CHARACTERS: Final = 16_000
"""Characters of one answer of memory_get."""
LONGEST_QUERY: Final = 1_000
MESSAGE: Final = "message"
PROJECT: Final = "project"
_SEARCH_SPEC = ToolSpec(
    SEARCH,
    "Search the notes of this project and of the user, and the messages of this conversation that you no longer see "
    "whole: those before its summary, and shortened or cleared results. Give the words that the text should contain.",
    object_schema(
        {
            "query": {"type": "string", "description": "Words to find, the rarest ones first."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "description": "Hits of each kind."},
        },
        ["query"],
    ),
    ToolClass.READ,
)
_GET_SPEC = ToolSpec(
    GET,
    "Read a note or an earlier message by the path that memory_search gave, such as project/2026-11-24.md or "
    "message/12.",
    object_schema(
        {
            "path": {"type": "string", "description": "The path, without the line."},
            "from_line": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1."},
            "lines": {"type": "integer", "minimum": 1, "maximum": MOST_LINES, "description": "How many lines."},
        },
        ["path"],
    ),
    ToolClass.READ,
)


class MemorySearch(Struct, frozen=True):
    """The tool that searches."""

    memory: Memory
    store: Store
    turns: int
    """Newest turns that a model is sent; 0: all."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SEARCH_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the words."""
        return ToolRequest(one_line(_read_query(args)[0]))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Search notes and messages; either may fail without the other."""
        query, limit = _read_query(args)
        words = words_of(query)
        if not words:
            raise ToolInputError("query has no words; give at least one.")
        parts, troubles = list[str](), list[str]()
        try:
            parts.append(await self._search_notes(query, context, limit))
        except (NoteRefused, OSError, StorageError) as error:
            troubles.append(f"[The notes cannot be searched: {_explain(error)}]")
        stored = await self.store.conversation(context.conversation_id)
        if stored is not None:
            hits = await search_unseen(self.store, stored.record, words, limit, self.turns)
            if hits:
                found = [f"{MESSAGE}/{hit.seq}:{hit.line} ({hit.kind})  {hit.text}" for hit in hits]
                parts.append("\n".join(["Messages of this conversation that you no longer see whole:", *found]))
        shown = "\n\n".join(filter(None, (*parts, *troubles)))
        return ToolOutput(shown or "Nothing found. Try other words, or fewer.", is_error=bool(troubles and not parts))

    async def _search_notes(self, query: str, context: ToolContext, limit: int) -> str:
        scopes = {await self.memory.project(context.working_dir): PROJECT, USER: USER}
        found = await self.memory.search(query, tuple(scopes), limit)
        lines = ["Notes:"] if found.hits else []
        for hit in found.hits:
            scope, _, name = hit.path.rpartition("/")
            lines.append(f"{scopes[scope]}/{name}:{hit.line}  {hit.text}")
        if not found.complete:
            lines.append("[Some notes are not indexed yet; search again for the rest.]")
        return "\n".join(lines)


class MemoryGet(Struct, frozen=True):
    """The tool that reads."""

    memory: Memory
    store: Store

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _GET_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the path and the lines."""
        wanted = _Place.parse(args)
        lines = f":{wanted.first}" if wanted.first > 1 else ""
        return ToolRequest(f"{one_line(wanted.path)}{lines}")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Read the lines."""
        wanted = _Place.parse(args)
        kind, _, name = wanted.path.partition("/")
        try:
            match kind:
                case "message":
                    text = await self._read_message(name, context)
                case "project":
                    text = await self.memory.read(f"{await self.memory.project(context.working_dir)}/{name}")
                case "user":
                    text = await self.memory.read(f"{USER}/{name}")
                case _:
                    return failure_output("path begins with project/, user/ or message/, as memory_search gives it.")
        except FileNotFoundError:
            return failure_output(f"There is no {one_line(wanted.path)}; memory_search finds the notes there are.")
        except (NoteRefused, OSError) as error:
            return failure_output(_explain(error))
        return _cut_lines(text, wanted)

    async def _read_message(self, seq: str, context: ToolContext) -> str:
        if not seq.isdecimal() or not seq.isascii() or len(seq) > LONGEST_NUMBER:
            raise NoteRefused("A message is named by its number, such as message/12.")
        text = await read_message(self.store, context.conversation_id, int(seq))
        if text is None:
            raise NoteRefused(f"This conversation has no message {int(seq)}.")
        return text


class _Place(Struct, frozen=True):
    path: str
    first: int
    count: int

    @classmethod
    def parse(cls, args: JsonObject) -> _Place:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("path", "from_line", "lines"))
        return cls(
            fields.text("path"),
            fields.whole("from_line", 1, 1, 2**53),
            fields.whole("lines", USUAL_LINES, 1, MOST_LINES),
        )


def memory_tools(memory: Memory, store: Store, turns: int) -> dict[str, Tool]:
    """Both tools by their names; `turns` are the newest ones that a model is sent, 0 for all."""
    return {SEARCH: MemorySearch(memory, store, turns), GET: MemoryGet(memory, store)}


def _read_query(args: JsonObject) -> tuple[str, int]:
    fields = Arguments(args, ("query", "limit"))
    return fields.text("query")[:LONGEST_QUERY], fields.whole("limit", USUAL_HITS, 1, MOST_HITS)


def _cut_lines(text: str, wanted: _Place) -> ToolOutput:
    lines = text.split("\n")
    shown, size = list[str](), 0
    for number, line in enumerate(lines[wanted.first - 1 : wanted.first - 1 + wanted.count], wanted.first):
        cut = line if len(line) <= MOST_CHARACTERS - size else f"{line[: max(MOST_CHARACTERS - size, 0)]} […]"
        shown.append(f"{number:>6}\t{cut}")
        size += len(cut)
        if size >= MOST_CHARACTERS:
            break
    if not shown:
        return failure_output(f"It has {pluralize(len(lines), 'line')}; from_line {wanted.first} is past its end.")
    rest = wanted.first - 1 + len(shown)
    more = [f"[{pluralize(len(lines) - rest, 'more line')}: continue with from_line {rest + 1}]"]
    return ToolOutput("\n".join(shown + (more if rest < len(lines) else [])), truncated=rest < len(lines))


def _explain(error: Exception) -> str:
    return (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
