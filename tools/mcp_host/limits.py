"""Bounds of the MCP helper on size, count and time. docs/decisions/mcp.md lists them."""

from __future__ import annotations

from typing import Final

LONGEST_LINE: Final = 256 * 1024
"""Bytes of a line between Phoenix and the helper; a longer message goes through a file."""
LONGEST_MESSAGE: Final = 24 * 1024 * 1024
"""Bytes of a message in such a file."""
LONGEST_SERVER_LINE: Final = 16 * 1024 * 1024
"""Bytes of one message of a server, over stdio and in one HTTP response or event."""
MOST_VALUES: Final = 2_000_000
MOST_CONTAINERS: Final = 500_000
"""JSON values, and lists and objects among them, of one message: each becomes a Python object of 8 to 64 bytes."""
COUNTED_FROM: Final = 1024 * 1024
"""Bytes from which the values of a message are counted."""

CONNECT: Final = 30.0
"""Seconds for the handshake and the first lists."""
CLOSE: Final = 3.0
"""Seconds for the end of a connection, such as the DELETE of an HTTP session."""
QUIET: Final = 0.5
"""Seconds without another `list_changed` before the list is fetched again."""
QUIET_AT_MOST: Final = 5.0
"""Seconds after which it is fetched although `list_changed` keeps coming."""
RECONNECT: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Waits before the attempts to reconnect over HTTP."""
SIGN_IN: Final = 300.0
"""Seconds that a sign-in waits for the browser."""

MOST_PAGES: Final = 100
MOST_ITEMS: Final = 1_000
"""Pages of a list, and tools, prompts or resources in it."""
MOST_LIST_BYTES: Final = 4 * 1024 * 1024
MOST_SCHEMA_BYTES: Final = 128 * 1024
LONGEST_NAME: Final = 128
LONGEST_URI: Final = 4_096
LONGEST_DESCRIPTION: Final = 2_048
"""Characters of a description and of a server's instructions."""
MOST_LEFT_OUT: Final = 50
"""Items that were left out and are named with the reason; more are counted."""

MOST_SERVERS: Final = 64
MOST_CALLS: Final = 32
"""Requests in flight to one server."""
MOST_ASKS: Final = 8
"""Questions of one server that wait for a person."""
LONGEST_SAMPLE: Final = 4 * 1024 * 1024
"""Bytes of a sampling request, images included."""
MOST_UNANSWERED: Final = 64
"""Requests of a server that wait for an answer: one with more does not read its answers, and is disconnected."""
NOTIFICATION_BURST: Final = 500
NOTIFICATIONS_A_SECOND: Final = 200.0
PROGRESS_APART: Final = 0.1
"""Seconds between two progress events of one call; the last one of several is sent."""
LOG_RING: Final = 200
LONGEST_LOG: Final = 2_000
LOG_BURST: Final = 50
LOGS_A_SECOND: Final = 10.0

TEXT_LIMIT: Final = 128 * 1024
"""Bytes of text in a result, unless the request says another limit; more goes to a file."""
TEXT_KEPT: Final = 4 * 1024
"""Characters shown from either end of a text that went to a file."""
INLINE_IMAGE: Final = 128 * 1024
MOST_INLINE: Final = 1024 * 1024
"""Bytes of base64 up to which an image, and all of a result, stay in the message."""
MOST_PARTS: Final = 200
"""Content blocks of a result; the rest is counted."""
MOST_SPILLED: Final = 256 * 1024 * 1024
"""Bytes of files in the spill folder that are still there."""
CHECKING: Final = 0.5
"""Seconds for checking structured content against its schema."""
