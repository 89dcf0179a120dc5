"""SECURITY S10: a file that a rule denies to read is closed to every tool and command, by each of its names."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.permissions import unreadable
from engine.permissions.denials import Denials, denials_in_force, verdict_on
from engine.permissions.place import PathPlace, project_of, top_of
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits, decide
from engine.permissions.rules import KeptRule, Rule, RuledCall
from engine.permissions.unreadable import DeniedFiles, Unreadable
from engine.records import PermissionMode
from tests.support.cli import phoenix_in, with_claude
from tests.support.git_repositories import empty_repository
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.sandboxes import sandbox
from tests.support.tools import context_in
from tests.support.waiting import poll
from tools.contract import Access, Enforcement, Sandbox, SandboxMode, ToolClass, ToolRequest, ToolSpec
from tools.process.plan import BUBBLEWRAP
from tools.process.zygote import wire
from tools.process.zygote.mount_places import INSTEAD_READ_ONLY, WRITABLE, MountPlace
from tools.search import ListFiles, Search
from tools.shell_output import SandboxView, refusals

KEY = "xylophone"
BASH = ToolSpec("bash", "", {}, ToolClass.RUN)
READ = ToolSpec("read_file", "", {}, ToolClass.READ)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "secrets" / "deep").mkdir(parents=True)
    (work / "src").mkdir()
    for name in ("secret.txt", "secrets/one", "secrets/deep/two", "src/server.pem", "server.pem", "open.txt"):
        (work / name).write_text(f"{KEY} {name}\n")
    return work


def denials(*texts: str) -> Denials:
    return denials_in_force([KeptRule(f"deny {text}", source="rules.toml") for text in texts], Path("/"))


def look(folder: Path, *texts: str) -> Unreadable:
    return DeniedFiles().look(denials(*texts), folder)


def names(found: Unreadable, folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in found.paths]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("Read(secret.txt)", ["secret.txt"]),
        ("Read(./secret.txt)", ["secret.txt"]),
        ("Read(./secrets/**)", ["secrets"]),
        ("Read(**/*.pem)", ["server.pem", "src/server.pem"]),
        ("Read(*.pem)", ["server.pem", "src/server.pem"]),
        ("read_file(secret.txt)", ["secret.txt"]),
        ("search(src/*)", ["src"]),
        ("Read(missing)", []),
        ("Edit(secret.txt)", []),
        ("bash(cat secret.txt)", []),
    ],
)
def test_the_files_of_a_rule_are_found(folder: Path, rule: str, expected: list[str]) -> None:
    found = look(folder, rule)
    assert (names(found, folder), found.is_whole) == (expected, True)


def test_an_absolute_pattern_and_one_below_home_are_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    for rule in (f"Read(/{folder}/secret.txt)", "Read(~/secret.txt)"):
        assert names(look(folder, rule), folder) == ["secret.txt"]


def test_links_and_hard_links_to_a_file_are_closed_with_it(folder: Path) -> None:
    (folder / "link").symlink_to("secret.txt")
    os.link(folder / "secret.txt", folder / "src" / "other")
    found = look(folder, "Read(secret.txt)")
    assert (names(found, folder), found.is_whole) == (["secret.txt", "src/other"], True)
    assert found.rule_about([folder / "src" / "other"]) == "read_file(secret.txt)"
    assert names(look(folder, "Read(link)"), folder) == ["secret.txt", "src/other"]


def test_a_name_outside_that_cannot_be_found_is_said(folder: Path) -> None:
    os.link(folder / "secret.txt", folder.parent / "elsewhere")
    assert not look(folder, "Read(secret.txt)").is_whole


def test_a_look_that_is_cut_short_is_not_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable, "MOST_ENTRIES", 3)
    assert not look(folder, "Read(**/*.pem)").is_whole


def test_a_file_that_appears_later_is_found(folder: Path) -> None:
    files, rules = DeniedFiles(), denials("Read(**/*.pem)")
    old = (1_000_000_000, 1_000_000_000)
    for place in (folder, folder / "src", folder / "secrets", folder / "secrets" / "deep"):
        os.utime(place, old)
    assert len(files.look(rules, folder).paths) == 2
    assert len(files.look(rules, folder).paths) == 2
    (folder / "src" / "new.pem").write_text("x")
    assert len(files.look(rules, folder).paths) == 3


# Decisions.


def judged(
    spec: ToolSpec, request: ToolRequest, folder: Path, box: SandboxMode, enforced: Enforcement, *rules: str
) -> Decision:
    found = look(folder, "Read(secret.txt)")
    limits = Limits(PermissionMode.AUTO, box, enforcement=enforced, unreadable=found)
    allowed = {Rule("bash", rule): Access.CONFINED for rule in rules}
    return decide(spec, request, limits, PathPlace(folder), allowed)


def test_a_command_in_the_sandbox_runs_and_has_the_file_hidden(folder: Path) -> None:
    request = ToolRequest("make", command="make")
    decision = judged(BASH, request, folder, SandboxMode.WORKSPACE, Enforcement.FULL)
    assert isinstance(decision, Allow)
    assert decision.sandbox.unreadable == (folder / "secret.txt",)


@pytest.mark.parametrize(
    ("box", "enforced"),
    [
        (SandboxMode.WORKSPACE, Enforcement.FILES),
        (SandboxMode.WORKSPACE, Enforcement.NONE),
        (SandboxMode.OFF, Enforcement.NONE),
    ],
)
@pytest.mark.parametrize("command", ["make", "cat open.txt", "cat secret.txt"])
def test_where_it_cannot_be_hidden_a_command_asks_and_says_so(
    folder: Path, box: SandboxMode, enforced: Enforcement, command: str
) -> None:
    decision = judged(BASH, ToolRequest(command, command=command), folder, box, enforced, "cat*")
    assert isinstance(decision, Ask)
    assert decision.reason.endswith("a rule denies reading files here, which cannot be hidden from this command")


def test_a_rule_for_a_program_that_prints_no_file_stays_a_yes(folder: Path) -> None:
    request = ToolRequest("git push", command="git push", access=Access.OUTSIDE, known_access=Access.OUTSIDE)
    assert isinstance(judged(BASH, request, folder, SandboxMode.WORKSPACE, Enforcement.FULL, "git push*"), Allow)


def test_another_name_of_the_file_is_refused_to_reading_tools(folder: Path) -> None:
    os.link(folder / "secret.txt", folder / "other")
    request = ToolRequest("other", (folder / "other",))
    decision = judged(READ, request, folder, SandboxMode.OFF, Enforcement.NONE)
    assert isinstance(decision, Deny)
    assert decision.text.startswith("read_file was not run: the rule read_file(secret.txt) in the rules denies it.")


# Tools and commands.


async def test_walks_pass_it_over(folder: Path) -> None:
    hidden = look(folder, "Read(secret.txt)", "Read(secrets/**)").paths
    context = replace(context_in(folder), kept_out=hidden)
    async with sandbox(folder) as box:
        found = await Search(box.processes.runner).run({"pattern": KEY}, context)
    listed = await ListFiles().run({}, context)
    for text in (found.text, listed.text):
        assert "open.txt" in text
        assert "secret.txt" not in text
        assert "secrets/one" not in text


WAYS = """
cat secret.txt; cat src/other; cat link; cp secret.txt out && cat out; mv secret.txt x && cat x
ln secret.txt y && cat y; mv src src2 && cat src2/other; cat < secret.txt; grep -r xylo . --include=secret.txt
cat secrets/one; tar c secrets | cat; python3 -c 'print(open("secret.txt").read())'; rm -f secret.txt
cat secret.txt; mv secrets s; cat s/one s/deep/two
"""


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP])
async def test_no_way_of_a_command_leads_to_it(folder: Path, mechanism: str) -> None:
    (folder / "link").symlink_to("secret.txt")
    os.link(folder / "secret.txt", folder / "src" / "other")
    hidden = look(folder, "Read(secret.txt)", "Read(secrets/**)").paths
    limits = Sandbox(SandboxMode.WORKSPACE, network=False, unreadable=hidden)
    async with sandbox(folder, mechanism) as box:
        output = await box.sh(WAYS, limits=limits)
        assert KEY not in output
        assert await box.sh("cat open.txt", limits=limits) == f"{KEY} open.txt\n"
    assert (folder / "secret.txt").read_text() == f"{KEY} secret.txt\n"
    assert (folder / "secrets" / "one").read_text() == f"{KEY} secrets/one\n"


GIT = "git -c user.name=u -c user.email=u@example.com"


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP])
async def test_no_commit_of_a_command_empties_or_removes_it(folder: Path, mechanism: str) -> None:
    empty_repository(folder)
    run = partial(subprocess.run, cwd=folder, check=True, shell=True, capture_output=True, text=True)
    run(f"git add -A; {GIT} commit -qm one; echo more >> open.txt")
    hidden = look(folder, "Read(server.pem)", "Read(secrets/**)").paths
    limits = Sandbox(SandboxMode.WORKSPACE, network=False, unreadable=hidden)
    async with sandbox(folder, mechanism) as box:
        for words in ("commit -qam two", "add -A", "stash -q"):
            said = await box.sh(f"{GIT} {words} || echo FAILED", limits=limits)
            assert "server.pem" in said or "secrets/" in said
            assert "FAILED" in said
        said = await box.sh(f"{GIT} status --short; {GIT} add open.txt && {GIT} commit -qm three", limits=limits)
        assert set(said.splitlines()) >= {" M open.txt", " M server.pem"}
    assert run("git status --short").stdout == ""
    assert run("git show --format= --name-only HEAD").stdout == "open.txt\n"


async def test_what_only_looks_at_files_passes_closed_ones_over(folder: Path) -> None:
    hidden = look(folder, "Read(server.pem)", "Read(secrets/**)").paths
    limits = Sandbox(SandboxMode.WORKSPACE, network=False, unreadable=hidden)
    script = "set -e; tar cf /tmp/x . 2>/dev/null; cp -r . /tmp/copy; find . -size +1M; ls -R >/dev/null; echo $?"
    async with sandbox(folder) as box:
        assert await box.sh(script, limits=limits) == "0\n"
        assert "server.pem: Permission denied" in await box.sh("cat server.pem", limits=limits)
        assert await box.sh("test -f server.pem || echo none; chmod 600 server.pem", limits=limits) == (
            "none\nchmod: changing permissions of 'server.pem': Read-only file system\n"
        )


WAITS = """
touch {name}.runs; for i in $(seq 3000); do test -e {name}.replaced && break; sleep 0.01; done
for i in $(seq 200); do {probe} && break; sleep 0.01; done; {read} 2>&1; echo over
"""


@pytest.mark.parametrize("way", ["renamed over", "written anew", "moved away", "a link"])
async def test_a_closed_file_that_is_replaced_meanwhile_is_closed_again(folder: Path, way: str) -> None:
    hidden = look(folder, "Read(secret.txt)").paths
    limits = Sandbox(SandboxMode.WORKSPACE, network=False, unreadable=hidden)
    secret = folder / "secret.txt"
    script = WAITS.format(name="one", probe="test -S secret.txt", read="cat secret.txt")
    async with sandbox(folder) as box:
        running = asyncio.create_task(box.sh(script, limits=limits))
        await poll((folder / "one.runs").exists)
        if way == "renamed over":
            (folder / "new").write_text(f"{KEY} new\n")
            (folder / "new").replace(secret)
        elif way == "a link":
            (folder.parent / "elsewhere").write_text(f"{KEY} new\n")
            (folder / "new").symlink_to("../elsewhere")
            (folder / "new").replace(secret)
        else:
            secret.rename(folder / "secret.txt~") if way == "moved away" else secret.unlink()
            secret.write_text(f"{KEY} new\n")
        (folder / "one.replaced").touch()
        assert await running == "cat: secret.txt: Permission denied\nover\n"
    assert secret.read_text() == f"{KEY} new\n"


async def test_a_closed_folder_that_is_replaced_meanwhile_is_closed_again(folder: Path) -> None:
    hidden = look(folder, "Read(secrets/**)").paths
    limits = Sandbox(SandboxMode.WORKSPACE, network=False, unreadable=hidden)
    script = WAITS.format(name="one", probe="! test -e secrets/one", read="cat secrets/one")
    async with sandbox(folder) as box:
        running = asyncio.create_task(box.sh(script, limits=limits))
        await poll((folder / "one.runs").exists)
        shutil.rmtree(folder / "secrets")
        (folder / "secrets").mkdir()
        (folder / "secrets" / "one").write_text(KEY)
        (folder / "one.replaced").touch()
        assert await running == "cat: secrets/one: Permission denied\nover\n"


def test_the_words_of_git_about_a_closed_file_point_to_the_sandbox(folder: Path) -> None:
    closed = folder / "server.pem"
    places = (MountPlace(WRITABLE, str(folder)), MountPlace(INSTEAD_READ_ONLY, str(closed)))
    view = SandboxView(folder, Sandbox(SandboxMode.WORKSPACE), places, (closed,))
    for text in ("server.pem: can only add regular files, symbolic links or x", "server.pem: unsupported file type"):
        assert refusals(f"error: {text}\nfatal: updating files failed", view) == f"{closed} is hidden"


async def test_a_question_of_another_rule_leaves_the_file_hidden_from_the_command(folder: Path) -> None:
    limits = Limits(
        PermissionMode.AUTO,
        SandboxMode.WORKSPACE,
        enforcement=Enforcement.FULL,
        unreadable=look(folder, "Read(secret.txt)"),
    )
    asks = denials_in_force([KeptRule("ask bash(make*)", source="rules.toml")], Path("/"))
    decision = decide(BASH, ToolRequest("make", command="make"), limits, PathPlace(folder), {}, denials=asks)
    assert isinstance(decision, Ask)
    assert decision.grant.sandbox.unreadable == (folder / "secret.txt",)


# Texts that reach a model without a tool.


def linked_project(cwd: Path) -> None:
    """A project whose files of every kind lead to one that its settings deny to read."""
    (cwd / ".claude").mkdir()
    (cwd / "notes.md").write_text(f"---\ndescription: {KEY} of notes\n---\n{KEY} in the text\n")
    (cwd / ".claude/settings.json").write_text(json.dumps({"permissions": {"deny": ["Read(notes.md)"]}}))
    (cwd / "AGENTS.md").write_text("Open words. @notes.md and @other.md\n")
    for name in (
        "other.md",
        "CLAUDE.local.md",
        ".claude/rules/one.md",
        ".claude/commands/call.md",
        ".claude/agents/agent.md",
        ".claude/skills/skill/SKILL.md",
        "inner/AGENTS.md",
    ):
        path = cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(cwd / "notes.md", path.parent))
    (cwd / "inner/open.txt").write_text("open")


@pytest.mark.parametrize("prompt", ["/call", "/skill", "See @notes.md, @other.md and @inner/open.txt"])
async def test_no_file_of_a_project_brings_it_to_a_model(tmp_path: Path, prompt: str) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        linked_project(phoenix.cwd)
        await phoenix.run("-p", prompt, "--trust")
        sent = json.dumps([request.body.decode() for request in server.requests])
    assert "Open words." in sent
    assert KEY not in sent
    if "@" in prompt:
        assert sent.count("is closed to read_file by a rule that denies") == 1, "both names are one file"


async def test_an_image_that_is_closed_is_not_attached_and_the_user_is_told(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    linked_project(phoenix.cwd)
    ran = await phoenix.run("-p", "Look", "-i", "other.md")
    assert (ran.code, ran.out) == (2, "")
    assert "other.md is closed by a rule that denies reading it; /permissions rules shows the rules." in ran.err


@pytest.mark.parametrize("pattern", ["secret.txt", "{project}/secret.txt"])
def test_a_rule_of_a_project_holds_in_its_worktrees(tmp_path: Path, pattern: str) -> None:
    project, tree = tmp_path / "main[1]", tmp_path / "tree"
    empty_repository(project)
    git = ("git", "-C", str(project), "-c", "user.name=u", "-c", "user.email=u@example.com")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    (tree / "secret.txt").write_text(KEY)
    escaped = str(project).replace("[", "[[]")
    kept = [KeptRule(f"deny read_file({pattern.format(project=escaped)})", project=str(project))]
    found = denials_in_force(kept, project_of(tree), top=top_of(tree))
    assert names(DeniedFiles().look(found, tree), tree) == ["secret.txt"]
    call = RuledCall("read_file", ToolClass.READ, ToolRequest("x", (tree / "secret.txt",)), tree)
    assert verdict_on(found, call) is not None
