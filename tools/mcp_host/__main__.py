"""Entry of the helper: `--socket FD --spill FOLDER`; `launch.py` has its command.

`--connect PATH` in place of `--socket`: Phoenix waits there, because a supervised program inherits no other descriptor.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import gc
import logging
import os
import socket
import sys
import warnings
from pathlib import Path

COLLECTOR_THRESHOLDS = (100_000, 10, 50)
"""Thresholds of Python itself collect a hundred times while the SDK loads."""


def main() -> None:
    """Serve Phoenix over the inherited socket until it closes."""
    parser = argparse.ArgumentParser(prog="tools.mcp_host")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", type=int, help="descriptor of the socket to Phoenix")
    where.add_argument("--connect", type=Path, help="Unix socket on which Phoenix listens")
    parser.add_argument("--spill", type=Path, required=True, help="folder for large payloads")
    arguments = parser.parse_args()
    if sys.platform == "linux":
        # Close the memory, which holds tokens, to other processes of the user.
        from tools.process.zygote import kernel  # noqa: PLC0415 - Linux alone can load it

        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    atexit.register(gc.freeze)  # Python collects the SDK three times as it ends: a third of the helper's work
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # it would search all packages and load theirs beside the tokens
    logging.disable(logging.CRITICAL)  # the SDK logs what servers send; their log has a ring of its own
    warnings.simplefilter("ignore", DeprecationWarning)
    control = _connect(arguments.connect) if arguments.connect else socket.socket(fileno=arguments.socket)
    control.set_inheritable(False)
    asyncio.run(_serve(control, arguments.spill))


def _connect(path: Path) -> socket.socket:
    control = socket.socket(socket.AF_UNIX)
    control.connect(str(path))
    return control


async def _serve(control: socket.socket, spill: Path) -> None:
    from tools.mcp_host.host import Host  # noqa: PLC0415 - the SDK takes a second: not before the memory is closed
    from tools.mcp_host.link import Link  # noqa: PLC0415 - as above

    asyncio.get_running_loop().set_exception_handler(_ignore)
    link = Link(control, spill)
    try:
        await Host(link, spill).run()
    finally:
        link.close()


def _ignore(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Name an error that no request waits for, without the words of a server."""
    error = context.get("exception")
    sys.stderr.write(f"mcp_host: {context.get('message')}: {type(error).__name__}\n")


if __name__ == "__main__":
    main()
