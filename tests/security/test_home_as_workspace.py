"""SECURITY S6: the home folder as the working directory, and links of the home folder that lead into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.permissions.place import PathPlace
from engine.permissions.policy import Allow, Ask, Limits, decide
from engine.records import PermissionMode
from phoenix_tui.cli.setup import wide_folder
from tests.support.sandboxes import home, sandbox
from tests.support.waiting import PATIENCE
from tools.contract import Enforcement, SandboxMode, ToolClass, ToolRequest, ToolSpec
from tools.files import protected
from tools.files.protected import find_home_links
from tools.process import sandbox as sandbox_layout

EDIT = ToolSpec("write_file", "", {}, ToolClass.EDIT)


@pytest.fixture
def dotfiles(tmp_path: Path) -> tuple[Path, Path]:
    """A home folder whose files lead into a repository, and that repository."""
    place, work = tmp_path.resolve() / "home", tmp_path.resolve() / "dotfiles"
    for folder in (place / ".config" / "tool", place / ".local" / "bin", work / "nvim", work / "src"):
        folder.mkdir(parents=True)
    for name in ("zshrc", "run", "tool.conf", "notes", "nvim/init.lua"):
        (work / name).write_text("x\n")
    (place / ".zshrc").symlink_to(work / "zshrc")
    (place / ".local" / "bin" / "run").symlink_to("../../../dotfiles/run")
    (place / ".config" / "nvim").symlink_to(work / "nvim")
    (place / ".config" / "tool" / "any.name").symlink_to(work / "tool.conf")
    (place / ".dangling").symlink_to(work / "later")
    (place / ".dotfiles").symlink_to(work)
    (place / "notes").symlink_to(work / "notes")
    return place, work


def test_links_of_settings_are_found_whatever_their_names(dotfiles: tuple[Path, Path]) -> None:
    place, work = dotfiles
    found = find_home_links(work, place) or {}
    assert sorted(str(path.relative_to(work)) for path in found) == ["later", "nvim", "run", "tool.conf", "zshrc"]
    assert find_home_links(work / "src", place) == {}
    assert find_home_links(work, place / "missing") == {}


@pytest.mark.parametrize(
    "link",
    [
        ".claude/settings.json", ".codex/config.toml", ".emacs.d/init.el", ".vim/plugin/a.vim",
        ".oh-my-zsh/custom/a.zsh", ".docker/cli-plugins/a", ".config/fish/conf.d/a.fish",
        ".config/systemd/user/a.wants/a.service", ".config/nvim/lua/user/a.lua", "bin/a", ".unknown/settings",
    ],
)  # fmt: skip
def test_links_in_any_hidden_folder_are_found_at_any_usual_depth(tmp_path: Path, link: str) -> None:
    place, work = tmp_path.resolve() / "home", tmp_path.resolve() / "work"
    (place / link).parent.mkdir(parents=True)
    assert find_home_links(work, place) == {}
    (place / link).symlink_to(work / "a")
    assert find_home_links(work, place) == {work / "a": place / link}


def test_links_in_caches_in_the_workspace_and_in_plain_folders_do_not_count(tmp_path: Path) -> None:
    place = tmp_path.resolve() / "home"
    work = place / ".dotfiles"
    for name in (".cache/x", ".npm/_cacache", ".zsh/.git", ".local/share/Trash", ".dotfiles/sub", "notes"):
        (place / name).mkdir(parents=True)
        (place / name / "link").symlink_to(work / "a")
    assert find_home_links(work, place) == {}


@pytest.mark.parametrize(
    ("bound", "most"), [("MOST_IN_ONE", 20), ("MOST_ENTRIES", 9), ("LONGEST_LOOK", -1.0), ("DEEPEST", 2)]
)
def test_no_bound_of_the_look_at_a_home_folder_hides_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: float
) -> None:
    place, work = tmp_path.resolve() / "home", tmp_path.resolve() / "work"
    for name in (*(f".a/{n}/{n}" for n in range(30)), ".z/one/two/three/four/five/six/seven/eight", ".cache/x"):
        (place / name).mkdir(parents=True)
        (place / name / "link").symlink_to(work / name.replace("/", "-"))
    monkeypatch.setattr(protected, bound, most)
    found = find_home_links(work, place, PATIENCE)
    assert found is not None
    assert found[work / ".z-one-two-three-four-five-six-seven-eight"].name == "link"
    assert len(found) == 31


async def test_while_a_large_home_folder_is_looked_at_edits_ask_and_commands_write_nothing(
    dotfiles: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, work = dotfiles
    monkeypatch.setattr(protected, "DEEPEST", 1)
    monkeypatch.setattr(protected, "_whole_looks", dict[str, object]())
    monkeypatch.setattr(protected._WholeLook, "_look", lambda _: None)
    monkeypatch.setattr(sandbox_layout, "HOME_PATIENCE", 0.01)
    monkeypatch.setattr(protected, "LONGEST_LOOK", 0.01)
    limits = Limits(PermissionMode.AUTO, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    decision = decide(EDIT, ToolRequest("notes", (work / "notes",)), limits, PathPlace(work, home=place), {})
    assert isinstance(decision, Ask)
    assert "still being looked at" in decision.reason
    with home(place):
        async with sandbox(work) as box:
            await box.sh("echo bad >> notes; echo bad > new; mkdir sub")
    assert (work / "notes").read_text() == "x\n"
    assert not (work / "new").exists()
    assert not (work / "sub").exists()


def test_the_first_edit_waits_for_the_look_at_a_home_folder_and_needs_no_question(
    dotfiles: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, work = dotfiles
    monkeypatch.setattr(protected, "DEEPEST", 1)
    monkeypatch.setattr(protected, "LONGEST_LOOK", PATIENCE)
    monkeypatch.setattr(protected, "_whole_looks", dict[str, object]())
    limits = Limits(PermissionMode.AUTO, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    decision = decide(EDIT, ToolRequest("notes", (work / "notes",)), limits, PathPlace(work, home=place), {})
    assert isinstance(decision, Allow)


async def test_no_link_on_the_way_of_a_link_of_the_home_folder_can_be_led_elsewhere(tmp_path: Path) -> None:
    place, work = tmp_path / "home", tmp_path / "work"
    for folder in (place, work / "sub"):
        folder.mkdir(parents=True)
    for name in ("real", "sub/run"):
        (work / name).write_text("x\n")
    for link, target in ((work / "zshrc", "real"), (work / "folder", "sub"), (work / "later", "missing")):
        link.symlink_to(target)
    for name, target in ((".zshrc", "zshrc"), (".bashrc", "folder/run"), (".later", "later")):
        (place / name).symlink_to(work / target)
    with home(place):
        async with sandbox(work) as box:
            await box.sh("for f in zshrc folder later; do rm $f; mv $f x; echo bad > $f; ln -sfn x $f; done; ls > done")
    assert {name: str((work / name).readlink()) for name in ("zshrc", "folder", "later")} == {
        "zshrc": "real",
        "folder": "sub",
        "later": "missing",
    }
    assert [(place / name).read_text() for name in (".zshrc", ".bashrc")] == ["x\n", "x\n"]
    assert (work / "done").exists()


@pytest.mark.parametrize("name", ["zshrc", "nvim/init.lua", "nvim/new.lua", "run", "later"])
def test_an_edit_of_what_a_link_leads_to_asks_in_every_mode(dotfiles: tuple[Path, Path], name: str) -> None:
    place, work = dotfiles
    limits = Limits(PermissionMode.AUTO, SandboxMode.WORKSPACE, enforcement=Enforcement.FULL)
    decision = decide(EDIT, ToolRequest(name, (work / name,)), limits, PathPlace(work, home=place), {})
    assert isinstance(decision, Ask)
    assert str(place) in decision.reason


async def test_a_command_cannot_change_what_a_link_leads_to(dotfiles: tuple[Path, Path]) -> None:
    place, work = dotfiles
    with home(place):
        async with sandbox(work) as box:
            await box.sh("echo bad >> zshrc; echo bad > nvim/init.lua; rm -f run; mv tool.conf x; echo ok > notes")
    assert [(work / name).read_text() for name in ("zshrc", "nvim/init.lua", "run", "tool.conf")] == ["x\n"] * 4
    assert (work / "notes").read_text() == "ok\n"


@pytest.mark.parametrize(("box", "words"), [("read-only", "change nothing"), ("workspace", "write everything")])
def test_a_start_in_the_home_folder_says_what_commands_may_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, box: str, words: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert words in wide_folder(tmp_path, box)
    assert wide_folder(tmp_path / "project", box) == ""
