"""SECURITY V11: no process of Phoenix shows a key to a command, from its first moment and with `--debug` too."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.program import family, program
from tests.support.serving import serving, tab
from tools.process.programs import without_keys

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
KEY = f"sk-ant-planted-{uuid.uuid4().hex}"
"""Key that differs in each worker: the first moments of a program started by others are open to root."""
LOOKS = "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do cat $f 2>/dev/null; done > {seen}"


def keyed(folder: Path, **extra: str) -> Phoenix:
    return phoenix_in(folder, ANTHROPIC_API_KEY=KEY, SOME_GATEWAY=f"https://user:{KEY}@host", ODD=KEY, **extra)


def shown_by(pids: set[int]) -> bytes:
    """All that the system shows of these processes."""
    shown = b""
    for pid in pids:
        for name in ("environ", "cmdline"):
            with suppress(OSError):
                shown += Path(f"/proc/{pid}/{name}").read_bytes()
    return shown


@pytest.mark.parametrize("flags", [(), ("--debug",), ("--allow-debugger",)])
async def test_a_command_of_phoenix_finds_the_key_in_no_process(flags: tuple[str, ...], tmp_path: Path) -> None:
    seen = tmp_path / "work" / "seen"
    async with serve(calls("bash", command=LOOKS.format(seen=seen)), says("done")) as server:
        phoenix = with_claude(tmp_path, server.url, ANTHROPIC_API_KEY=KEY, ODD=KEY)
        ran = await phoenix.run("-p", "--sandbox", "off", "--permission-mode", "auto", *flags, "look")
    assert ran.code == 0, ran.err
    assert b"PHOENIX_HOME" in seen.read_bytes() or b"PATH=" in seen.read_bytes()
    assert KEY.encode() not in seen.read_bytes()


@pytest.mark.parametrize("arguments", [(), ("--debug",), ("--screen-reader",)])
async def test_a_screen_and_all_it_starts_show_no_key(arguments: tuple[str, ...], tmp_path: Path) -> None:
    async with program(keyed(tmp_path), *arguments) as running:
        await running.shows("guide")
        assert KEY.encode() not in shown_by({running.pid, *family(running.pid)})


async def test_a_tab_of_serve_shows_no_key_from_its_first_moment(tmp_path: Path) -> None:
    async with serving(keyed(tmp_path)) as served:
        looked, over = 0, asyncio.Event()

        async def look() -> None:
            nonlocal looked
            while not over.is_set():
                pids = {served.process.pid, *family(served.process.pid)}
                assert KEY.encode() not in await asyncio.to_thread(shown_by, pids)
                looked += len(pids) > 1
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        async with tab(served) as socket:
            await socket.send_str('["stdin", "/config\\r"]')
        over.set()
        await looking
        assert looked


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second uid to look from")
@pytest.mark.parametrize("boot", ["start", "commands"])
@pytest.mark.parametrize("file", ["environ", "mem", "maps", "fd/0"])
def test_every_way_of_starting_closes_the_process_first(boot: str, file: str) -> None:
    """A run and a sub-command harden themselves before they read a setting; so does a mistaken command line."""
    run = {
        "start": "from phoenix_tui.cli import start as it; it.prepare = look; "
        "it.start(run_parser().parse_args(['-p', 'x']))",
        "commands": "from phoenix_tui.cli import commands as it; it.prepare_command = look; "
        "it.run_command(command_parser().parse_args(['doctor']))",
    }[boot]
    script = (
        "import os, sys; from phoenix_tui.cli.parser import run_parser, command_parser\n"
        "import phoenix_tui.cli.start, phoenix_tui.cli.commands, phoenix_tui.wiring.doctor, engine.ports\n"
        "import phoenix_tui.lifecycle.threads\n"
        "from tools.process.zygote import kernel\n"
        "def look(*_, **__):\n"
        f"    code = os.system(f'head -c 1 /proc/{{os.getpid()}}/{file} < /dev/null 2>/dev/null || exit 7')\n"
        "    os._exit(os.waitstatus_to_exitcode(code))\n"
        "os.setuid(65534); kernel.prctl(kernel.PR_SET_DUMPABLE, 1)\n"
        f"{run}"
    )
    environment = {"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[2]), "ODD": KEY}
    done = subprocess.run(
        [sys.executable, "-B", "-c", script],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd="/",
    )
    assert (done.returncode, done.stdout) == (7, b""), done.stderr


def test_an_editor_gets_no_key() -> None:
    given = {"ANTHROPIC_API_KEY": KEY, "my_api_key": KEY, "ANTHROPIC_AUTH_TOKEN": KEY, "EDITOR": "vi", "TERM": "x"}
    assert without_keys(given) == {"EDITOR": "vi", "TERM": "x", "PATH": os.defpath}
