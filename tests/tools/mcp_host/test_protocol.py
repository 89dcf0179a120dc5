"""The protocol of the MCP helper: long messages, descriptors, wrong lines; the helper alone loads the SDK."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mcp_helper import ROOT, Refused, content_of, files_in, helper, mode_of, start_helper
from tests.support.mcp_raw import RawServer, raw_server
from tests.support.waiting import poll
from tools.mcp_host import protocol
from tools.mcp_host.link import BadLine, command, decode_event, decode_request, encode, missing
from tools.mcp_host.protocol import CallTool, Connect, Disconnect, Reply, raw


def test_a_long_message_goes_through_a_file_that_its_reader_deletes(tmp_path: Path) -> None:
    call = CallTool(id=1, server="s", tool="t", args={"text": "x" * 300_000, "deep": [{"n": None}]})
    line = encode(call, tmp_path)
    assert len(line) < 100
    (name,) = files_in(tmp_path)
    assert mode_of(str(tmp_path / name)) == 0o600
    assert decode_request(line, tmp_path) == call
    assert files_in(tmp_path) == []
    with pytest.raises(BadLine):
        encode(Reply(id=1, ok=raw("y" * (protocol.LONGEST_MESSAGE + 1))), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"op":"connect"}',
        b'{"op":"nonsense","id":1}',
        b'{"in_file":"../secret.json"}',
        b'{"in_file":"secret.json"}',
        b'{"in_file":"message-none.json"}',
        b"[" * 200_000,
        b'{"op":"cancel","id":1,"call":"\xff"}',
    ],
)
def test_a_line_that_is_no_request_is_an_error(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(encode(Disconnect(id=1, server="s"), tmp_path))
    with pytest.raises(BadLine):
        decode_request(line, tmp_path)
    with pytest.raises(BadLine):
        decode_event(line, tmp_path)
    assert files_in(tmp_path) == ["secret.json"]


def test_files_of_results_are_bounded_until_phoenix_deletes_them(tmp_path: Path) -> None:
    from tools.mcp_host.causes import SpillFolder, SpillFull  # noqa: PLC0415 - the SDK takes a second

    folder = SpillFolder(tmp_path, most=100)
    first = folder.save(b"a" * 60, ".txt")
    assert (content_of(first), mode_of(first)) == (b"a" * 60, 0o600)
    with pytest.raises(SpillFull):
        folder.save(b"b" * 60, ".txt")
    Path(first).unlink()
    folder.save(b"b" * 60, ".txt")


async def test_a_large_argument_and_a_large_answer_pass(tmp_path: Path) -> None:
    async def echo(server: RawServer, number: object) -> None:
        await server.text(number, server.received[-1]["params"]["arguments"]["text"])

    echoing = RawServer({"echo": echo})
    async with helper(tmp_path) as running, raw_server(echoing):
        await running.connect(echoing.pipes)
        text = "z" * 900_000
        assert await running.text("echo", {"text": text}, text_limit=1_000_000) == text
        assert files_in(tmp_path) == []


async def test_requests_that_cannot_be_carried_out_are_refused_with_a_sentence(tmp_path: Path) -> None:
    server = RawServer({})
    async with helper(tmp_path) as running, raw_server(server):
        with pytest.raises(Refused) as refused:
            await running.ask(Connect(id=running.number(), server="s"), type(None))
        assert refused.value.error.message == "A stdio server came without its descriptors."
        assert await running.refusal(CallTool(id=running.number(), server="s", tool="t")) == "invalid"
        file = os.open(tmp_path / "regular", os.O_RDWR | os.O_CREAT)
        reply = await running.reply(Connect(id=running.number(), server="s"), (file, os.dup(file)))
        assert reply.error is not None
        await running.connect(server.pipes)
        await running.ask(Disconnect(id=running.number(), server="s"), bool)
        assert running.states()[-1] == "closed"
        assert await running.refusal(CallTool(id=running.number(), server="s", tool="t")) == "invalid"


async def test_reconnecting_a_key_takes_the_place_of_its_connection(tmp_path: Path) -> None:
    first, second = RawServer({}), RawServer({})
    second.initialized["serverInfo"] = {"name": "second", "version": "2"}
    async with helper(tmp_path) as running, raw_server(first), raw_server(second):
        await running.connect(first.pipes)
        assert (await running.connect(second.pipes)).server_name == "second"
        assert running.states() == ["connecting", "connected", "connecting", "connected"]


@pytest.mark.parametrize("last", [b"", b"nonsense\n", b"x" * 300_000])
def test_the_helper_ends_with_its_socket_and_at_a_line_that_is_none(last: bytes, tmp_path: Path) -> None:
    process, control = start_helper(tmp_path, anew=True)
    output, given = os.pipe()
    mine, input_ = os.pipe()
    socket.send_fds(control, [encode(Connect(id=1, server="s"), tmp_path)], [output, input_])
    for descriptor in (output, input_):
        os.close(descriptor)
    control.setblocking(True)
    if last:
        control.sendall(last)
    else:
        control.shutdown(socket.SHUT_WR)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in errors
    while os.read(mine, 1 << 16):
        pass  # its end is what a server sees
    for descriptor in (given, mine):
        os.close(descriptor)
    control.close()


async def test_memory_and_tokens_are_closed_to_other_processes(tmp_path: Path) -> None:
    server = RawServer({})
    async with helper(tmp_path, anew=True) as running, raw_server(server):
        await running.connect(server.pipes)
        assert await poll(lambda: owner(running.process.pid) == 0)


def owner(pid: int) -> int:
    """Owner of a process's files in /proc: root where its memory may not be read."""
    return Path(f"/proc/{pid}/mem").stat().st_uid


SDK = {"mcp", "mcp_types", "starlette", "jsonschema", "referencing", "uvicorn", "jwt"}
FRONT_ENDS = "phoenix_tui.app phoenix_tui.wiring.screen phoenix_tui.wiring.linear phoenix_tui.wiring.headless"
SHARED = "tools.mcp_host.protocol tools.mcp_host.link"
EVERY_MODULE = """
import importlib, pkgutil, sys
for package in ("phoenix_tui", "engine", "tools"):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.startswith("tools.mcp_host.") and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


def loaded_by(program: str) -> set[str]:
    """Names of the packages that are loaded after a program ran."""
    program += "\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_front_ends_and_the_shared_protocol_load_neither_the_sdk_nor_pydantic() -> None:
    loaded = loaded_by("\n".join(f"import {name}" for name in f"{FRONT_ENDS} {SHARED}".split()))
    assert not loaded & (SDK | {"pydantic"})


def test_the_helper_needs_its_extra_and_no_module_of_the_working_directory(tmp_path: Path) -> None:
    assert missing() == ""
    for name in ("mcp", "tools", "asyncio", "argparse", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')")
    done = subprocess.run(
        [*command(3, tmp_path)[:5], "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "descriptor of the socket" in done.stdout
    program = "from tools.mcp_host import link; link.find_spec = lambda _: None; print(link.missing())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "MCP servers need the extra `mcp`: install phoenix-tui[mcp].\n"


def test_no_module_outside_of_the_helper_loads_the_sdk() -> None:
    """Functions included: import-linter reads their imports (pyproject.toml)."""
    assert not loaded_by(EVERY_MODULE) & SDK


def test_nothing_before_the_first_frame_loads_the_hub_of_servers() -> None:
    program = "import sys\nimport phoenix_tui.app, phoenix_tui.wiring.screen, phoenix_tui.cli.setup\n"
    program += "print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    hub = (
        "engine.extensions.mcp",
        "engine.ports.mcp",
        "tools.mcp_",
        "phoenix_tui.config.sources.server_files",
        "phoenix_tui.wiring.mcp",
    )
    assert [name for name in done.stdout.split() if name.startswith(hub)] == []
