"""Modes and settings of a session that a client may change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from engine.effort import Effort
from engine.ports import ConversationChanges, ModelInfo
from engine.records import ConversationRecord, PermissionMode
from phoenix_tui.acp.dispatch import invalid
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
