"""SECURITY V5 (file tools), V9, V10: one decision for every mode, sandbox, enforcement, door and kind of path.

The expected decision is computed from the small tables below, which repeat docs/security.md and share no code with
the policy.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Final

import pytest

from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide
from engine.permissions.rules import Rule
from engine.records import PermissionMode
from tools.contract import Access, Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec
from tools.files.location import resolve

MODES: Final = list(PermissionMode)
BOXES: Final = list(SandboxMode)
ENFORCED: Final = list(Enforcement)
UNATTENDED: Final = ("plan", "deny")


class World:
    """A home with keys, a project in it, and Phoenix's own folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.work = home / ".claude" / "worktrees" / "project"
        self.own = home / ".config" / "phoenix"
        for folder in (self.work / ".git", self.own, home / ".ssh", home / "elsewhere"):
            folder.mkdir(parents=True)
        for file in (self.work / "inside.py", home / "elsewhere" / "x", home / ".ssh" / "id", self.own / "rules.toml"):
            file.write_text("x")
        (self.work / "link").symlink_to(home / "elsewhere")
        (self.work / "keys").symlink_to(home / ".ssh")
        (self.work / "phoenix").symlink_to(self.own)
        self.paths = {
            "inside": "inside.py",
            "new inside": "a/b/new.py",
            "outside": str(home / "elsewhere" / "x"),
            "link out": "link/x",
            "protected": ".git/config",
            "protected deep": "sub/.vscode/tasks.json",
            "protected file": "docs/AGENTS.md",
            "protected spelled": "a/../.GIT/hooks/pre-commit",
            "shell file": str(home / ".bashrc"),
            "secret": "~/.ssh/id",
            "secret link": "keys/id",
            "own": str(self.own / "rules.toml"),
            "own link": "phoenix/credentials.toml",
            "own environment": f"/proc/{os.getpid()}/environ",
            "own by self": "/proc/self/environ",
        }

    def place(self) -> PathPlace:
        return PathPlace(self.work, (self.own / "outputs",), (self.own,), self.home)

    def request(self, kind: str) -> ToolRequest:
        return ToolRequest(kind, (resolve(self.paths[kind], self.work),))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return World(home)


KIND_OF: Final = {
    "inside": "inside", "new inside": "inside", "outside": "outside", "link out": "outside",
    "protected": "protected", "protected deep": "protected", "protected file": "protected",
    "protected spelled": "protected", "shell file": "protected outside", "secret": "secret",
    "secret link": "secret", "own": "own", "own link": "own", "own environment": "own", "own by self": "own",
}  # fmt: skip


def expected_for_file(door: str, kind: str, mode: str, box: str, ruled: bool) -> str:
    """The row of a file tool, by hand."""
    if kind == "own":
        return "deny"
    reads = door == "read"
    if mode in UNATTENDED:
        return "allow" if reads and kind in {"inside", "protected"} else "deny"
    if not reads and box == "read-only":
        return "deny"
    if kind == "secret" or (not reads and kind.startswith("protected")):
        return "ask"
    if kind in {"outside", "protected outside"}:
        return "allow" if ruled or (mode == "auto" and box == "off") else "ask"
    if reads or mode in {"accept-edits", "auto"} or ruled:
        return "allow"
    return "ask"


def word(decision: Decision) -> str:
    return {Allow: "allow", Ask: "ask", Deny: "deny"}[type(decision)]


@pytest.mark.parametrize("kind", KIND_OF)
def test_file_tools_follow_the_table(world: World, kind: str) -> None:
    request = world.request(kind)
    for door, mode, box, enforced, ruled in itertools.product(("read", "edit"), MODES, BOXES, ENFORCED, (False, True)):
        spec = ToolSpec("tool", "", {}, ToolClass(door))
        rules = {Rule("tool", "/*"): Access.OUTSIDE} if ruled else {}
        for required in (False, True):
            limits = Limits(mode, box, required, True, enforced)
            decision = decide(spec, request, limits, world.place(), rules)
            expected = expected_for_file(door, KIND_OF[kind], mode.value, box.value, ruled)
            assert word(decision) == expected, (door, kind, limits, ruled)
            if isinstance(decision, Allow | Ask):
                grant = decision if isinstance(decision, Allow) else decision.grant
                leaves = "outside" in KIND_OF[kind] or KIND_OF[kind] == "secret"
                assert grant.outside is leaves or door == "read"


def expected_for_command(
    need: str, mode: str, box: str, enforced: str, required: bool, network: bool, ruled: bool
) -> tuple[str, str, bool]:
    """Decision, sandbox it runs in once allowed, and its network; by hand from docs/security.md."""
    if mode in UNATTENDED:
        return "deny", "", False
    outside = need == "outside" or (need == "network" and not network and box != "off")
    boxed = box != "off" and enforced != "none" and not outside
    runs_in, online = (box if boxed else "off"), (network or enforced == "files" if boxed else True)
    # The rule was never shown with a need: it covers what has none, or what no sandbox could refuse.
    if ruled and (box == "off" or enforced == "none" or (not outside and (need == "confined" or enforced == "files"))):
        offline = mode != "auto" and boxed and enforced == "full"
        return "allow", runs_in, online and not offline
    if box == "off":
        return ("allow" if mode == "auto" else "ask"), "off", True
    if enforced == "none":
        return ("allow" if mode == "auto" and not required else "ask"), "off", True
    if outside:
        return "ask", "off", True
    if enforced == "files":
        return "ask", box, online
    if mode == "auto":
        return "allow", box, network
    return ("ask" if need == "network" else "allow"), box, False  # a yes for the network is one for hosts


@pytest.mark.parametrize("need", list(Access))
@pytest.mark.parametrize("enforced", ENFORCED)
def test_commands_follow_the_table(world: World, need: Access, enforced: Enforcement) -> None:
    spec = ToolSpec("bash", "", {}, ToolClass.RUN)
    request = ToolRequest("run it", command="run it", access=need, known_access=need, access_reason="needs it")
    for mode, box, required, network, ruled in itertools.product(
        MODES, BOXES, (False, True), (False, True), (False, True)
    ):
        rules = {Rule("bash", "run it"): Access.CONFINED} if ruled else {}
        decision = decide(spec, request, Limits(mode, box, required, network, enforced), world.place(), rules)
        expected = expected_for_command(need.value, mode.value, box.value, enforced.value, required, network, ruled)
        grant = decision if isinstance(decision, Allow) else decision.grant if isinstance(decision, Ask) else None
        found = (
            word(decision),
            grant.sandbox.mode.value if grant else "",
            grant.sandbox.network if grant else False,
        )
        assert found == expected, (need, mode, box, enforced, required, network, ruled)
        if grant is not None and grant.sandbox.mode is not SandboxMode.OFF:
            assert grant.sandbox.required


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
def test_a_rule_for_a_command_does_not_let_it_out_of_the_sandbox(world: World, mode: str) -> None:
    """The model may declare more than was ever shown for the rule."""
    spec = ToolSpec("bash", "", {}, ToolClass.RUN)
    limits = Limits(PermissionMode(mode), SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    request = ToolRequest("make test", command="make test", access=Access.OUTSIDE)
    rule = Rule("bash", "make test")
    assert isinstance(decide(spec, request, limits, world.place(), {rule: Access.CONFINED}), Ask)
    assert isinstance(decide(spec, request, limits, world.place(), {rule: Access.OUTSIDE}), Allow)


@pytest.mark.parametrize("need", list(Access))
def test_a_typed_line_runs_in_the_sandbox_unless_its_own_words_need_more(world: World, need: Access) -> None:
    spec = ToolSpec("bash", "", {}, ToolClass.RUN)
    limits = Limits(PermissionMode.ASK, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    request = ToolRequest("x", command="x", access=need, known_access=need)
    decision = decide(spec, request, limits, world.place(), {}, typed=True)
    assert isinstance(decision, Allow)
    boxed = SandboxMode.OFF if need is Access.OUTSIDE else SandboxMode.WORKSPACE
    assert (decision.sandbox.mode, decision.sandbox.network) == (boxed, True)


@pytest.mark.parametrize("mode", MODES)
def test_sub_agents_with_a_wider_mode_need_a_yes_that_names_it(world: World, mode: PermissionMode) -> None:
    spec = ToolSpec("spawn_agents", "", {}, ToolClass.SPAWN)
    decision = decide(
        spec, ToolRequest("x", mode="auto"), Limits(mode), world.place(), {Rule("spawn_agents", "*"): Access.OUTSIDE}
    )
    if mode.value in UNATTENDED:
        assert isinstance(decision, Deny)
    elif mode is PermissionMode.AUTO:
        assert isinstance(decision, Allow)
    else:
        assert isinstance(decision, Ask)
        assert "auto" in decision.reason
        assert not decision.lasting
