"""The text before an edit, as hooks behind it read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.executor.call_results import LONGEST
from tests.support.hooked import group, hooked_engine, says, write_hooks
from tests.support.scripted_provider import Reply, ScriptedCall
from tools.files.ledger import ReadLedger
from tools.patch import Patch
from tools.read_file import ReadFile


async def response_to_edit(folder: Path, content: str, edit: dict[str, str]) -> dict[str, Any]:
    """The `tool_response` of one edit of a file."""
    seen, ledger = folder / "seen", ReadLedger()
    (folder / "project").mkdir()
    if content:
        (folder / "project" / "a.txt").write_text(content, newline="")
    write_hooks(folder / "config" / "hooks.json", PostToolUse=[group(f"cat > {seen}", "Edit|MultiEdit")])
    reads = Reply((ScriptedCall("read_file", json.dumps({"path": "a.txt"})),))
    edits = Reply((ScriptedCall("patch", json.dumps({"path": "a.txt", "edits": [edit]})),))
    async with hooked_engine(folder, reads, edits, says("done"), tools=(ReadFile(ledger), Patch(ledger))) as hooked:
        conversation = await hooked.harness.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
        assert seen.exists(), hooked.results()
    response: dict[str, Any] = json.loads(seen.read_text())["tool_response"]
    return response


@pytest.mark.parametrize(("content", "original"), [("one\ntwo\n", "one\ntwo\n"), ("one\r\ntwo\r\n", "one\ntwo\n")])
async def test_it_is_what_the_edit_found(tmp_path: Path, content: str, original: str) -> None:
    response = await response_to_edit(tmp_path, content, {"op": "replace", "old": "two", "new": "three"})
    assert response["originalFile"] == original


async def test_of_a_long_file_the_beginning_is_given(tmp_path: Path) -> None:
    content = "é" * 70 + "\n"
    response = await response_to_edit(tmp_path, content * 4_000, {"op": "append", "new": "end"})
    assert response["originalFile"] == (content * 4_000)[:LONGEST]


async def test_a_new_file_had_none(tmp_path: Path) -> None:
    response = await response_to_edit(tmp_path, "", {"op": "append", "new": "end\n"})
    assert response.get("originalFile") is None
