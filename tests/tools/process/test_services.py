"""Streams of services: apart, bounded, passable to another process, exact; and the files that a server keeps."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outside import folder_outside_temp
from tests.support.processes import ROOT, descriptors_open, start_plain
from tests.support.sandboxes import Box, home, needs_full_enforcement, sandbox
from tests.support.service_host import python, shell
from tests.support.waiting import poll
from tools.contract import KeptPlaces, Sandbox, SandboxMode
from tools.process.service import STDERR_KEPT
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.zygote import wire
from tools.process.zygote.mount_places import MountPlace
from tools.services import ProgramLimits, ServiceCommand, ServiceEndedError

if TYPE_CHECKING:
    from tools.process.service import SupervisedServices


MEGABYTE: Final = 1 << 20
PYTHON_AND_GLIBC: Final = 1 << 12 | 1 << 24 | 3 << 31
"""SIGPIPE and SIGXFSZ, which a Python ignores by itself; 32 and 33, which glibc ignores in what it spawns."""


def resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


async def read_to_end(descriptor: int) -> bytes:
    os.set_blocking(descriptor, True)
    parts: list[bytes] = []
    while chunk := await asyncio.to_thread(os.read, descriptor, MEGABYTE):
        parts.append(chunk)
    return b"".join(parts)


async def test_the_three_streams_of_a_service_stay_apart(processes: Processes) -> None:
    runner: SupervisedServices = processes.services
    service = await runner.open(shell("echo ready >&2; while read -r line; do echo got $line; done; exit 5"))
    os.write(service.stdin, b"one\ntwo\n")
    service.close_stdin()
    assert await read_to_end(service.stdout) == b"got one\ngot two\n"
    ended = await service.wait_ended()
    assert (ended.exit_code, ended.stderr.tail, service.stderr.tail) == (5, b"ready\n", b"ready\n")
    await service.end()


async def test_output_can_be_read_after_the_service_has_ended(processes: Processes) -> None:
    service = await processes.services.open(shell("echo last words"))
    await service.wait_ended()
    assert await read_to_end(service.stdout) == b"last words\n"
    assert (await service.end()).exit_code == 0


async def test_a_flood_on_stderr_neither_blocks_the_service_nor_fills_the_memory(processes: Processes) -> None:
    before = resident()
    script = "head -c 104857600 /dev/zero >&2; printf end >&2; read line; echo $line"
    service = await processes.services.open(shell(script))
    channel = service.channel()
    await channel.write_line(b"alive")
    assert await channel.read_line() == b"alive"
    ended = await service.end()
    assert ended.stderr.tail == bytes(STDERR_KEPT - 3) + b"end"
    assert ended.stderr.dropped == 100 * MEGABYTE + 3 - STDERR_KEPT
    assert resident() - before < 16 * MEGABYTE


async def test_a_service_that_floods_its_output_waits_for_a_slow_reader(processes: Processes) -> None:
    before = resident()
    service = await processes.services.open(shell("yes '{}' & yes >&2"))
    channel = service.channel()
    for _ in range(100_000):
        assert await channel.read_line() == b"{}"

    assert resident() - before < 16 * MEGABYTE
    await service.end(grace=0)


async def test_a_service_that_closes_its_output_lives_on(processes: Processes) -> None:
    service = await processes.services.open(shell("exec >&-; read -r line; echo $line >&2; read -r line; exit 6"))
    channel = service.channel()
    assert await channel.read_line() is None
    await channel.write_line(b"still here")
    assert await poll(lambda: service.stderr.tail == b"still here\n")
    assert (await service.end()).exit_code == 6


async def test_stdin_and_stdout_work_in_another_process(processes: Processes) -> None:
    service = await processes.services.open(shell("while read -r line; do echo got $line; done; exit 3"))
    script = (
        "import os, socket, sys\n"
        "ours = socket.socket(fileno=int(sys.argv[1]))\n"
        "_, (stdin, stdout), _, _ = socket.recv_fds(ours, 1, 2)\n"
        "os.set_blocking(stdout, True)\n"
        "os.write(stdin, b'hello\\n'); os.close(stdin); sys.stdout.buffer.write(os.read(stdout, 100))\n"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        helper = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", script, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
        )
        stdin, stdout = service.take()
        socket.send_fds(ours, [b"x"], [stdin, stdout])
        os.close(stdin)
        os.close(stdout)
        assert (service.stdin, service.stdout) == (-1, -1)
        said, _ = await helper.communicate()
    assert said == b"got hello\n"
    with pytest.raises(ServiceEndedError, match="belong to another"):
        service.channel()
    assert (await service.wait_ended()).exit_code == 3  # the helper closed the last copy of stdin
    assert (await service.end()).exit_code == 3


async def test_a_service_inherits_neither_descriptor_nor_signal_nor_terminal() -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    ignored = [signal.SIGTTOU, signal.SIGTSTP, signal.SIGUSR1]
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        processes = await start_plain()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)
    script = (
        "import os; names = os.listdir('/proc/self/fd')\n"
        "print(sorted(int(name) for name in names if os.path.exists('/proc/self/fd/' + name)))\n"
        "status = dict(line.split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)\n"
        f"print(status['SigBlk'].strip(), int(status['SigIgn'], 16) & ~{PYTHON_AND_GLIBC})\n"
        "try: os.open('/dev/tty', os.O_RDWR)\n"
        "except OSError as error: print(error.errno)\n"
    )
    result = await processes.services.run_program(python(script))
    await processes.close()
    assert result.stdout.head.decode().splitlines() == ["[0, 1, 2]", "0000000000000000 0", "6"]
    assert result.stderr.head == b""


async def test_a_service_has_the_scrubbed_environment_and_what_it_is_given() -> None:
    secrets = {
        "ANTHROPIC_API_KEY": "k1",
        "OPENAI_API_KEY": "k2",
        "MY_TOKEN": "k3",
        "AWS_PROFILE": "k4",
        "PHOENIX_X": "5",
    }
    around = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **secrets}
    processes = await start_processes(ProcessSettings(environment=around))
    command = ServiceCommand(("/usr/bin/env",), Path("/"), {"GIVEN_TOKEN": "its own"})
    result = await processes.services.run_program(command)
    service = await processes.services.open(command)
    from_service = await read_to_end(service.stdout)
    await service.end()
    await processes.close()
    seen = dict(line.split("=", 1) for line in result.stdout.head.decode().splitlines())
    assert sorted(result.stdout.head.splitlines()) == sorted(from_service.splitlines())
    assert not set(secrets) & set(seen)
    assert (seen["GIVEN_TOKEN"], seen["LANG"], seen["TERM"]) == ("its own", "C.UTF-8", "dumb")


async def test_a_service_in_the_sandbox_writes_in_its_folder_alone(processes: Processes, tmp_path: Path) -> None:
    await needs_full_enforcement()
    outside = Path(f"/usr/phoenix-test-{uuid.uuid4().hex}")
    inside = tmp_path / "inside"
    inside.mkdir()
    script = f"echo in > inner; echo out > {outside} || echo refused; cat"
    confined = Sandbox(SandboxMode.WORKSPACE, network=False)
    command = ServiceCommand(("/bin/bash", "-c", script), inside, sandbox=confined)
    service = await processes.services.open(command)
    channel = service.channel()
    assert await channel.read_line() == b"refused"
    await channel.write_line(b"echoed")
    assert await channel.read_line() == b"echoed"
    assert service.pid != 0
    ended = await service.end()
    assert b"Read-only file system" in ended.stderr.tail
    assert ((inside / "inner").read_text("ascii"), os.access(outside, os.F_OK)) == ("in\n", False)
    result = await processes.services.run_program(command, b"given")
    assert result.stdout.head == b"refused\ngiven"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (ServiceCommand(("/usr/no-such-server",), Path("/")), "No such file or directory"),
        (ServiceCommand(("server",), Path("/usr/no-such-folder")), "No such file or directory"),
        (ServiceCommand(("/bin/echo", "a\0b"), Path("/")), "no program can be given"),
        (ServiceCommand(("/etc/passwd",), Path("/")), "Permission denied"),
    ],
    ids=["program", "folder", "NUL", "not executable"],
)
async def test_a_program_that_cannot_start_says_why_and_leaves_no_descriptor(
    command: ServiceCommand, sentence: str, processes: Processes
) -> None:
    before = descriptors_open()
    for start in (processes.services.open, processes.services.open_terminal, processes.services.run_program):
        with pytest.raises(OSError, match=sentence):
            await start(command)
    assert descriptors_open() == before


async def test_without_descriptors_nothing_starts_and_none_is_lost(processes: Processes) -> None:
    services = processes.services
    await services.run_program(shell("true"))
    before = descriptors_open()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for spare in range(2, 10):
        for start in (services.open, services.open_terminal, services.run_program):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before + spare - 1, hard))
            try:
                started = await start(shell("true"))
            except OSError:
                continue
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            if hasattr(started, "end"):
                await started.end()
    assert descriptors_open() == before
    assert (await services.run_program(shell("exit 2"))).exit_code == 2


async def test_a_program_that_reads_no_input_ends_all_the_same(processes: Processes) -> None:
    result = await processes.services.run_program(shell("echo done; exit 1"), bytes(10 * MEGABYTE))
    assert (result.exit_code, result.stdout.head, result.timed_out) == (1, b"done\n", False)


async def test_a_program_gets_its_input_whole_and_without_one_the_end(processes: Processes) -> None:
    counted = await processes.services.run_program(shell("wc -c"), bytes(10 * MEGABYTE))
    assert counted.stdout.head.split() == [str(10 * MEGABYTE).encode()]
    assert (await processes.services.run_program(shell("cat; echo end"))).stdout.head == b"end\n"


async def test_output_above_the_limit_is_counted_and_dropped(processes: Processes) -> None:
    script = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2"
    result = await processes.services.run_program(shell(script), limits=ProgramLimits(output=1000))
    assert (len(result.stdout.head), result.stdout.dropped, result.stdout.tail) == (1000, 2_999_000, b"")
    assert (len(result.stderr.head), result.stderr.dropped, result.exit_code) == (1000, 1_999_000, 0)


async def test_nothing_of_services_is_loaded_before_the_first_of_them() -> None:
    script = "import sys, tools.process.start; print([name for name in sys.modules if name.startswith('tools.')])"
    asked = await asyncio.create_subprocess_exec(sys.executable, "-c", script, cwd=ROOT, stdout=subprocess.PIPE)
    loaded, _ = await asked.communicate()
    assert b"tools.process.supervision" in loaded
    late = (
        "services",
        "service",
        "one_shot",
        "line_channel",
        "readiness",
    )
    assert [name for name in late if f"'tools.process.{name}'".encode() in loaded] == []
    assert b"'tools.services'" not in loaded


CONFINED = Sandbox(SandboxMode.WORKSPACE, network=False)


@pytest.fixture
def place() -> Iterator[Path]:
    """A home folder with documents, dot folders and Phoenix's own, which has the kept ones; a server in `mcp`."""
    with folder_outside_temp() as folder:
        for name in (
            "home/docs",
            "home/.config/x",
            "home/.local/share",
            "home/.local/state/phoenix",
            "home/mcp",
            "work",
        ):
            (folder / name).mkdir(parents=True)
        for name in ("docs/a.txt", ".config/x/set", ".profile", "mcp/server.py", ".local/state/phoenix/phoenix.db"):
            (folder / "home" / name).write_text("real\n", "ascii")
        (folder / "home" / ".link").symlink_to(".profile")
        with home(folder / "home"):
            yield folder.resolve()


def kept(place: Path, name: str = "one") -> KeptPlaces:
    return KeptPlaces(place / "home" / ".local" / "state" / "phoenix" / "servers" / name, (place / "home" / "mcp",))


async def run(box: Box, script: str, kept: KeptPlaces | None, sandbox: Sandbox = CONFINED) -> str:
    command = ServiceCommand(("/bin/sh", "-c", script), box.folder, sandbox=sandbox, kept=kept)
    ended = await box.processes.services.run_program(command)
    return (ended.stdout.head + ended.stderr.head).decode()


def real(place: Path) -> dict[str, str]:
    found = [path for path in (place / "home").rglob("*") if path.is_file() and "servers" not in path.parts]
    return {str(path.relative_to(place / "home")): path.read_text("ascii") for path in found}


WRITE = """
mkdir -p ~/mem ~/.npm/deep ~/.local/share/tool && echo one > ~/mem/memory.jsonl && echo two > ~/.config/x/new
echo three > ~/.config/x/set && echo four > ~/.local/share/tool/data && echo five > ~/mcp/state && echo six > ~/.new
echo seven > ~/.local/other && echo eight > ~/.npm/deep/file && echo written
"""
READ = """cd; cat mem/memory.jsonl .config/x/new .config/x/set .local/share/tool/data mcp/state mcp/server.py .new \
.local/other .npm/deep/file .profile .link"""

KEPT = ["one", "two", "three", "four", "five", "real", "six", "seven", "eight", "real", "real"]


async def test_all_of_it_is_there_at_the_next_start_and_nothing_of_it_outside(place: Path) -> None:
    before = real(place)
    for turn in (WRITE, READ):
        async with sandbox(place / "work", hidden=(place / "home" / ".local" / "state" / "phoenix",)) as box:
            said = await run(box, turn, kept(place))
            assert said == (
                "written\n" if turn is WRITE else "one\ntwo\nthree\nfour\nfive\nreal\nsix\nseven\neight\nreal\nreal\n"
            )
    assert real(place) == before


async def test_documents_keys_and_files_of_phoenix_stay_out_of_sight(place: Path) -> None:
    (place / "home" / ".ssh").mkdir()
    (place / "home" / ".ssh" / "id").write_text("key\n", "ascii")
    async with sandbox(place / "work", hidden=(place / "home" / ".local" / "state" / "phoenix",)) as box:
        said = await run(
            box, "cat ~/docs/a.txt ~/.ssh/id ~/.local/state/phoenix/phoenix.db 2>/dev/null; ls ~", kept(place)
        )
    assert said == "mcp\n"


async def test_another_server_and_a_read_only_sandbox_see_none_of_it(place: Path) -> None:
    async with sandbox(place / "work") as box:
        await run(box, WRITE, kept(place))
        assert "No such file" in await run(box, "cat ~/mem/memory.jsonl", kept(place, "other"))
        read_only = Sandbox(SandboxMode.READ_ONLY, network=False)
        assert "No such file" in await run(box, "cat ~/mem/memory.jsonl", kept(place), read_only)
        assert await run(box, "cat ~/mcp/server.py", kept(place), read_only) == "real\n"
        assert "Read-only" in await run(box, "echo x > ~/mcp/state", kept(place), read_only)


async def test_a_second_process_of_a_server_shares_new_files_and_sees_those_in_folders_of_the_user(place: Path) -> None:
    async with sandbox(place / "work") as box:
        await run(box, WRITE, kept(place))
        command = ServiceCommand(("/bin/cat",), place / "work", sandbox=CONFINED, kept=kept(place))
        async with await box.processes.services.open(command):
            said = await run(
                box,
                "cat ~/mem/memory.jsonl ~/.config/x/new; echo more >> ~/mem/memory.jsonl; echo x > ~/.config/x/y",
                kept(place),
            )
            assert said == "one\ntwo\n"
        said = await run(box, "cat ~/mem/memory.jsonl ~/.config/x/y", kept(place))
    assert said.startswith("one\nmore\n")
    assert "No such file" in said


WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20), max_size=4)

WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
PLACES = st.lists(st.builds(MountPlace, WORD, WORD, WORD), max_size=4)


@given(argv=WORDS, environment=WORDS, writable=WORDS, places=PLACES, network=st.booleans(), filtered=st.booleans())
def test_what_is_encoded_is_decoded(
    argv: list[str],
    environment: list[str],
    writable: list[str],
    places: list[MountPlace],
    network: bool,
    filtered: bool,
) -> None:
    sent = wire.SupervisorRequest(
        wire.NAMESPACE,
        "/with space\nand line",
        argv,
        environment,
        network=network,
        filtered=filtered,
        places=places,
        writable=writable,
        secret=writable,
        shown=argv,
    )
    encoded = sent.encode()
    assert wire.LENGTH.unpack(encoded[: wire.LENGTH.size])[0] == len(encoded) - wire.LENGTH.size
    received = wire.decode(encoded[wire.LENGTH.size :])
    for name in wire.SupervisorRequest.__slots__:
        assert getattr(received, name) == getattr(sent, name)


def test_bytes_that_are_no_text_travel_unharmed() -> None:
    sent = wire.SupervisorRequest(wire.SUBREAPER, "/", ["a\udcffb"], [])
    assert wire.decode(sent.encode()[wire.LENGTH.size :]).argv == ("a\udcffb",)


def test_a_nul_cannot_travel() -> None:
    with pytest.raises(ValueError, match="null"):
        wire.SupervisorRequest(wire.SUBREAPER, "/", ["a\0b"], []).encode()
