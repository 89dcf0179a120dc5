"""Lists of a server as items: all pages, bounded in count and bytes, sorted by name, texts cleaned and cut."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec
from mcp.client import Client
from mcp_types import PaginatedResult, Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations

from tools.clean import clean, clean_line
from tools.mcp_host.limits import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    LONGEST_URI,
    MOST_ITEMS,
    MOST_LEFT_OUT,
    MOST_LIST_BYTES,
    MOST_PAGES,
    MOST_SCHEMA_BYTES,
)
from tools.mcp_host.mending import LEFT_OUT
from tools.mcp_host.protocol import Annotations, Item, Items, LeftOut, Listing, PromptArgument

P = TypeVar("P", bound=PaginatedResult)
DEEPEST: Final = 60
"""Levels of a schema whose descriptions are cleaned; a schema that goes deeper is left out."""


class Refused(Exception):
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
        except Refused as refused:
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
            raise Refused(f"its name is empty or longer than {LONGEST_NAME} characters")
        if name in self._items:
            raise Refused("the name is taken by another one of the list")
        if len(self._items) >= MOST_ITEMS:
            raise Refused(f"the server has more than {MOST_ITEMS}")
        made = item()
        size = len(msgspec.json.encode(made))
        if size > MOST_SCHEMA_BYTES:
            raise Refused(f"its definition has {size} bytes, more than {MOST_SCHEMA_BYTES}")
        if self._size + size > MOST_LIST_BYTES:
            raise Refused(f"the list has more than {MOST_LIST_BYTES >> 20} MB")
        self._size += size
        return made

    def _leave_out(self, name: str, reason: str) -> None:
        self._count += 1
        if len(self._left_out) < MOST_LEFT_OUT:
            self._left_out.append(LeftOut(clean_line(name[:LONGEST_NAME]), reason))

    def done(self) -> Items:
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
    return catalogue.done(), schemas


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
    return catalogue.done()


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
        raise Refused("needs tasks")
    hints = tool.annotations
    return Item(
        name=tool.name,
        title=_title(tool.title or (hints.title if hints else None)),
        description=_description(tool.description),
        schema=_with_clean_texts(tool.input_schema, 0),
        annotations=None if hints is None else _annotations(hints),
    )


def _annotations(hints: ToolAnnotations) -> Annotations:
    return Annotations(
        read_only=hints.read_only_hint,
        destructive=hints.destructive_hint,
        idempotent=hints.idempotent_hint,
        open_world=hints.open_world_hint,
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
        uri=str(resource.uri),
        mime=_title(resource.mime_type),
        size=-1 if resource.size is None else resource.size,
    )


def _template(template: ResourceTemplate) -> Item:
    return Item(
        name=clean_line(template.name[:LONGEST_NAME]),
        title=_title(template.title),
        description=_description(template.description),
        uri=str(template.uri_template),
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
        raise Refused(f"its schema is deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _schema_text(key, one, depth + 1) for key, one in pairs}
    if isinstance(value, list):
        return [_with_clean_texts(one, depth + 1) for one in cast("list[object]", value)]
    return value


def _schema_text(key: str, value: Any, depth: int) -> Any:
    is_text = isinstance(value, str) and key in {"description", "title"}
    return _description(value) if is_text else _with_clean_texts(value, depth)
