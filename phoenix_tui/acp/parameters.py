"""Parameters of requests as Phoenix has them: modes and settings of a session, prompts, and MCP servers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    HttpMcpServer,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    SseMcpServer,
    TextContentBlock,
    TextResourceContents,
)
from msgspec import Struct, field

from engine.ports import ConversationChanges, ModelInfo
from engine.records import ConversationRecord, PermissionMode
from engine.run_options import Effort
from phoenix_tui.acp.connection import invalid
from phoenix_tui.text.labels import MODE_MEANINGS
from tools.clean import clean_line

log = logging.getLogger(__name__)

ConfigOption: TypeAlias = SessionConfigOptionSelect | SessionConfigOptionBoolean
OptionsOf: TypeAlias = Callable[[ConversationRecord], Awaitable[list[ConfigOption]]]
MODEL, MODE, EFFORT = "model", "mode", "effort"
MODE_NAMES: Final = {
    PermissionMode.ASK: "Ask",
    PermissionMode.ACCEPT_EDITS: "Accept edits",
    PermissionMode.AUTO: "Auto",
    PermissionMode.PLAN: "Plan",
    PermissionMode.DENY: "Deny",
}
MOST_MODELS: Final = 200
PATIENCE: Final = 2.0
"""Seconds that an answer waits for the servers of models; those that answer later are listed next time."""


class ModelList:
    """Models on offer, asked for once, and again when a session begins."""

    def __init__(self, ask: Callable[[], Awaitable[Sequence[ModelInfo]]]) -> None:
        self._ask = ask
        self._known: Sequence[ModelInfo] = ()
        self._asking: asyncio.Task[None] | None = None

    def refresh(self) -> None:
        """Ask the servers, in the background."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        try:
            self._known = await self._ask()
        except Exception:
            log.warning("the models on offer are not known", exc_info=True)

    async def now(self) -> Sequence[ModelInfo]:
        """The models that are known by now."""
        if self._asking is not None and not self._known:
            await asyncio.wait((self._asking,), timeout=PATIENCE)
        return self._known

    def close(self) -> None:
        """Ask no longer."""
        if self._asking is not None:
            self._asking.cancel()

    async def options(self, record: ConversationRecord) -> list[ConfigOption]:
        """Mode, model and effort of a conversation with their values."""
        known = await self.now()
        models = [one.reference for one in known[:MOST_MODELS]]
        if record.model not in models:
            models.insert(0, record.model)
        efforts = next((one.efforts for one in known if one.reference == record.model), ())
        levels = [Effort.DEFAULT, *(one for one in efforts if one is not Effort.DEFAULT)]
        if record.effort not in levels:
            levels.append(record.effort)
        modes = [(mode.value, name, MODE_MEANINGS[mode]) for mode, name in MODE_NAMES.items()]
        named = [(one, clean_line(one), "") for one in models]
        rising = [(one.value, one.value.capitalize(), "") for one in levels]
        return [
            _select(MODE, "Permission mode", record.permission_mode.value, modes),
            _select(MODEL, "Model", record.model, named),
            _select(EFFORT, "Effort", record.effort.value, rising, "thought_level"),
        ]


def modes_of(record: ConversationRecord) -> SessionModeState:
    """The permission modes, and the one in force."""
    modes = [
        SessionMode(id=mode.value, name=name, description=MODE_MEANINGS[mode]) for mode, name in MODE_NAMES.items()
    ]
    return SessionModeState(current_mode_id=record.permission_mode.value, available_modes=modes)


def change_of(option: str, value: Any) -> ConversationChanges:
    """The change that an option asks for. Raises RequestError."""
    if not isinstance(value, str):
        raise invalid(f"The option {clean_line(option)[:100]} takes one of its values.")
    match option:
        case "mode":
            return ConversationChanges(permission_mode=_one_of(PermissionMode, value, "permission mode"))
        case "effort":
            return ConversationChanges(effort=_one_of(Effort, value, "level of effort"))
        case "model" if value.partition("/")[2]:
            return ConversationChanges(model=value)
        case "model":
            raise invalid("A model is named as PROVIDER/MODEL.")
        case _:
            raise invalid(f"There is no option {clean_line(option)[:100]}; there are mode, model and effort.")


def _one_of(kind: Any, value: str, what: str) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(kind)
        raise invalid(f"{clean_line(value)[:100]} is no {what}; there are {known}.") from error


def _select(
    option: str, name: str, now: str, values: Sequence[tuple[str, str, str]], category: str = ""
) -> SessionConfigOptionSelect:
    options = [SessionConfigSelectOption(value=one, name=name, description=said or None) for one, name, said in values]
    return SessionConfigOptionSelect.model_validate({
        "type": "select",
        "id": option,
        "name": name,
        "category": category or option,
        "current_value": now,
        "options": options,
    })


PromptBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)
NO_AUDIO: Final = "Phoenix reads no audio: send the words as text."
BROKEN_IMAGE: Final = "An image of the prompt is no base64: send its bytes in base64."
EMPTY: Final = "The prompt is empty: send text or an image."
MOST_IMAGES: Final = 20
LONGEST_NAME: Final = 1000


class Prompt(Struct):
    """A message to send."""

    text: str = ""
    images: list[bytes] = field(default_factory=list[bytes])


async def read_prompt(blocks: Sequence[PromptBlock]) -> Prompt:
    """The message of a prompt. Raises RequestError."""
    prompt = Prompt()
    behind: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                prompt.text += block.text
            case ImageContentBlock():
                prompt.images.append(_image(block.data))
            case ResourceContentBlock():
                _append(prompt, _link(block))
            case EmbeddedResourceContentBlock():
                await _embed(prompt, block.resource, behind)
            case AudioContentBlock():
                raise invalid(NO_AUDIO)
    if len(prompt.images) > MOST_IMAGES:
        raise invalid(f"The prompt has {len(prompt.images)} images; at most {MOST_IMAGES} are taken.")
    prompt.text = "\n\n".join(filter(None, (prompt.text, *behind)))
    if not prompt.text.strip() and not prompt.images:
        raise invalid(EMPTY)
    return prompt


def path_of(uri: str) -> Path | None:
    """The file of a URI, or of an absolute path; None for anything else."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return Path(unquote(parts.path)) if parts.path.startswith("/") else None
    return Path(uri) if uri.startswith("/") else None


def mention(path: Path) -> str:
    """A file behind an `@`, which attaches it; empty for a name that is not possible in a message."""
    name = str(path)
    usable = len(name) <= LONGEST_NAME and name.isprintable() and '"' not in name
    return f'@"{name}"' if usable else ""


def _link(block: ResourceContentBlock) -> str:
    path = path_of(block.uri)
    return (mention(path) if path is not None else "") or f"[{clean_line(block.name)}]({clean_line(block.uri)})"


async def _embed(prompt: Prompt, resource: TextResourceContents | BlobResourceContents, behind: list[str]) -> None:
    path, name = path_of(resource.uri), clean_line(resource.uri)
    if isinstance(resource, BlobResourceContents):
        if (resource.mime_type or "").startswith("image/"):
            prompt.images.append(_image(resource.blob))
        else:
            _append(prompt, (mention(path) if path is not None else "") or f"[{name}, which is no text]")
        return
    if path is not None and mention(path) and await asyncio.to_thread(_is_saved, path, resource.text):
        _append(prompt, mention(path))
        return
    shown = clean_line(str(path)) if path is not None else name
    _append(prompt, shown)
    inside = resource.text.replace("</resource", "< /resource")
    behind.append(f'<resource name="{shown}">\n{inside}\n</resource>')


def _append(prompt: Prompt, words: str) -> None:
    """Add a name that stands apart from the text around it."""
    gap = "" if not prompt.text or prompt.text[-1].isspace() else " "
    prompt.text += f"{gap}{words} "


def _is_saved(path: Path, text: str) -> bool:
    """True where the file has just this text, so that it can be attached as it is."""
    data = text.encode("utf-8", "replace")
    try:
        if not path.is_file() or path.stat().st_size != len(data):
            return False
        with path.open("rb") as file:
            return file.read(len(data) + 1) == data
    except (OSError, ValueError):
        return False


def _image(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(BROKEN_IMAGE) from error


def tables_of(request: Any) -> Mapping[str, object]:
    """Definitions by name, as they would stand in `.mcp.json`; one of another transport gives a sentence later."""
    return {one.name: _table(one) for one in getattr(request, "mcp_servers", None) or ()}


def _table(server: Any) -> object:
    if isinstance(server, McpServerStdio):
        env = {one.name: one.value for one in server.env}
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": env}
    if isinstance(server, HttpMcpServer | SseMcpServer):
        headers = {one.name: one.value for one in server.headers}
        return {"type": server.type, "url": server.url, "headers": headers}
    return {"type": server.type}
