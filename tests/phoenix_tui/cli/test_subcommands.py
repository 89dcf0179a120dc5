"""conversations, config, models and doctor as a script meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, phoenix_in


async def talk(phoenix: Phoenix, title: str, prompt: str = "hello") -> str:
    ran = await phoenix.run("-p", "--output-format", "json", "-n", title, prompt)
    return str(ran.json["session_id"])


async def listed(phoenix: Phoenix, *flags: str) -> list[str]:
    ran = await phoenix.run("conversations", "list", "--json", *flags)
    rows: list[dict[str, Any]] = ran.json
    return [str(row["session_id"]) for row in rows]


async def test_conversations_are_listed_as_a_table_and_as_json(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    empty = await phoenix.run("conversations", "list")
    assert (empty.code, empty.out) == (0, "There are no conversations yet.\n")
    first = await talk(phoenix, "First talk")
    table = (await phoenix.run("conversations", "list")).out.splitlines()
    assert table[0].split() == ["ID", "UPDATED", "STATE", "MESSAGES", "MODEL", "TITLE", "FOLDER"]
    assert table[1].split()[0] == first[:8]
    assert "First talk" in table[1]
    [row] = (await phoenix.run("conversations", "list", "--json")).json
    assert (row["session_id"], row["title"], row["state"], row["message_count"]) == (first, "First talk", "idle", 2)
    assert await listed(phoenix, "-C", str(tmp_path)) == []
    assert await listed(phoenix, "-C", str(phoenix.cwd)) == [first]


async def test_a_conversation_is_renamed_archived_deleted_and_brought_back(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = await talk(phoenix, "One")
    renamed = await phoenix.run("conversations", "rename", "One", "Two")
    assert (renamed.code, renamed.out) == (0, f"Renamed: One ({known[:8]}).\n")
    assert (await phoenix.run("conversations", "archive", "Two")).code == 0
    assert (await listed(phoenix), await listed(phoenix, "--archived")) == ([], [known])
    assert (await phoenix.run("conversations", "unarchive", known)).code == 0
    assert (await phoenix.run("conversations", "delete", known[:8], "--json")).json == {
        "session_id": known,
        "action": "delete",
    }
    assert (await listed(phoenix), await listed(phoenix, "--deleted")) == ([], [known])
    assert (await phoenix.run("conversations", "restore", known)).code == 0
    assert await listed(phoenix) == [known]
    assert (await phoenix.run("conversations", "delete", "--permanently", known)).code == 0
    assert (await phoenix.run("conversations", "show", known)).code == 2


async def test_a_conversation_is_shown_and_searched(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = await talk(phoenix, "Greeting", "hello")
    shown = (await phoenix.run("conversations", "show", "Greeting")).out
    assert shown.startswith(f"# Greeting\n\n- Conversation: {known}\n")
    assert "## You\n\nhello\n\n## Phoenix\n\nHello!" in shown
    messages = (await phoenix.run("conversations", "show", known, "--json")).json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[0]["content"] == [{"type": "text", "text": "hello"}]
    [hit, *_] = (await phoenix.run("conversations", "search", "hello", "--json")).json
    assert hit["session_id"] == known
    assert (await phoenix.run("conversations", "search", "no such words")).out == "No matches.\n"


async def test_an_export_is_imported_without_loss(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    known = await talk(phoenix, "Carry me")
    target = tmp_path / "export.json"
    exported = await phoenix.run("conversations", "export", known, "--format", "json", "-o", str(target))
    assert (exported.code, exported.out) == (0, "")
    assert target.stat().st_mode & 0o777 == 0o600
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other = phoenix_in(other_folder)
    imported = (await other.run("conversations", "import", str(target), "--json")).json
    assert (imported["session_id"], imported["cwd"]) == (known, str(other.cwd))
    again = await other.run("conversations", "export", known, "--format", "json")
    before: dict[str, list[dict[str, Any]]] = json.loads(target.read_text())["tables"]
    after: dict[str, list[dict[str, Any]]] = again.json["tables"]
    assert after["messages"] == before["messages"]
    assert after.keys() == before.keys()
    twice = (await other.run("conversations", "import", "-", "--json", stdin=target.read_bytes())).json
    assert twice["session_id"] != known
    broken = await other.run("conversations", "import", "-", stdin=b"[1]")
    assert (broken.code, "was not written by" in broken.err) == (2, True)


async def test_an_export_cannot_drive_a_terminal(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    nasty = "hello \x1b]52;c;aGk=\x07 \x9b2J \u202e"
    known = await talk(phoenix, nasty, nasty)
    for arguments in (("export", known), ("export", known, "--format", "json"), ("show", known), ("list",)):
        ran = await phoenix.run("conversations", *arguments)
        assert ran.code == 0
        assert not [character for character in ran.out if character in "\x1b\x07\x9b\u202e"]


@pytest.mark.parametrize("reference", ["nothing", "zzzz"])
async def test_an_unknown_conversation_is_named_with_the_fix(tmp_path: Path, reference: str) -> None:
    ran = await phoenix_in(tmp_path).run("conversations", "archive", reference)
    assert ran.code == 2
    assert f"No conversation matches '{reference}'; `phoenix conversations list` shows them." in ran.err


async def test_config_says_every_value_with_its_source(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_SANDBOX="workspace")
    path = phoenix.home / "config.toml"
    assert (await phoenix.run("config", "path")).out == f"{path}\n"
    path.write_text("max_turns = 7\n")
    shown = (await phoenix.run("config", "show", "--json")).json
    assert (shown["max_turns"]["value"], shown["max_turns"]["source"]) == (7, f"{path}:1")
    assert (shown["sandbox"]["value"], shown["sandbox"]["source"]) == ("workspace", "PHOENIX_SANDBOX")
    assert shown["timeout"]["source"] == "default"
    assert "PHOENIX_SANDBOX" in (await phoenix.run("config", "show")).out


async def test_config_edit_opens_the_editor_and_checks_what_it_left(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "modle = 1" >> "$1"\n')
    editor.chmod(0o755)
    ran = await phoenix_in(tmp_path, EDITOR=str(editor)).run("config", "edit")
    assert ran.code == 2
    assert "unknown key 'modle'" in ran.err


async def test_models_are_listed_and_one_made_the_default(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="")
    models = (await phoenix.run("models", "--json")).json
    assert {"model": "demo/guide", "local": True}.items() <= models[-1].items()
    installable = (await phoenix.run("model", "list", "--json")).json
    assert [(row["name"], row["state"]) for row in installable] == [("qwen2.5-coder-1.5b", "absent")]
    for name in ((), ("qwen2.5-coder-1.5b",)):
        refused = await phoenix.run("model", "install", *name)
        assert refused.code == 1
        assert "only downloaded with your consent" in refused.err
    missing = await phoenix.run("model", "use", "qwen2.5-coder-1.5b")
    assert (missing.code, "phoenix model install" in missing.err) == (1, True)
    assert (await phoenix.run("model", "use", "demo/guide")).out == "New conversations use demo/guide.\n"
    assert (phoenix.home / "config.toml").read_text() == 'model = "demo/guide"\n'
    assert (await phoenix.run("model", "remove", "nothing")).code == 2


async def test_the_doctor_reports_and_shows_no_key(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, ANTHROPIC_API_KEY="sk-ant-planted-0123456789")
    await talk(phoenix, "One")
    ran = await phoenix.run("doctor", "--json")
    found = {row["topic"]: row for row in ran.json}
    assert ran.code == 0
    assert found["keys"]["text"] == "anthropic from ANTHROPIC_API_KEY"
    assert "1 conversation, intact" in found["database"]["text"]
    assert {"phoenix", "packages", "terminal", "sqlite", "processes", "sandbox", "ripgrep"} <= found.keys()
    limits = "4 at the same time, one level deep, 20 model replies, 300 s and no budget each"
    assert found["sub-agents"]["text"].startswith(limits)
    parts = {topic: found[topic]["text"] for topic in ("mcp helper", "shell lines")}
    own = "a line after ! runs in a terminal of its own"
    assert parts == {"mcp helper": "can be started", "shell lines": own}
    assert "(by this machine; memory_limit changes it)" in found["memory"]["text"]
    assert "planted" not in ran.out
    assert "archive" not in found
    await phoenix.run("conversations", "archive", "One")
    (phoenix.home / "config.toml").write_text('memory_limit = "1 GB"\n')
    kept = {row["topic"]: row["text"] for row in (await phoenix.run("doctor", "--json")).json}
    source = f"memory_limit, {phoenix.home / 'config.toml'}:1"
    assert kept["memory"].startswith(
        f"at most 1,024 MB ({source}); from 614 caches are cleared, from 819 nothing new can start"
    )
    assert kept["archive"] == (
        "1 conversation in archive and trash, 0.0 MB, kept forever; retention_days in config.toml changes that"
    )
    phoenix.home.chmod(0o755)
    (phoenix.home / "phoenix.db").write_bytes(b"no database")
    bad = await phoenix.run("doctor")
    assert bad.code == 1
    assert "bad   database" in bad.out
