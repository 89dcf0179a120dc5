"""Signs in a command's output that its sandbox refused something, and how to ask for more."""

from __future__ import annotations

import re
from typing import Final

from tools.contract import Sandbox, SandboxMode

NETWORK_SIGNS: Final = re.compile(
    r"network is unreachable|ENETUNREACH|name resolution|could not resolve|resolve host|name or service not known"
    r"|nodename nor servname|getaddrinfo|EAI_AGAIN|no address associated|failed to lookup address|dns error"
    r"|cannot assign requested address|no route to host|connection refused|network request failed",
    re.IGNORECASE,
)
FILE_SIGNS: Final = re.compile(
    r"read-only file ?system|EROFS|permission denied|EACCES|operation not permitted|EPERM", re.IGNORECASE
)
MISSING: Final = re.compile(r"no such file or directory|ENOENT|FileNotFoundError|cannot find", re.IGNORECASE)
ABOUT_HOME: Final = re.compile(r"~/|\$HOME|\$\{HOME|/home/|/root/|\.\./|/Users/")
"""Words of a command or its output that point out of the working directory."""
BY_PROXY: Final = "reaches hosts only through the proxy that HTTP_PROXY names, and looks up no name itself"
ASK_MORE: Final = "the agent can ask for more with access and why, and /sandbox changes the sandbox"


def refusal_note(exit_code: int | None, output: str, sandbox: Sandbox, command: str = "") -> str:
    """One line on what the sandbox of a failed `command` refuses, empty where nothing points to it."""
    if sandbox.mode is SandboxMode.OFF or exit_code == 0:
        return ""
    refused: list[str] = []
    if not sandbox.network and NETWORK_SIGNS.search(output):
        refused.append("has no network" if sandbox.hosts is None else BY_PROXY)
    if FILE_SIGNS.search(output):
        read_only = sandbox.mode is SandboxMode.READ_ONLY
        refused.append("writes nowhere" if read_only else "writes only in the working directory and hides keys")
    elif MISSING.search(output) and ABOUT_HOME.search(command):
        refused.append("sees no documents and no other project of the home folder")
    return f"[sandbox: this command {' and '.join(refused)}; {ASK_MORE}]" if refused else ""
