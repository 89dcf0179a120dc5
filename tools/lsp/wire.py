"""Introduction of Phoenix to a language server, and answers to the questions of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from tools.lsp.definitions import LanguageServer

METHOD_NOT_FOUND: Final = -32601
MOST_SECTIONS: Final = 200
"""Settings that one question may ask for."""
_LONGEST_URI: Final = 8_192


def initialize_params(server: LanguageServer, root: Path) -> dict[str, Any]:
    """Parameters of `initialize`. There is no process id: in a sandbox Phoenix is not seen and would count as gone."""
    document: dict[str, Any] = {
        "synchronization": {"dynamicRegistration": False, "didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
    }
    if server.pulls:
        document["diagnostic"] = {"dynamicRegistration": False, "relatedDocumentSupport": False}
    return {
        "processId": None,
        "clientInfo": {"name": "phoenix"},
        "rootUri": root.as_uri(),
        "rootPath": str(root),
        "workspaceFolders": workspace_folders(root),
        "initializationOptions": dict(server.options),
        "capabilities": {
            "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
            "textDocument": document,
            "workspace": {
                "configuration": True,
                "workspaceFolders": True,
                "didChangeConfiguration": {"dynamicRegistration": False},
                "didChangeWatchedFiles": {"dynamicRegistration": False},
            },
            "window": {"workDoneProgress": False},
        },
    }


def workspace_folders(root: Path) -> list[dict[str, str]]:
    """The one folder of a server."""
    return [{"uri": root.as_uri(), "name": root.name}]


def answer(method: str, params: object, server: LanguageServer, root: Path) -> tuple[bool, object]:
    """The answer to a question of a server; False where the question is not known."""
    match method:
        case "workspace/configuration":
            return True, _settings(params, server.settings)
        case "workspace/workspaceFolders":
            return True, workspace_folders(root)
        case "workspace/applyEdit":
            return True, {"applied": False, "failureReason": "Phoenix applies no edits of servers."}
        case "window/showDocument":
            return True, {"success": False}
        case (
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh"
        ):
            return True, None
        case _:
            return False, None


def _settings(params: object, settings: Mapping[str, Any]) -> list[Any]:
    items = cast("dict[str, object]", params).get("items") if isinstance(params, dict) else None
    wanted = cast("list[object]", items)[:MOST_SECTIONS] if isinstance(items, list) else []
    return [_section(item, settings) for item in wanted]


def _section(item: object, settings: Mapping[str, Any]) -> Any:
    name = cast("dict[str, object]", item).get("section") if isinstance(item, dict) else None
    if not isinstance(name, str) or not name:
        return settings or None
    found: Any = settings
    for part in name.split(".")[:20]:
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = cast("Mapping[str, Any]", found)[part]
    return found


def path_of(uri: object) -> str:
    """The path of a `file://` URI, however it is escaped; empty for another."""
    if not isinstance(uri, str) or len(uri) > _LONGEST_URI or not uri.startswith("file://"):
        return ""
    try:
        return unquote(urlsplit(uri).path)
    except ValueError:
        return ""


def column_of(text: str, line: int, character: int, encoding: str) -> int:
    """The column of a place in characters, from 1; places behind the end of a line are at its end."""
    found = text.split("\n", line + 1)
    row = found[line] if line < len(found) else ""
    match encoding:
        case "utf-8":
            return len(row.encode("utf-8", "surrogatepass")[:character].decode("utf-8", "ignore")) + 1
        case "utf-32":
            return min(character, len(row)) + 1
        case _:
            raw = row.encode("utf-16-le", "surrogatepass")[: 2 * character]
            return len(raw.decode("utf-16-le", "ignore")) + 1
