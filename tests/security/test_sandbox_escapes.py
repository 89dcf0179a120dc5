"""SECURITY V5, V10, also as root: every known door out of the sandbox, tried from inside.

One command tries all doors of `tests/support/sandbox_attacks.py` in each mechanism and mode.
The samples of SECURITY V5 by name: `connect_to_tmux_under_the_temporary_folder`, `redirect_git_by_commondir`,
`make_a_user_namespace`, `open_a_device_of_the_machine`; the planted programs are in `test_planted_programs.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import sandbox_attacks
from tests.support.outside import folder_outside_temp
from tests.support.sandboxes import home, sandbox
from tools.contract import Command, Finished, Sandbox, SandboxMode
from tools.process.plan import BUBBLEWRAP
from tools.process.sandbox import bubblewrap
from tools.process.zygote import landlock, wire

MARKER = "phoenix-test-key"
MECHANISMS = (wire.NAMESPACE, BUBBLEWRAP, wire.LANDLOCK)
MODES = (SandboxMode.WORKSPACE, SandboxMode.READ_ONLY)
OF_SINGLE_FILES = frozenset(
    list(sandbox_attacks.DOORS)[list(sandbox_attacks.DOORS).index("redirect_git_by_commondir") :]
)
"""Doors inside the workspace: Landlock knows no single files in a writable folder."""
LATER = frozenset({
    "plant_agent_settings",
    "plant_editor_settings",
    "replace_instructions",
    "change_envrc",
    "change_editor_settings",
})
"""Files that act when another program starts: written, and kept or taken back afterwards (test_changed_files.py)."""
LEFT_OPEN = {
    wire.NAMESPACE: LATER,
    BUBBLEWRAP: LATER | {"enter_by_the_root_of_the_first", "take_a_descriptor_of_the_first"},  # it is inside too
    wire.LANDLOCK: OF_SINGLE_FILES
    | LATER
    | {
        "change_mode_outside",
        "change_times_outside",
        "set_attribute_outside",
        "connect_to_a_socket_in_home",
        "connect_to_tmux_under_the_temporary_folder",
        "connect_to_a_socket_in_run",
        "connect_to_a_socket_in_a_cache",
        "read_the_real_temporary_folder",
        "open_a_device_that_lies_on_disk",
    },
}
"""Attacks that a mechanism cannot stop; `Enforcement.FILES` and `phoenix doctor` report that for Landlock."""
_HARMLESS = """
create_outside append_outside link_out map_outside read_a_key read_a_key_below_a_folder
read_a_key_named_by_the_environment read_phoenix_own_folder read_the_real_temporary_folder read_shared_memory
connect_to_a_socket_in_home connect_to_tmux_under_the_temporary_folder connect_to_an_abstract_socket connect_over_tcp
signal_another_process redirect_git_by_commondir write_a_git_hook write_git_settings write_a_nested_hook
plant_editor_settings plant_agent_settings change_envrc
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Doors that are tried without a sandbox too: they lead to folders of the test alone."""
ATTACKS = Path(sandbox_attacks.__file__)


@functools.cache
def outcomes(mechanism: str, mode: SandboxMode, network: bool) -> dict[str, str]:
    """Results at each door, empty where the mechanism is not available."""
    if mechanism == BUBBLEWRAP and not bubblewrap():
        return {}
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(folder_outside_temp())
        targets = {name: value for name, value in stack.enter_context(world(place)).items()}
        environment = {**os.environ, "HOME": str(place / "home"), "KUBECONFIG": str(place / "kube.conf")}
        stack.enter_context(home(place / "home"))
        command = Command(
            (sys.executable, "-I", str(ATTACKS), json.dumps(targets)),
            place / "workspace",
            timeout=60,
            sandbox=Sandbox(mode, network),
        )
        finished = asyncio.run(run(command, mechanism, environment, place / "own"))
        assert finished.exit_code == 0, finished.captured.head.decode()
        found: dict[str, str] = json.loads(finished.captured.head)
        return found | look(place, targets["udp"])


async def run(command: Command, mechanism: str, environment: dict[str, str], own: Path) -> Finished:
    async with sandbox(command.working_dir, mechanism, hidden=(own,), environment=environment) as box:
        return await box.processes.runner.run(command)


@contextlib.contextmanager
def world(place: Path) -> Iterator[dict[str, object]]:
    """A machine with keys, sockets and a repository; yields the targets of the attacks."""
    for name in ("home/.ssh", "home/.cache", "own", "outside", "workspace"):
        (place / name).mkdir(parents=True)
    keys = {name: place / path for name, path in KEYS.items()}
    for path in keys.values():
        path.write_text(MARKER, "ascii")
    (place / "outside" / "kept").write_text("kept", "ascii")
    repository(place / "workspace")
    with contextlib.ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phx-tmux-")))
        (temporary / "file").write_text(MARKER, "ascii")
        shared = Path(f"/dev/shm/{temporary.name}")
        shared.write_text(MARKER, "ascii")
        stack.callback(shared.unlink)
        listening = {
            "home_socket": str(place / "home" / "agent"),
            "temporary_socket": str(temporary / "default"),
            "cache_socket": str(place / "home" / ".cache" / "s"),
            "run_socket": f"/run/{temporary.name}",
            "abstract": f"\0{temporary.name}",
            "abstract_datagram": f"\0d{temporary.name}",
        }
        for name, address in listening.items():
            kind = socket.SOCK_DGRAM if name.endswith("datagram") else socket.SOCK_STREAM
            server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            with contextlib.suppress(PermissionError):  # /run is root's
                server.bind(address)
                if kind == socket.SOCK_STREAM:
                    server.listen()
                if address.startswith("/run/"):
                    stack.callback(Path(address).unlink)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        sleeper = subprocess.Popen(["sleep", "100"], env={"KEY": MARKER})
        stack.callback(sleeper.wait)
        stack.callback(sleeper.kill)
        targets: dict[str, object] = {name: str(path) for name, path in keys.items()}
        targets |= {name: address.lstrip("\0") for name, address in listening.items()}
        if os.geteuid() == 0:
            device = place / "outside" / "device"
            os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            targets["device"] = str(device)
        yield targets | {
            "marker": MARKER,
            "outside": str(place / "outside"),
            "temporary": str(temporary / "file"),
            "shared_memory": str(shared),
            "cache": str(place / "home" / ".cache"),
            "port": tcp.getsockname()[1],
            "udp_port": udp.getsockname()[1],
            "udp": udp.fileno(),
            "pid": sleeper.pid,
        }


KEYS = {
    "key": "home/.netrc",
    "key_in_folder": "home/.ssh/id_ed25519",
    "named_key": "kube.conf",
    "own": "own/credentials.toml",
}


def repository(folder: Path) -> None:
    """A repository with a submodule, a linked worktree, a nested one, and settings of editors and agents."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    nested = folder / "sub" / "deep"
    subprocess.run(["git", "init", "-q", str(nested)], check=True)
    module, linked = folder / ".git/modules/a/b", folder / ".git/worktrees/w"
    subprocess.run(["git", "init", "-q", "--bare", str(module)], check=True)
    linked.mkdir(parents=True)
    (linked / "commondir").write_text("../..\n", "ascii")
    (linked / "gitdir").write_text("/nowhere/.git\n", "ascii")
    settings = "[include]\n\tpath = ../included\n[core]\n\thooksPath = tools/hooks\n\trepositoryformatversion = 0\n"
    (folder / ".git/config").write_text(settings, "ascii")
    (folder / "sub" / ".vscode").mkdir()
    for name in (".envrc", "AGENTS.md", "sub/.vscode/settings.json"):
        (folder / name).write_text("mine", "ascii")


def look(place: Path, udp: object) -> dict[str, str]:
    """Results that only the outside can see."""
    os.set_blocking(int(str(udp)), False)
    try:
        arrived = bool(os.read(int(str(udp)), 8))
    except BlockingIOError:
        arrived = False
    poisoned = (place / "home/.cache/poison").exists()
    assert sorted(path.name for path in (place / "outside").iterdir() if path.name != "device") == ["kept"]
    assert (place / "outside" / "kept").read_text("ascii") == "kept"
    return {
        "send_over_udp": "done" if arrived else "refused: nothing arrived",
        "poison_a_cache": "done" if poisoned else "refused: nothing arrived",
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_door_is_closed(mechanism: str, mode: SandboxMode) -> None:
    found = outcomes(mechanism, mode, False)
    if not found:
        pytest.skip("this mechanism is not to be had here")
    assert found.keys() >= sandbox_attacks.DOORS.keys()
    assert {name for name, outcome in found.items() if outcome.startswith("done")} <= LEFT_OPEN[mechanism], found


@pytest.mark.parametrize("name", ["connect_to_an_abstract_socket", "send_to_an_abstract_datagram_socket", "open_vsock"])
def test_sockets_of_others_are_closed_with_network_too(name: str) -> None:
    found = outcomes(wire.NAMESPACE, SandboxMode.WORKSPACE, True)
    if not found or (landlock.abi() < landlock.ABI_SCOPES and "abstract" in name):
        pytest.skip("this kernel cannot")
    assert not found[name].startswith("done")
    assert found["connect_over_tcp"] == "done", "or the test would show nothing"


def test_the_doors_are_open_without_a_sandbox() -> None:
    """Attacks that the machine itself refuses would be no test."""
    with folder_outside_temp() as place, world(place) as targets, home(place / "home"):
        script = [sys.executable, "-I", str(ATTACKS), json.dumps(targets | {"doors": sorted(HARMLESS)})]
        done = subprocess.run(script, cwd=place / "workspace", capture_output=True, check=True, timeout=60)
    assert set(json.loads(done.stdout).values()) == {"done"}
