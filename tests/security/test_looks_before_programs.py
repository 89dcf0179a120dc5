"""SECURITY S1, S2: no program of Phoenix starts outside before a look, and none where a look leaves something open."""

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import pytest

from phoenix_tui.terminal.lending import GIT_OFF, editor_environment
from tests.support.left_behind import LocalHelper, local_watch, run_outside
from tests.support.outside import ROOT
from tests.support.waiting import poll_blocking
from tools.contract import UNCONFINED, Command
from tools.process.folder_index import stamp_at
from tools.process.git_control import find_armed, find_armed_parts
from tools.process.helper import Helper, HelperFailed
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.workspace_look import MOST_WORKSPACES, References
from tools.process.workspace_watch import WorkspaceWatch
from tools.services import ServiceCommand

Looked = tuple[WorkspaceWatch, LocalHelper]


@pytest.fixture
def looked() -> Looked:
    return local_watch()


def plant(folder: Path) -> Path:
    """Make a repository whose settings start a program."""
    for name in ("objects", "refs"):
        (folder / "sub" / name).mkdir(parents=True, exist_ok=True)
    (folder / "sub/HEAD").write_text("ref: refs/heads/x\n", "ascii")
    config = folder / "sub/config"
    config.write_text("[core]\n\tfsmonitor = evil\n", "ascii")
    return config


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_a_trap_that_cannot_be_renamed_keeps_programs_inside_until_it_is(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, helper = looked
    command = watch.begin(tmp_path, (tmp_path,))
    config = plant(tmp_path)
    monkeypatch.setattr(os, "rename", refuse)
    assert watch.end(command).said == (
        "sub/config could not be renamed (Operation not permitted): git would start what it names",
    )
    assert "sub/config could not be renamed" in watch.trouble(tmp_path / "sub")
    helper.forget()
    assert "sub/config could not be renamed" in watch.trouble(tmp_path), "another helper knows it, too"
    assert watch.end(watch.begin(tmp_path, (tmp_path,))).said == (), "it is named once"
    assert "; remove it yourself" in watch.trouble(tmp_path)
    monkeypatch.undo()
    assert watch.trouble(tmp_path) == ""
    assert not config.exists()


def test_a_trap_that_the_user_removes_keeps_nothing_back(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    command = watch.begin(tmp_path, (tmp_path,))
    config = plant(tmp_path)
    monkeypatch.setattr(os, "rename", refuse)
    watch.end(command)
    assert watch.trouble(tmp_path)
    config.unlink()
    assert watch.trouble(tmp_path) == ""


def test_a_head_that_cannot_be_written_again_keeps_programs_inside(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    run_outside(tmp_path, "git init -q .; sleep 0.03")
    command = watch.begin(tmp_path, (tmp_path,))
    (tmp_path / ".git/HEAD").unlink()
    monkeypatch.setattr(os, "rename", refuse)
    assert ".git/HEAD could not be written again" in watch.end(command).said[0]
    assert ".git/HEAD could not be written again" in watch.trouble(tmp_path)
    monkeypatch.undo()
    assert watch.trouble(tmp_path) == ""
    assert (tmp_path / ".git/HEAD").is_file()


def test_a_command_that_planted_once_keeps_programs_inside_until_it_ends(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    command, other = watch.begin(tmp_path, (tmp_path,)), watch.begin(tmp_path, (tmp_path,))
    assert watch.trouble(tmp_path) == ""
    config = plant(tmp_path)
    assert "a command that still runs" in watch.trouble(tmp_path)
    assert not config.exists()
    watch.end(other)
    assert "a command that still runs" in watch.trouble(tmp_path), "it may do so again at once"
    assert "sub/config was renamed" in watch.end(command).said[0]
    assert watch.trouble(tmp_path) == ""


def test_settings_that_the_user_changes_during_a_command_stay_unless_they_have_a_new_program(
    looked: Looked, tmp_path: Path
) -> None:
    watch, _ = looked
    run_outside(tmp_path, "git init -q .; git config core.editor ed; sleep 0.03")
    command, config = watch.begin(tmp_path, (tmp_path,)), tmp_path / ".git/config"
    command.wall([str(config)])
    before = config.read_bytes()
    run_outside(tmp_path, "git config branch.x.remote y")
    assert watch.trouble(tmp_path) == ""
    assert b"remote = y" in config.read_bytes()
    run_outside(tmp_path, "git config core.pager evil")
    assert ".git/config was renamed" in watch.trouble(tmp_path)
    assert config.read_bytes() == before
    watch.end(command)


def test_a_walled_folder_is_looked_at_once_another_stands_in_its_place(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    run_outside(tmp_path, "git init -q .; mkdir -p .git/hooks; sleep 0.03")
    command, hooks = watch.begin(tmp_path, (tmp_path,)), tmp_path / ".git/hooks"
    command.wall([str(hooks)])
    (hooks / "pre-commit").write_text("evil", "ascii")
    assert watch.trouble(tmp_path) == "", "the user's own, since the command cannot write there"
    run_outside(tmp_path, "rm -r .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/pre-push")
    assert ".git/hooks was renamed" in watch.trouble(tmp_path)
    watch.end(command)


@pytest.mark.parametrize("name", ["rebase-merge/git-rebase-todo", "sequencer/opts"])
def test_what_git_at_work_needs_stays_until_the_last_command_ends(looked: Looked, tmp_path: Path, name: str) -> None:
    watch, _ = looked
    run_outside(tmp_path, "git init -q .; sleep 0.03")
    command, other = watch.begin(tmp_path, (tmp_path,)), watch.begin(tmp_path, (tmp_path,))
    part = tmp_path / ".git" / name
    part.parent.mkdir()
    part.write_text("x make\n[options]\n\tstrategy = a/b\n", "ascii")
    said = f"git would run what {name} of {tmp_path} names, which came while a command runs there"
    assert (watch.trouble(tmp_path), part.is_file()) == (said, True)
    assert (watch.end(other).said, part.is_file()) == ((), True)
    part.rename(part.with_name("ended"))
    assert watch.trouble(tmp_path) == "", "git is done with it"
    part.with_name("ended").rename(part)
    assert [one.partition(" to ")[0] for one in watch.end(command).said] == [f".git/{name} was renamed"]
    assert watch.trouble(tmp_path) == ""


def test_the_list_of_a_rebase_of_the_user_stays_while_it_gets_shorter(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    run_outside(tmp_path, "git init -q .; mkdir .git/rebase-merge; sleep 0.03")
    part = tmp_path / ".git/rebase-merge/git-rebase-todo"
    part.write_text("pick 1\nexec make\npick 2\nx make 2\n", "ascii")
    run_outside(tmp_path, "sleep 0.03")
    command = watch.begin(tmp_path, (tmp_path,))
    part.write_text("pick 2\nx make 2\n", "ascii")
    assert (watch.trouble(tmp_path), watch.end(command).said) == ("", ())
    command = watch.begin(tmp_path, (tmp_path,))
    part.write_text("pick 2\nx evil\n", "ascii")
    assert [one.partition(" to ")[0] for one in watch.end(command).said] == [
        ".git/rebase-merge/git-rebase-todo was renamed"
    ]


def test_links_through_another_process_and_into_private_folders_are_removed(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    top, private = tmp_path / "top", tmp_path / "phoenix-sandbox-x/tmp"
    private.mkdir(parents=True)
    top.mkdir()
    command = watch.begin(top, (top,))
    targets: dict[str, str] = {
        "private": str(private),
        "root": f"/proc/{os.getppid()}/root/tmp",
        "again": "private",
        "out": "/proc/self/fd/1",
    }
    for name, target in targets.items():
        (top / name).symlink_to(target)
    watch.end(command)
    assert [path.name for path in top.iterdir()] == ["out"]


def test_options_of_a_strategy_are_no_program(tmp_path: Path) -> None:
    (tmp_path / "sequencer").mkdir()
    opts = tmp_path / "sequencer/opts"
    opts.write_text("[options]\n\tstrategy-option = subtree=vendor/lib\n", "ascii")
    assert list(find_armed_parts(tmp_path, (tmp_path,))) == []
    opts.write_text("[options]\n\tstrategy-option = subtree=vendor/lib\n\tstrategy = a/b\n", "ascii")
    assert list(find_armed_parts(tmp_path, (tmp_path,))) == [opts]


@pytest.mark.parametrize("address", ["ext::sh x", '"ext::sh x"', 'e"xt::"sh x', '""-x'])
def test_an_address_that_names_a_program_is_a_trap_however_it_is_quoted(address: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(f'[remote "origin"]\n\turl = {address}\n', "ascii")
    assert list(find_armed_parts(tmp_path, (tmp_path,))) == [tmp_path / "config"]


def test_git_is_off_in_an_editor_where_a_look_leaves_something_open(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    monkeypatch.setenv("PWD", "/")
    assert "GIT_DIR" not in editor_environment(tmp_path)
    command = watch.begin(tmp_path, (tmp_path,))
    plant(tmp_path)
    given = editor_environment(tmp_path)
    assert given["GIT_DIR"] == GIT_OFF
    said = run_outside(tmp_path, f"GIT_DIR={GIT_OFF!r} git status")
    assert said == f"fatal: not a git repository: '{GIT_OFF}'\n"
    watch.end(command)
    assert "GIT_DIR" not in editor_environment(tmp_path)


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    started = await start_processes(ProcessSettings())
    yield started
    await started.close()


TRUE = ("/bin/true",)
STARTS: dict[str, Callable[[Processes, Path], Awaitable[object]]] = {
    "command": lambda started, folder: started.runner.run(Command(TRUE, folder, sandbox=UNCONFINED)),
    "job": lambda started, folder: started.jobs.start(Command(TRUE, folder, sandbox=UNCONFINED), "one", "x"),
    "server": lambda started, folder: started.services.open(ServiceCommand(TRUE, folder)),
    "server, neutral": lambda started, folder: started.services.open(ServiceCommand(TRUE, folder, start_in=Path("/"))),
    "hook": lambda started, folder: started.services.run_program(ServiceCommand(TRUE, folder)),
    "terminal": lambda started, folder: started.services.open_terminal(ServiceCommand(TRUE, folder)),
}


async def test_every_program_outside_waits_for_a_look(
    looked: Looked, processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    monkeypatch.setattr(type(processes.planner), "watch", property(lambda _: watch))
    command = await asyncio.to_thread(watch.begin, tmp_path, (tmp_path,))
    for name, start in STARTS.items():
        config = plant(tmp_path)
        with pytest.raises(OSError, match="not started outside the sandbox: a command that still runs"):
            await start(processes, tmp_path)
        assert not config.exists(), name
    await asyncio.to_thread(watch.end, command)
    await STARTS["command"](processes, tmp_path)


PLANS = {
    "tools/process/plan.py": "makes them, behind a look where there is no sandbox",
    "tools/process/supervision.py": "starts a command by the plan that it asked for",
    "tools/process/start.py": "the self-test, in a sandbox and a folder of its own",
}


def test_no_program_starts_but_by_a_plan() -> None:
    """The places that start programs in any other way are listed in `test_planted_programs.py`, each with why git
    finds no repository of a command there."""
    sources = {path: path.read_text("utf-8") for path in (ROOT / "tools").rglob("*.py")}
    named = {str(path.relative_to(ROOT)) for path, text in sources.items() if "start_planned(" in text}
    made = {str(path.relative_to(ROOT)) for path, text in sources.items() if "CommandPlan(" in text}
    assert named | made == set(PLANS)


def test_a_link_that_a_later_command_turns_outward_is_removed(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    top = tmp_path / "top"
    (top / "tree").mkdir(parents=True)
    command = watch.begin(top, (top,))
    run_outside(top, "git init -q sub; git -C sub config core.worktree ../../link; ln -s tree link; sleep 0.03")
    assert watch.end(command).said == ()
    command = watch.begin(top, (top,))
    run_outside(top, "ln -sfn .. link")
    assert watch.end(command).said == ("the link link to .. was removed: git would write or load what it names",)
    assert (top / "sub/.git/config").is_file()


MANY = 700
OLD, MADE = "1" * 40, "2" * 40


def refer(folder: Path, names: range, commit: str) -> None:
    heads = folder / ".git/refs/heads"
    for number in names:
        (heads / f"b{number:04}").write_text(f"{commit[:-4]}{number:04}\n", "ascii")


def test_every_reference_is_known_as_the_users_or_as_one_of_a_command(looked: Looked, tmp_path: Path) -> None:
    watch, helper = looked
    run_outside(tmp_path, "git init -q .")
    refer(tmp_path, range(MANY), OLD)
    run_outside(tmp_path, "sleep 0.03")
    command = watch.begin(tmp_path, (tmp_path,))
    refer(tmp_path, range(MANY, 2 * MANY), MADE)
    watch.end(command)
    tips = watch.tips(tmp_path)
    assert (len(tips), {tip[0] for tip in tips}) == (MANY, {"1"})
    lines = (f"{path.read_text('ascii').strip()} refs/heads/{path.name}" for path in tmp_path.glob(".git/refs/heads/*"))
    (tmp_path / ".git/packed-refs").write_text("\n".join(lines), "ascii")
    helper.forget()
    watch.end(watch.begin(tmp_path, (tmp_path,)))
    assert {tip[0] for tip in watch.tips(tmp_path)} == {"1"}, "another helper knows what commands made"


def test_with_more_references_than_are_looked_at_none_counts(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    monkeypatch.setattr("tools.process.workspace_look.MOST_TIPS", 5)
    run_outside(tmp_path, "git init -q .")
    refer(tmp_path, range(9), OLD)
    watch.end(watch.begin(tmp_path, (tmp_path,)))
    assert watch.tips(tmp_path) == ()


def test_references_that_take_too_long_leave_the_look_unfinished_and_hide_no_change(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    run_outside(tmp_path, "git init -q .; sleep 0.03")
    watch.end(watch.begin(tmp_path, (tmp_path,)))
    command = watch.begin(tmp_path, (tmp_path,))
    refer(tmp_path, range(1), MADE)
    (tmp_path / "AGENTS.md").write_text("evil", "ascii")
    read = References.read

    def read_late(
        self: References, folder: Path, common: Path, below: Iterable[str], since: int, until: float
    ) -> set[str]:
        return read(self, folder, common, below, since, until - 1000)

    monkeypatch.setattr(References, "read", read_late)
    left = watch.end(command)
    assert "it took too long to read the references of git" in left.said[0]
    assert [(one.path, one.kind) for one in left.changed] == [("AGENTS.md", "created")]
    monkeypatch.undo()
    watch.end(watch.begin(tmp_path, (tmp_path,)))
    assert (watch.trouble(tmp_path), watch.tips(tmp_path)) == ("", ()), "the commit of the command is not the user's"


def test_many_lines_that_name_no_commit_take_no_time(tmp_path: Path) -> None:
    commit = b"1" * 40
    (tmp_path / "packed-refs").write_bytes(b"# x\n" + commit + b" refs/heads/a\n^" + commit + b"\n" + b"\n" * 1_000_000)
    began = time.process_time()
    assert References().read(tmp_path, tmp_path, (), 0, time.monotonic() + 20) == {"1" * 40}
    assert time.process_time() - began < 1


def test_the_first_command_after_a_helper_that_was_killed_is_looked_at_before_it_runs(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, helper = looked
    run_outside(tmp_path, "echo mine > AGENTS.md; sleep 0.03")
    watch.end(watch.begin(tmp_path, (tmp_path,)))
    command = watch.begin(tmp_path, (tmp_path,))

    def fail(*_: object) -> list[bytes]:
        helper.forget()
        helper.pid = 0
        raise HelperFailed("no answer in time")

    monkeypatch.setattr(helper, "ask", fail)
    assert "no answer in time" in watch.end(command).said[0]
    monkeypatch.undo()
    command = watch.begin(tmp_path, (tmp_path,))
    (tmp_path / "AGENTS.md").write_text("evil", "ascii")
    left = watch.end(command)
    assert [(one.path, one.kind, one.restorable) for one in left.changed] == [("AGENTS.md", "changed", True)]


def test_what_is_written_through_a_mapping_after_a_look_is_found_at_the_end(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    path = tmp_path / "AGENTS.md"
    run_outside(tmp_path, "echo good instructions > AGENTS.md; sleep 0.03")
    command = watch.begin(tmp_path, (tmp_path,))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = mapped[0:1]
        watch.look(command)
        stamp = stamp_at(str(path))
        mapped[0:4] = b"evil"
        assert stamp_at(str(path)) == stamp, "the page is dirty, so its change leaves no trace"
    changed = watch.end(command).changed
    assert [(one.path, one.kind, one.restorable) for one in changed] == [("AGENTS.md", "changed", True)]
    assert watch.take_back(tmp_path, changed, tmp_path / "aside") == ()
    assert path.read_text("ascii") == "good instructions\n"


def test_a_workspace_that_is_moved_while_a_command_runs_leaves_the_look_unfinished_until_it_is_back(
    looked: Looked, tmp_path: Path
) -> None:
    watch, _ = looked
    folder, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    folder.mkdir()
    run_outside(folder, "echo mine > AGENTS.md; sleep 0.03")
    command = watch.begin(folder, (folder,))
    folder.rename(elsewhere)
    config = plant(elsewhere)
    (elsewhere / "AGENTS.md").write_text("evil", "ascii")
    left = watch.end(command)
    assert (len(left.said), left.changed) == (1, ())
    assert "work was moved or removed; move it back, or start Phoenix again" in left.said[0]
    assert "was moved or removed" in watch.trouble(tmp_path)
    elsewhere.rename(folder)
    assert (watch.trouble(tmp_path), config.exists()) == ("", False)
    changed = watch.end(watch.begin(folder, (folder,))).changed
    assert [(one.path, one.kind, one.restorable) for one in changed] == [("AGENTS.md", "changed", True)]


def test_what_a_command_wrote_is_taken_back_from_folders_that_it_closed(looked: Looked, tmp_path: Path) -> None:
    watch, _ = looked
    folder = tmp_path / "work"
    folder.mkdir()
    run_outside(folder, "mkdir -p .x/y; echo mine | tee AGENTS.md > .x/y/a.md; sleep 0.03")
    command = watch.begin(folder, (folder,))
    run_outside(folder, "echo evil | tee AGENTS.md > .x/y/a.md; chmod 311 .x/y; chmod 0 .x; chmod 555 .")
    run_outside(folder, "chmod 755 .; mkdir .z; echo evil > .z/b.md; chmod 311 .z; chmod 555 .")
    changed = watch.end(command).changed
    names = [one.path for one in changed]
    assert names == [".x/y/a.md", ".z/b.md", "AGENTS.md"]
    assert watch.take_back(folder, changed, tmp_path / "aside") == ()
    for path, mode in ((folder, 0o555), (folder / ".x", 0o000), (folder / ".x/y", 0o311)):
        assert stat.S_IMODE(path.stat().st_mode) == mode, "the command's own"
        path.chmod(0o700)
    assert [(folder / name).read_text("ascii") for name in (names[0], names[2])] == ["mine\n", "mine\n"]
    assert not (folder / ".z").exists()


@pytest.mark.parametrize("has_unnamed_files", [True, False])
def test_what_a_command_leaves_on_a_file_system_whose_clock_is_behind_is_found(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_unnamed_files: bool
) -> None:
    watch, _ = looked
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 3_600_000_000_000)
    if not has_unnamed_files:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_TMPFILE | os.O_APPEND | os.O_CREAT | os.O_EXCL)
    run_outside(tmp_path, "echo mine > AGENTS.md; sleep 0.03")
    command = watch.begin(tmp_path, (tmp_path,))
    assert [path.name for path in tmp_path.iterdir()] == ["AGENTS.md"]
    (tmp_path / "AGENTS.md").write_text("evil", "ascii")
    config = plant(tmp_path)
    assert [(one.path, one.kind) for one in watch.end(command).changed] == [("AGENTS.md", "changed")]
    assert not config.exists()


IDLE = f"""import sys; sys.path.insert(0, {str(ROOT)!r})
from tools.process import workspace_look
workspace_look.IDLE = 0.05
workspace_look.main()"""


def test_an_idle_helper_ends_once_no_change_waits_for_an_answer(tmp_path: Path) -> None:
    watch = WorkspaceWatch()
    watch.helper = Helper((sys.executable, "-c", IDLE), timeout=20)
    command = watch.begin(tmp_path, (tmp_path,))
    (tmp_path / "AGENTS.md").write_text("evil", "ascii")
    changed = watch.end(command).changed
    assert [one.path for one in changed] == ["AGENTS.md"]
    pid = watch.helper.pid
    assert not poll_blocking(lambda: not watch.helper.pid, 0.3)
    assert watch.take_back(tmp_path, changed, tmp_path / "aside") == ()
    assert (watch.helper.pid, (tmp_path / "AGENTS.md").exists()) == (pid, False)
    assert poll_blocking(lambda: not watch.helper.pid)
    watch.helper.close()


def test_a_workspace_with_an_open_question_is_forgotten_last(looked: Looked, tmp_path: Path) -> None:
    watch, helper = looked
    folder = tmp_path / "work"
    folder.mkdir()
    run_outside(folder, "echo mine > AGENTS.md; sleep 0.03")
    command = watch.begin(folder, (folder,))
    (folder / "AGENTS.md").write_text("evil", "ascii")
    changed = watch.end(command).changed
    forget_for_others(watch, helper, tmp_path / "others")
    assert watch.take_back(folder, changed, tmp_path / "aside") == ()
    assert (folder / "AGENTS.md").read_text("ascii") == "mine\n"


def forget_at_once(watch: WorkspaceWatch, helper: LocalHelper, folder: Path) -> None:
    helper.forget()


def forget_for_others(watch: WorkspaceWatch, helper: LocalHelper, folder: Path) -> None:
    for number in range(MOST_WORKSPACES):
        (folder / str(number)).mkdir(parents=True)
        watch.end(watch.begin(folder / str(number), (folder / str(number),)))


@pytest.mark.parametrize("forget", [forget_at_once, forget_for_others])
@pytest.mark.parametrize("is_looked_at_meanwhile", [False, True])
def test_a_file_that_a_forgetful_helper_does_not_know_is_asked_about_and_never_removed(
    looked: Looked,
    tmp_path: Path,
    forget: Callable[[WorkspaceWatch, LocalHelper, Path], None],
    is_looked_at_meanwhile: bool,
) -> None:
    watch, helper = looked
    folder = tmp_path / "work"
    folder.mkdir()
    run_outside(folder, "echo mine > AGENTS.md; sleep 0.03")
    command = watch.begin(folder, (folder,))
    (folder / "AGENTS.md").write_text("mine and more", "ascii")
    forget(watch, helper, tmp_path / "others")
    others = [watch.begin(folder, (folder,))] if is_looked_at_meanwhile else []
    changed = watch.end(command).changed
    assert [(one.path, one.kind, one.restorable) for one in changed] == [("AGENTS.md", "changed", False)]
    for other in (*others, watch.begin(folder, (folder,))):
        watch.end(other)
    said = watch.take_back(folder, changed, tmp_path / "aside")
    assert said == ("AGENTS.md cannot be restored, so it stays as it is",)
    assert (folder / "AGENTS.md").read_text("ascii") == "mine and more"


def test_more_changes_than_one_answer_holds_are_reported_by_the_next_looks(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = looked
    monkeypatch.setattr("tools.process.starting_files.MOST_ANSWER", 10_000)
    names = {f".x/{number}.md" for number in range(30)}
    command = watch.begin(tmp_path, (tmp_path,))
    (tmp_path / ".x").mkdir()
    for name in names:
        (tmp_path / name).touch()
    left = watch.end(command)
    assert "than one answer holds" in left.said[0]
    found = {one.path for one in left.changed}
    for _ in range(9):
        found |= {one.path for one in watch.end(watch.begin(tmp_path, (tmp_path,))).changed}
    assert found == names
    assert watch.trouble(tmp_path) == ""


def test_hooks_that_can_be_entered_but_not_listed_may_be_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(folder: Path) -> list[str]:
        number = errno.EACCES if folder.name == "hooks" else errno.ENOENT
        raise OSError(number, os.strerror(number))

    run_outside(tmp_path, "git init -q .; mkdir -p .git/hooks")
    assert list(find_armed_parts(tmp_path / ".git", (tmp_path,))) == []
    monkeypatch.setattr(os, "listdir", closed)  # root lists what it likes
    assert list(find_armed_parts(tmp_path / ".git", (tmp_path,))) == [tmp_path / ".git/hooks"]


def test_a_folder_that_its_owner_closed_keeps_nothing_else_from_being_judged(
    looked: Looked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(folder: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
        if folder.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return find_armed(folder, roots)

    watch, _ = looked
    monkeypatch.setattr("tools.process.workspace_look.find_armed", found)
    command = watch.begin(tmp_path, (tmp_path,))
    run_outside(tmp_path, "git init -q closed")
    config = plant(tmp_path)
    assert "closed cannot be read (Permission denied)" in watch.end(command).said[1]
    assert not config.exists()
    assert "closed cannot be read" in watch.trouble(tmp_path)
