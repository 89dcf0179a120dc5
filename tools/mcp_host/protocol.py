"""Messages between Phoenix and the MCP helper, their limits, and the addresses that both judge; needs no SDK."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

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


DESCRIPTORS: Final = 2
"""Descriptors that come with `Connect` over stdio: the server's stdout to read, then its stdin to write."""
NOTHING: Final = Raw(b"null")

Transport: TypeAlias = Literal["stdio", "http", "sse"]
Listing: TypeAlias = Literal["tools", "prompts", "resources", "templates", "log"]
HelperServerState: TypeAlias = Literal[
    "connecting", "connected", "needs_auth", "reconnecting", "failed", "ended", "closed"
]
"""`ended`: a stdio server closed its output and Phoenix must open it again. `failed`: the next use connects again over
HTTP. `closed`: Phoenix disconnected it."""
ErrorKind: TypeAlias = Literal[
    "invalid",  # the request itself, or an unknown server
    "cancelled",
    "timeout",  # total limit
    "idle",  # no byte and no progress for too long
    "gone",  # the connection ended during the request
    "failed",  # no connection could be made
    "needs_auth",
    "server",  # the server answered with a JSON-RPC error
    "limit",
    "internal",
]


class Root(Struct, frozen=True):
    """A folder that a server may work in; `uri` begins with `file://`."""

    uri: str
    name: str = ""


class OAuth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings for signing in."""

    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0
    """Port on 127.0.0.1; 0: any free one."""
    scopes: str = ""
    client_metadata_url: str = ""


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op"):
    """Base of all requests; ids are unique among those in flight."""

    id: int


class Connect(Request, frozen=True, kw_only=True, omit_defaults=True, tag="connect"):
    """Connect to a server, or again with a new definition; answered with `Connected` after the first lists.

    Over stdio the first byte carries `DESCRIPTORS` (`socket.send_fds`).
    """

    server: str
    name: str = ""
    transport: Transport = "stdio"
    url: str = ""
    headers: dict[str, str] = {}
    roots: list[Root] | None = None
    """Folders; None: the capability is not offered."""
    elicitation: bool = False
    """True when a person can answer."""
    sampling: bool = False
    oauth: OAuth | None = None
    credentials: Raw = NOTHING
    """Content of the latest `Credentials` event; null: none."""
    era: str = "auto"
    """`auto`, `legacy` (initialize handshake) or a version of the newer protocol."""
    timeout_ms: int = 30_000


class Disconnect(Request, frozen=True, kw_only=True, tag="disconnect"):
    """Close the connection of a server and forget it."""

    server: str


class ListItems(Request, frozen=True, kw_only=True, omit_defaults=True, tag="list"):
    """Give a list of a server; answered with `Items`."""

    server: str
    what: Listing
    refresh: bool = False


class CallTool(Request, frozen=True, kw_only=True, omit_defaults=True, tag="call"):
    """Run a tool; answered with `Content`."""

    server: str
    tool: str
    args: dict[str, Any] = {}
    timeout_ms: int = 600_000
    idle_ms: int = 120_000
    text_limit: int = TEXT_LIMIT


class Cancel(Request, frozen=True, kw_only=True, tag="cancel"):
    """Cancel the request with the id `call`, whose late answer is dropped."""

    call: int


class Read(Request, frozen=True, kw_only=True, omit_defaults=True, tag="read"):
    """Read a resource; answered with `Content`."""

    server: str
    uri: str
    timeout_ms: int = 60_000
    text_limit: int = TEXT_LIMIT


class GetPrompt(Request, frozen=True, kw_only=True, omit_defaults=True, tag="get_prompt"):
    """Render a prompt; answered with `PromptText`."""

    server: str
    prompt: str
    args: dict[str, str] = {}
    timeout_ms: int = 60_000
    text_limit: int = TEXT_LIMIT


class Complete(Request, frozen=True, kw_only=True, omit_defaults=True, tag="complete"):
    """Complete an argument of a prompt, or of a resource template when `ref` has `://`; answered with `Completions`."""

    server: str
    ref: str
    argument: str
    value: str = ""
    context: dict[str, str] = {}
    timeout_ms: int = 250


class Answer(Request, frozen=True, kw_only=True, tag="answer"):
    """Answer an `Ask`: for a form or a URL `{action, content}`, for sampling a message or a `SampleRefusal`; null
    declines.
    """

    ask: int
    result: Raw


class Auth(Request, frozen=True, kw_only=True, omit_defaults=True, tag="auth"):
    """Begin a sign-in, give the address the browser was sent to, or forget credentials of a server."""

    server: str
    action: Literal["start", "paste", "forget"]
    url: str = ""


class SetRoots(Request, frozen=True, kw_only=True, tag="roots"):
    """Replace the folders that a server may work in."""

    server: str
    roots: list[Root]


class ShutdownHelper(Request, frozen=True, kw_only=True, tag="shutdown"):
    """Close all connections and end."""


AnyRequest: TypeAlias = (
    Connect
    | Disconnect
    | ListItems
    | CallTool
    | Cancel
    | Read
    | GetPrompt
    | Complete
    | Answer
    | Auth
    | SetRoots
    | ShutdownHelper
)


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reason of a failed request; `message` is one cleaned sentence, words of a server in it included."""

    kind: ErrorKind
    message: str
    code: int = 0
    """JSON-RPC code of a server's error."""


class HelperEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """Base of all messages of the helper."""


class Reply(HelperEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reply"):
    """Answer to a request: `ok`, or an error."""

    id: int
    ok: Raw = NOTHING
    error: Failure | None = None


class ServerStatus(HelperEvent, frozen=True, kw_only=True, omit_defaults=True, tag="status"):
    """State of a connection; `text` is the cause."""

    server: str
    state: HelperServerState
    text: str = ""


class Annotations(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Claims of a server about its tool."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool, prompt, resource or template. `name` is exact; other texts are cleaned and cut."""

    name: str
    title: str = ""
    description: str = ""
    schema: dict[str, Any] = {}
    """Input schema of a tool, as JSON."""
    annotations: Annotations | None = None
    arguments: list[PromptArgument] = []
    uri: str = ""
    """Address of a resource, or the template."""
    mime: str = ""
    size: int = -1


class PromptArgument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class LeftOut(Struct, frozen=True):
    """An item that is not offered."""

    name: str
    reason: str


class Items(HelperEvent, frozen=True, kw_only=True, omit_defaults=True, tag="items"):
    """A list of a server, sorted by name, after connecting and when it changed; equal lists have equal digests."""

    server: str
    what: Listing
    items: list[Item] = []
    digest: str = ""
    left_out: list[LeftOut] = []
    left_out_count: int = 0
    lines: list[str] = []
    """Newest lines of the server's log, for `log`."""


class CallProgress(HelperEvent, frozen=True, kw_only=True, omit_defaults=True, tag="progress"):
    """Progress of the request `id`."""

    id: int
    done: float
    total: float | None = None
    text: str = ""


class Log(HelperEvent, frozen=True, kw_only=True, tag="log"):
    """A line of a server's log."""

    server: str
    level: str
    text: str


class ServerAsk(HelperEvent, frozen=True, kw_only=True, tag="ask"):
    """Question of a server; `params` as in MCP (`message` with `requestedSchema` or `url`, or a sampling request)."""

    ask: int
    server: str
    kind: Literal["form", "url", "sampling"]
    params: Raw


class SampleRefusal(Struct, frozen=True):
    """Error that a server gets for its sampling request."""

    refused: str
    """A sentence."""
    code: int
    """JSON-RPC code."""


class AskClosed(HelperEvent, frozen=True, kw_only=True, tag="ask_closed"):
    """An `Ask` that needs no answer any more."""

    ask: int


class AuthUrl(HelperEvent, frozen=True, kw_only=True, tag="auth_url"):
    """Address at which the user signs in; `host` is the authorization server, `callback` the local address."""

    server: str
    url: str
    host: str
    callback: str


class NewCredentials(HelperEvent, frozen=True, kw_only=True, omit_defaults=True, tag="credentials"):
    """Tokens and registration to store, opaque to Phoenix; null: delete them."""

    server: str
    content: Raw = NOTHING


AnyEvent: TypeAlias = (
    Reply | ServerStatus | Items | CallProgress | Log | ServerAsk | AskClosed | AuthUrl | NewCredentials
)


class Connected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Answer to `Connect`."""

    protocol: str
    server_name: str = ""
    server_version: str = ""
    instructions: str = ""
    has: list[str] = []
    """Capabilities among tools, prompts, resources, completions, logging."""


class TextPart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Text; `file` has the whole of it when only its ends are here, or an audio or other file that it names."""

    text: str
    file: str = ""
    for_model: bool = True
    """False: for the user's eye only."""


class ImagePart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="image"):
    """Image in base64, or in a file; `mime` is the server's claim."""

    mime: str
    data: str = ""
    file: str = ""
    size: int = 0
    for_model: bool = True


ContentPart: TypeAlias = TextPart | ImagePart


class Content(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a tool, or content of a resource."""

    parts: list[ContentPart]
    is_error: bool = False
    links: list[str] = []
    """URIs of resources that the result names."""


class PromptMessage(Struct, frozen=True):
    """A message of a prompt; `role` is user or assistant."""

    role: str
    part: ContentPart


class PromptText(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rendered prompt."""

    messages: list[PromptMessage]
    description: str = ""


class Completions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Values for an argument, at most 100."""

    values: list[str]
    more: bool = False


def raw(value: object) -> Raw:
    """The JSON of a value."""
    return Raw(msgspec.json.encode(value))


_PLAIN: Final = re.compile(r"[!-\[\]-~]{1,8192}")
"""Printable ASCII without the backslash, which browsers read as a slash."""


def is_plain_address(url: str) -> bool:
    """True for an address whose host is what it looks like, over TLS or on this machine."""
    if not _PLAIN.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    plain = bool(host) and "@" not in parts.netloc
    return plain and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def host_of(url: str) -> str:
    """The host of a plain address, with its port where one is written."""
    return urlsplit(url).netloc


def is_loopback(host: str) -> bool:
    """True for a name or an address of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
