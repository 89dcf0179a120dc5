"""Lists and results of servers as the protocol carries them: cleaned, bounded, checked against their schemas."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final, TypeVar, cast

import msgspec
from jsonschema import exceptions
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from mcp.client import Client
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PaginatedResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.clean import clean, clean_line
from tools.mcp_host.causes import SpillFolder, SpillFull
from tools.mcp_host.guard import LEFT_OUT
from tools.mcp_host.protocol import (
    CHECKING,
    INLINE_IMAGE,
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    LONGEST_URI,
    MOST_INLINE,
    MOST_ITEMS,
    MOST_LEFT_OUT,
    MOST_LIST_BYTES,
    MOST_PAGES,
    MOST_PARTS,
    MOST_SCHEMA_BYTES,
    TEXT_KEPT,
    Annotations,
    Content,
    ContentPart,
    ImagePart,
    Item,
    Items,
    LeftOut,
    Listing,
    PromptArgument,
    PromptMessage,
    PromptText,
    TextPart,
)

P = TypeVar("P", bound=PaginatedResult)
DEEPEST: Final = 60
"""Levels of a schema whose descriptions are cleaned; a schema that goes deeper is left out."""


class ResultRefused(Exception):
    """An item that is not offered, with the reason."""


class Catalogue:
    """One list in the making."""

    def __init__(self, server: str, what: Listing) -> None:
        self._server = server
        self._what: Listing = what
        self._items: dict[str, Item] = {}
        self._left_out: list[LeftOut] = []
        self._count = 0
        self._size = 0

    def add(self, name: str, item: Callable[[], Item]) -> None:
        """Add what `item` makes, unless it, or the list with it, is beyond a limit."""
        try:
            made = self._fitting(name, item)
        except ResultRefused as refused:
            self._leave_out(name, str(refused))
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            self._leave_out(name, "its definition is no JSON")
        else:
            self._items[name] = made

    def leave_out_of(self, page: PaginatedResult) -> None:
        """Note the items of a page that could not be read (`mending.py`)."""
        for name, reason in (page.meta or {}).get(LEFT_OUT) or ():
            self._leave_out(str(name), str(reason))

    def leave_rest_out(self) -> None:
        """Note that the server has more pages than are read."""
        self._leave_out("", f"the server has more than {MOST_PAGES} pages")

    def _fitting(self, name: str, item: Callable[[], Item]) -> Item:
        if not name or len(name) > LONGEST_URI or (self._what != "resources" and len(name) > LONGEST_NAME):
            raise ResultRefused(f"its name is empty or longer than {LONGEST_NAME} characters")
        if name in self._items:
            raise ResultRefused("the name is taken by another one of the list")
        if len(self._items) >= MOST_ITEMS:
            raise ResultRefused(f"the server has more than {MOST_ITEMS}")
        made = item()
        size = len(msgspec.json.encode(made))
        if size > MOST_SCHEMA_BYTES:
            raise ResultRefused(f"its definition has {size} bytes, more than {MOST_SCHEMA_BYTES}")
        if self._size + size > MOST_LIST_BYTES:
            raise ResultRefused(f"the list has more than {MOST_LIST_BYTES >> 20} MB")
        self._size += size
        return made

    def _leave_out(self, name: str, reason: str) -> None:
        self._count += 1
        if len(self._left_out) < MOST_LEFT_OUT:
            self._left_out.append(LeftOut(clean_line(name[:LONGEST_NAME]), reason))

    def build_items(self) -> Items:
        """The list, sorted by name."""
        items = [self._items[name] for name in sorted(self._items)]
        return Items(
            server=self._server,
            what=self._what,
            items=items,
            digest=hashlib.sha256(msgspec.json.encode(items, order="sorted")).hexdigest(),
            left_out=self._left_out,
            left_out_count=self._count,
        )


async def fetch_tools(server: str, client: Client) -> tuple[Items, dict[str, Any]]:
    """The tools of a server, and the output schemas of those that have one."""
    schemas: dict[str, Any] = {}
    catalogue = Catalogue(server, "tools")
    async for page in _pages(catalogue, lambda cursor: client.list_tools(cursor=cursor)):
        for tool in page.tools:
            if tool.output_schema is not None and len(schemas) < MOST_ITEMS:
                schemas.setdefault(tool.name, tool.output_schema)
            catalogue.add(tool.name, partial(_tool, tool))
    return catalogue.build_items(), schemas


async def fetch(server: str, client: Client, what: Listing) -> Items:
    """Prompts, resources or resource templates of a server."""
    catalogue = Catalogue(server, what)
    match what:
        case "prompts":
            async for prompts in _pages(catalogue, lambda cursor: client.list_prompts(cursor=cursor)):
                for prompt in prompts.prompts:
                    catalogue.add(prompt.name, partial(_prompt, prompt))
        case "templates":
            async for templates in _pages(catalogue, lambda cursor: client.list_resource_templates(cursor=cursor)):
                for template in templates.resource_templates:
                    catalogue.add(template.uri_template, partial(_template, template))
        case _:
            async for resources in _pages(catalogue, lambda cursor: client.list_resources(cursor=cursor)):
                for resource in resources.resources:
                    catalogue.add(resource.uri, partial(_resource, resource))
    return catalogue.build_items()


async def _pages(catalogue: Catalogue, page: Callable[[str | None], Awaitable[P]]) -> AsyncGenerator[P]:
    """All pages of a list; a cursor that comes again ends them."""
    cursor, seen = None, set[str]()
    for _ in range(MOST_PAGES):
        result = await page(cursor)
        catalogue.leave_out_of(result)
        yield result
        cursor = result.next_cursor
        if cursor is None or cursor in seen:
            return
        seen.add(cursor)
    catalogue.leave_rest_out()


def _tool(tool: Tool) -> Item:
    if tool.execution is not None and tool.execution.task_support == "required":
        raise ResultRefused("needs tasks")
    hints = tool.annotations
    return Item(
        name=tool.name,
        title=_title(tool.title or (hints.title if hints else None)),
        description=_description(tool.description),
        schema=_with_clean_texts(tool.input_schema, 0),
        annotations=None
        if hints is None
        else Annotations(
            read_only=hints.read_only_hint,
            destructive=hints.destructive_hint,
            idempotent=hints.idempotent_hint,
            open_world=hints.open_world_hint,
        ),
    )


def _prompt(prompt: Prompt) -> Item:
    return Item(
        name=prompt.name,
        title=_title(prompt.title),
        description=_description(prompt.description),
        arguments=[
            PromptArgument(
                name=one.name[:LONGEST_NAME],
                description=_description(one.description),
                required=bool(one.required),
            )
            for one in (prompt.arguments or [])[:MOST_LEFT_OUT]
        ],
    )


def _resource(resource: Resource) -> Item:
    return Item(
        name=clean_line(resource.name[:LONGEST_NAME]),
        title=_title(resource.title),
        description=_description(resource.description),
        uri=resource.uri,
        mime=_title(resource.mime_type),
        size=-1 if resource.size is None else resource.size,
    )


def _template(template: ResourceTemplate) -> Item:
    return Item(
        name=clean_line(template.name[:LONGEST_NAME]),
        title=_title(template.title),
        description=_description(template.description),
        uri=template.uri_template,
        mime=_title(template.mime_type),
    )


def _title(text: str | None) -> str:
    return clean_line((text or "")[:LONGEST_NAME])


def _description(text: str | None) -> str:
    text = text or ""
    return clean(text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 1]}…")


def _with_clean_texts(value: Any, depth: int) -> Any:
    """A schema whose descriptions and titles are cleaned and cut; other values stay exact."""
    if depth > DEEPEST:
        raise ResultRefused(f"its schema is deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _schema_text(key, one, depth + 1) for key, one in pairs}
    if isinstance(value, list):
        return [_with_clean_texts(one, depth + 1) for one in cast("list[object]", value)]
    return value


def _schema_text(key: str, value: Any, depth: int) -> Any:
    is_text = isinstance(value, str) and key in {"description", "title"}
    return _description(value) if is_text else _with_clean_texts(value, depth)


LONGEST_REASON = 500


class _OverrunError(BaseException):
    """The deadline passed; no `except Exception` of a library stops it."""


class OutputSchemas:
    """The output schemas of one server's tools, compiled at their first use."""

    def __init__(self) -> None:
        self._schemas: dict[str, Any] = {}
        self._validators: dict[str, Validator] = {}
        self._slow: set[str] = set()

    def replace(self, schemas: dict[str, Any]) -> None:
        """Take the schemas of a new list of tools."""
        self._schemas, self._validators = schemas, {}
        self._slow.clear()

    def has(self, tool: str) -> bool:
        """True for a tool that declares its output."""
        return tool in self._schemas

    def problem(self, tool: str, content: object) -> str:
        """The first difference from the schema, with its JSON path; empty if there is none."""
        if tool in self._slow:
            return "its output schema takes too long to check"
        try:
            with _deadline(CHECKING):
                return self._difference(tool, content)
        except _OverrunError:
            self._slow.add(tool)
            return "its output schema takes too long to check"
        except exceptions.SchemaError as error:
            return f"its output schema is invalid: {error.message[:LONGEST_REASON]}"
        except Unresolvable as error:
            return f"its output schema has a reference that leads nowhere: {str(error)[:LONGEST_REASON]}"
        except Exception as error:  # noqa: BLE001 - a hostile schema finds any weakness of the library
            return f"its output schema cannot be checked: {type(error).__name__}"

    def _difference(self, tool: str, content: Any) -> str:
        validator = self._validators.get(tool)
        if validator is None:
            schema = self._schemas[tool]
            kind = validator_for(schema)
            kind.check_schema(schema)
            validator = kind(schema, registry=Registry())  # empty: no reference is fetched
            self._validators[tool] = validator
        errors: Iterable[exceptions.ValidationError] = validator.iter_errors(content)
        best = cast("Callable[[object], exceptions.ValidationError | None]", exceptions.best_match)
        error = best(errors)
        return f"{error.json_path}: {error.message[:LONGEST_REASON]}" if error else ""


@contextmanager
def _deadline(seconds: float) -> Generator[None]:
    """Raise `_OverrunError` in the block after `seconds`; main thread only."""

    def over(_number: int, _frame: FrameType | None) -> None:
        raise _OverrunError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
        return Content(parts=self._limit_parts(parts), is_error=result.is_error, links=links)

    def resource(self, result: ReadResourceResult) -> Content:
        """The contents of a resource."""
        parts: list[ContentPart] = [self._resource(one) for one in result.contents[:MOST_PARTS]]
        if not parts:
            parts.append(TextPart(text="(the resource is empty)"))
        return Content(parts=self._limit_parts(parts))

    def prompt(self, result: GetPromptResult) -> PromptText:
        """The messages of a prompt."""
        messages = result.messages[:MOST_PARTS]
        parts, _ = self._blocks([message.content for message in messages])
        paired = zip(messages, self._limit_parts(parts), strict=False)
        return PromptText(
            messages=[PromptMessage(message.role, part) for message, part in paired],
            description=clean((result.description or "")[:LONGEST_DESCRIPTION]),
        )

    def _blocks(self, blocks: list[Any]) -> tuple[list[ContentPart], list[str]]:
        parts = [self._block(block) for block in blocks[:MOST_PARTS]]
        if len(blocks) > MOST_PARTS:
            parts.append(TextPart(text=f"({len(blocks) - MOST_PARTS} more parts of this result were left out)"))
        links = [block.uri[:LONGEST_URI] for block in blocks[:MOST_PARTS] if isinstance(block, ResourceLink)]
        return parts, links

    def _block(self, block: object) -> ContentPart:
        match block:
            case TextContent(text=text):
                part: ContentPart = TextPart(text=text)
            case ImageContent(data=data, mime_type=mime):
                part = self._image(data, mime)
            case AudioContent(data=data, mime_type=mime):
                part = self._save("Audio", data, mime)
            case EmbeddedResource(resource=resource):
                part = self._resource(resource)
            case ResourceLink():
                uri, name = block.uri[:LONGEST_URI], block.name[:LONGEST_URI]
                description = (block.description or "")[:LONGEST_DESCRIPTION]
                part = TextPart(
                    text=clean_line(f"Resource link: {name} {uri}" + (f" ({description})" if description else ""))
                )
            case _:
                return TextPart(text="(a part of a kind that Phoenix does not know)")
        audience = getattr(getattr(block, "annotations", None), "audience", None)
        return msgspec.structs.replace(part, for_model=False) if audience == ["user"] else part

    def _resource(self, resource: TextResourceContents | BlobResourceContents) -> ContentPart:
        uri = clean_line(resource.uri[:LONGEST_URI])
        if isinstance(resource, TextResourceContents):
            return TextPart(text=f"Resource {uri} of MCP server '{self._server}':\n{resource.text}")
        mime = resource.mime_type or UNTITLED
        if mime.startswith("image/"):
            return self._image(resource.blob, mime)
        return self._save(f"Resource {uri}", resource.blob, mime)

    def _image(self, data: str, mime: str) -> ContentPart:
        mime = mime if _MIME.fullmatch(mime) else UNTITLED
        if len(data) <= min(INLINE_IMAGE, self._inline):
            self._inline -= len(data)
            return ImagePart(mime=mime, data=data, size=len(data) * 3 // 4)
        content = _decode_base64(data)
        if content is None:
            return TextPart(text="(an image that is not valid base64)")
        try:
            path = self._spill.save(content, _suffix(mime))
        except (SpillFull, OSError) as error:
            return TextPart(text=f"(an image of {len(content)} bytes could not be saved: {error})")
        return ImagePart(mime=mime, file=path, size=len(content))

    def _save(self, kind: str, data: str, mime: str) -> TextPart:
        content = _decode_base64(data)
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

    def _limit_parts(self, parts: list[ContentPart]) -> list[ContentPart]:
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
        return [self._cut(part) if index in spilled else _clean_part(part) for index, part in enumerate(parts)]

    def _cut(self, part: ContentPart) -> ContentPart:
        if isinstance(part, ImagePart) or len(part.text) <= 2 * TEXT_KEPT:
            return _clean_part(part)
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


def _text_for_the_eye(part: ContentPart) -> ContentPart:
    return msgspec.structs.replace(part, for_model=False) if isinstance(part, TextPart) else part


def _clean_part(part: ContentPart) -> ContentPart:
    return part if isinstance(part, ImagePart) else msgspec.structs.replace(part, text=clean(part.text))


def _decode_base64(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return None


def _suffix(mime: str) -> str:
    match = _MIME.fullmatch(mime)
    return "." + (match[1] if match else "bin").replace("octet-stream", "bin").lstrip(".")
