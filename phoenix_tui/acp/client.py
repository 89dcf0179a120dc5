"""The editor at the other end of the connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import CLIENT_METHODS
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateFormSessionElicitationRequest,
    ElicitationSchema,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallUpdate,
)
from pydantic import BaseModel

from phoenix_tui.acp.dispatch import as_json
from phoenix_tui.acp.lines import fields_of


class Client:
    """Requests to the client, and what it said that it can do."""

    def __init__(self) -> None:
        self.capabilities = ClientCapabilities()
        self._connection: Connection | None = None

    def connect(self, connection: Connection) -> None:
        """Use a connection from now on."""
        self._connection = connection

    @property
    def elicits(self) -> bool:
        """True where it can show a form."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    @property
    def reads_text(self) -> bool:
        """True where it can be asked for the texts of its files."""
        files = self.capabilities.fs
        return files is not None and files.read_text_file is True

    async def read_text(self, session_id: str, path: str) -> str | None:
        """Text of a file as the editor has it, unsaved changes included; None where it gives none."""
        request = schema.ReadTextFileRequest(session_id=session_id, path=path)
        try:
            answer = await self._open.send_request(CLIENT_METHODS["fs_read_text_file"], as_json(request))
            return schema.ReadTextFileResponse.model_validate(answer).content
        except (ConnectionError, RequestError, ValueError):
            return None

    async def update(self, session_id: str, update: BaseModel) -> None:
        """Tell it about a session. Raises ConnectionError."""
        told: Any = update
        params = as_json(SessionNotification(session_id=session_id, update=told))
        await self._open.send_notification(CLIENT_METHODS["session_update"], params)

    async def permit(self, session_id: str, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str | None:
        """Id of the option that the user chose; None where the question was cancelled.

        Raises:
            ConnectionError, RequestError, ValueError: there is no usable answer.
        """
        request = RequestPermissionRequest(session_id=session_id, tool_call=call, options=list(options))
        answer = await self._open.send_request(CLIENT_METHODS["session_request_permission"], as_json(request))
        outcome = RequestPermissionResponse.model_validate(answer).outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else None

    async def elicit(
        self, session_id: str, call_id: str, message: str, form: ElicitationSchema
    ) -> dict[str, Any] | None:
        """Content of a form; None where it was declined or cancelled. Raises as `permit`."""
        request = CreateFormSessionElicitationRequest(
            session_id=session_id, tool_call_id=call_id, message=message, mode="form", requested_schema=form
        )
        answer = await self._open.send_request(CLIENT_METHODS["elicitation_create"], as_json(request))
        if fields_of(answer).get("action") != "accept":
            return None
        return schema.AcceptElicitationResponse.model_validate(answer).content or {}

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise ConnectionError("There is no connection.")
        return self._connection
