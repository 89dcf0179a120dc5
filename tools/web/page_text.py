"""The text of a fetched page: Markdown of HTML, made in a process of its own; other text as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.clean import clean
from tools.contract import HELPER_SANDBOX, Command, ProcessRunner
from tools.failure import ToolFailure
from tools.web.fetching import FetchedPage

SECONDS: Final = 15.0
_MOST_BYTES: Final = 16 * 1024 * 1024
_WORKER: Final = Path(__file__).parent / "worker.py"
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS: Final = frozenset({"application/json", "application/xml", "application/javascript", "application/x-yaml"})
_TEXT_ENDS: Final = ("+json", "+xml", "/yaml")
_BEGINNINGS: Final = (b"<!doctype html", b"<html")


class PageText(Struct, frozen=True):
    """Text of a page, cleaned."""

    text: str
    kind: str
    """markdown, text, or the media type of what is shown as it is."""
    title: str = ""


class _Answer(Struct):
    error: str = ""
    kind: str = "text"
    title: str = ""


def is_image(page: FetchedPage) -> bool:
    """True for a media type that the image decoder may know."""
    return page.media_type.startswith("image/") and page.media_type != "image/svg+xml"


async def page_text(page: FetchedPage, runner: ProcessRunner) -> PageText:
    """Turn a page into text.

    Raises:
        ToolFailure: it is no text.
    """
    kind = page.media_type
    if kind in _HTML or (not kind and page.content[:200].lstrip().lower().startswith(_BEGINNINGS)):
        return await _from_html(page, runner)
    is_text = kind.startswith("text/") or kind in _TEXTS or kind.endswith(_TEXT_ENDS)
    if not is_text or b"\0" in page.content[:8192]:
        raise ToolFailure(
            f"{page.url} is of the type {kind or 'unknown'} ({len(page.content):,} bytes), which is not shown as text; "
            "download it with a command where the user wants that."
        )
    return PageText(clean(_decoded(page)), kind)


async def _from_html(page: FetchedPage, runner: ProcessRunner) -> PageText:
    command = Command(
        argv=(sys.executable, "-I", str(_WORKER)),
        working_dir=_WORKER.parent,
        timeout=SECONDS,
        stdin=page.charset.encode("ascii", "replace") + b"\n" + page.url.encode() + b"\n" + page.content,
        keep_head=_MOST_BYTES,
        keep_tail=0,
        sandbox=HELPER_SANDBOX,
    )
    try:
        finished = await runner.run(command)
    except OSError as error:
        raise ToolFailure(f"The page cannot be turned into text: {error.strerror or error}.") from error
    line, _, text = finished.captured.head.partition(b"\n")
    if finished.exit_code != 0 or finished.captured.dropped:
        raise ToolFailure("The page cannot be turned into text within the limits of time and memory.")
    try:
        answer = msgspec.json.decode(line, type=_Answer)
    except msgspec.DecodeError as error:
        raise ToolFailure("The page cannot be turned into text.") from error
    if answer.error:
        raise ToolFailure(answer.error)
    return PageText(clean(text.decode("utf-8", "replace")), answer.kind, clean(answer.title))


def _decoded(page: FetchedPage) -> str:
    try:
        return page.content.decode(page.charset or "utf-8", "replace")
    except LookupError:
        return page.content.decode("utf-8", "replace")
