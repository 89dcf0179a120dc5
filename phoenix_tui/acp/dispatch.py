"""Dispatch of methods to their handlers: parameters are checked, every failure is one sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from acp.exceptions import RequestError
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from phoenix_tui.cli.faults import fault_of
from tools.clean import clean_line

INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
METHOD_NOT_FOUND: Final = -32601
NOT_FOUND: Final = -32002
MOST_FAULTS: Final = 3
"""Wrong parameters that an answer names."""

Request: TypeAlias = "type[BaseModel] | type[Struct]"
Handler: TypeAlias = Callable[[Any], Awaitable[BaseModel | dict[str, Any] | None]]


class Route(Struct, frozen=True):
    """A method: the type of its parameters, and what handles them."""

    request: Request
    handle: Handler


class Dispatcher(Struct, frozen=True):
    """The methods of an agent."""

    requests: Mapping[str, Route]
    notifications: Mapping[str, Route]

    async def __call__(self, method: str, params: Any, is_notification: bool) -> dict[str, Any]:
        """Handle one message; the answer as JSON. Raises RequestError."""
        route = (self.notifications if is_notification else self.requests).get(method)
        if route is None:
            if is_notification:
                return {}  # unknown ones are ignored (JSON-RPC 2.0, section 4.1)
            raise RequestError(METHOD_NOT_FOUND, f"There is no method {clean_line(method)[:100]}.")
        request = checked(route.request, {} if params is None else params)
        try:
            answer = await route.handle(request)
        except RequestError:
            raise
        except Exception as error:  # the app edge: the client gets a sentence, the log the traceback
            raise RequestError(INTERNAL, fault_of(error).sentence) from error
        return as_json(answer) if isinstance(answer, BaseModel) else answer or {}


def checked(request: Request, params: Any) -> Any:
    """The parameters as their type. Raises RequestError."""
    try:
        if issubclass(request, BaseModel):
            return request.model_validate(params)
        return msgspec.convert(params, request)
    except ValidationError as error:
        raise RequestError(INVALID_PARAMS, f"Invalid params: {_faults(error)}.") from error
    except (msgspec.ValidationError, RecursionError) as error:
        raise RequestError(INVALID_PARAMS, f"Invalid params: {error}.") from error


def invalid(sentence: str) -> RequestError:
    """The error of parameters that cannot be used."""
    return RequestError(INVALID_PARAMS, sentence)


def as_json(model: BaseModel) -> dict[str, Any]:
    """A value of the schema as it is sent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _faults(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in found[:MOST_FAULTS]]
    return clean_line("; ".join(said))[:500]
