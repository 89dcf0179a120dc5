"""Hosts of commands: what their patterns mean, and what the policy decides by them (docs/decisions/network.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.permissions.denials import NO_DENIALS, Denials, DenyRule
from engine.permissions.hosts import HostRules, host_matches, hosts_effect, is_covered, why_no_hosts
from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Limits, decide
from engine.permissions.rules import Rule, RuledCall, effect, refusal
from engine.records import PermissionMode
from tools.contract import Access, Enforcement, Sandbox, SandboxMode, ToolClass, ToolRequest, ToolSpec

BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
HERE = Path("/nonexistent/work")
BOX = SandboxMode.WORKSPACE


def limits(mode: PermissionMode = PermissionMode.ASK, hosts: tuple[str, ...] | None = None, **other: bool) -> Limits:
    return Limits(mode, BOX, enforcement=Enforcement.FULL, hosts=hosts, network=other.get("network", True))


def request(*hosts: str, any_host: bool = False, access: Access = Access.NETWORK) -> ToolRequest:
    return ToolRequest(
        "fetch", command="fetch", access=access, access_reason="fetch needs the network", hosts=hosts, any_host=any_host
    )


def decided(wanted: ToolRequest, within: Limits, *rules: Rule, denied: tuple[str, ...] = ()) -> Decision:
    denials = Denials(tuple(DenyRule(Rule("net", host), "rules.toml") for host in denied)) if denied else NO_DENIALS
    return decide(
        BASH,
        wanted,
        within,
        PathPlace(HERE, (), (), Path("/nonexistent")),
        dict.fromkeys(rules, Access.CONFINED),
        denials=denials,
    )


def by_host(*hosts: str) -> Sandbox:
    return Sandbox(BOX, network=False, hosts=hosts)


WHOLE = Sandbox(BOX)


@pytest.mark.parametrize(
    ("pattern", "host", "port", "means"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "example.com", 80, True),
        ("Example.COM.", "example.com", 443, True),
        ("example.com", "example.com", 22, False),
        ("example.com", "a.example.com", 443, False),
        ("example.com", "badexample.com", 443, False),
        ("example.com:22", "example.com", 22, True),
        ("example.com:22", "example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com:8443", "a.example.com", 8443, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("[2001:db8::1]:443", "2001:db8::1", 443, True),
        ("8.8.8.8", "8.8.8.8", 443, True),
        ("*", "anything.example", 443, True),
        ("*", "anything.example", 22, False),
        ("*example.com", "badexample.com", 443, False),
        ("*.1.1.1", "8.1.1.1", 443, False),
    ],
)
def test_a_pattern_means_one_host_or_those_below_one(pattern: str, host: str, port: int, means: bool) -> None:
    assert host_matches(pattern, host, port) is means


@pytest.mark.parametrize(
    "pattern", ["*.com", "*.co.uk", "*.github.io", "*.*", "a b/c", "http://x.y", "x:0", "", "2130706433"]
)
def test_a_pattern_that_means_hosts_of_anybody_or_none_is_not_kept(pattern: str) -> None:
    assert why_no_hosts(pattern)


def test_one_rule_may_name_several_hosts_and_says_what_it_allows() -> None:
    assert why_no_hosts("pypi.org, *.example.com files.example:8443") == ""
    assert hosts_effect("pypi.org, *.example.com") == "pypi.org, every host below example.com"
    assert effect(Rule("net", "*"), ToolClass.NET) == "Lets every sandboxed command reach any host."


def test_a_rule_that_is_kept_names_every_host_of_the_command() -> None:
    call = RuledCall("bash", ToolClass.RUN, request("a.example", "b.example:8443"), HERE)
    assert refusal("net(a.example, b.example:8443)", call) == ""
    assert refusal("net(*)", call) == ""
    assert refusal("net(a.example)", call) == "This rule does not name b.example:8443, which the command would reach."
    assert refusal("net(*.com)", call) == "`*.com` means hosts of anybody; write * for any host, or name the host."


def test_a_question_names_the_hosts_and_its_yes_is_for_them() -> None:
    asked = decided(request("a.example", "b.example"), limits())
    assert asked == Ask(
        "fetch needs the network: it would reach a.example, b.example",
        Allow(sandbox=by_host("a.example", "b.example")),
        hosts=("a.example", "b.example"),
    )


def test_allowed_hosts_need_no_question_and_missing_ones_are_named_alone() -> None:
    rules = (Rule("net", "a.example"), Rule("net", "*.c.example"))
    assert decided(request("a.example", "x.c.example"), limits(), *rules) == Allow(
        sandbox=by_host("a.example", "x.c.example")
    )
    asked = decided(request("a.example", "b.example"), limits(hosts=("a.example",)))
    assert isinstance(asked, Ask)
    assert asked.hosts == ("b.example",)


def test_a_command_that_needs_nothing_reaches_what_is_allowed_to_all_and_has_no_proxy_without() -> None:
    confined = request(access=Access.CONFINED)
    assert decided(confined, limits()) == Allow(sandbox=Sandbox(BOX, network=False))
    assert decided(confined, limits(hosts=())) == Allow(sandbox=Sandbox(BOX, network=False))
    assert decided(confined, limits(hosts=("a.example",))) == Allow(sandbox=by_host())
    assert decided(confined, limits(), Rule("net", "*")) == Allow(sandbox=WHOLE)


def test_unknown_hosts_are_asked_about_as_they_are_reached() -> None:
    asked = decided(request(), limits())
    assert isinstance(asked, Ask)
    assert asked.reason == "fetch needs the network; its hosts are not known, so each one asks as it is reached"
    assert (asked.grant.sandbox, asked.hosts) == (by_host(), ())


def test_the_whole_network_is_a_question_of_its_own_words() -> None:
    asked = decided(request(any_host=True), limits())
    assert isinstance(asked, Ask)
    assert asked.reason == "fetch needs the network; it would have the whole network, any host of it"
    assert asked.grant.sandbox == WHOLE


AUTO = PermissionMode.AUTO


def test_auto_has_the_whole_network_until_a_list_or_a_denial_limits_it() -> None:
    assert decided(request("a.example"), limits(AUTO)) == Allow(sandbox=WHOLE)
    assert decided(request("a.example"), limits(AUTO, hosts=("*",))) == Allow(sandbox=WHOLE)
    assert decided(request("a.example"), limits(AUTO, hosts=())) == Allow(sandbox=by_host())
    assert decided(request("a.example"), limits(AUTO), denied=("evil.example",)) == Allow(sandbox=by_host())
    assert isinstance(decided(request(any_host=True), limits(AUTO, hosts=("a.example",))), Ask)
    assert isinstance(decided(request(any_host=True), limits(AUTO), denied=("evil.example",)), Ask)


def test_a_list_limits_a_rule_for_a_command_and_what_the_command_names_opens_nothing() -> None:
    rule = {Rule("bash", "fetch"): Access.NETWORK}
    place = PathPlace(HERE, (), (), Path("/nonexistent"))
    assert decide(BASH, request("a.example"), limits(), place, rule) == Allow(sandbox=WHOLE)
    assert decide(BASH, request("a.example"), limits(hosts=("b.example",)), place, rule) == Allow(sandbox=by_host())
    assert isinstance(decide(BASH, request(any_host=True), limits(hosts=("b.example",)), place, rule), Ask)


SCAN = "nc -z a.example 22"
FETCH = "curl -s https://a.example"


@pytest.mark.parametrize(
    ("pattern", "command", "is_given"),
    [
        (SCAN, SCAN, True),
        ("ping*", "ping a.example", True),
        ("curl -s http://localhost:3000", "curl -s http://localhost:3000", True),
        ("curl*", f"{FETCH} http://localhost/", False),
        (FETCH, FETCH, False),
        ("make deps", "make deps", False),
        ("ping*", f"ping a.example && {FETCH}", False),
    ],
)
def test_under_a_list_a_rule_gives_the_whole_network_only_by_its_own_words(
    pattern: str, command: str, is_given: bool
) -> None:
    rules = {Rule("bash", pattern): Access.NETWORK, Rule("bash", "curl*"): Access.NETWORK}
    wanted = replace(request(any_host=True), command=command)
    place = PathPlace(HERE, (), (), Path("/nonexistent"))
    decision = decide(BASH, wanted, limits(hosts=("b.example",)), place, rules)
    assert isinstance(decision, Allow) is is_given
    grant = decision if isinstance(decision, Allow) else decision.grant if isinstance(decision, Ask) else None
    assert grant == Allow(sandbox=WHOLE)


def test_an_address_may_be_a_denied_host_so_a_star_does_not_mean_it() -> None:
    rules = HostRules(("*", "8.8.4.4"), ("evil.example",))
    assert not rules.admits("8.8.8.8", 443)
    assert not rules.admits("2001:4860:4860::8888", 443)
    assert rules.admits("8.8.4.4", 443)
    assert HostRules(("*",)).admits("8.8.8.8", 443)


def test_without_the_network_in_the_sandbox_hosts_change_nothing() -> None:
    asked = decided(request("a.example"), limits(network=False), Rule("net", "a.example"))
    assert isinstance(asked, Ask)
    assert asked.grant.outside


def test_a_denial_comes_before_what_allows_and_means_every_port() -> None:
    rules = HostRules(("*", "*.example.com"), ("evil.example.com",))
    assert not rules.admits("evil.example.com", 443)
    assert rules.denies("evil.example.com", 8443)
    assert rules.admits("good.example.com", 443)
    assert not rules.allows_any
    assert not is_covered("evil.example.com", rules)
