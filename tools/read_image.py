"""read_image: a picture from disk for a model that sees, prepared as a pasted one is (SPEC BED-013)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.contract import (
    ImageDisplay,
    ImageReader,
    ImageRejected,
    JsonObject,
    ToolClass,
    ToolContext,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.failure import ToolFailure, explain, failed
from tools.files.location import Location, admit, opened_file, resolve, shown

MOST_BYTES = 50 * 1024 * 1024

_SPEC = ToolSpec(
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

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the file."""
        path = await asyncio.to_thread(resolve, _path(args), working_dir)
        return ToolRequest(summary=shown(path, working_dir), paths=(path,))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Read and prepare it."""
        wanted = _path(args)
        try:
            location = await asyncio.to_thread(admit, wanted, context)
            raw = await asyncio.to_thread(_read, location)
            image = await self.images.prepare(raw)
        except ToolFailure as failure:
            return failed(str(failure))
        except ImageRejected as rejection:
            return failed(f"{wanted}: {rejection}")
        except OSError as error:
            return failed(explain(error, wanted))
        text = f"{location.shown}: image of {image.width}x{image.height} pixels."
        if (image.width, image.height) != (image.original_width, image.original_height):
            text += f" Shrunk from {image.original_width}x{image.original_height}."
        return ToolOutput(text, display=ImageDisplay(location.shown, image.width, image.height), images=(image,))


def _path(args: JsonObject) -> str:
    return Arguments(args, ("path",)).text("path")


def _read(location: Location) -> bytes:
    with opened_file(location) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MOST_BYTES:
            raise ToolFailure(f"{location.shown} has {size:,} bytes; the limit for an image is {MOST_BYTES:,}.")
        return stream.read()
