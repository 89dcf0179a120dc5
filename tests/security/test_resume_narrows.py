"""SECURITY V6: the sandbox is stored with the conversation, and the narrower of two limits wins."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engine import ConversationOptions
from engine.ports import ConversationChanges
from engine.ports.profiles import Profile
from engine.records import NewConversation, PermissionMode
from phoenix_tui.cli.arguments import run_arguments
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.cli.setup import Setup, prepare
from phoenix_tui.config.load import Layer, merge, with_profile
from phoenix_tui.config.settings import SettingValue
from phoenix_tui.wiring.installation import open_the_store
from phoenix_tui.wiring.resume import find_resumed
from phoenix_tui.wiring.start_facts import choose_sandbox
from tests.support.engine import engine_harness
from tools.contract import SandboxMode


@pytest.mark.parametrize("sandbox", list(SandboxMode))
async def test_the_sandbox_is_stored_and_a_copy_has_it(tmp_path: Path, sandbox: SandboxMode) -> None:
    async with engine_harness(tmp_path) as harness:
        options = ConversationOptions(harness.cwd, "scripted/main", sandbox=sandbox, sandbox_required=True)
        conversation = await harness.engine.create(options)
        copy = await harness.engine.fork(conversation.id)
        await harness.engine.forget(conversation.id)
        again = await harness.engine.open(conversation.id)
    for record in (again.record, copy.record):
        assert (record.sandbox, record.sandbox_required) == (sandbox, True)


async def test_a_changed_sandbox_counts_as_chosen(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.conversation()
        assert not conversation.record.sandbox_required
        await conversation.change(ConversationChanges(sandbox=SandboxMode.READ_ONLY))
        stored = await harness.store.conversation(conversation.id)
    assert stored is not None
    for record in (conversation.record, stored):
        assert (record.sandbox, record.sandbox_required) == (SandboxMode.READ_ONLY, True)


BOXES: Final = ("off", "workspace", "read-only")
MAYBE_BOX = st.sampled_from((None, *BOXES))
MAYBE_MODE = st.sampled_from((None, "auto", "accept-edits", "ask", "plan"))
MODE_RANK: Final = {"auto": 4, "accept-edits": 3, "ask": 2, "plan": 1, "deny": 1}


def layer(name: str, box: str | None, mode: str | None) -> Layer:
    values: dict[str, SettingValue] = {}
    if box is not None:
        values["sandbox"] = box
    if mode is not None:
        values["permission_mode"] = mode
    return Layer(values, dict.fromkeys(values, name))


class Given(NamedTuple):
    """Values of sandbox and mode in each place."""

    config: tuple[str | None, str | None]
    project: tuple[str | None, str | None]
    profile: tuple[str | None, str | None]
    environment: tuple[str | None, str | None]
    flag: tuple[str | None, str | None]


GIVEN = st.builds(Given, *([st.tuples(MAYBE_BOX, MAYBE_MODE)] * 5))


@given(GIVEN, st.booleans())
def test_project_and_profile_narrow_and_only_the_users_own_word_widens(given: Given, of_project: bool) -> None:
    box, mode = given.profile
    profile = Profile(
        "mine",
        source="mine.md",
        sandbox=box or "",
        permission_mode=PermissionMode(mode) if mode else None,
        project=of_project,
    )
    layers = with_profile(layer("config", *given.config), layer("project", *given.project), profile)
    settings = merge(*layers, layer("environment", *given.environment), layer("flag", *given.flag))
    own = [one for one in (given.flag[0], given.environment[0]) if one is not None]
    limits = [given.config[0] or "workspace", *(one for one in (given.project[0], given.profile[0]) if one)]
    assert settings.text("sandbox") == (own[0] if own else max(limits, key=BOXES.index))
    own = [one for one in (given.flag[1], given.environment[1]) if one is not None]
    allowed = min(
        (given.config[1] or "ask", *(one for one in (given.project[1], given.profile[1]) if one)),
        key=MODE_RANK.__getitem__,
    )
    found = settings.text("permission_mode") or "ask"
    assert MODE_RANK[found] == MODE_RANK[own[0] if own else allowed]
    sandbox, required = choose_sandbox(settings, Path("/work/project"))
    somebody = any(one[0] is not None for one in (given.config, given.environment, given.flag))
    assert required or not somebody or sandbox is SandboxMode.WORKSPACE
    assert required is (settings.sources["sandbox"] != "default")


@pytest.mark.parametrize("flag", [None, *BOXES])
def test_a_resume_keeps_what_is_stored_and_says_what_a_flag_widens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str | None
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    monkeypatch.chdir(work)
    words = [*(("--sandbox", flag) if flag else ())]
    for setting, stored in itertools.product((None, "off", "read-only"), BOXES):
        (home / "config.toml").write_text(f'sandbox = "{setting}"\n' if setting else "")
        name = f"{setting}-{stored}"
        arguments = run_arguments(run_parser().parse_args(["-r", name, *words]))
        setup = prepare(arguments, {"HOME": str(tmp_path), "PHOENIX_HOME": str(home), "PATH": "/bin"})
        new = NewConversation(name, work, "demo/guide", sandbox=SandboxMode(stored), sandbox_required=True)
        asyncio.run(kept(setup, new))
        resumed, said = find_resumed(arguments, setup)
        assert resumed == name
        assert asyncio.run(kept(setup, None, name)).value == (flag or stored)
        wider = flag is not None and BOXES.index(flag) < BOXES.index(stored)
        assert said == (
            f"--sandbox {flag} allows more than this conversation's sandbox, which was {stored}." if wider else ""
        )


async def kept(setup: Setup, new: NewConversation | None, name: str = "") -> SandboxMode:
    """The sandbox in the database, of a conversation that is put there first where one is given."""
    store = await open_the_store(setup.paths)
    try:
        if new is not None:
            await store.create(new, 1.0)
            await store.release(new.id)
        record = await store.conversation(new.id if new is not None else name)
    finally:
        await store.close()
    assert record is not None
    return record.sandbox


@pytest.mark.parametrize("parent", list(SandboxMode))
@pytest.mark.parametrize("box", ["", *BOXES])
@pytest.mark.parametrize("project", [False, True])
def test_a_sub_agent_has_the_narrower_sandbox_of_parent_and_profile(
    parent: SandboxMode, box: str, project: bool
) -> None:
    under = Profile("mine", sandbox=box, project=project).sandbox_under(parent)
    assert BOXES.index(under.value) == max(BOXES.index(parent.value), BOXES.index(box or "off"))
