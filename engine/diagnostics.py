"""Files for debugging requests and replies of models (SPEC UNI-19). Never a key, never image bytes, bounded in size."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.codec import encode_blocks
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError
from engine.records.runs import CallPurpose
from tools.files.locked_file import append_record, replace_content
from tools.files.own_files import make_folder, open_own
from tools.redaction import MARGIN, redact, redact_end, redact_start

log = logging.getLogger(__name__)

ROTATE_BYTES = 4 * 1024 * 1024
"""A file that grows past this is set aside as `.1`, in the place of the one before."""
LONGEST_ENTRY: Final = 1024 * 1024
"""Characters of one reply, request or failure; the rest is left out."""
LONGEST_MESSAGE: Final = 256 * 1024
KEPT_MESSAGES = 50
"""Messages of the last request that are kept: enough for the last turn of most runs."""
KEPT_ERRORS = 20
SHOWN_BYTES: Final = 256 * 1024
"""Bytes of the end of a file that are shown."""
RESPONSES: Final = "llm_responses.jsonl"
REQUESTS: Final = "llm_requests.jsonl"
LAST: Final = "last_messages.jsonl"
ERRORS: Final = "llm_api_error_*.json"
PATTERNS: Final = (f"{RESPONSES}*", f"{REQUESTS}*", LAST, ERRORS)
_writing = threading.Lock()
"""Held by the thread that writes; processes take turns by a lock on the file."""


class DiagnosticsLevel(StrEnum):
    """Records that are kept; each level has those of the one before."""

    FAILURES = "failures"
    REPLIES = "replies"
    """Also every reply, and the last request."""
    REQUESTS = "requests"
    """Also every request."""


class DiagnosticFile(Struct, frozen=True):
    """One of the files."""

    name: str
    size: int
    changed: float
    """Unix time."""


def no_secrets() -> tuple[str, ...]:
    """Secrets of a program without any."""
    return ()


class Diagnostics(Struct, frozen=True):
    """Writes into `folder`; every method is blocking and belongs in a thread. A full disk loses records, no more."""

    folder: Path
    level: DiagnosticsLevel = DiagnosticsLevel.REPLIES
    secrets: Callable[[], tuple[str, ...]] = no_secrets
    """Values of the configured keys, which are removed whatever they look like."""

    def record_reply(
        self,
        request: ModelRequest,
        reply: ModelReply,
        duration_ms: int,
        purpose: CallPurpose = CallPurpose.REPLY,
    ) -> None:
        """Append the reply to `llm_responses.jsonl`; keep the request of a turn in `last_messages.jsonl`."""
        if self.level is DiagnosticsLevel.FAILURES:
            return
        line: dict[str, object] = {
            "at": time.time(),
            "purpose": purpose.value,
            "model": reply.model,
            "stop": reply.stop.value,
            "duration_ms": duration_ms,
            "usage": {
                "input": reply.usage.input_tokens,
                "output": reply.usage.output_tokens,
                "cache_read": reply.usage.cache_read_tokens,
                "cache_creation": reply.usage.cache_creation_tokens,
            },
        }
        self._append(RESPONSES, line, "blocks", encode_blocks(reply.blocks))
        self._record_request(request, purpose)
        if purpose is CallPurpose.REPLY:
            self._replace(LAST, "".join(f"{text}\n" for text in self._encode_messages(request.messages)))

    def record_failure(
        self, request: ModelRequest, error: ProviderError, purpose: CallPurpose = CallPurpose.REPLY
    ) -> None:
        """Keep a request that failed for another reason than throttling, as `llm_api_error_*.json`."""
        name = f"llm_api_error_{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns() % 10**6:06d}.json"
        body = {
            "model": request.model,
            "purpose": purpose.value,
            "kind": error.kind,
            "message": self._redact(error.message),
            "system": [self._redact(text) for text in request.system],
            "tools": [tool.name for tool in request.tools],
            "messages": [_parse(text) for text in self._encode_messages(request.messages)],
        }
        self._replace(name, json.dumps(body, ensure_ascii=False, indent=1))
        with suppress(OSError):
            for old in sorted(self.folder.glob(ERRORS))[:-KEPT_ERRORS]:
                old.unlink(missing_ok=True)
        self._record_request(request, purpose)

    def forget(self) -> None:
        """Remove all of it: the files mix texts of every conversation."""
        for pattern in PATTERNS:
            for path in self.folder.glob(pattern):
                with suppress(OSError):
                    path.unlink()

    def files(self) -> tuple[DiagnosticFile, ...]:
        """The files, and those of the log beside them, newest first. Raises OSError."""
        found: list[DiagnosticFile] = []
        for path in {path for pattern in (*PATTERNS, "phoenix.jsonl*") for path in self.folder.glob(pattern)}:
            with suppress(OSError):
                if not path.is_symlink() and path.is_file():
                    status = path.stat()
                    found.append(DiagnosticFile(path.name, status.st_size, status.st_mtime))
        return tuple(sorted(found, key=lambda one: (-one.changed, one.name)))

    def end_of(self, name: str) -> str:
        """The end of one of the files, redacted once more. Raises OSError; FileNotFoundError for any other name."""
        if name not in {one.name for one in self.files()}:
            raise FileNotFoundError(name)
        with os.fdopen(open_own(self.folder / name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = max(size - SHOWN_BYTES - MARGIN, 0)
            file.seek(start)
            text = file.read(SHOWN_BYTES + MARGIN).decode("utf-8", "replace")
        return redact_end(text, self.secrets()) if start else redact(text, self.secrets())

    def _redact(self, text: str) -> str:
        return redact_start(text, LONGEST_MESSAGE, self.secrets())

    def _encode_messages(self, messages: Sequence[ModelMessage]) -> list[str]:
        """The newest messages as redacted JSON, oldest first, together no longer than an entry."""
        kept: list[str] = []
        room = LONGEST_ENTRY
        for message in reversed(messages[-KEPT_MESSAGES:]):
            text = self._encode_message(message)
            room -= len(text)
            if room < 0:
                break
            kept.append(text)
        return kept[::-1]

    def _encode_message(self, message: ModelMessage) -> str:
        blocks = encode_blocks(message.blocks)
        if len(blocks) <= LONGEST_MESSAGE:
            return f'{{"role": "{message.role.value}", "content": {redact(blocks, self.secrets())}}}'
        return json.dumps({"role": message.role.value, "content": self._redact(blocks)}, ensure_ascii=False)

    def _record_request(self, request: ModelRequest, purpose: CallPurpose) -> None:
        if self.level is not DiagnosticsLevel.REQUESTS:
            return
        line: dict[str, object] = {
            "at": time.time(),
            "purpose": purpose.value,
            "model": request.model,
            "tools": [tool.name for tool in request.tools],
            "images": {key: len(image.data) for key, image in request.images.items()},
            "system": [self._redact(text) for text in request.system],
            "messages": [_parse(text) for text in self._encode_messages(request.messages)],
        }
        self._append(REQUESTS, line, "", "")

    def _append(self, name: str, line: dict[str, object], field: str, content: str) -> None:
        """Append a line, with a field of outside text that is redacted and cut."""
        if field:
            text = redact_start(content, LONGEST_ENTRY, self.secrets())
            line[field] = _parse(text)
        content = json.dumps(line, ensure_ascii=False) + "\n"
        self._write(name, lambda path: append_record(path, _encode(content), ROTATE_BYTES))

    def _replace(self, name: str, text: str) -> None:
        self._write(name, lambda path: replace_content(path, _encode(text)))

    def _write(self, name: str, write: Callable[[Path], None]) -> None:
        """Write all of it, or nothing where the disk is full."""
        try:
            with _writing:
                make_folder(self.folder)
                write(self.folder / name)
        except OSError as error:
            log.info("%s is not written: %s", name, error.strerror)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _parse(text: str) -> object:
    """JSON as a value; a text that was cut stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
