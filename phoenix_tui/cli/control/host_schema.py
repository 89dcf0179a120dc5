"""The schema of the final answer, where a host gives it in the handshake in place of `--json-schema`."""

from __future__ import annotations

from msgspec import Struct

from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.control.requests import RequestError
from phoenix_tui.cli.structured import StructuredAnswer
from tools.contract import JsonObject
from tools.json_schema import SchemaError
from tools.submit_structured import LARGEST, usable_schema


class HostSchema(Struct, frozen=True):
    """A part of the handshake; the flag wins."""

    structured: StructuredAnswer

    def begin(self, request: JsonObject) -> None:
        """Take the schema of the handshake. Raises RequestError."""
        schema = request.get("jsonSchema")
        if schema is None or self.structured.is_wanted:
            return
        try:
            usable = usable_schema(schema)
        except SchemaError as error:
            raise RequestError(f"jsonSchema: {error}") from error
        if len(encode(schema)) > LARGEST:
            raise RequestError(f"jsonSchema is longer than {LARGEST:,} characters.")
        self.structured.use(usable)

    def init_fields(self) -> JsonObject:
        """Add no field: the tool is among the tools."""
        return {}

    async def ready(self) -> None:
        """Return at once."""
