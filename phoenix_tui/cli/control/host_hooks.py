"""Callbacks of a host as hooks: registered in the handshake, asked as `hook_callback`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.extensions.hooks.inputs import hook_object
from engine.extensions.hooks.matching import LONGEST_SUBJECT, matches, why_no_matcher
from engine.extensions.hooks.output import verdict_of_object
from engine.ports.hooks import (
    HookEvent,
    HookObserver,
    HookOutcome,
    HookReply,
    HookRequest,
    HookVerdict,
)
from engine.records import ConversationRecord
from phoenix_tui.cli.control.host import Host, HostError
from phoenix_tui.cli.control.requests import RequestError
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

ANSWER_WITHIN: Final = 60.0
"""Seconds for a callback whose matcher sets no time; as in the program that the SDKs were written for."""
LONGEST_WAIT: Final = 3_600.0
MOST_CALLBACKS: Final = 1_000


class HostMatcher(Struct, frozen=True):
    """Callbacks for the tools that a matcher means."""

    matcher: str
    callbacks: tuple[str, ...]
    seconds: float
    on_failure: str
    """`block`, `continue`, or empty: not set."""

    def is_for(self, request: HookRequest) -> bool:
        """True where it is for an occasion; one without a subject is for all."""
        subjects = [subject[:LONGEST_SUBJECT] for subject in request.subjects]
        return not subjects or any(matches(self.matcher, subject) for subject in subjects)


class HostHooks:
    """Implements `engine.ports.hooks.HookRunner`, and is a part of the handshake."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._matchers: Mapping[HookEvent, Sequence[HostMatcher]] = {}

    def begin(self, request: JsonObject) -> None:
        """Take the callbacks of the handshake. Raises RequestError."""
        hooks = request.get("hooks")
        if hooks is None:
            return
        if not isinstance(hooks, dict):
            raise RequestError("hooks must be an object of events.")
        found = {event: list(_matchers(event, entries)) for event, entries in hooks.items()}
        if sum(len(one.callbacks) for entries in found.values() for one in entries) > MOST_CALLBACKS:
            raise RequestError(f"There may be at most {MOST_CALLBACKS} callbacks.")
        known: dict[HookEvent, Sequence[HostMatcher]] = {}
        for event, entries in found.items():
            with suppress(ValueError):  # events that Phoenix does not have are never asked
                known[HookEvent(event)] = entries
        self._matchers = known

    def init_fields(self) -> JsonObject:
        """Add no field: callbacks are not in the init frame."""
        return {}

    async def ready(self) -> None:
        """Return at once."""

    def wants(self, record: ConversationRecord, event: HookEvent) -> bool:
        """True where a callback is registered for an event."""
        del record
        return event in self._matchers

    async def prepare(self, record: ConversationRecord) -> None:
        """Return at once: callbacks come with the handshake."""

    async def run(self, request: HookRequest, observer: HookObserver) -> Sequence[HookReply]:
        """Ask every callback that an occasion concerns, all at the same time."""
        asked = [
            self._reply(request, one, callback, observer)
            for one in self._matchers.get(request.event, ())
            if one.is_for(request)
            for callback in one.callbacks
        ]
        return await asyncio.gather(*asked)

    def stop(self, conversation_id: str) -> None:
        """Stop none: each callback is waited for."""

    async def close(self, conversation_id: str) -> None:
        """Forget nothing: the callbacks are those of the connection."""

    async def _reply(
        self, request: HookRequest, matcher: HostMatcher, callback: str, observer: HookObserver
    ) -> HookReply:
        hook_id, begun = fresh_id(), monotonic()
        observer.hook_started(hook_id, request.event, callback)
        reply: HookReply | None = None
        try:
            answered = await self._answered(request, matcher, callback)
            reply = replace(answered, id=hook_id, seconds=monotonic() - begun)
            return reply
        finally:
            observer.hook_ended(hook_id, reply)

    async def _answered(self, request: HookRequest, matcher: HostMatcher, callback: str) -> HookReply:
        call_id = request.fields.get("tool_use_id")
        asked: JsonObject = {"subtype": "hook_callback", "callback_id": callback, "input": hook_object(request)}
        asked["tool_use_id"] = call_id if isinstance(call_id, str) else None
        seconds = matcher.seconds if request.seconds is None else min(matcher.seconds, request.seconds)
        reply = HookReply(
            request.event, callback, "a callback of the host", HookOutcome.SUCCESS, goes_on=_goes_on(matcher)
        )
        try:
            answer = await self._host.ask(asked, seconds)
        except HostError as error:
            return _failed(reply, matcher, error)
        if answer.get("async") is True:
            return reply
        verdict = verdict_of_object(request.event, answer)
        return replace(reply, verdict=verdict, outcome=HookOutcome.BLOCKED if verdict.blocks else HookOutcome.SUCCESS)


def _goes_on(matcher: HostMatcher) -> bool:
    return matcher.on_failure == "continue"


def _failed(reply: HookReply, matcher: HostMatcher, error: HostError) -> HookReply:
    """The reply of a callback that gave no answer: it blocks only where the host wants that; a silent one asks."""
    reason = str(error).rstrip(".")
    if matcher.on_failure == "block":
        return replace(reply, outcome=HookOutcome.BLOCKED, verdict=HookVerdict(blocks=True, reason=reason))
    outcome = HookOutcome.TIMED_OUT if error.is_silence else HookOutcome.FAILED
    return replace(reply, outcome=outcome, verdict=HookVerdict(warning=reason))


def _matchers(event: str, entries: JsonValue) -> Iterator[HostMatcher]:
    if not isinstance(entries, list):
        raise RequestError(f"The hooks of {event[:60]} must be a list.")
    for entry in entries:
        ids = entry.get("hookCallbackIds") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(ids, list):
            raise RequestError(f"Each hook of {event[:60]} needs hookCallbackIds, a list.")
        given, seconds, failure = entry.get("matcher"), entry.get("timeout"), entry.get("onFailure")
        matcher = given if isinstance(given, str) else ""
        if why := why_no_matcher(matcher):
            raise RequestError(f"A hook of {event[:60]} cannot be used: {why}.")
        yield HostMatcher(
            matcher,
            tuple(one for one in ids if isinstance(one, str)),
            min(float(seconds), LONGEST_WAIT) if isinstance(seconds, int | float) and seconds > 0 else ANSWER_WITHIN,
            failure if failure in {"block", "continue"} else "block" if isinstance(failure, str) else "",
        )
