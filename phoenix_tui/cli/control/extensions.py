"""Extensions of a host, given in the handshake or with flags: agents, skills, plugins, hooks and a schema."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.extensions.hooks.definitions import LONGEST_SUBJECT, matches, why_no_matcher
from engine.extensions.hooks.output import hook_object, verdict_of_object
from engine.ports.extensions import HookEvent, HookObserver, HookOutcome, HookReply, HookRequest, HookVerdict
from engine.ports.profiles import Profile, Profiles
from engine.records import ConversationRecord
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.control.frames import ControlRequestError, HostChannel, HostError
from phoenix_tui.cli.headless import StructuredAnswer
from phoenix_tui.config.sources.agents import MOST_BYTES, SUFFIX, AgentError, agent_in, agent_profile
from phoenix_tui.config.sources.extension_files import Plugin, fill_root, find_plugin
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue
from tools.files.own_files import read_regular
from tools.fresh_ids import fresh_id
from tools.submit_structured import LARGEST, SchemaError, usable_schema

MOST_AGENTS: Final = 500


class HostAgents:
    """Profiles of the user, of plugins and of one host; a name of the host's wins."""

    def __init__(self, plugins: Iterable[Profile] = ()) -> None:
        self.base: Profiles | None = None
        self._plugins = {profile.name: profile for profile in plugins}
        self._agents: dict[str, Profile] = {}
        self.cwd = Path("/")

    def over(self, base: Profiles) -> Profiles:
        """Stand before the profiles of the user."""
        self.base = base
        return self

    def begin(self, request: JsonObject) -> None:
        """Take the agents of the handshake. Raises ControlRequestError."""
        agents = request.get("agents")
        if agents is None:
            return
        if not isinstance(agents, dict) or len(agents) > MOST_AGENTS:
            raise ControlRequestError(f"agents must be an object of at most {MOST_AGENTS} agents.")
        try:
            self._agents = {name: agent_profile(name, about) for name, about in agents.items()}
        except AgentError as error:
            raise ControlRequestError(f"{error}.") from error

    def init_fields(self) -> JsonObject:
        """The names in the init frame."""
        names: list[JsonValue] = [profile.name for profile in self.names(self.cwd)]
        return {"agents": names}

    def objects(self) -> list[JsonValue]:
        """The agents as the answer to the handshake lists them."""
        return [{"name": one.name, "description": one.description} for one in self.names(self.cwd)]

    async def ready(self) -> None:
        """Return at once."""

    def names(self, cwd: Path) -> Sequence[Profile]:
        """Profiles that can be used in this folder."""
        base = self.base.names(cwd) if self.base is not None else ()
        own = self._plugins | self._agents
        return (*(one for one in base if one.name not in own), *own.values())

    def list_added(self, cwd: Path) -> Sequence[Profile]:
        """Profiles of files, of plugins and of the host."""
        files = {one.name: one for one in self.base.list_added(cwd)} if self.base is not None else {}
        return tuple((files | self._plugins | self._agents).values())

    def resolve(self, name: str, cwd: Path) -> Profile:
        """The profile called `name`. Raises ProfileError."""
        if name in self._agents or name in self._plugins:
            return self._agents.get(name) or self._plugins[name]
        assert self.base is not None, "the engine has asked for the profiles"
        return self.base.resolve(name, cwd)


ALL: Final = "all"
MOST_NAMES: Final = 2_000


class HostSkills(Struct, frozen=True):
    """A part of the handshake; files stay readable, and the user's `/name` works as before."""

    offer: Callable[[Sequence[str] | None], None]
    """Takes the names that models are offered; None: every skill."""

    def begin(self, request: JsonObject) -> None:
        """Take the names of the handshake; without the field nothing changes. Raises ControlRequestError."""
        names = request.get("skills")
        if names is None:
            return
        if names == ALL:
            self.offer(None)
            return
        if not isinstance(names, list) or len(names) > MOST_NAMES:
            raise ControlRequestError(f'skills must be a list of at most {MOST_NAMES:,} names, or "{ALL}".')
        texts = [name for name in names if isinstance(name, str)]
        if len(texts) < len(names):
            raise ControlRequestError("Each name in skills must be a text.")
        self.offer(texts)

    def init_fields(self) -> JsonObject:
        """Add no field: the list of skills is beside the commands."""
        return {}

    async def ready(self) -> None:
        """Return at once."""


MOST_PLUGINS: Final = 50


class HostPlugins(Struct, frozen=True):
    """A part of the handshake: the plugins of one connection."""

    found: tuple[Plugin, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    """Folders that are no plugins and files that cannot be used, each with a clause that says why."""
    agents: tuple[Profile, ...] = ()
    """Agents of the plugins, read once."""

    def begin(self, request: JsonObject) -> None:
        """Take nothing: plugins are on the command line."""

    async def ready(self) -> None:
        """Return at once."""

    def init_fields(self) -> JsonObject:
        """The plugins in the init frame, and errors where there are any."""
        plugins: list[JsonValue] = [{"name": one.name, "path": str(one.folder)} for one in self.found]
        errors: list[JsonValue] = [
            {"plugin": Path(folder).name, "type": "generic-error", "message": why, "path": folder}
            for folder, why in self.errors
        ]
        fields: JsonObject = {"plugins": plugins}
        if errors:
            fields["plugin_errors"] = errors
        return fields

    @property
    def notices(self) -> list[str]:
        """Lines for stderr."""
        return [f"--plugin-dir {clean_line(path)[:200]} is not used: {clean_line(why)}." for path, why in self.errors]


def find_plugins(folders: Sequence[str], cwd: Path, without_servers: Sequence[str] = ()) -> HostPlugins:
    """The plugins of these folders; a name that is there already counts once."""
    found, errors = dict[str, Plugin](), list[tuple[str, str]]()
    for folder, has_servers in (*((one, True) for one in folders), *((one, False) for one in without_servers)):
        try:
            plugin = _free(replace(find_plugin(folder, cwd), has_servers=has_servers), found)
        except ValueError as error:
            errors.append((folder, str(error)))
        else:
            found[plugin.name] = plugin
    if not found:
        return HostPlugins(errors=tuple(errors))

    read = [read_agents(plugin) for plugin in found.values()]
    errors += (error for one in read for error in one.errors)
    return HostPlugins(tuple(found.values()), tuple(errors), tuple(profile for one in read for profile in one.profiles))


def _free(plugin: Plugin, found: Mapping[str, Plugin]) -> Plugin:
    """The plugin, where there is room for it and its name. Raises ValueError."""
    if plugin.name in found:
        raise ValueError(f"there is a plugin {plugin.name} already")
    if len(found) >= MOST_PLUGINS:
        raise ValueError(f"a run has at most {MOST_PLUGINS} plugins")
    return plugin


FOLDER: Final = "agents"
MOST_IN_PLUGIN: Final = 200
"""Agents of one plugin."""


class PluginAgents(Struct, frozen=True):
    """The agents of one plugin, and its files that cannot be used, each with a clause that says why."""

    profiles: tuple[Profile, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()


def read_agents(plugin: Plugin) -> PluginAgents:
    """Read the agents of a plugin. They narrow the user's permissions, and never widen them."""
    profiles, errors = dict[str, Profile](), list[tuple[str, str]]()
    for path in _list_files(plugin.folder / FOLDER):
        if len(profiles) + len(errors) >= MOST_IN_PLUGIN:
            errors.append((str(path), f"a plugin has at most {MOST_IN_PLUGIN} agents"))
            break
        try:
            profile = _read_profile(path, plugin)
        except AgentError as error:
            errors.append((str(path), str(error)))
            continue
        if profiles.setdefault(profile.name, profile) is not profile:
            errors.append((str(path), f"there is an agent {profile.name} already"))
    return PluginAgents(tuple(profiles.values()), tuple(errors))


def _list_files(folder: Path) -> Iterator[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        paths = []
    return (path for path in paths if path.name.endswith(SUFFIX) and not path.name.startswith("."))


def _read_profile(path: Path, plugin: Plugin) -> Profile:
    """The profile of one file. Raises AgentError."""
    content = read_regular(path, MOST_BYTES + 1)
    if content is None:
        raise AgentError("it cannot be read")
    if len(content) <= MOST_BYTES:
        content = fill_root(content, plugin)
    return agent_in(content, path, f"{plugin.name}:").profile


class HostSchema(Struct, frozen=True):
    """A part of the handshake; the flag wins."""

    structured: StructuredAnswer

    def begin(self, request: JsonObject) -> None:
        """Take the schema of the handshake. Raises ControlRequestError."""
        schema = request.get("jsonSchema")
        if schema is None or self.structured.is_wanted:
            return
        try:
            usable = usable_schema(schema)
        except SchemaError as error:
            raise ControlRequestError(f"jsonSchema: {error}") from error
        if len(encode(schema)) > LARGEST:
            raise ControlRequestError(f"jsonSchema is longer than {LARGEST:,} characters.")
        self.structured.use(usable)

    def init_fields(self) -> JsonObject:
        """Add no field: the tool is among the tools."""
        return {}

    async def ready(self) -> None:
        """Return at once."""


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
    """Implements `engine.ports.extensions.HookRunner`, and is a part of the handshake."""

    def __init__(self, host: HostChannel) -> None:
        self._host = host
        self._matchers: Mapping[HookEvent, Sequence[HostMatcher]] = {}

    def begin(self, request: JsonObject) -> None:
        """Take the callbacks of the handshake. Raises ControlRequestError."""
        hooks = request.get("hooks")
        if hooks is None:
            return
        if not isinstance(hooks, dict):
            raise ControlRequestError("hooks must be an object of events.")
        found = {event: list(_matchers(event, entries)) for event, entries in hooks.items()}
        if sum(len(one.callbacks) for entries in found.values() for one in entries) > MOST_CALLBACKS:
            raise ControlRequestError(f"There may be at most {MOST_CALLBACKS} callbacks.")
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
            answered = await self._ask_callback(request, matcher, callback)
            reply = replace(answered, id=hook_id, seconds=monotonic() - begun)
            return reply
        finally:
            observer.hook_ended(hook_id, reply)

    async def _ask_callback(self, request: HookRequest, matcher: HostMatcher, callback: str) -> HookReply:
        call_id = request.fields.get("tool_use_id")
        asked: JsonObject = {"subtype": "hook_callback", "callback_id": callback, "input": hook_object(request)}
        asked["tool_use_id"] = call_id if isinstance(call_id, str) else None
        seconds = matcher.seconds if request.seconds is None else min(matcher.seconds, request.seconds)
        reply = HookReply(
            request.event,
            callback,
            "a callback of the host",
            HookOutcome.SUCCESS,
            goes_on=matcher.on_failure == "continue",
        )
        try:
            answer = await self._host.ask(asked, seconds)
        except HostError as error:
            return _fail_reply(reply, matcher, error)
        if answer.get("async") is True:
            return reply
        verdict = verdict_of_object(request.event, answer)
        return replace(reply, verdict=verdict, outcome=HookOutcome.BLOCKED if verdict.blocks else HookOutcome.SUCCESS)


def _fail_reply(reply: HookReply, matcher: HostMatcher, error: HostError) -> HookReply:
    """The reply of a callback that gave no answer: it blocks only where the host wants that; a silent one asks."""
    reason = str(error).rstrip(".")
    if matcher.on_failure == "block":
        return replace(reply, outcome=HookOutcome.BLOCKED, verdict=HookVerdict(blocks=True, reason=reason))
    outcome = HookOutcome.TIMED_OUT if error.is_silence else HookOutcome.FAILED
    return replace(reply, outcome=outcome, verdict=HookVerdict(warning=reason))


def _matchers(event: str, entries: JsonValue) -> Iterator[HostMatcher]:
    if not isinstance(entries, list):
        raise ControlRequestError(f"The hooks of {event[:60]} must be a list.")
    for entry in entries:
        ids = entry.get("hookCallbackIds") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(ids, list):
            raise ControlRequestError(f"Each hook of {event[:60]} needs hookCallbackIds, a list.")
        given, seconds, failure = entry.get("matcher"), entry.get("timeout"), entry.get("onFailure")
        matcher = given if isinstance(given, str) else ""
        if why := why_no_matcher(matcher):
            raise ControlRequestError(f"A hook of {event[:60]} cannot be used: {why}.")
        yield HostMatcher(
            matcher,
            tuple(one for one in ids if isinstance(one, str)),
            min(float(seconds), LONGEST_WAIT) if isinstance(seconds, int | float) and seconds > 0 else ANSWER_WITHIN,
            failure if failure in {"block", "continue"} else "block" if isinstance(failure, str) else "",
        )
