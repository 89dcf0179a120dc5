"""read_file, patch and write_file: numbered lines or a picture (SPEC BED-013), edits of one file, all made or none."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from tools.arguments import Arguments, ToolFailure, explain, failure_output, object_schema
from tools.contract import (
    ImageDisplay,
    ImageReader,
    ImageRejected,
    JsonObject,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.files.content import PROBE_BYTES, FileEdit, Operation, TextContent, apply_edits, is_binary
from tools.files.location import Location, admit, open_regular, resolve, show_path, spills_of
from tools.files.writing import ReadLedger, TextFormatter, Version, change_file, change_request, foresee_change
from tools.wording import pluralize

MOST_LINES = 2000
MOST_BYTES = 128 * 1024
LONGEST_LINE = 8 * 1024
MOST_HASHED = 8 * 1024 * 1024
"""Files up to this size are remembered by content, larger ones by size and time."""

_SCHEMA = object_schema(
    {
        "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
        "offset": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LINES, "description": "How many lines at most."},
    },
    ["path"],
)
_SPEC = ToolSpec(
    "read_file",
    f"Read a text file as numbered lines (number, tab, line), at most {MOST_LINES:,} lines or 128 KB at once. "
    "Read a file before changing it.",
    _SCHEMA,
    ToolClass.READ,
)


class ReadFileInput(Struct, frozen=True):
    """Input of read_file."""

    path: str
    offset: int
    limit: int

    @classmethod
    def parse(cls, args: JsonObject) -> ReadFileInput:
        """Read the arguments.

        Raises:
            ToolInputError: they are invalid.
        """
        fields = Arguments(args, ("path", "offset", "limit"))
        return cls(
            fields.text("path"),
            fields.whole("offset", 1, 1, 2**53),
            fields.whole("limit", MOST_LINES, 1, MOST_LINES),
        )


class ReadFile(Struct, frozen=True):
    """The tool; of `spills` the part of the working directory may be read, too."""

    ledger: ReadLedger
    spills: tuple[Path, ...] = ()
    spec: ToolSpec = _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the file and the lines."""
        wanted = ReadFileInput.parse(args)
        path = await asyncio.to_thread(resolve, wanted.path, working_dir)
        last = f"-{wanted.offset + wanted.limit - 1}" if Arguments(args, tuple(args)).has("limit") else ""
        lines = f":{wanted.offset}{last}" if wanted.offset > 1 or last else ""
        return ToolRequest(summary=f"{show_path(path, working_dir)}{lines}", paths=(path,))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Read it."""
        wanted = ReadFileInput.parse(args)
        try:
            return await asyncio.to_thread(self._read, wanted, context)
        except ToolFailure as failure:
            return failure_output(str(failure))
        except OSError as error:
            return failure_output(explain(error, wanted.path))

    def _read(self, wanted: ReadFileInput, context: ToolContext) -> ToolOutput:
        also = tuple(spills_of(folder, context.working_dir) for folder in self.spills)
        location = admit(wanted.path, context, also)
        with open_regular(location) as stream:
            state = os.fstat(stream.fileno())
            head = stream.read(MOST_HASHED if state.st_size <= MOST_HASHED else PROBE_BYTES)
            if is_binary(head):
                raise ToolFailure(
                    f"{location.shown} is a binary file ({state.st_size:,} bytes); read_file reads text only."
                )
            stream.seek(0)
            version = Version.of(state, head if state.st_size <= MOST_HASHED else None)
            output = _excerpt(stream, wanted, location.shown)
        self.ledger.note_read(context.conversation_id, location.path, version)
        return output


def _excerpt(stream: BinaryIO, wanted: ReadFileInput, name: str) -> ToolOutput:
    out: list[str] = []
    size, number, cut = 0, 0, ""
    for number, line in enumerate(_lines(stream), start=1):
        if number < wanted.offset:
            continue
        if len(out) == wanted.limit or size + len(line) > MOST_BYTES:
            cut = f"[{pluralize(len(out), 'line')} shown; the file goes on: continue with offset {number}]"
            break
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        size += len(line)
        out.append(f"{number:>6}\t{line.decode('utf-8', 'replace')}")
    if not out:
        return (
            ToolOutput(f"[{name} is empty]")
            if not number
            else failure_output(f"{name} has {pluralize(number, 'line')}; offset {wanted.offset} is past its end.")
        )
    return ToolOutput("\n".join([*out, cut] if cut else out), truncated=bool(cut))


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines without their ends; of a very long one only the beginning is kept in memory."""
    while line := stream.readline(LONGEST_LINE):
        if line.endswith(b"\n") or len(line) < LONGEST_LINE:
            yield line.rstrip(b"\r\n")
            continue
        dropped = 0
        while (rest := stream.readline(64 * 1024)) and not rest.endswith(b"\n"):
            dropped += len(rest)
        yield line + f" [line cut: {dropped + len(rest):,} more bytes]".encode()


MOST_IMAGE_BYTES = 50 * 1024 * 1024

_IMAGE_SPEC = ToolSpec(
    "read_image",
    "Look at an image file: PNG, JPEG, GIF (its first frame), WebP, BMP or TIFF. Large ones are shrunk.",
    object_schema(
        {"path": {"type": "string", "description": "The image, relative to the working directory."}}, ["path"]
    ),
    ToolClass.READ,
)


class ReadImage(Struct, frozen=True):
    """The tool."""

    images: ImageReader
    spec: ToolSpec = _IMAGE_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the file."""
        path = await asyncio.to_thread(resolve, _path(args), working_dir)
        return ToolRequest(summary=show_path(path, working_dir), paths=(path,))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Read and prepare it."""
        wanted = _path(args)
        try:
            location = await asyncio.to_thread(admit, wanted, context)
            raw = await asyncio.to_thread(_read, location)
            image = await self.images.prepare(raw)
        except ToolFailure as failure:
            return failure_output(str(failure))
        except ImageRejected as rejection:
            return failure_output(f"{wanted}: {rejection}")
        except OSError as error:
            return failure_output(explain(error, wanted))
        text = f"{location.shown}: image of {image.width}x{image.height} pixels."
        if (image.width, image.height) != (image.original_width, image.original_height):
            text += f" Shrunk from {image.original_width}x{image.original_height}."
        return ToolOutput(text, display=ImageDisplay(location.shown, image.width, image.height), images=(image,))


def _path(args: JsonObject) -> str:
    return Arguments(args, ("path",)).text("path")


def _read(location: Location) -> bytes:
    with open_regular(location) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MOST_IMAGE_BYTES:
            raise ToolFailure(f"{location.shown} has {size:,} bytes; the limit for an image is {MOST_IMAGE_BYTES:,}.")
        return stream.read()


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
