"""URLs that a conversation has seen: one that its model made up could carry data out, so it asks in every mode.

Seen are those in messages of the user, on pages and in lists of search results. A result of another tool may hold
whatever the model wrote itself, and so may the words of a model about a page or a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from engine.executor.session import Session
from engine.machine.messages import Origin, TextBlock, ToolResultBlock, ToolUseBlock, text_in
from engine.permissions.tool_names import WEB
from engine.records import StoredMessage
from tools.contract import ToolRequest
from tools.web.known_links import known_text


async def with_known_url(session: Session, request: ToolRequest) -> ToolRequest:
    """The request, marked where it asks a URL that nothing before has named."""
    if not request.url or is_known(request.url, await session.rows()):
        return request
    return replace(request, is_new_url=True)


def is_known(url: str, rows: Sequence[StoredMessage]) -> bool:
    """True where a URL stands in a message of the user or a result of a web tool, with or without its scheme."""
    wanted = url.partition("://")[2].rstrip("/")
    return any(wanted in text for text in _texts(rows))


def _texts(rows: Sequence[StoredMessage]) -> Iterator[str]:
    calls = (block for row in rows for block in row.blocks if isinstance(block, ToolUseBlock))
    web = {block.id: block.name for block in calls if block.name in WEB}
    for row in rows:
        for block in row.blocks:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in web:
                yield known_text(web[block.tool_use_id], text_in(block.content))
            elif isinstance(block, TextBlock) and row.origin is Origin.HUMAN:
                yield block.text
