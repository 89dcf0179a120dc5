"""patch and write_file: edits of one file, all made or none, or all of its text."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from tools.arguments import Arguments, ToolFailure, object_schema
from tools.contract import JsonObject, ToolClass, ToolContext, ToolInputError, ToolOutput, ToolRequest, ToolSpec
from tools.files.content import FileEdit, Operation, TextContent, apply_edits
from tools.files.writing import ReadLedger, TextFormatter, change_file, change_request, foresee_change

_EDIT_SCHEMA = object_schema(
    {
        "op": {"type": "string", "enum": [operation.value for operation in Operation]},
        "old": {"type": "string", "description": "replace only: the text to replace; it must occur exactly once."},
        "new": {"type": "string", "description": "The text that takes its place, or is added."},
    },
    ["op", "new"],
)
_PATCH_SCHEMA = object_schema(
    {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
        "edits": {"type": "array", "minItems": 1, "items": _EDIT_SCHEMA, "description": "Applied in order."},
    },
    ["path", "edits"],
)
_PATCH_SPEC = ToolSpec(
    "patch",
    "Change a text file that was read before: replace one exact occurrence of a text, append, prepend, or "
    "overwrite. Several edits of one file are made together or not at all. Copy `old` exactly as the file has "
    "it, without line numbers, and long enough to occur once.",
    _PATCH_SCHEMA,
    ToolClass.EDIT,
)


class PatchInput(Struct, frozen=True):
    """The file and its edits."""

    path: str
    edits: tuple[FileEdit, ...]

    @classmethod
    def parse(cls, args: JsonObject) -> PatchInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("path", "edits"))
        edits = (_edit(entry, f"edits[{index}].") for index, entry in enumerate(fields.objects("edits")))
        return cls(fields.text("path"), tuple(edits))

    def change(self, existing: TextContent | None) -> str:
        """The text after all edits.

        Raises:
            ToolFailure: one of them does not apply.
        """
        if existing is not None:
            edits = (
                [
                    FileEdit(edit.operation, edit.new.replace("\r\n", "\n"), edit.old.replace("\r\n", "\n"))
                    for edit in self.edits
                ]
                if existing.crlf
                else self.edits
            )
            return apply_edits(existing.text, edits)
        if self.edits[0].operation is Operation.REPLACE:
            raise ToolFailure(f"{self.path} does not exist; create it with write_file.")
        return apply_edits("", self.edits)


class Patch(Struct, frozen=True):
    """The tool."""

    ledger: ReadLedger
    formatter: TextFormatter | None = None
    spec: ToolSpec = _PATCH_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show the whole change."""
        wanted = PatchInput.parse(args)
        return await asyncio.to_thread(change_request, wanted.path, working_dir, wanted.change)

    async def foresee(self, args: JsonObject, context: ToolContext) -> None:
        """Refuse a file that was never read, or was changed since, before any question."""
        await foresee_change(PatchInput.parse(args).path, context, self.ledger)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Make all edits, or none."""
        wanted = PatchInput.parse(args)
        return await change_file(wanted.path, context, self.ledger, wanted.change, self.formatter)


def _edit(entry: JsonObject, where: str) -> FileEdit:
    fields = Arguments(entry, ("op", "old", "new"), where)
    name = fields.text("op")
    if name not in set(Operation):
        raise ToolInputError(f"{where}op must be one of {', '.join(Operation)}, not {name}.")
    operation = Operation(name)
    if operation is not Operation.REPLACE:
        return FileEdit(operation, fields.text("new"))
    old, new = fields.text("old"), fields.text("new")
    if not old:
        raise ToolInputError(f"{where}old is empty; to set the whole content use the op overwrite.")
    if old == new:
        raise ToolInputError(f"{where}old and new are the same; nothing would change.")
    return FileEdit(operation, new, old)


_WRITE_SCHEMA = object_schema(
    {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
        "content": {"type": "string", "description": "The whole new content."},
    },
    ["path", "content"],
)
_WRITE_SPEC = ToolSpec(
    "write_file",
    "Create a text file, with missing folders, or replace the whole content of one that was read before. "
    "Use patch to change parts of a file.",
    _WRITE_SCHEMA,
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
    spec: ToolSpec = _WRITE_SPEC

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
