"""Profiles: front matter sets, the body instructs, and a mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.ports import Profile, ProfileError
from engine.ports.profiles import ASK_TOOL, KNOWN_TOOLS, PLAN_TOOLS, READ_TOOLS, STANDARD_TOOLS, WEB_TOOLS
from engine.records import PermissionMode
from phoenix_tui.config.choices import SANDBOXES
from phoenix_tui.config.profile_files import LONGEST_RUN, MOST_TURNS, parse_profile, profile_text
from tests.support.plain_runner import PlainRunner
from tools.clean import clean_line
from tools.files.writing import ReadLedger
from tools.registry import ToolDependencies, build_tools

PATH = Path("/home/u/profiles/review.md")
REVIEW = """---
name: review
# how a reviewer works
description: "reads: never # writes"
model: anthropic/claude-haiku-5-5   # the quick one
tools: [read_file, "search", 'bash']
permission_mode: plan
sandbox: read-only
max_turns: 12
timeout: 90.5
locked: true
---

Look for mistakes first.
"""


def read(text: str, *, project: bool = False) -> Profile:
    return parse_profile(text, PATH, project=project)


def test_front_matter_and_body_make_a_profile() -> None:
    assert read(REVIEW) == Profile(
        name="review",
        description="reads: never # writes",
        model="anthropic/claude-haiku-5-5",
        tools=("read_file", "search", "bash"),
        permission_mode=PermissionMode.PLAN,
        max_turns=12,
        timeout=90.5,
        locked=True,
        prompt="Look for mistakes first.",
        source=str(PATH),
        sandbox="read-only",
    )


def test_a_file_without_front_matter_is_all_prompt_and_leaves_the_rest_to_the_parent() -> None:
    assert read("Be brief.\n") == Profile(name="review", prompt="Be brief.", source=str(PATH))


@pytest.mark.parametrize(
    "written", ["read_file, search", "[read_file, search]", "\n  - read_file\n  - 'search'", "\n- read_file\n- search"]
)
def test_tools_are_a_list_in_any_of_the_usual_ways(written: str) -> None:
    assert read(f"---\ntools: {written}\nmax_turns: 3\n---\n").tools == ("read_file", "search")


def test_a_folded_description_becomes_one_line() -> None:
    profile = read("---\ndescription: >\n  reads\n  and: writes\nlocked: no\n---\n")
    assert (profile.description, profile.locked) == ("reads and: writes", False)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_files_of_any_system_are_read(newline: str) -> None:
    text = "\ufeff" + REVIEW.replace("\n", newline)
    assert read(text) == read(REVIEW)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "---\nmodell: x\n---\n",
            "review.md:2: 'modell: x' is not a valid key. Valid keys are name, description, model, tools",
        ),
        ("---\nmodel: x\n", "review.md:1: the front matter that starts here has no closing '---'"),
        ("---\n\npermission_mode: maybe\n---\n", "review.md:3: 'permission_mode' must be one of ask, accept-edits"),
        ("---\nsandbox: yes\n---\n", "review.md:2: 'sandbox' must be one of off, workspace, read-only, not 'yes'"),
        (
            "---\ntools: read_file, Grab\n---\n",
            "review.md:2: there is no tool 'Grab'. The tools are read_file, list_files",
        ),
        ("---\ntools: []\n---\n", "review.md:2: 'tools' must list tools among read_file,"),
        ("---\ntools:\n---\n", "or be left out for all."),
        (
            "---\nmax_turns: -1\n---\n",
            "'max_turns' must be a whole number up to 1000, 0 for the default limit, not '-1'",
        ),
        ("---\nmax_turns: 99999999\n---\n", "'max_turns' must be a whole number up to 1000"),
        ("---\ntimeout: nan\n---\n", "'timeout' must be seconds up to 86400, 0 for the default limit, not 'nan'"),
        ("---\nlocked: maybe\n---\n", "review.md:2: 'locked' must be true or false, not 'maybe'"),
        (f"---\ndescription: {'x' * 1001}\n---\n", "review.md:2: 'description' is longer than 1000 characters."),
        ("---\nmodel: a/b\nmodel: c/d\n---\n", "review.md:3: this line gives 'model' a second time."),
        ("---\nname: other\n---\n", "review.md:2: 'name' must be 'review', the name of the file, or be left out"),
        ("---\n  - read_file\n---\n", "review.md:2: this line is indented, but belongs to no key above."),
        ("---\nmodel\x1b[2J: x\n---\n", "review.md:2: this line is not 'key: value'."),
        (f"---\n{'x' * 500}\n---\n", "review.md:2: this line is not 'key: value'."),
    ],
)
def test_a_mistake_names_file_line_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(ProfileError) as error:
        read(text)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{PATH}:{error.value.line}: ")


KEYS = ("name", "description", "model", "tools", "permission_mode", "sandbox", "max_turns", "timeout", "locked", "odd")
LINES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["---", "  - search", "- x", "  more", "", "# x", "tools:", "description: >"]),
    st.builds("{}: {}".format, st.sampled_from(KEYS), st.text(max_size=20)),
    st.builds(
        "{}: {}".format, st.sampled_from(KEYS), st.sampled_from(["[a, b]", '"x', "'it''s'", "bash", "plan", "7"])
    ),
)


@given(st.one_of(st.text(), st.lists(LINES).map(lambda lines: "\n".join(["---", *lines, "---", "body"]))))
def test_any_text_is_a_profile_or_one_line_that_names_file_and_line(text: str) -> None:
    try:
        profile = read(text)
    except ProfileError as error:
        sentence = str(error)
        assert sentence.startswith(f"{PATH}:{error.line}: ")
        assert error.line >= 1
        assert len(sentence.splitlines()) == 1
        assert clean_line(sentence) == sentence
    else:
        assert set(profile.tools) <= set(KNOWN_TOOLS)
        assert "\n" not in profile.description
        assert 0 <= profile.max_turns <= MOST_TURNS
        assert 0 <= profile.timeout <= LONGEST_RUN


ONE_LINE = st.text(max_size=60).map(lambda text: " ".join(text.encode("utf-8", "replace").decode().split()))
PROFILES = st.builds(
    Profile,
    name=st.just("review"),
    description=ONE_LINE,
    model=ONE_LINE,
    tools=st.lists(st.sampled_from(KNOWN_TOOLS), unique=True).map(tuple),
    permission_mode=st.none() | st.sampled_from(PermissionMode),
    max_turns=st.integers(0, MOST_TURNS),
    timeout=st.integers(0, 1_000).map(float),
    locked=st.booleans(),
    prompt=ONE_LINE,
    source=st.just(str(PATH)),
    sandbox=st.sampled_from(("", *SANDBOXES)),
)


@given(PROFILES)
def test_what_is_written_is_read_again_as_it_was(profile: Profile) -> None:
    assert read(profile_text(profile, comment="two\nlines")) == profile


def test_built_in_profiles_are_good_ones_and_can_be_copied() -> None:
    assert [one.name for one in BUILT_IN_PROFILES] == ["general", "explore", "code", "review", "research"]
    for one in BUILT_IN_PROFILES:
        assert one.description, one.name
        assert one.prompt, one.name
        copy = parse_profile(profile_text(one), Path(f"/x/{one.name}.md"))
        assert (copy.tools, copy.prompt, copy.permission_mode) == (one.tools, one.prompt, one.permission_mode)


def test_explore_and_review_cannot_edit() -> None:
    by_name = {one.name: one for one in BUILT_IN_PROFILES}
    assert [tool for tool in STANDARD_TOOLS if by_name["explore"].allows(tool)] == list(READ_TOOLS)
    assert not by_name["review"].allows("patch")
    assert not by_name["research"].allows("write_file")
    assert by_name["review"].allows("bash")
    assert by_name["review"].allows("job_output"), "jobs come with bash"
    assert all(by_name["general"].allows(tool) for tool in KNOWN_TOOLS)


def test_every_tool_there_is_can_be_named_in_a_profile(tmp_path: Path) -> None:
    runner = PlainRunner()
    tools = build_tools(ToolDependencies(runner, runner, runner, ReadLedger(), tmp_path))  # type: ignore[arg-type]  # only names are asked for
    known = {*STANDARD_TOOLS, *PLAN_TOOLS, ASK_TOOL, *WEB_TOOLS}
    assert {name for name in tools if not name.startswith(("spawn_", "submit_"))} == known


@pytest.mark.parametrize(
    ("project", "mode", "parent", "granted"),
    [
        (False, None, "ask", "ask"),
        (False, "auto", "ask", "auto"),
        (True, "auto", "ask", "ask"),
        (True, "plan", "auto", "plan"),
        (True, "ask", "auto", "ask"),
        (True, "plan", "deny", "plan"),
        (True, None, "accept-edits", "accept-edits"),
    ],
)
def test_a_projects_profile_never_has_more_freedom_than_its_parent(
    project: bool, mode: str | None, parent: str, granted: str
) -> None:
    profile = Profile("x", permission_mode=PermissionMode(mode) if mode else None, project=project)
    assert profile.mode_under(PermissionMode(parent)).value == granted


def test_a_locked_profile_protects_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    locked = Profile("x", locked=True, source=str(tmp_path / "x.md"))
    assert locked.protects(tmp_path / "link" / "x.md")
    assert not locked.protects(tmp_path / "y.md")
    assert not Profile("x", source=str(tmp_path / "x.md")).protects(tmp_path / "x.md")
