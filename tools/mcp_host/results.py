"""Results of servers as plain parts (docs/decisions/mcp.md): what a model reads, what the user sees, what is a file."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from tools.clean import clean, clean_line
from tools.mcp_host.limits import INLINE_IMAGE, LONGEST_DESCRIPTION, LONGEST_URI, MOST_INLINE, MOST_PARTS, TEXT_KEPT
from tools.mcp_host.protocol import Content, ImagePart, Part, PromptMessage, PromptText, TextPart
from tools.mcp_host.schemas import OutputSchemas
from tools.mcp_host.spill import SpillFolder, SpillFull

_MIME: Final = re.compile(r"[A-Za-z0-9.+-]{1,60}/([A-Za-z0-9.-]{1,30})")
UNTITLED: Final = "application/octet-stream"


class ResultMapper:
    """Maps the results of one server; `limit` is the bytes of text that a result may show."""

    def __init__(self, server: str, spill: SpillFolder, limit: int) -> None:
        self._server = server
        self._spill = spill
        self._limit = limit
        self._inline = MOST_INLINE

    def tool(self, tool: str, result: CallToolResult, schemas: OutputSchemas) -> Content:
        """The result of a tool; structured content that is valid replaces the text for the model."""
        parts, links = self._blocks(list(result.content))
        structured = result.structured_content
        if not result.is_error and schemas.has(tool):
            if structured is None:
                problem = "it declares structured output and returned none"
            else:
                problem = schemas.problem(tool, structured)
            if problem:
                return _error(f"The result of {clean_line(tool)} does not match its output schema. {clean(problem)}")
            parts = [self._json(structured), *map(_text_for_the_eye, parts)]
        elif not parts and structured is not None:
            parts.append(self._json(structured))
        if not any(part.for_model for part in parts):
            parts.append(TextPart(text=f"({clean_line(tool)} completed with no output)"))
        return Content(parts=self._bounded(parts), is_error=result.is_error, links=links)

    def resource(self, result: ReadResourceResult) -> Content:
        """The contents of a resource."""
        parts: list[Part] = [self._resource(one) for one in result.contents[:MOST_PARTS]]
        if not parts:
            parts.append(TextPart(text="(the resource is empty)"))
        return Content(parts=self._bounded(parts))

    def prompt(self, result: GetPromptResult) -> PromptText:
        """The messages of a prompt."""
        messages = result.messages[:MOST_PARTS]
        parts, _ = self._blocks([message.content for message in messages])
        paired = zip(messages, self._bounded(parts), strict=False)
        return PromptText(
            messages=[PromptMessage(message.role, part) for message, part in paired],
            description=clean((result.description or "")[:LONGEST_DESCRIPTION]),
        )

    def _blocks(self, blocks: list[Any]) -> tuple[list[Part], list[str]]:
        parts = [self._block(block) for block in blocks[:MOST_PARTS]]
        if len(blocks) > MOST_PARTS:
            parts.append(TextPart(text=f"({len(blocks) - MOST_PARTS} more parts of this result were left out)"))
        links = [str(block.uri)[:LONGEST_URI] for block in blocks[:MOST_PARTS] if isinstance(block, ResourceLink)]
        return parts, links

    def _block(self, block: object) -> Part:
        match block:
            case TextContent(text=text):
                part: Part = TextPart(text=text)
            case ImageContent(data=data, mime_type=mime):
                part = self._image(data, mime)
            case AudioContent(data=data, mime_type=mime):
                part = self._saved("Audio", data, mime)
            case EmbeddedResource(resource=resource):
                part = self._resource(resource)
            case ResourceLink():
                part = TextPart(text=_link(block))
            case _:
                return TextPart(text="(a part of a kind that Phoenix does not know)")
        audience = getattr(getattr(block, "annotations", None), "audience", None)
        return msgspec.structs.replace(part, for_model=False) if audience == ["user"] else part

    def _resource(self, resource: TextResourceContents | BlobResourceContents) -> Part:
        uri = clean_line(str(resource.uri)[:LONGEST_URI])
        if isinstance(resource, TextResourceContents):
            return TextPart(text=f"Resource {uri} of MCP server '{self._server}':\n{resource.text}")
        mime = resource.mime_type or UNTITLED
        if mime.startswith("image/"):
            return self._image(resource.blob, mime)
        return self._saved(f"Resource {uri}", resource.blob, mime)

    def _image(self, data: str, mime: str) -> Part:
        mime = mime if _MIME.fullmatch(mime) else UNTITLED
        if len(data) <= min(INLINE_IMAGE, self._inline):
            self._inline -= len(data)
            return ImagePart(mime=mime, data=data, size=len(data) * 3 // 4)
        content = _decoded(data)
        if content is None:
            return TextPart(text="(an image that is not valid base64)")
        try:
            path = self._spill.save(content, _suffix(mime))
        except (SpillFull, OSError) as error:
            return TextPart(text=f"(an image of {len(content)} bytes could not be saved: {error})")
        return ImagePart(mime=mime, file=path, size=len(content))

    def _saved(self, kind: str, data: str, mime: str) -> TextPart:
        content = _decoded(data)
        if content is None:
            return TextPart(text=f"({kind}: not valid base64)")
        mime = mime if _MIME.fullmatch(mime) else UNTITLED
        try:
            path = self._spill.save(content, _suffix(mime))
        except (SpillFull, OSError) as error:
            return TextPart(text=f"({kind}, {mime}, {len(content)} bytes could not be saved: {error})")
        return TextPart(text=f"{kind}, {mime}, {len(content)} bytes, saved to {path}", file=path)

    def _json(self, structured: object) -> TextPart:
        return TextPart(text=msgspec.json.encode(structured).decode())

    def _bounded(self, parts: list[Part]) -> list[Part]:
        """Clean all texts; beyond the limit, the largest go to files and keep their ends."""
        sizes = [len(part.text.encode("utf-8", "replace")) if isinstance(part, TextPart) else 0 for part in parts]
        excess = sum(sizes) - self._limit
        largest = sorted(range(len(parts)), key=lambda index: -sizes[index])
        spilled: set[int] = set()
        for index in largest:
            if excess <= 0:
                break
            spilled.add(index)
            excess -= max(0, sizes[index] - 2 * TEXT_KEPT)
        return [self._cut(part) if index in spilled else _cleaned(part) for index, part in enumerate(parts)]

    def _cut(self, part: Part) -> Part:
        if isinstance(part, ImagePart) or len(part.text) <= 2 * TEXT_KEPT:
            return _cleaned(part)
        content = part.text.encode("utf-8", "replace")
        head, tail = clean(part.text[:TEXT_KEPT]), clean(part.text[-TEXT_KEPT:])
        try:
            path = self._spill.save(content, ".txt")
            where = f"the whole text of {len(content)} bytes is in {path}"
        except (SpillFull, OSError) as error:
            path, where = "", f"the rest of {len(content)} bytes could not be saved: {error}"
        return msgspec.structs.replace(part, text=f"{head}\n[… {where} …]\n{tail}", file=path or part.file)


def _error(text: str) -> Content:
    return Content(parts=[TextPart(text=text)], is_error=True)


def _text_for_the_eye(part: Part) -> Part:
    return msgspec.structs.replace(part, for_model=False) if isinstance(part, TextPart) else part


def _cleaned(part: Part) -> Part:
    return part if isinstance(part, ImagePart) else msgspec.structs.replace(part, text=clean(part.text))


def _link(link: ResourceLink) -> str:
    uri, name = str(link.uri)[:LONGEST_URI], link.name[:LONGEST_URI]
    description = (link.description or "")[:LONGEST_DESCRIPTION]
    return clean_line(f"Resource link: {name} {uri}" + (f" ({description})" if description else ""))


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return None


def _suffix(mime: str) -> str:
    match = _MIME.fullmatch(mime)
    return "." + (match[1] if match else "bin").replace("octet-stream", "bin").lstrip(".")
