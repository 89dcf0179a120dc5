"""The page process: reads one untrusted HTML page from standard input, answers with its text, and ends.

Run as a script with `python -I`, under its own memory and time limits. The first two lines of the input are the
character set and the address. The answer is one JSON line with `error`, `title` and `kind` ("markdown" or "text"), and
the text behind it.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from contextlib import suppress
from html.parser import HTMLParser

MEMORY = 700 * 1024 * 1024
CPU_SECONDS = 10
DEPTH = 500
"""Elements within each other."""
MOST_TEXT = 4 * 1024 * 1024
"""Characters of an answer."""
_DROPPED = frozenset({"script", "style", "noscript", "template", "svg", "head", "iframe", "nav"})
_BLOCKS = frozenset([
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
])
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n[ \t\n]*\n")


class _Text(HTMLParser):
    """Collects the text of a page; used where no converter to Markdown is installed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._dropped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            self._dropped.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropped:
            while self._dropped.pop() != tag:
                pass
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self.parts.append(data)


def main() -> None:
    """Answer for the page on standard input."""
    # Both streams of a child come back as one; a library's warning must not land in the answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS)
    _limit(resource.RLIMIT_AS, MEMORY)
    charset = sys.stdin.buffer.readline(100).decode("ascii", "replace").strip()
    address = sys.stdin.buffer.readline(4000).decode("utf-8", "replace").strip()
    content = sys.stdin.buffer.read()
    try:
        html = _decode(content, charset)
        kind, text = _convert(html, address)
    except (MemoryError, RecursionError, ValueError) as error:
        sys.stdout.write(json.dumps({"error": f"The page cannot be turned into text ({type(error).__name__})."}) + "\n")
        return
    text = _BLANK_LINES.sub("\n\n", text).strip()[:MOST_TEXT]
    found = re.search(r"<title[^>]{0,200}>([^<]{0,300})", html[:200_000], re.IGNORECASE)
    sys.stdout.buffer.write(
        json.dumps({"kind": kind, "title": " ".join(found[1].split()) if found else ""}).encode() + b"\n"
    )
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def _limit(which: int, most: int) -> None:
    with suppress(ValueError, OSError):
        resource.setrlimit(which, (most, most))


def _decode(content: bytes, charset: str) -> str:
    found = _META_CHARSET.search(content[:4096])
    for name in (charset, found[1].decode() if found else "", "utf-8"):
        with suppress(LookupError):
            if name:
                return content.decode(name, "replace")
    return content.decode("utf-8", "replace")


def _convert(html: str, address: str) -> tuple[str, str]:
    try:
        from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415 - an extra, which may be missing
    except ImportError:
        parser = _Text()
        parser.feed(html)
        parser.close()
        return "text", "\n".join(" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    options = ConversionOptions(extract_metadata=False, base_url=address, max_depth=DEPTH, skip_images=True)
    return "markdown", convert(html, options).content or ""


if __name__ == "__main__":
    main()
