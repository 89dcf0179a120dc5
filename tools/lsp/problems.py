"""Problems of files: read from messages of a server, matched across edits, and reported to the model."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from tools.clean import clean_line
from tools.comparing import count_equal
from tools.contract import Captured, Sandbox, SandboxedStartError
from tools.displays import CodeProblem, EditCheck
from tools.lsp.definitions import LanguageServer
from tools.shell_output import reason_words

ERROR: Final = 1
WARNING: Final = 2
MOST: Final = 2_000
"""Problems of one file that are looked at."""
LONGEST_MESSAGE: Final = 400
LONGEST_NAME: Final = 60
_KNOWN_SEVERITIES: Final = range(1, 5)
_MOST_PLACE: Final = 2**31 - 1


class ServerProblem(Struct, frozen=True):
    """One problem of a file; places are those of the protocol, from 0."""

    line: int
    character: int
    """Place in the units that were agreed with the server."""
    severity: int
    message: str
    source: str = ""
    code: str = ""

    @property
    def kind(self) -> tuple[int, str, str, str]:
        """Facts that are equal for the same problem on another line."""
        return (self.severity, self.source, self.code, self.message)


def problems_of(items: object, *, passed_over: Sequence[str] = ()) -> tuple[ServerProblem, ...]:
    """The problems of a list, without what is none of them; `passed_over` are codes that do not count."""
    if not isinstance(items, list):
        return ()
    found = (_problem(item) for item in cast("list[object]", items)[:MOST])
    return tuple(one for one in found if one is not None and one.code not in passed_over)


def _problem(item: object) -> ServerProblem | None:
    if not isinstance(item, dict):
        return None
    fields = cast("dict[str, object]", item)
    start = table_of(table_of(fields.get("range")).get("start"))
    line, character = start.get("line"), start.get("character")
    severity = fields.get("severity", ERROR)
    message = _text(fields.get("message"), LONGEST_MESSAGE)
    if not _is_place(line) or not _is_place(character) or severity not in _KNOWN_SEVERITIES or not message:
        return None
    source, code = _text(fields.get("source"), LONGEST_NAME), _text(fields.get("code"), LONGEST_NAME)
    return ServerProblem(cast("int", line), cast("int", character), cast("int", severity), message, source, code)


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_PLACE


def table_of(value: object) -> dict[str, object]:
    """A JSON object; empty for any other value."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object, longest: int) -> str:
    """One cleaned line, cut; a message may also be markup with a `value`."""
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("value")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST_PLACE:
        value = str(value)
    if not isinstance(value, str):
        return ""
    text = " ".join(clean_line(value[: 4 * longest].encode("utf-8", "replace").decode()).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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
            items = cast("dict[str, object]", params).get("items") if isinstance(params, dict) else None
            wanted = cast("list[object]", items)[:MOST_SECTIONS] if isinstance(items, list) else []
            return True, [_section(item, server.settings) for item in wanted]
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


def new_problems(
    before: Sequence[ServerProblem], after: Sequence[ServerProblem], old: str, new: str
) -> list[ServerProblem]:
    """Problems of `after` that were not there before; `old` and `new` are the texts.

    The same problem has the same severity, source, code and message. Where more of a kind are there than before, those
    that an edit did not touch are the old ones.
    """
    known = Counter(problem.kind for problem in before)
    stays = _find_untouched(before, old, new)
    touched: list[ServerProblem] = []
    for problem in after:
        if stays[place := (problem.line, problem.kind)] > 0:
            stays[place] -= 1
            known[problem.kind] -= 1
        else:
            touched.append(problem)
    found: list[ServerProblem] = []
    for problem in touched:
        if known[problem.kind] > 0:
            known[problem.kind] -= 1
        else:
            found.append(problem)
    return sorted(found, key=lambda one: (one.line, one.character))


def _find_untouched(
    before: Sequence[ServerProblem], old: str, new: str
) -> Counter[tuple[int, tuple[int, str, str, str]]]:
    """Earlier problems in lines that both texts begin or end with, by their line in the new text."""
    one, other = old.split("\n"), new.split("\n")
    head = count_equal(one, other)
    tail = min(count_equal(one[::-1], other[::-1]), min(len(one), len(other)) - head)
    moved = len(other) - len(one)
    found: Counter[tuple[int, tuple[int, str, str, str]]] = Counter()
    for problem in before:
        if problem.line < head:
            found[problem.line, problem.kind] += 1
        elif problem.line >= len(one) - tail:
            found[problem.line + moved, problem.kind] += 1
    return found


MOST_SHOWN: Final = 10
"""Errors that a result names; the rest is counted."""
LONGEST_WORDS: Final = 200
HIDDEN: Final = (
    "it cannot be started: the sandbox hides {program}, or its interpreter; install it in a folder of Phoenix's PATH"
)


def report_of(name: str, shown: str, found: list[ServerProblem], text: str, encoding: str) -> EditCheck:
    """The first of the new errors, and counts of all."""
    errors = [one for one in found if one.severity == ERROR]
    problems = tuple(
        CodeProblem(one.line + 1, column_of(text, one.line, one.character, encoding), one.message, one.source, one.code)
        for one in errors[:MOST_SHOWN]
    )
    warnings = sum(one.severity == WARNING for one in found)
    return EditCheck(name, shown, problems, len(errors), warnings)


def start_failure(error: OSError, program: str, *, is_confined: bool) -> str:
    """The reason why a program cannot be started; a sandbox hides much of the home folder."""
    if error.errno == errno.ENOENT and is_confined and os.access(program, os.X_OK):
        return HIDDEN.format(program=program)
    refused = error.refused if isinstance(error, SandboxedStartError) else ""
    return f"it cannot be started: {error.strerror or error}{reason_words(refused, '/sandbox changes it')}"


def stamp_of(path: Path) -> tuple[int, int]:
    """Time and size of a file; zeros for one that is gone."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size


def decode_end(captured: Captured) -> str:
    """The end of an output as text."""
    return (captured.head + captured.tail)[-8_192:].decode("utf-8", "replace")


def last_words(captured: Captured) -> str:
    """The last line of its stderr that says something."""
    rows = [row for row in map(clean_line, decode_end(captured).splitlines()) if row.strip()]
    return rows[-1][:LONGEST_WORDS] if rows else ""


class LanguageServerState(StrEnum):
    """State of a server as the user sees it."""

    READY = "ready"
    STARTING = "starting"
    WAITING = "not started"
    FAILED = "failed"
    NEEDS_YES = "needs your yes"
    """The user has not allowed in this folder what the server does: run what the project contains."""
    MISSING = "not installed"
    OFF = "off"


class LanguageServerView(Struct, frozen=True):
    """One language server of a folder, for a list and its details."""

    name: str
    state: LanguageServerState
    text: str = ""
    """Cause of the state."""
    files: str = ""
    """Patterns of its files, joined by blanks."""
    program: str = ""
    """Path of its program; empty where it was not found."""
    root: str = ""
    pid: int = 0
    sandbox: str = ""
    """Limits that it runs under, in words; empty while it does not run."""
    log: tuple[str, ...] = ()
    """Newest lines of its log."""


class CheckPlace(Struct, frozen=True):
    """The conversation that an edit belongs to."""

    conversation_id: str
    folder: Path
    """Working folder, resolved: files outside of it are not checked."""
    sandbox: Sandbox
    """Limits of its commands."""


class EditBegun(Struct, frozen=True):
    """A file before an edit."""

    place: CheckPlace
    path: Path
    before: str | None
    """Text before the edit; None: there is no such file."""


class EditedText(Struct, frozen=True):
    """One edit of a file."""

    path: Path
    shown: str
    """The file as the call names it."""
    before: str
    """Text before the edit; empty for a new file."""
    after: str
    created: bool
    conversation_id: str
