"""Arguments about MCP servers: of a run, and of `phoenix mcp`. Imports nothing, as the parser itself."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `parser.py`
if TYPE_CHECKING:
    from argparse import ArgumentParser, _ArgumentGroup  # pyright: ignore[reportPrivateUsage] - no public name
    from collections.abc import Callable
    from typing import Any


def add_flags(group: _ArgumentGroup) -> None:
    """Add the flags of a run."""
    group.add_argument(
        "--mcp-config",
        action="append",
        default=[],
        metavar="FILE|JSON",
        help="MCP servers of this run, before all others; repeatable",
    )
    group.add_argument("--strict-mcp-config", action="store_true", help="use no MCP servers but those of --mcp-config")


def add_servers(actions: Any, leaf: Callable[..., ArgumentParser]) -> None:
    """Add the actions; `leaf` makes the parser of one."""
    leaf(actions, "list", "list the servers that this folder uses")
    leaf(actions, "get", "show one server", "name")
    testing = leaf(actions, "test", "connect to one server, or to all, and count the tools; exit 1 where one fails")
    testing.add_argument("name", metavar="NAME", nargs="?", default="", help="server (default: all)")
    leaf(actions, "login", "sign in to a server over HTTP; exit 1 where that fails", "name")
    leaf(actions, "logout", "delete the tokens of a server", "name")
    adding = leaf(actions, "add", "define a server")
    adding.add_argument("-t", "--transport", choices=("stdio", "http", "sse"), default="", help="default: by COMMAND")
    adding.add_argument("-e", "--env", action="append", default=[], metavar="NAME=VALUE", help="variable; repeatable")
    adding.add_argument("-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="HTTP header")
    adding.add_argument(
        "--sandbox",
        choices=("off", "workspace", "read-only"),
        default="",
        help="sandbox of the server (default: that of the conversation)",
    )
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("rest", nargs="+", metavar="COMMAND|URL", help="-- COMMAND ARGUMENT…, or an address")
    adding_json = leaf(actions, "add-json", 'define a server by JSON such as \'{"command": "npx"}\'', "name")
    adding_json.add_argument("text", metavar="JSON")
    removing = leaf(actions, "remove", "remove a definition", "name")
    where = "config.toml (default), or .mcp.json here"
    for one in (adding, adding_json, removing):
        one.add_argument("-s", "--scope", choices=("user", "project"), default="user", help=where)
