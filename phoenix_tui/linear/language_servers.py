"""Language servers in lines: listed, read, started again, allowed."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.language_servers import language_servers
from phoenix_tui.linear.context import LineCommand

RUNS: Final[dict[str, LineCommand]] = {"lsp": language_servers}
