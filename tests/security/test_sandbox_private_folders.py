"""SECURITY V5, V10: temporary files and caches of a sandboxed command are its conversation's own, and go with it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outside import folder_outside_temp
from tests.support.processes import ROOT
from tests.support.sandboxes import CONFINED, home, sandbox
from tests.support.waiting import poll, poll_blocking
from tools.bash import Caller
from tools.contract import HELPER_SANDBOX, Command, Sandbox, SandboxMode
from tools.process import scratch
from tools.process.plan import BUBBLEWRAP
from tools.process.private_home import key_places
from tools.process.scratch import BELOW_HOME, cache_folders
from tools.process.zygote import wire


@pytest.fixture
def place() -> Iterator[Path]:
    """A home folder with a workspace in it."""
    with folder_outside_temp() as folder:
        (folder / "work").mkdir()
        (folder / ".cache").mkdir()
        (folder / ".ssh").mkdir()
        (folder / ".ssh" / "key").write_text("secret", "ascii")
        with home(folder):
            yield folder


def exists(path: str | Path) -> bool:
    return Path(path).exists()


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def bases() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob(f"{scratch.PREFIX}*")}


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP])
async def test_temporary_files_last_for_the_conversation_and_belong_to_it(mechanism: str, place: Path) -> None:
    async with sandbox(place / "work", mechanism) as box:
        await box.sh("echo one > /tmp/phx-note; echo two > $TMPDIR/phx-other; chmod 0 $(mktemp -d)")
        assert await box.sh("cat /tmp/phx-note /var/tmp/phx-other") == "one\ntwo\n"
        assert await box.sh("ls -A /tmp | grep phx", conversation="another") == ""
        assert not exists("/tmp/phx-note")
        await box.processes.jobs.end_all("one")
        assert await box.sh("ls -A /tmp | grep phx") == ""
        mine = box.processes.planner.scratch_folder
    assert mine is not None
    assert not exists(mine)


async def test_a_workspace_below_the_temporary_folder_works_and_sees_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "beside").write_text("x", "ascii")
    async with sandbox(tmp_path / "work") as box:
        said = await box.sh(f"echo a > inside; cat inside; ls {tmp_path}; echo b > {tmp_path}/lost")
    assert said == "a\nwork\n"
    assert (tmp_path / "work" / "inside").read_text("ascii") == "a\n"
    assert listing(tmp_path) == ["beside", "work"]


async def test_caches_can_be_written_and_keep_nothing(place: Path) -> None:
    (place / ".cache" / "good").write_text("good", "ascii")
    async with sandbox(place / "work") as box:
        await box.sh("echo poison > ~/.cache/good; rm -rf ~/.cache/x; echo new > ~/.cache/new")
        assert await box.sh("cat ~/.cache/good ~/.cache/new") == "poison\nnew\n"
        assert await box.sh("cat ~/.cache/good", conversation="another") == "good"
        job = await box.processes.jobs.start(
            Command(("/bin/sh", "-c", "echo job > ~/.cache/job; sleep 60"), place / "work", sandbox=CONFINED),
            "one",
            "x",
        )
        assert await box.sh("echo y > ~/.cache/beside && cat ~/.cache/beside") == "y\n", "two at once share no layer"
        await box.processes.jobs.kill(job.id)
    assert listing(place / ".cache") == ["good"]
    assert (place / ".cache" / "good").read_text("ascii") == "good"


async def test_with_home_as_the_workspace_keys_and_caches_stay_closed(place: Path) -> None:
    (place / ".bashrc").write_text("mine", "ascii")
    (place / "own").mkdir()
    (place / "own" / "credentials.toml").write_text("secret", "ascii")
    script = (
        "cat .ssh/* own/*; echo x >> .bashrc; echo x > .profile; mkdir -p .config/fish; mv .cache c;"
        "echo x > .config/fish/config.fish; mv .ssh s;"
        "echo p > .cache/poison; echo fine > file; mv own o; rm -rf .ssh own; ln -s /etc .zshrc; echo end"
    )
    async with sandbox(place, hidden=(place / "own",)) as box:
        said = await box.sh(script)
    assert "secret" not in said
    assert said.endswith("end\n")
    assert (place / ".bashrc").read_text("ascii") == "mine"
    others = {Path(name).parts[0] for name in BELOW_HOME} - {".cache"}  # of installed programs, for the self-test
    made = {".profile", ".zshrc", ".config"}
    assert set(listing(place)) - others == {"work", ".cache", ".ssh", ".bashrc", "own", "file"} | made
    assert listing(place / ".cache") == []


@pytest.mark.parametrize("limits", [CONFINED, Sandbox(SandboxMode.READ_ONLY, network=False), HELPER_SANDBOX])
async def test_keys_are_hidden_in_every_mode(limits: Sandbox, place: Path) -> None:
    async with sandbox(place / "work") as box:
        assert "secret" not in await box.sh("cat ~/.ssh/key; cat ~/.ssh/*; ls -A ~/.ssh", limits=limits)


async def test_nothing_in_the_environment_leads_out(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "DISPLAY", "WAYLAND_DISPLAY", "TMUX")
    for name in (*ways, "KUBECONFIG", "DOCKER_HOST", "XDG_RUNTIME_DIR", "XAUTHORITY"):
        monkeypatch.setenv(name, "/way/out")
    async with sandbox(place / "work") as box:
        assert "/way/out" not in await box.sh("env")


def test_the_folders_of_a_killed_phoenix_are_swept_and_those_of_a_living_one_are_not() -> None:
    script = (
        "from tools.process.scratch import Scratch; s = Scratch(); lease = s.lease('c');"
        "(lease.temporary / 'deep').mkdir(mode=0); print(lease.temporary, flush=True); import time; time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    with other.stdout as said:
        temporary = Path(said.readline().strip())
    try:
        scratch.sweep(Path(tempfile.gettempdir()))
        assert temporary.exists()
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
    scratch.sweep(Path(tempfile.gettempdir()))
    assert poll_blocking(lambda: not temporary.exists())


def test_folders_beyond_the_limit_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LARGEST", 8192)
    folders = scratch.Scratch()
    try:
        lease = folders.lease("one")
        (lease.layers / "big").write_bytes(os.urandom(65536))
        folders.give_back(lease)
        assert not lease.layers.exists()
    finally:
        folders.close()


def test_a_socket_or_key_place_that_is_the_home_folder_itself_hides_nothing(place: Path) -> None:
    (place / ".aws").symlink_to(place)
    for name in (".env", "server.key", ".env.example", "notes.txt"):
        (place / name).write_text("x")
    assert key_places({}, place) == (place / ".env", place / ".ssh", place / "server.key")
    assert cache_folders({"UV_CACHE_DIR": str(place), "XDG_CACHE_HOME": "/"}, place) == (place / ".cache",)


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP, wire.LANDLOCK])
async def test_a_command_that_becomes_a_job_keeps_its_sandbox(mechanism: str, place: Path) -> None:
    script = "echo began; until test -e go; do sleep 0.01; done; cat ~/.ssh/key; echo x > ~/no; echo x > in; echo over"
    command = Command(("/bin/bash", "-c", script), place / "work", sandbox=CONFINED)
    async with sandbox(place / "work", mechanism) as box:
        jobs = box.processes.jobs
        task = asyncio.create_task(jobs.run(command, Caller("one", "call", "x")))
        assert await poll(lambda: jobs.background("one", "call") is not None)
        await task
        (job,) = jobs.jobs("one")
        (place / "work" / "go").touch()
        assert await poll(lambda: b"over" in jobs.output(job.id).head)
        assert b"secret" not in jobs.output(job.id).head
    assert not exists(place / "no")
    assert exists(place / "work" / "in")


async def test_many_commands_at_once_have_folders_and_keep_none(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other users write to the shared one
    async with sandbox(place / "work") as box:
        said = await asyncio.gather(*(box.sh(f"echo {n} > ~/.cache/{n}; cat ~/.cache/{n}") for n in range(6)))
        assert said == [f"{n}\n" for n in range(6)]
        assert bases()
    assert not bases()
