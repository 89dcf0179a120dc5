"""Profiles: front matter sets, the body instructs, a mistake is named with its line, and files are found by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.ports import Profile, ProfileError
from engine.ports.profiles import ASK_TOOL, KNOWN_TOOLS, PLAN_TOOLS, READ_TOOLS, STANDARD_TOOLS, WEB_TOOLS
from engine.records import PermissionMode
from phoenix_tui.config.choices import SANDBOXES
from phoenix_tui.config.load import Layer, add_instructions, choose_profile, merge, profile_layer, with_profile
from phoenix_tui.config.profile_files import (
    FILE_LIMIT,
    LONGEST_RUN,
    MOST_TURNS,
    ProfileFiles,
    parse_profile,
    profile_text,
)
from phoenix_tui.config.settings import ConfigError, Settings
from phoenix_tui.config.trust import TrustFile, find_project
from tests.support.git_repositories import empty_repository
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


BUILT_IN = ["general", "explore", "code", "review", "research"]
MINE = "---\ndescription: mine\nmodel: a/b\n---\nBe kind.\n"


@pytest.fixture
def files(tmp_path: Path) -> ProfileFiles:
    home = tmp_path / "home"
    (home / "profiles").mkdir(parents=True)
    return ProfileFiles(home / "profiles", TrustFile(home / "trust.json"))


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".phoenix" / "profiles").mkdir(parents=True)
    return folder


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.write_text(text, "utf-8")
    return path


def put_in_project(cwd: Path, name: str, text: str) -> Path:
    return put(cwd / ".phoenix" / "profiles", name, text)


def trust(files: ProfileFiles, cwd: Path) -> None:
    files.trust.answer(find_project(cwd), trusted=True)


def names(files: ProfileFiles, cwd: Path) -> list[str]:
    return [one.name for one in files.names(cwd)]


def troubles(files: ProfileFiles, cwd: Path) -> list[str]:
    return [one.text for one in files.troubles(cwd)]


def test_built_in_profiles_come_first_and_the_users_after_them(files: ProfileFiles, cwd: Path) -> None:
    put(files.folder, "zebra", MINE)
    put(files.folder, "ant", MINE)
    put(files.folder, ".hidden", MINE)
    (files.folder / "notes.txt").write_text("no profile")
    assert names(files, cwd) == [*BUILT_IN, "ant", "zebra"]
    assert files.resolve("", cwd).name == "general"
    assert troubles(files, cwd) == []


def test_a_users_file_takes_the_place_of_a_built_in_profile(files: ProfileFiles, cwd: Path) -> None:
    path = put(files.folder, "review", MINE)
    assert names(files, cwd) == BUILT_IN
    assert files.resolve("review", cwd).source == str(path)
    path.unlink()
    assert files.resolve("review", cwd).source == "built-in"


def test_an_unknown_profile_is_refused_with_those_there_are(files: ProfileFiles, cwd: Path) -> None:
    put(files.folder, "mine", MINE)
    for name in ("nobody", "../mine", "/etc/passwd", "x\x1b[2J" * 50):
        with pytest.raises(ProfileError, match=r"Known are general, explore, code, review, research, mine\.$"):
            files.resolve(name, cwd)


def test_a_projects_profiles_count_once_its_files_are_trusted_as_they_are(files: ProfileFiles, cwd: Path) -> None:
    path = put_in_project(cwd, "deploy", MINE)
    assert names(files, cwd) == BUILT_IN
    assert troubles(files, cwd) == [
        f"{cwd} is not trusted: 1 of its profiles left out; --trust accepts the files as they are now."
    ]
    with pytest.raises(ProfileError, match=r"^The profile 'deploy' is defined by the project\. .* is not trusted"):
        files.resolve("deploy", cwd)
    trust(files, cwd)
    assert names(files, cwd) == [*BUILT_IN, "deploy"]
    with pytest.raises(ProfileError, match=r"There is no profile 'project/deploy' for .*review, research, deploy\.$"):
        files.resolve("project/deploy", cwd)
    assert files.resolve("deploy", cwd).project
    assert files.resolve("deploy", cwd).source == str(path)
    put_in_project(cwd, "deploy", f"{MINE} And do as I say.")
    assert names(files, cwd) == BUILT_IN
    assert troubles(files, cwd)[0].startswith(f"{cwd} changed since it was trusted: ")


def test_a_projects_profile_whose_name_is_taken_goes_by_its_own(files: ProfileFiles, cwd: Path) -> None:
    put(files.folder, "mine", MINE)
    put_in_project(cwd, "mine", "The project's.")
    put_in_project(cwd, "review", "The project's.")
    trust(files, cwd)
    assert names(files, cwd) == [*BUILT_IN, "mine", "project/mine", "project/review"]
    assert files.resolve("mine", cwd).prompt == "Be kind."
    assert files.resolve("review", cwd).source == "built-in"
    assert files.resolve("project/review", cwd).prompt == "The project's."


def test_the_folders_own_profile_stands_before_the_repositorys(files: ProfileFiles, cwd: Path) -> None:
    empty_repository(cwd)
    inner = cwd / "inner"
    (inner / ".phoenix" / "profiles").mkdir(parents=True)
    put_in_project(cwd, "deploy", "outer")
    put_in_project(inner, "deploy", "inner")
    trust(files, inner)
    assert files.resolve("deploy", inner).prompt == "inner"


def test_a_saved_file_counts_at_once_and_a_removed_one_no_more(files: ProfileFiles, cwd: Path) -> None:
    path = put(files.folder, "mine", MINE)
    assert files.resolve("mine", cwd).model == "a/b"
    put(files.folder, "mine", MINE.replace("a/b", "other/model"))
    assert files.resolve("mine", cwd).model == "other/model"
    path.unlink()
    assert names(files, cwd) == BUILT_IN


def test_a_file_that_did_not_change_is_not_parsed_again(files: ProfileFiles, cwd: Path) -> None:
    put(files.folder, "mine", MINE)
    assert files.resolve("mine", cwd) is files.resolve("mine", cwd)
    put_in_project(cwd, "deploy", MINE)
    trust(files, cwd)
    first = {one.name: one.prompt for one in files.names(cwd)}
    assert first == {one.name: one.prompt for one in files.names(cwd)}


def test_the_last_good_version_of_a_broken_file_stays_in_force(files: ProfileFiles, cwd: Path) -> None:
    path = put(files.folder, "mine", MINE)
    good = files.resolve("mine", cwd)
    put(files.folder, "mine", "---\ncolour: red\n---\n")
    assert files.resolve("mine", cwd) is good
    wrong = (
        f"{path}:2: 'colour: red' is not a valid key. Valid keys are name, description, model, tools, permission_mode"
    )
    assert troubles(files, cwd)[0].startswith(wrong)
    put(files.folder, "mine", MINE.replace("kind", "brief"))
    assert files.resolve("mine", cwd).prompt == "Be brief."
    assert troubles(files, cwd) == []


def test_a_file_that_never_was_right_is_refused_and_does_not_fall_back(files: ProfileFiles, cwd: Path) -> None:
    path = put(files.folder, "review", "---\nlocked: maybe\n---\n")
    assert "review" not in names(files, cwd)
    with pytest.raises(ProfileError) as error:
        files.resolve("review", cwd)
    assert str(error.value) == f"{path}:2: 'locked' must be true or false, not 'maybe'."
    assert (error.value.path, error.value.line) == (path, 2)


def test_a_removed_file_leaves_no_version_behind_it(files: ProfileFiles, cwd: Path) -> None:
    path = put(files.folder, "mine", MINE)
    files.resolve("mine", cwd)
    path.unlink()
    files.names(cwd)
    put(files.folder, "mine", "---\n")
    assert "mine" not in names(files, cwd)


def test_a_mistake_is_told_once_until_it_comes_back(files: ProfileFiles, cwd: Path) -> None:
    put(files.folder, "mine", "---\n")
    assert [one.line for one in files.untold(cwd)] == [1]
    assert files.untold(cwd) == ()
    put(files.folder, "mine", MINE)
    assert files.untold(cwd) == ()
    put(files.folder, "mine", "---\n")
    assert len(files.untold(cwd)) == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"fine\n\xff\xfe", "mine.md:2: this file is not UTF-8 text."),
        (b"x" * (FILE_LIMIT + 1), "mine.md:1: this file is larger than 256 KB."),
    ],
)
def test_what_is_no_text_or_too_long_is_refused(files: ProfileFiles, cwd: Path, content: bytes, sentence: str) -> None:
    (files.folder / "mine.md").write_bytes(content)
    assert troubles(files, cwd) == [f"{files.folder}/{sentence}"]


def test_a_pipe_a_folder_and_an_odd_name_hold_nobody_up(files: ProfileFiles, cwd: Path) -> None:
    os.mkfifo(files.folder / "pipe.md")
    (files.folder / "folder.md").mkdir()
    put(files.folder, "two words\nand more", MINE)
    assert names(files, cwd) == BUILT_IN
    assert [one.rpartition("/")[2] for one in troubles(files, cwd)] == [
        "folder.md:1: this file cannot be read.",
        "pipe.md:1: this file cannot be read.",
        "two words and more.md:1: rename this file: a profile's name is up to 40 letters, digits, '-' and '_'.",
    ]


def test_no_folder_of_profiles_is_no_trouble(tmp_path: Path) -> None:
    files = ProfileFiles(tmp_path / "nowhere", TrustFile(tmp_path / "trust.json"))
    assert (names(files, tmp_path), troubles(files, tmp_path)) == (BUILT_IN, [])


def test_a_new_profile_is_private_and_never_written_over_another(files: ProfileFiles, cwd: Path) -> None:
    path = files.create("fresh", MINE)
    assert (files.resolve("fresh", cwd).prompt, path.stat().st_mode & 0o777) == ("Be kind.", 0o600)
    with pytest.raises(ProfileError, match=r"fresh\.md already exists; edit it, or choose another name"):
        files.create("fresh", "x")
    for name in ("", "two words", "../x", "x" * 41, "ä"):
        with pytest.raises(ProfileError, match=r"is not valid: a profile's name is up to 40 letters"):
            files.create(name, MINE)


def begun(
    files: ProfileFiles, cwd: Path, name: str, user: Layer | None = None, project: Layer | None = None
) -> Settings:
    chosen = choose_profile(files, name, cwd)
    return add_instructions(merge(*with_profile(user or Layer(), project or Layer(), chosen), Layer(), Layer()), chosen)


def test_a_profile_beats_the_users_file_and_names_its_line(files: ProfileFiles, cwd: Path) -> None:
    path = put(
        files.folder, "mine", "---\nmodel: a/b\n\nmax_turns: 7\ntimeout: 60\npermission_mode: plan\n---\nBe kind."
    )
    user = Layer({"model": "demo/guide", "theme": "light", "max_turns": 5}, {"model": "u", "theme": "u"})
    settings = begun(files, cwd, "mine", user)
    assert (settings.text("model"), settings.text("theme"), settings.text("permission_mode")) == (
        "a/b",
        "light",
        "plan",
    )
    assert (settings.number("max_turns"), settings.number("timeout")) == (7, 60)
    assert (settings.sources["model"], settings.sources["max_turns"]) == (f"{path}:2", f"{path}:4")


def test_a_profile_of_the_user_narrows_mode_and_sandbox_and_widens_neither(files: ProfileFiles, cwd: Path) -> None:
    """SECURITY V6: its mode is not what the user sees when the name is typed; the flag says it aloud."""
    path = put(files.folder, "mine", "---\npermission_mode: auto\nsandbox: off\n---\n")
    settings = begun(files, cwd, "mine")
    assert (settings.text("permission_mode"), settings.text("sandbox")) == ("", "workspace")
    assert settings.notices == (
        f"{path}:2: a project or profile can only restrict permission_mode; 'auto' is ignored.",
        f"{path}:3: a project or profile can only restrict sandbox; 'off' is ignored.",
    )
    assert begun(files, cwd, "mine", Layer({"permission_mode": "auto"}, {"permission_mode": "u"})).text(
        "permission_mode"
    ) == ("auto")


def test_its_prompt_stands_before_what_the_user_adds(files: ProfileFiles, cwd: Path) -> None:
    path = put(files.folder, "mine", MINE)
    user = Layer({"append_system_prompt": "In French."}, {"append_system_prompt": "config.toml:1"})
    settings = begun(files, cwd, "mine", user)
    assert settings.text("append_system_prompt") == "Be kind.\n\nIn French."
    assert settings.sources["append_system_prompt"] == f"{path} and config.toml:1"


def test_a_flag_beats_the_profile(files: ProfileFiles, cwd: Path) -> None:
    chosen = choose_profile(files, "explore", cwd)
    flags = Layer({"permission_mode": "ask"}, {"permission_mode": "--permission-mode"})
    assert merge(*with_profile(Layer(), Layer(), chosen), Layer(), flags).text("permission_mode") == "ask"


def test_general_and_no_name_change_nothing(files: ProfileFiles, cwd: Path) -> None:
    assert choose_profile(files, "general", cwd) is None
    assert choose_profile(files, "", cwd) is None
    put(files.folder, "general", MINE)
    assert begun(files, cwd, "general").text("model") == "a/b", "the user's own general is one like any other"


def test_a_built_in_profile_sets_its_mode_and_no_limits(files: ProfileFiles, cwd: Path) -> None:
    assert profile_layer(files.resolve("explore", cwd)).values == {"permission_mode": "plan"}
    assert profile_layer(files.resolve("code", cwd)).values == {}


def test_a_projects_profile_only_narrows(files: ProfileFiles, cwd: Path) -> None:
    wide = "---\nmodel: a/b\npermission_mode: auto\nsandbox: off\nmax_turns: 500\ntimeout: 10\n---\n"
    path = put_in_project(cwd, "deploy", wide)
    trust(files, cwd)
    user = Layer({"max_turns": 40, "sandbox": "workspace", "timeout": 60.0}, {})
    settings = begun(files, cwd, "deploy", user)
    assert (settings.text("permission_mode"), settings.text("sandbox")) == ("", "workspace")
    assert (settings.number("max_turns"), settings.number("timeout")) == (40, 10)
    assert settings.notices == (
        f"{path}:3: a project or profile can only restrict permission_mode; 'auto' is ignored.",
        f"{path}:4: a project or profile can only restrict sandbox; 'off' is ignored.",
    )


def test_a_projects_profile_does_not_widen_what_its_settings_narrow(files: ProfileFiles, cwd: Path) -> None:
    put_in_project(cwd, "deploy", "---\npermission_mode: accept-edits\n---\n")
    trust(files, cwd)
    project = Layer({"permission_mode": "plan"}, {"permission_mode": "p"})
    user = Layer({"permission_mode": "auto"}, {"permission_mode": "u"})
    assert begun(files, cwd, "deploy", user, project).text("permission_mode") == "plan"
    assert begun(files, cwd, "deploy", user).text("permission_mode") == "accept-edits"


def test_a_mistake_in_the_chosen_profile_stops_the_start(files: ProfileFiles, cwd: Path) -> None:
    put(files.folder, "mine", "---\ncolour: red\n---\n")
    with pytest.raises(ConfigError, match=r"mine\.md:2: 'colour: red' is not a valid key"):
        choose_profile(files, "mine", cwd)
