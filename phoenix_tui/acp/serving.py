"""The life of the agent: from the first line of its client to the last."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from acp.connection import Connection

from phoenix_tui.acp.client import Client
from phoenix_tui.acp.lines import LineTransport
from phoenix_tui.acp.server import AcpServer
from phoenix_tui.acp.services import AcpServices
from phoenix_tui.acp.unsaved import UnsavedTexts
from phoenix_tui.lifecycle.stop_signals import SIGNAL_EXIT, listen

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


async def serve(
    reading: int, writing: int, open_services: Callable[[], Awaitable[AcpServices]], unsaved: UnsavedTexts
) -> int:
    """Serve one client until its input ends, or a signal comes; the exit code."""
    loop = asyncio.get_running_loop()
    transport = LineTransport(reading, writing)
    stopped_by: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        stopped_by.append(number)
        transport.end()

    listen(loop, SIGNALS, stop)
    opening = asyncio.ensure_future(open_services())
    client = Client()
    server = AcpServer(client, opening)
    unsaved.editor, unsaved.session_of = client, server.session_of
    connection = Connection(server.dispatcher(), transport, listening=False)
    client.connect(connection)
    try:
        await connection.main_loop()
    finally:
        await server.close()
        await connection.close()
        with suppress(Exception):  # why nothing could be opened is in the answers
            await (await opening).close()
    return SIGNAL_EXIT + stopped_by[0] if stopped_by else 0
