"""`phoenix serve`: the TUI in a browser."""

from __future__ import annotations

import os
import secrets
import socket

from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.names import SERVED
from phoenix_tui.cli.output import write_json_line, write_line, write_progress


def run_serve(arguments: CommandArguments) -> Exit:
    """Serve until it is ended.

    Raises:
        CommandError: the extra is not installed, or the address is not free.
    """
    try:
        from phoenix_tui.terminal.serving.doors import PageAddress, is_loopback  # noqa: PLC0415 - an extra, imported only here
        from phoenix_tui.terminal.serving.server import serve  # noqa: PLC0415 - as above
    except ImportError as error:
        missing = "`phoenix serve` needs textual-serve; install it with `pip install 'phoenix-tui[serve]'`."
        raise CommandError(missing) from error
    listener = _listener(arguments.host, arguments.port)
    host, port = arguments.host, listener.getsockname()[1]
    address = PageAddress(host, port, secrets.token_urlsafe(24), arguments.public_url)

    def started() -> None:
        if arguments.json:
            write_json_line({"url": address.invitation})
            return
        write_line(address.invitation)
        write_progress("Each tab runs its own Phoenix. Ctrl+C stops all of them.")

    if not is_loopback(host):
        write_progress(
            f"Warning: anyone who can reach {host}:{port} and knows this address can run commands as you, and the "
            "traffic is not encrypted. An SSH tunnel to a loopback address is safer."
        )
    os.environ[SERVED] = "1"
    serve(arguments.rest, address, listener, started)
    return Exit.OK


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises CommandError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise CommandError(f"{host}:{port} cannot be used ({error.strerror}); choose another with --port.") from error
