"""The permission policy: mode, sandbox, rules and paths give one decision per call (docs/security.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.texts import OUTSIDE
from engine.permissions.command_rules import BLANKS, has_reader, is_reading, reads_freely, split_parts
from engine.permissions.denials import NO_DENIALS, REFUSED, Denials, Doubt, Refusal, verdict_on
from engine.permissions.hosts import NET, NO_HOST_RULES, HostRules, hosts_in, is_covered
from engine.permissions.place import PathPlace
from engine.permissions.rules import (
    Rule,
    RuledCall,
    is_command,
    is_server_tool,
    matches,
    rule_access,
    rule_needs_any_host,
)
from engine.permissions.unreadable import EVERYTHING_READABLE, Unreadable
from engine.ports.profiles import FREEDOM
from engine.records import PermissionMode
from tools.clean import reveal_name
from tools.contract import (
    ACCESS_RANK,
    AS_IN_A_SHELL,
    LEAVING,
    UNCONFINED,
    Access,
    Enforcement,
    ProgramFact,
    Sandbox,
    SandboxMode,
    ToolClass,
    ToolRequest,
    ToolSpec,
)


class Allow(Struct, frozen=True):
    """Run it under these limits; `outside` where it may leave the working directory."""

    outside: bool = False
    sandbox: Sandbox = UNCONFINED


class Ask(Struct, frozen=True):
    """Ask the user first, for this reason; a yes runs it as `grant` says."""

    reason: str
    grant: Allow = Allow(outside=True)
    lasting: bool = True
    """False where no rule can take the place of the question."""
    hosts: tuple[str, ...] = ()
    """Hosts that it asks about: the rule that is offered is about them, and not about the command."""
    by_hook: bool = False
    """True where a hook asks, and the policy itself does not."""


class Deny(Struct, frozen=True):
    """Do not run it; the model reads `text`."""

    text: str


Decision: TypeAlias = Allow | Ask | Deny


class Limits(Struct, frozen=True):
    """Mode and sandbox of a conversation, and the part of the sandbox that this system enforces."""

    mode: PermissionMode
    sandbox: SandboxMode = SandboxMode.OFF
    required: bool = False
    """The sandbox was chosen: where it cannot be enforced every mode asks."""
    network: bool = True
    """The setting `sandbox_network`."""
    enforcement: Enforcement = Enforcement.NONE
    unreadable: Unreadable = EVERYTHING_READABLE
    """Files that rules deny to read, as they are now."""
    hosts: tuple[str, ...] | None = None
    """The setting `network`; None: mode auto and rules for commands have the whole network."""

    @property
    def unattended(self) -> bool:
        """True for modes that never ask."""
        return self.mode in {PermissionMode.PLAN, PermissionMode.DENY}

    @property
    def confines(self) -> bool:
        """True where a command can run in the sandbox."""
        return self.sandbox is not SandboxMode.OFF and self.enforcement is not Enforcement.NONE

    @property
    def confines_network(self) -> bool:
        """True where a command can run in the sandbox without network."""
        return self.confines and self.enforcement is Enforcement.FULL

    @property
    def by_host(self) -> bool:
        """True where a command can be limited to single hosts."""
        return self.confines_network and self.network


WORDS: Final = {
    ToolClass.READ: "reading needs",
    ToolClass.EDIT: "edits need",
    ToolClass.RUN: "commands need",
    ToolClass.SPAWN: "sub-agents need",
    ToolClass.NET: "web access needs",
}
"""Name of each class of tools in the reason of a question."""
SERVERS_NEED: Final = "tools of servers need"
OWN_PATH: Final = "{path} belongs to Phoenix itself; no tool can open its settings, keys and records."
READ_FILE: Final = "read_file"
PLAN_ASKS: Final = "in plan mode, nothing is changed before you approve"
READ_ONLY: Final = (
    "The sandbox of this conversation is read-only, so {name} cannot change files. /sandbox changes that."
)
NO_NETWORK: Final = "sandbox_network is off, so it would run outside the sandbox"
NO_WEB: Final = "sandbox_network is off"
NO_SANDBOX: Final = "this system cannot enforce the sandbox, so it would run without one"
NEW_URL: Final = "neither you nor an earlier page named this address, so it could carry data out"
EVERYTHING: Final = "*"
"""Pattern of a rule for every call of a tool."""
PLANTED: Final = "{name} is {path}, which an agent can change"
PASSED_OVER: Final = "not {path}"
RUNS: Final = "it runs {paths}"
MOST_SHOWN: Final = 4
"""Programs of one command that a question names."""
_BUILTIN_NAMES: Final = "cd echo export printf pwd test [ true false exit set unset wait read source . :"
BUILTINS: Final = frozenset(_BUILTIN_NAMES.split())
"""Commands that a shell does itself, whatever lies in `PATH`."""
NOT_HIDDEN: Final = "a rule denies reading files here, which cannot be hidden from this command"
NOT_FOUND: Final = "a rule denies reading files here, and not all of them could be found to hide them"
REACHES: Final = "{reason}: it would reach {hosts}"
UNKNOWN_HOSTS: Final = "{reason}; its hosts are not known, so each one asks as it is reached"
WHOLE_NETWORK: Final = "{reason}; it would have the whole network, any host of it"
WEAK: Final = "the sandbox of this system is weak: it leaves the network, sockets, hooks and git's settings open"


def decide(
    spec: ToolSpec,
    request: ToolRequest,
    limits: Limits,
    place: PathPlace,
    rules: Mapping[Rule, Access],
    *,
    typed: bool = False,
    denials: Denials = NO_DENIALS,
) -> Decision:
    """Decide about a call.

    A rule counts for calls up to the access it maps to, and for what its own words are known to need. `typed` is a
    command line of the user's own, which counts as a yes, also against rules that deny. Where one of these may be
    about the call, a call that would run asks, and no rule takes the place of that question.
    """
    verdict = None
    if not typed:
        verdict = verdict_on(denials, RuledCall(spec.name, spec.tool_class, request, place.working_dir))
    if isinstance(verdict, Refusal):
        return Deny(verdict.text)
    if spec.tool_class is ToolClass.READ and (rule := limits.unreadable.rule_about(request.paths)):
        return Deny(REFUSED.format(tool=spec.name, rule=rule, source="the rules"))
    given = _grant_unattended(spec, request, limits, place, rules)
    hosts = host_rules(limits, rules, denials)
    decision = given or _decide(spec, request, limits, place, rules, typed=typed, hosts=hosts)
    if limits.unreadable.is_any and not typed and is_command(spec.name, spec.tool_class):
        decision = _without_reading(spec, request, limits, place, rules, decision)
    elif spec.tool_class is ToolClass.READ and limits.unreadable.paths:
        decision = _hiding(decision, limits)
    if isinstance(verdict, Doubt) and isinstance(decision, Allow):
        return Ask(verdict.reason, decision, lasting=False)
    if request.asks_always and not typed and isinstance(decision, Allow | Ask):
        grant = decision if isinstance(decision, Allow) else decision.grant
        return Ask(request.asks_always, grant, lasting=False)
    return decision


def _grant_unattended(
    spec: ToolSpec, request: ToolRequest, limits: Limits, place: PathPlace, rules: Mapping[Rule, Access]
) -> Allow | None:
    """Permission in mode deny by a rule of the command line that needs no question in mode ask; else None."""
    given = {rule: access for rule, access in rules.items() if rule.given}
    if limits.mode is not PermissionMode.DENY or not given:
        return None
    if not any(matches(rule, spec, request, place.working_dir) for rule in given):
        return None
    decision = _decide(spec, request, replace(limits, mode=PermissionMode.ASK), place, given, typed=False)
    return decision if isinstance(decision, Allow) else None


def _decide(
    spec: ToolSpec,
    request: ToolRequest,
    limits: Limits,
    place: PathPlace,
    rules: Mapping[Rule, Access],
    *,
    typed: bool,
    hosts: HostRules = NO_HOST_RULES,
) -> Decision:
    """Decide about a call that no rule denies."""
    if own := place.own_path(spec, request):
        return Deny(OWN_PATH.format(path=own))
    if request.questions:
        return _refuse(spec, limits) if limits.mode is PermissionMode.DENY else Ask("", lasting=False)
    if request.plan and limits.mode is PermissionMode.PLAN:
        return Ask(PLAN_ASKS, lasting=False)
    if is_server_tool(spec.name) and spec.tool_class is ToolClass.RUN:
        return _server_tool(spec, request, limits, place, rules)
    if spec.tool_class is ToolClass.NET:
        return _web(spec, request, limits, place, rules)
    if spec.tool_class is ToolClass.RUN:
        return _command(spec, request, limits, place, rules, typed=typed, hosts=hosts)
    if spec.tool_class is ToolClass.SPAWN:
        return _spawn(spec, request, limits, place, rules)
    return _file(spec, request, limits, place, rules)


def host_rules(limits: Limits, rules: Iterable[Rule], denials: Denials) -> HostRules:
    """The patterns of hosts in force: those of the setting and of rules."""
    allowed = [*(limits.hosts or ()), *(one for rule in rules if rule.tool == NET for one in hosts_in(rule.pattern))]
    denied = [one for held in denials.rules if held.rule.tool == NET for one in hosts_in(held.rule.pattern)]
    return HostRules(tuple(dict.fromkeys(allowed)), tuple(dict.fromkeys(denied)))


def may_read(
    spec: ToolSpec, request: ToolRequest, limits: Limits, place: PathPlace, denials: Denials = NO_DENIALS
) -> bool:
    """True where a call that only read these paths would run without a question."""
    return all(
        isinstance(decide(reading, request, limits, place, {}, denials=denials), Allow)
        for reading in (replace(spec, tool_class=ToolClass.READ), ToolSpec(READ_FILE, "", {}, ToolClass.READ))
    )


def _refuse(spec: ToolSpec, limits: Limits) -> Deny:
    return Deny(f"Permission mode '{limits.mode.value}' does not allow {spec.name}.")


# Commands.


def _command(
    spec: ToolSpec,
    request: ToolRequest,
    limits: Limits,
    place: PathPlace,
    rules: Mapping[Rule, Access],
    *,
    typed: bool,
    hosts: HostRules,
) -> Decision:
    if limits.unattended:
        return _refuse(spec, limits)
    need = _need(request, limits)
    if typed and need is Access.OUTSIDE and _find_planted(request, limits):
        need = Access.NETWORK if limits.network else Access.CONFINED  # that need is known of another program
    grant = _grant(need, limits)
    auto = limits.mode is PermissionMode.AUTO
    if typed:
        return grant
    planted = _find_planted(request, limits)
    ruled = None if planted and grant.outside else _find_access(spec, request, place, rules)
    if ruled is not None and _covers(ruled, need, limits):
        if auto or ruled is not Access.CONFINED:
            whole = request.any_host and _covers_any_host(spec, request, place, rules)
            return _free(request, limits, hosts, need, grant, given=whole)
        return _confine(limits, hosts, grant) if limits.confines_network else grant
    if not limits.confines and _is_free(request, place):
        return Allow(outside=True)
    return _decide_without_rule(spec, request, limits, need, grant, hosts)


def _decide_without_rule(
    spec: ToolSpec, request: ToolRequest, limits: Limits, need: Access, grant: Allow, hosts: HostRules
) -> Decision:
    """Decide about a command that no rule covers."""
    auto, programs = limits.mode is PermissionMode.AUTO, programs_named(request, limits)
    if limits.sandbox is SandboxMode.OFF:
        return grant if auto else Ask(f"{_mode_reason(spec, limits)}{programs}", grant)
    if not limits.confines:
        return grant if auto and not limits.required else Ask(f"{_explain_lack(spec, limits)}{programs}", grant)
    if need is Access.OUTSIDE:
        return Ask(_outside_reason(request, limits), grant)
    if not limits.confines_network:
        return Ask(WEAK if auto else f"{_mode_reason(spec, limits)}; {WEAK}", grant)
    if auto:
        return _free(request, limits, hosts, need, grant, given=False)
    return _network(request, limits, hosts, grant) if need is Access.NETWORK else _confine(limits, hosts, grant)


def _free(
    request: ToolRequest, limits: Limits, hosts: HostRules, need: Access, grant: Allow, *, given: bool
) -> Decision:
    """Decide about a command that mode auto, or a rule, allows: a list of hosts limits it as well. The whole network is
    `given` by rules whose own words need it.
    """
    is_listed = bool(hosts.denied) or (limits.hosts is not None and not hosts.allows_any)
    if need is Access.OUTSIDE or not limits.by_host or not is_listed:
        return grant
    if request.any_host:
        return grant if given and not hosts.denied else Ask(_whole_network(request), grant)
    # The hosts of the request are guesses and words of the model: the user was not asked about them.
    return Allow(sandbox=Sandbox(limits.sandbox, network=False, hosts=()))


def _confine(limits: Limits, hosts: HostRules, grant: Allow) -> Allow:
    """Limits of a command that needs nothing more: it reaches the hosts that are allowed to every command."""
    if limits.by_host and hosts.allows_any:
        return grant
    reaches = limits.by_host and bool(hosts.allowed)
    return Allow(sandbox=Sandbox(limits.sandbox, network=False, hosts=() if reaches else None))


def _network(request: ToolRequest, limits: Limits, hosts: HostRules, grant: Allow) -> Decision:
    """Decide about a command that needs the network, in a mode that asks: hosts that are allowed already need none."""
    if not limits.by_host:
        return Ask(f"{_need_words(request)}{_of(request)}", grant)
    if hosts.allows_any:
        return grant
    if request.any_host:
        return Ask(_whole_network(request), grant)
    missing = tuple(one for one in request.hosts if not is_covered(one, hosts))
    if request.hosts and not missing:
        return _by_host(request, limits)
    if not missing:
        return Ask(f"{UNKNOWN_HOSTS.format(reason=_need_words(request))}{_of(request)}", _by_host(request, limits))
    reason = REACHES.format(reason=_need_words(request), hosts=", ".join(missing))
    return Ask(f"{reason}{_of(request)}", _by_host(request, limits), hosts=missing)


def _by_host(request: ToolRequest, limits: Limits) -> Allow:
    """Limits of a command that reaches the hosts of its request, those that are allowed, and asks about others."""
    return Allow(sandbox=Sandbox(limits.sandbox, network=False, hosts=request.hosts))


def _need_words(request: ToolRequest) -> str:
    return request.access_reason or "needs the network"


def _whole_network(request: ToolRequest) -> str:
    return f"{WHOLE_NETWORK.format(reason=_need_words(request))}{_of(request)}"


def _need(request: ToolRequest, limits: Limits) -> Access:
    """Access that a command needs beyond its sandbox; the network is outside when no sandbox gives it."""
    if request.access is Access.NETWORK and not limits.network and limits.sandbox is not SandboxMode.OFF:
        return Access.OUTSIDE
    return request.access


def leaves_sandbox(request: ToolRequest, limits: Limits) -> bool:
    """True for a command that would run without a sandbox, once it is allowed."""
    return bool(request.command) and (not limits.confines or _need(request, limits) is Access.OUTSIDE)


def _find_planted(request: ToolRequest, limits: Limits) -> tuple[ProgramFact, ...]:
    """Programs that a command names without their folder and that lie where an agent can write.

    In the user's own order of `PATH` those that shadow another one: a program of a virtual environment that exists
    nowhere else is the one that was meant.
    """
    found = (fact for fact in request.programs if fact.is_agents and "/" not in fact.name)
    return tuple(fact for fact in found if limits.confines or fact.other)


def programs_named(request: ToolRequest, limits: Limits) -> str:
    """The files that a command would run outside of a sandbox, as clauses of a question; empty where none is known."""
    planted = _find_planted(request, limits)
    clauses = [PLANTED.format(name=fact.name, path=reveal_name(fact.path)) for fact in planted]
    if limits.confines:
        named = [fact for fact in request.programs if not fact.is_agents and fact.name not in BUILTINS]
        shown = [reveal_name(fact.path) for fact in named if "/" not in fact.name][:MOST_SHOWN]
        shown += [PASSED_OVER.format(path=reveal_name(fact.other)) for fact in named if fact.other][:MOST_SHOWN]
        clauses += [RUNS.format(paths=", ".join(shown))] if shown else []
    return "".join(f"; {clause}" for clause in clauses)


def _grant(need: Access, limits: Limits) -> Allow:
    """Limits of a command that a person, a rule or the mode allows."""
    if not limits.confines:
        return Allow(outside=True, sandbox=AS_IN_A_SHELL)
    if need is Access.OUTSIDE:
        return Allow(outside=True, sandbox=LEAVING)
    # Where the network cannot be turned off, requesting it would refuse the command just allowed.
    return Allow(sandbox=Sandbox(limits.sandbox, network=limits.network or not limits.confines_network))


def _without_reading(
    spec: ToolSpec,
    request: ToolRequest,
    limits: Limits,
    place: PathPlace,
    rules: Mapping[Rule, Access],
    decision: Decision,
) -> Decision:
    """A decision about a command where rules deny reading files: hidden in the sandbox, else a question says so.

    A rule of the user for a program that does not print files, such as `git push*`, is a yes without the sandbox too.
    """
    hidden, is_whole = _hiding(decision, limits), limits.unreadable.is_whole
    if isinstance(hidden, Deny):
        return hidden
    grant = hidden.grant if isinstance(hidden, Ask) else hidden
    is_hidden = limits.confines_network and grant.sandbox.mode is not SandboxMode.OFF and is_whole
    if isinstance(hidden, Ask):
        return hidden if is_hidden else replace(hidden, reason=f"{hidden.reason}; {_not_hidden(limits)}")
    if is_hidden or (_find_access(spec, request, place, rules) is not None and not has_reader(request.command)):
        return hidden
    return Ask(_not_hidden(limits), hidden, lasting=False)


def _not_hidden(limits: Limits) -> str:
    return NOT_HIDDEN if limits.unreadable.is_whole else NOT_FOUND


def _hiding(decision: Decision, limits: Limits) -> Decision:
    """A decision whose grant carries the files that rules deny to read."""
    match decision:
        case Ask(grant=grant):
            hidden = replace(grant.sandbox, unreadable=limits.unreadable.paths)
            return replace(decision, grant=replace(grant, sandbox=hidden))
        case Allow(sandbox=sandbox):
            return replace(decision, sandbox=replace(sandbox, unreadable=limits.unreadable.paths))
        case _:
            return decision


def _covers(ruled: Access, need: Access, limits: Limits) -> bool:
    """True where what rules allow is as much as a command needs; without a sandbox all have the same."""
    is_open = not limits.confines or (need is Access.NETWORK and not limits.confines_network)
    return is_open or ACCESS_RANK[need] <= ACCESS_RANK[ruled]


def _is_free(request: ToolRequest, place: PathPlace) -> bool:
    """True for a command that only reads here: the model's own words ask for no more, all its parts are known, and its
    programs lie where no agent can write.
    """
    is_known = not any(fact.is_agents for fact in request.programs)
    return request.access is Access.CONFINED and is_known and reads_freely(request.command, place.working_dir)


def _find_access(spec: ToolSpec, request: ToolRequest, place: PathPlace, rules: Mapping[Rule, Access]) -> Access | None:
    """The widest access that rules allow a command; None where they do not cover it.

    A rule is a yes for a command, and for the access that its own words are known to need or that was shown with it;
    never for what is guessed of the words behind, or declared by a model. Of a list or pipe each part needs a rule, or
    only reads.
    """
    command = (request.command or request.summary).strip(BLANKS)
    whole = _part_ruled(spec, command, place.working_dir, rules)
    if whole is not None:
        return whole
    parts = split_parts(command, place.working_dir)
    reading = [one for one in parts if is_reading(one, place.working_dir)]
    found = [_part_ruled(spec, one.part.text, one.folder, rules) for one in parts if one not in reading]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    if not found:
        named = any(_part_ruled(spec, one.part.text, one.folder, rules) is not None for one in reading)
        return Access.CONFINED if named else None
    return min(known, key=ACCESS_RANK.__getitem__)


def _covers_any_host(spec: ToolSpec, request: ToolRequest, place: PathPlace, rules: Mapping[Rule, Access]) -> bool:
    """True where rules that cover a command need the whole network by their own words, as their questions said: a word
    that follows a star, and hosts that a model names, widen nothing.
    """
    given = {rule: access for rule, access in rules.items() if rule_needs_any_host(rule)}
    return _find_access(spec, request, place, given) is not None


def _part_ruled(spec: ToolSpec, command: str, folder: Path, rules: Mapping[Rule, Access]) -> Access | None:
    request = ToolRequest(command, command=command)
    found = [
        max(shown, rule_access(rule, command), key=ACCESS_RANK.__getitem__)
        for rule, shown in rules.items()
        if matches(rule, spec, request, folder)
    ]
    return max(found, key=ACCESS_RANK.__getitem__, default=None)


def _outside_reason(request: ToolRequest, limits: Limits) -> str:
    reason = request.access_reason or "needs more than the sandbox allows"
    programs = programs_named(request, limits)
    if not limits.confines or _only_asked_to_leave(request):
        return f"{reason}{programs}{_of(request)}"
    consequence = "it would leave the sandbox" if request.access is Access.OUTSIDE else NO_NETWORK
    return f"{reason}; {consequence}{programs}{_of(request)}"


def _only_asked_to_leave(request: ToolRequest) -> bool:
    """True when the reason is the model's request to leave the sandbox, which says the consequence already."""
    return request.access is Access.OUTSIDE and ACCESS_RANK[request.known_access] < ACCESS_RANK[Access.OUTSIDE]


def _of(request: ToolRequest) -> str:
    """The model's own words, marked as such."""
    return f". The agent says: “{request.why}”" if request.why else ""


def _explain_lack(spec: ToolSpec, limits: Limits) -> str:
    return f"{_mode_reason(spec, limits)}; {NO_SANDBOX}" if limits.mode is not PermissionMode.AUTO else NO_SANDBOX


def _mode_reason(spec: ToolSpec, limits: Limits) -> str:
    return f"in {limits.mode.value} mode, {WORDS[spec.tool_class]} approval"


# Servers and the web.


def _server_tool(
    spec: ToolSpec, request: ToolRequest, limits: Limits, place: PathPlace, rules: Mapping[Rule, Access]
) -> Decision:
    """Decide about the tool of an MCP server, which runs in that server's process, never in the conversation's sandbox.

    `request.access` is OUTSIDE where the server itself has no sandbox: then mode auto asks as it does for commands.
    """
    if limits.unattended:
        return _refuse(spec, limits)
    if any(matches(rule, spec, request, place.working_dir) for rule in rules):
        return Allow(outside=True)
    leaves = limits.sandbox is not SandboxMode.OFF and request.access is Access.OUTSIDE
    if limits.mode is PermissionMode.AUTO and not leaves:
        return Allow(outside=True)
    return Ask(_outside_reason(request, limits) if leaves else f"in {limits.mode.value} mode, {SERVERS_NEED} approval")


def _web(
    spec: ToolSpec, request: ToolRequest, limits: Limits, place: PathPlace, rules: Mapping[Rule, Access]
) -> Decision:
    """Decide about a web tool: it reads, so plan mode asks, and it can carry data out, so every mode but auto does."""
    if limits.mode is PermissionMode.DENY:
        return _refuse(spec, limits)
    known = [rule for rule in rules if rule.pattern != EVERYTHING or not request.is_new_url]
    if any(matches(rule, spec, request, place.working_dir) for rule in known):
        return Allow(outside=True)
    if request.is_new_url:
        return Ask(NEW_URL)
    cut_off = limits.sandbox is not SandboxMode.OFF and not limits.network
    if limits.mode is PermissionMode.AUTO and not cut_off:
        return Allow(outside=True)
    return Ask(NO_WEB if cut_off else _mode_reason(spec, limits))


# Sub-agents and files.


def _spawn(
    spec: ToolSpec, request: ToolRequest, limits: Limits, place: PathPlace, rules: Mapping[Rule, Access]
) -> Decision:
    if limits.unattended:
        return _refuse(spec, limits)
    if limits.mode is PermissionMode.AUTO or request.reads_only:
        return Allow(outside=True)
    if request.mode and FREEDOM[PermissionMode(request.mode)] > FREEDOM[limits.mode]:
        reason = f"their profile uses mode {request.mode}, this conversation mode {limits.mode.value}"
        return Ask(reason, lasting=False)
    if any(matches(rule, spec, request, place.working_dir) for rule in rules):
        return Allow(outside=True)
    return Ask(_mode_reason(spec, limits))


def _file(
    spec: ToolSpec, request: ToolRequest, limits: Limits, place: PathPlace, rules: Mapping[Rule, Access]
) -> Decision:
    edits = spec.tool_class is ToolClass.EDIT
    outside = place.outside(spec, request)
    guarded = place.find_guard(spec, request)
    auto = limits.mode is PermissionMode.AUTO
    free = not edits or limits.mode in {PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO}
    if limits.unattended:
        return Allow() if free and not outside and not guarded else _refuse(spec, limits)
    if edits and limits.sandbox is SandboxMode.READ_ONLY:
        return Deny(READ_ONLY.format(name=spec.name))
    if guarded:
        return Ask(guarded, Allow(outside=bool(outside)), lasting=False)
    if not outside and (free or request.changes_nothing):
        return Allow()
    grant = Allow(outside=bool(outside))
    if auto and (limits.sandbox is SandboxMode.OFF or (limits.confines and place.reads_system(spec, request))):
        return grant
    if any(matches(rule, spec, request, place.working_dir) for rule in rules):
        return grant
    return Ask(f"{OUTSIDE}: {outside[0]}" if outside else _mode_reason(spec, limits), grant)
