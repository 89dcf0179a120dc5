"""Bytes of a text file and the text a model edits: byte order mark and line ends survive the way back."""

from __future__ import annotations

import codecs
import re

from msgspec import Struct

PROBE_BYTES = 8192
"""Bytes read to tell text from binary."""


_SURROGATE = re.compile("[\ud800-\udfff]")


class TextContent(Struct, frozen=True):
    """A text file: `text` has `\\n` line ends where all of the file's were `\\r\\n`.

    Bytes that are not UTF-8 are lone surrogates in `text` (surrogateescape), so that they survive an edit.
    """

    text: str
    crlf: bool = False
    bom: bool = False

    @classmethod
    def parse(cls, raw: bytes) -> TextContent:
        """Read the bytes of a file."""
        bom = raw.startswith(codecs.BOM_UTF8)
        text = raw[len(codecs.BOM_UTF8) if bom else 0 :].decode("utf-8", "surrogateescape")
        crlf = 0 < text.count("\n") == text.count("\r\n")
        return cls(text.replace("\r\n", "\n") if crlf else text, crlf, bom)

    def encoded(self, text: str) -> bytes:
        """The bytes of `text` in this file's manner."""
        if self.crlf:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        raw = text.removeprefix("\ufeff").encode("utf-8", "surrogateescape")
        return codecs.BOM_UTF8 + raw if self.bom or text.startswith("\ufeff") else raw


def is_binary(head: bytes) -> bool:
    """True when a file that starts with `head` is binary: it has a NUL byte, as in git and grep."""
    return b"\0" in head[:PROBE_BYTES]


def speakable(text: str) -> str:
    """`text` as valid Unicode: every byte that was not UTF-8 becomes U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)
