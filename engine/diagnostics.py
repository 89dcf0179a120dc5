"""Files for debugging requests and replies of models (SPEC UNI-19). Never a key, never image bytes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from engine.codec import encode_blocks
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError
from tools.files.own_files import make_folder, open_file

ROTATE_BYTES = 4 * 1024 * 1024
"""A file that grows past this is set aside once as `.1`."""
KEPT_MESSAGES = 50
"""Messages of the last request that are kept: enough for the last turn of most runs."""
KEPT_ERRORS = 20
SECRET = re.compile(r"\b(sk-[\w-]{8,}|Bearer\s+\S{8,}|x-api-key\S*\s*\S{8,})", re.IGNORECASE)


class Diagnostics(Struct, frozen=True):
    """Writes into `folder`; every method is blocking and belongs in a thread."""

    folder: Path

    def replied(self, request: ModelRequest, reply: ModelReply, duration_ms: int) -> None:
        """Append the reply to `llm_responses.jsonl`, and keep the request in `last_messages.jsonl`."""
        line: dict[str, object] = {
            "at": time.time(),
            "model": reply.model,
            "stop": reply.stop.value,
            "duration_ms": duration_ms,
            "usage": {
                "input": reply.usage.input_tokens,
                "output": reply.usage.output_tokens,
                "cache_read": reply.usage.cache_read_tokens,
                "cache_creation": reply.usage.cache_creation_tokens,
            },
            "blocks": json.loads(encode_blocks(reply.blocks)),
        }
        self._append("llm_responses.jsonl", line)
        self._replace("last_messages.jsonl", _lines(request.messages[-KEPT_MESSAGES:]))

    def failed(self, request: ModelRequest, error: ProviderError) -> None:
        """Keep a request that failed for another reason than throttling, as `llm_api_error_*.json`."""
        name = f"llm_api_error_{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns() % 10**6:06d}.json"
        body = {
            "model": request.model,
            "kind": error.kind,
            "message": error.message,
            "system": list(request.system),
            "tools": [tool.name for tool in request.tools],
            "messages": [json.loads(line) for line in _lines(request.messages[-KEPT_MESSAGES:]).splitlines()],
        }
        self._replace(name, json.dumps(body, ensure_ascii=False, indent=1))
        for old in sorted(self.folder.glob("llm_api_error_*.json"))[:-KEPT_ERRORS]:
            old.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove all of it: the files mix texts of every conversation."""
        for pattern in ("llm_responses.jsonl*", "last_messages.jsonl", "llm_api_error_*.json"):
            for path in self.folder.glob(pattern):
                with suppress(OSError):
                    path.unlink()

    def _append(self, name: str, line: dict[str, object]) -> None:
        path = self.folder / name
        if path.exists() and path.stat().st_size > ROTATE_BYTES:
            path.replace(path.with_suffix(path.suffix + ".1"))
        self._write(path, redact(json.dumps(line, ensure_ascii=False)) + "\n", os.O_APPEND)

    def _replace(self, name: str, text: str) -> None:
        self._write(self.folder / name, redact(text), os.O_TRUNC)

    def _write(self, path: Path, text: str, how: int) -> None:
        make_folder(self.folder)
        with os.fdopen(open_file(path, os.O_WRONLY | how), "wb") as file:
            if how != os.O_APPEND:
                file.truncate()
            file.write(text.encode("utf-8", "replace"))


def redact(text: str) -> str:
    """`text` without anything that looks like a credential."""
    return SECRET.sub("[redacted]", text)


def _lines(messages: Sequence[ModelMessage]) -> str:
    rows = (f'{{"role": "{m.role.value}", "content": {encode_blocks(m.blocks)}}}' for m in messages)
    return "\n".join(rows) + "\n"
