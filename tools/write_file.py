"""write_file: create a text file or replace all of one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.contract import JsonObject, ToolClass, ToolContext, ToolOutput, ToolRequest, ToolSpec
from tools.files.content import TextContent
from tools.files.writing import ReadLedger, TextFormatter, change_file, change_request, foresee_change

_SCHEMA = object_schema(
    {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
        "content": {"type": "string", "description": "The whole new content."},
    },
    ["path", "content"],
)
_SPEC = ToolSpec(
    "write_file",
    "Create a text file, with missing folders, or replace the whole content of one that was read before. "
    "Use patch to change parts of a file.",
    _SCHEMA,
    ToolClass.EDIT,
)


class WriteFileInput(Struct, frozen=True):
    """The file and all of its new text."""

    path: str
    content: str

    @classmethod
    def parse(cls, args: JsonObject) -> WriteFileInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("path", "content"))
        return cls(fields.text("path"), fields.text("content"))

    def change(self, existing: TextContent | None) -> str:
        """The new text; a file with `\\r\\n` line ends gets them back when it is encoded."""
        return self.content.replace("\r\n", "\n") if existing is not None and existing.crlf else self.content


class WriteFile(Struct, frozen=True):
    """The tool."""

    ledger: ReadLedger
    formatter: TextFormatter | None = None

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the whole change."""
        wanted = WriteFileInput.parse(args)
        return await asyncio.to_thread(change_request, wanted.path, working_dir, wanted.change)

    async def foresee(self, args: JsonObject, context: ToolContext) -> None:
        """Refuse a file that was never read, or was changed since, before any question."""
        await foresee_change(WriteFileInput.parse(args).path, context, self.ledger)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Write it."""
        wanted = WriteFileInput.parse(args)
        return await change_file(wanted.path, context, self.ledger, wanted.change, self.formatter)
