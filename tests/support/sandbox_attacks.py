"""Doors out of a sandbox, each tried from inside: a program of the standard library that prints what it could do.

Run as a script with one JSON argument (`Targets` of `tests/security/test_sandbox_escapes.py`). Prints a JSON object:
for each door "done", "refused" with the reason, or "absent" where the machine has no such thing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import pathlib
import platform
import pty
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

TARGETS: dict[str, Any] = json.loads(sys.argv[1]) if __name__ == "__main__" else {}
OUTSIDE = TARGETS.get("outside", "")
X86 = platform.machine() == "x86_64"
LIBC = ctypes.CDLL(None, use_errno=True)
DOORS: dict[str, Callable[[], object]] = {}


MANY = 1000
"""Processes that a process namespace of one command never has."""
EXPIRE_BY_FORCE = 5
"""A contradictory flag: a process with the right to unmount gets an error, and nothing is unmounted."""


class AbsentError(Exception):
    """The machine has nothing to try this on."""


def door(function: Callable[[], object]) -> Callable[[], object]:
    DOORS[function.__name__] = function
    return function


def call(number: int, *arguments: object) -> int:
    result = int(LIBC.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def harmless_but_allowed(name: str) -> None:
    """Every call below is made so that nothing happens where it is allowed; only "not permitted" is a refusal."""
    code = ctypes.get_errno()
    if code in {errno.EPERM, errno.EACCES, errno.ENOSYS}:
        raise OSError(code, name)


def number(x86: int, arm: int) -> int:
    return x86 if X86 else arm


def write(path: str, flags: int = os.O_WRONLY | os.O_CREAT) -> None:
    descriptor = os.open(path, flags, 0o644)
    os.write(descriptor, b"x")
    os.close(descriptor)


# Files outside.


@door
def create_outside() -> None:
    write(f"{OUTSIDE}/created")


@door
def append_outside() -> None:
    write(f"{OUTSIDE}/kept", os.O_WRONLY | os.O_APPEND)


@door
def truncate_outside() -> None:
    os.truncate(f"{OUTSIDE}/kept", 0)


@door
def make_folder_outside() -> None:
    pathlib.Path(f"{OUTSIDE}/folder").mkdir()


@door
def remove_outside() -> None:
    pathlib.Path(f"{OUTSIDE}/kept").unlink()


@door
def rename_outside() -> None:
    pathlib.Path(f"{OUTSIDE}/kept").rename(f"{OUTSIDE}/moved")


@door
def rename_out() -> None:
    write("going")
    pathlib.Path("going").rename(f"{OUTSIDE}/gone")


@door
def rename_in() -> None:
    pathlib.Path(f"{OUTSIDE}/kept").rename("taken")


@door
def link_in_and_write() -> None:
    os.link(f"{OUTSIDE}/kept", "linked")
    write("linked")


@door
def link_out() -> None:
    write("to-link")
    os.link("to-link", f"{OUTSIDE}/linked")


@door
def write_through_a_link() -> None:
    pathlib.Path("pointer").symlink_to(f"{OUTSIDE}/through")
    write("pointer")


@door
def map_outside() -> None:
    descriptor = os.open(f"{OUTSIDE}/kept", os.O_RDWR)
    mmap.mmap(descriptor, 1, mmap.MAP_SHARED)[0] = 120


@door
def change_mode_outside() -> None:
    pathlib.Path(f"{OUTSIDE}/kept").chmod(0o777)


@door
def change_times_outside() -> None:
    os.utime(f"{OUTSIDE}/kept", (0, 0))


@door
def set_attribute_outside() -> None:
    os.setxattr(f"{OUTSIDE}/kept", "user.x", b"x")


@door
def write_by_proc_cwd() -> None:
    write(f"/proc/self/root{OUTSIDE}/by-proc")


@door
def open_by_handle() -> None:
    buffer = ctypes.create_string_buffer(136)
    ctypes.memmove(buffer, (128).to_bytes(4, "little"), 4)
    call(number(304, 265), -100, buffer, os.O_RDWR)


# Keys, and what others keep.


def read(path: str) -> None:
    with pathlib.Path(path).open("rb") as stream:
        if TARGETS["marker"].encode() not in stream.read():
            raise PermissionError("it reads as empty")


@door
def read_a_key() -> None:
    read(TARGETS["key"])


@door
def read_a_key_below_a_folder() -> None:
    read(TARGETS["key_in_folder"])


@door
def read_a_key_named_by_the_environment() -> None:
    read(TARGETS["named_key"])


@door
def read_phoenix_own_folder() -> None:
    read(TARGETS["own"])


@door
def write_phoenix_own_folder() -> None:
    write(TARGETS["own"] + ".new")


@door
def read_the_real_temporary_folder() -> None:
    read(TARGETS["temporary"])


@door
def read_shared_memory() -> None:
    read(TARGETS["shared_memory"])


@door
def poison_a_cache() -> None:
    write(TARGETS["cache"] + "/poison")
    raise PermissionError("the other side looks whether it arrived")


# Sockets and the network.


def connect(address: str) -> None:
    socket.socket(socket.AF_UNIX).connect(address)


@door
def connect_to_a_socket_in_home() -> None:
    connect(TARGETS["home_socket"])


@door
def connect_to_tmux_under_the_temporary_folder() -> None:
    connect(TARGETS["temporary_socket"])


@door
def connect_to_a_socket_in_run() -> None:
    connect(TARGETS["run_socket"])


@door
def connect_to_a_socket_in_a_cache() -> None:
    connect(TARGETS["cache_socket"])


@door
def connect_to_an_abstract_socket() -> None:
    connect("\0" + TARGETS["abstract"])


@door
def send_to_an_abstract_datagram_socket() -> None:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "\0" + TARGETS["abstract_datagram"])


@door
def connect_over_tcp() -> None:
    socket.create_connection(("127.0.0.1", TARGETS["port"]), 2)


@door
def send_over_udp() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", TARGETS["udp_port"]))
    raise PermissionError("the other side looks whether it arrived")


@door
def open_vsock() -> None:
    socket.socket(40, socket.SOCK_STREAM)


@door
def open_packet_socket() -> None:
    socket.socket(17, socket.SOCK_RAW)


# Other processes.


@door
def signal_another_process() -> None:
    os.kill(TARGETS["pid"], 0)


@door
def trace_another_process() -> None:
    if LIBC.ptrace(16, TARGETS["pid"], None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


@door
def enter_by_proc_root() -> None:
    list(pathlib.Path(f"/proc/{TARGETS['pid']}/root/").iterdir())


@door
def read_environment_of_another() -> None:
    read(f"/proc/{TARGETS['pid']}/environ")


@door
def take_a_descriptor_of_another() -> None:
    pid_fd = call(434, TARGETS["pid"], 0)
    call(438, pid_fd, 0, 0)


@door
def enter_by_the_root_of_the_first() -> None:
    if os.getpid() > MANY:
        refuse("not a process namespace")
    list(pathlib.Path("/proc/1/root/root").iterdir())


@door
def take_a_descriptor_of_the_first() -> None:
    for path in pathlib.Path("/proc/1/fd").iterdir() if os.getpid() < MANY else ():
        os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return
    refuse("nothing there")


def refuse(reason: str) -> None:
    raise PermissionError(reason)


# The kernel.


@door
def mount_something() -> None:
    LIBC.mount(b"none", b"/mnt", b"no-such-kind", 0, None)
    harmless_but_allowed("mount")


@door
def mount_by_the_new_calls() -> None:
    call(430, b"tmpfs", 0)


@door
def clone_a_mount() -> None:
    call(428, -100, b"/", 1)


@door
def change_a_mount() -> None:
    change = (ctypes.c_uint64 * 4)(0, 0, 0, 0)
    call(442, -100, b"/", 0, ctypes.byref(change), 32)


@door
def unmount_a_cover() -> None:
    LIBC.umount2(b"/dev", EXPIRE_BY_FORCE)
    harmless_but_allowed("umount")


@door
def make_a_user_namespace() -> None:
    if LIBC.unshare(0x10000000) < 0:
        raise OSError(ctypes.get_errno(), "unshare")


@door
def clone_into_a_user_namespace() -> None:
    pid = call(number(56, 220), ctypes.c_ulong(0x10000000 | signal.SIGCHLD), 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


@door
def clone3_into_a_user_namespace() -> None:
    arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, signal.SIGCHLD)
    pid = call(435, ctypes.byref(arguments), 88)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


@door
def enter_a_namespace() -> None:
    call(number(308, 268), os.open("/proc/self/ns/net", os.O_RDONLY), 0)


@door
def use_a_keyring() -> None:
    call(number(250, 219), 0, -3, 1)


@door
def use_bpf() -> None:
    call(number(321, 280), 0, ctypes.create_string_buffer(128), 128)


@door
def use_io_uring() -> None:
    call(425, 4, ctypes.create_string_buffer(120))


@door
def use_perf_events() -> None:
    call(number(298, 241), ctypes.create_string_buffer(b"\0\0\0\0\x70", 112), 0, -1, -1, 0)


@door
def call_by_x32_numbers() -> None:
    if not X86:
        raise AbsentError
    call(0x40000000 | 272, 0x10000000)


@door
def type_into_a_terminal() -> None:
    _, terminal = pty.openpty()
    fcntl.ioctl(terminal, 0x5412, b"x")


@door
def type_into_a_terminal_with_a_long_order() -> None:
    _, terminal = pty.openpty()
    call(number(16, 29), terminal, ctypes.c_ulong(0xFFFFFFFF00005412), ctypes.c_char_p(b"x"))


@door
def make_a_device() -> None:
    os.mknod("device", 0o600 | 0o060000, os.makedev(254, 0))
    os.close(os.open("device", os.O_RDONLY))


@door
def open_a_device_that_lies_on_disk() -> None:
    os.close(os.open(TARGETS["device"], os.O_RDONLY))


@door
def open_a_device_of_the_machine() -> None:
    usual = {
        "core",
        "fd",
        "full",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
        "console",
    }
    for path in sorted(pathlib.Path("/dev").iterdir()):
        if path.name in usual or path.is_dir() or path.name.startswith("watchdog"):
            continue
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        os.close(descriptor)
        return
    refuse("none")


@door
def make_a_program_that_runs_as_this_user() -> None:
    write("planted")
    pathlib.Path("planted").chmod(0o4755)


@door
def make_a_program_that_runs_with_this_group() -> None:
    pathlib.Path("planted3").write_text("")
    pathlib.Path("planted3").chmod(0o2755)


@door
def open_a_new_program_that_runs_as_this_user() -> None:
    os.umask(0)
    os.close(os.open("planted2", os.O_CREAT | os.O_WRONLY, 0o4755))
    if not pathlib.Path("planted2").stat().st_mode & 0o4000:
        refuse("made without the bit")


@door
def write_kernel_settings() -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


@door
def reach_sysrq() -> None:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))


@door
def gain_capabilities() -> None:
    with pathlib.Path("/proc/self/status").open() as stream:
        fields = dict(line.split(":\t", 1) for line in stream.read().splitlines())
    if int(fields["CapBnd"], 16) == 0 and int(fields["CapPrm"], 16) == 0 and fields["NoNewPrivs"] == "1":
        refuse("none to be had")


# What would run later outside.


@door
def redirect_git_by_commondir() -> None:
    write(".git/commondir")


@door
def replace_git_hooks() -> None:
    pathlib.Path(".git/hooks").rename(".git/old")


@door
def write_a_git_hook() -> None:
    write(".git/hooks/post-checkout")


@door
def write_git_settings() -> None:
    write(".git/config", os.O_WRONLY | os.O_APPEND)


@door
def replace_git_settings() -> None:
    write(".git/config.lock")
    pathlib.Path(".git/config.lock").rename(".git/config")


@door
def link_git_settings() -> None:
    os.link(".git/config", "copy")
    write("copy", os.O_WRONLY | os.O_APPEND)


@door
def write_git_settings_of_the_worktree() -> None:
    write(".git/config.worktree")


@door
def write_git_attributes() -> None:
    write(".git/info/attributes")


@door
def rename_git_info() -> None:
    pathlib.Path(".git/info").rename(".git/info2")


@door
def name_other_objects() -> None:
    write(".git/objects/info/alternates")


@door
def write_git_settings_of_a_module() -> None:
    write(".git/modules/a/b/config", os.O_WRONLY | os.O_APPEND)


@door
def redirect_git_of_a_linked_worktree() -> None:
    write(".git/worktrees/w/commondir", os.O_WRONLY | os.O_APPEND)


@door
def write_a_file_that_git_includes() -> None:
    write("included")


@door
def write_a_hook_that_git_is_told_of() -> None:
    pathlib.Path("tools/hooks").mkdir(exist_ok=True, parents=True)
    write("tools/hooks/pre-commit")


@door
def move_the_repository() -> None:
    pathlib.Path(".git").rename("git")


@door
def write_a_nested_hook() -> None:
    write("sub/deep/.git/hooks/pre-commit")


@door
def move_a_folder_above_a_nested_repository() -> None:
    pathlib.Path("sub").rename("sub2")


@door
def change_editor_settings() -> None:
    write("sub/.vscode/settings.json")


@door
def plant_editor_settings() -> None:
    pathlib.Path(".vscode").mkdir()


@door
def plant_agent_settings() -> None:
    write(".mcp.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


@door
def replace_a_placeholder() -> None:
    pathlib.Path(".claude").unlink()
    pathlib.Path(".claude").mkdir()


@door
def change_envrc() -> None:
    write(".envrc", os.O_WRONLY | os.O_APPEND)


@door
def replace_instructions() -> None:
    write("new")
    pathlib.Path("new").rename("AGENTS.md")


def main() -> None:
    outcomes: dict[str, str] = {}
    for name, attempt in DOORS.items():
        if name not in TARGETS.get("doors", DOORS):
            continue
        try:
            attempt()
        except AbsentError:
            outcomes[name] = "absent"
        except KeyError:
            outcomes[name] = "absent"
        except OSError as error:
            outcomes[name] = f"refused: {error}"
        else:
            outcomes[name] = "done"
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main()
