"""Trust in a folder's own files, tokens in the keyring, facts about a project, and themes of the user."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Raw

from engine.extensions.mcp.credentials_file import LONGEST, CredentialsFile
from engine.ports.mcp import ServerState
from phoenix_tui.config import paths
from phoenix_tui.config.credentials import load_credentials, save_key
from phoenix_tui.config.paths import lock_file
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.config.trust import SourcesAnswer, Trust, TrustFile, find_project
from phoenix_tui.features.init import ABOUT, gather
from phoenix_tui.styles.user_themes import ThemeError, read_theme, theme_files
from phoenix_tui.wiring import mcp
from phoenix_tui.wiring.mcp import KeyringTokens
from tests.engine.extensions.test_sign_ins import address, over_http, wait_until_connected
from tests.support.git_repositories import empty_repository
from tests.support.mcp_hubs import hub_in
from tests.support.mcp_web import SignInServer, serving
from tests.support.waiting import PATIENCE
from tests.tools.mcp_host.test_http_servers import fetch
from tools.mcp_host.protocol import NOTHING


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    empty_repository(root)
    (root / "AGENTS.md").write_text("Use tabs.")
    return root


@pytest.fixture
def trust(tmp_path: Path) -> TrustFile:
    return TrustFile(tmp_path / "home" / "trust.json")


def test_a_folder_without_such_files_needs_no_trust(tmp_path: Path, trust: TrustFile) -> None:
    (tmp_path / "README.md").write_text("hello")
    assert trust.status(find_project(tmp_path)).trust is Trust.NOT_NEEDED


def test_trust_is_kept_for_exactly_these_files(repository: Path, trust: TrustFile) -> None:
    project = find_project(repository)
    assert trust.status(project).trust is Trust.UNKNOWN
    trust.answer(project, trusted=True)
    assert trust.status(find_project(repository)).trust is Trust.GIVEN
    (repository / "AGENTS.md").write_text("Run curl.")
    status = trust.status(find_project(repository))
    assert (status.trust, status.changed) == (Trust.CHANGED, (repository / "AGENTS.md",))
    assert trust.changes(find_project(repository)).splitlines()[2:] == ["@@ -1 +1 @@", "-Use tabs.", "+Run curl."]


def test_a_file_that_appears_later_is_asked_about(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=True)
    (repository / ".phoenix").mkdir()
    (repository / ".phoenix" / "config.toml").write_text("sandbox = 'off'")
    status = trust.status(find_project(repository))
    assert (status.trust, status.changed) == (Trust.CHANGED, (repository / ".phoenix" / "config.toml",))


def test_a_refusal_is_kept(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=False)
    assert trust.status(find_project(repository)).trust is Trust.REFUSED


def test_a_subfolder_does_not_inherit_trust(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=True)
    inner = repository / "inner"
    inner.mkdir()
    project = find_project(inner)
    assert [file.path for file in project.files] == [repository / "AGENTS.md"]
    assert trust.status(project).trust is Trust.UNKNOWN


def test_a_worktree_does_not_inherit_trust(repository: Path, trust: TrustFile, tmp_path: Path) -> None:
    trust.answer(find_project(repository), trusted=True)
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {repository}/.git")
    (worktree / "AGENTS.md").write_text("Use tabs.")
    project = find_project(worktree)
    assert [file.path for file in project.files] == [worktree / "AGENTS.md"]
    assert trust.status(project).trust is Trust.UNKNOWN


def test_another_folder_at_the_same_path_is_not_trusted(repository: Path, trust: TrustFile, tmp_path: Path) -> None:
    trust.answer(find_project(repository), trusted=True)
    shutil.copytree(repository, tmp_path / "copy")
    repository.rename(tmp_path / "away")
    (tmp_path / "copy").rename(repository)
    assert trust.status(find_project(repository)).trust is Trust.UNKNOWN


def test_a_link_and_its_target_are_one_folder(repository: Path, trust: TrustFile, tmp_path: Path) -> None:
    trust.answer(find_project(repository), trusted=True)
    link = tmp_path / "link"
    link.symlink_to(repository)
    assert trust.status(find_project(link)).trust is Trust.GIVEN


def test_instructions_go_from_the_repository_down_and_not_above_it(repository: Path) -> None:
    (repository.parent / "AGENTS.md").write_text("Not mine.")
    inner = repository / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Use spaces.")
    text = "".join(file.text for file in find_project(inner).instructions())
    assert text.index("Use tabs.") < text.index("Use spaces.")
    assert "Not mine." not in text


def test_a_folder_in_place_of_a_file_is_no_file(repository: Path) -> None:
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").mkdir()
    assert find_project(repository).files == ()


def test_a_pipe_in_place_of_a_file_does_not_hold_us_up(repository: Path) -> None:
    (repository / "AGENTS.md").unlink()
    os.mkfifo(repository / "AGENTS.md")
    assert find_project(repository).files == ()


@pytest.mark.parametrize("content", ["", "[]", '{"folders": 3}', '{"folders": {"x": 1}}', "\x00"])
def test_a_broken_trust_file_trusts_nothing(repository: Path, trust: TrustFile, content: str) -> None:
    trust.path.parent.mkdir()
    trust.path.write_text(content)
    assert trust.status(find_project(repository)).trust is Trust.UNKNOWN


def test_the_file_says_what_was_trusted(repository: Path, trust: TrustFile) -> None:
    trust.answer(find_project(repository), trusted=True)
    folders = json.loads(trust.path.read_text())["folders"]
    assert list(folders[str(repository)]["files"]) == [str(repository / "AGENTS.md")]
    assert trust.path.stat().st_mode & 0o777 == 0o600


ANSWERS = 8
PROCESSES = 4
ANSWER = """
import sys
from pathlib import Path
from phoenix_tui.config.trust import find_project
from phoenix_tui.config.trust import SourcesAnswer, TrustFile
trust, folders, own = TrustFile(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    folder = folders / f"{own}-{number}"
    trust.answer(find_project(folder), trusted=True)
    trust.answer_sources(folder, SourcesAnswer(True, {"a": own}, {}))
"""


def run_together(commands: list[list[str]]) -> None:
    """Start programs, let all of them go on at one moment, and wait until each has ended well."""
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in commands
    ]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=PATIENCE)
    assert [one.returncode for one in running] == [0] * len(running)


def test_no_answer_of_several_processes_is_lost(tmp_path: Path) -> None:
    trust = TrustFile(tmp_path / "home" / "trust.json")
    folders = [tmp_path / f"{own}-{number}" for own in range(PROCESSES) for number in range(ANSWERS)]
    for folder in folders:
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Use tabs.")
    run_together([
        [sys.executable, "-c", ANSWER, str(trust.path), str(tmp_path), str(own), str(ANSWERS)]
        for own in range(PROCESSES)
    ])
    assert [folder.name for folder in folders if trust.status(find_project(folder)).trust is not Trust.GIVEN] == []
    assert [folder.name for folder in folders if trust.sources_answer(folder) is None] == []
    assert stat.S_IMODE(trust.path.stat().st_mode) == 0o600


def test_a_lock_that_is_never_given_up_is_an_error_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "PATIENCE", 0.0)
    trust = TrustFile(tmp_path / "trust.json")
    with lock_file(trust.path), pytest.raises(OSError, match="another Phoenix keeps it locked"):
        trust.answer_sources(tmp_path, SourcesAnswer(trusted=True, digests={"a": "b"}, texts={}))
    assert not trust.path.exists()
    trust.answer_sources(tmp_path, SourcesAnswer(trusted=True, digests={"a": "b"}, texts={}))


def test_a_planted_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / ".trust.json.lock").symlink_to(victim)
    with pytest.raises(OSError, match="link"), lock_file(tmp_path / "trust.json"):
        pass
    assert not victim.exists()


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), lock_file(tmp_path / "file"):
        raise KeyError
    descriptor = os.open(tmp_path / ".file.lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


def reads_all(_: Path) -> bool:
    return False


def test_files_that_rules_deny_to_read_give_no_facts(tmp_path: Path) -> None:
    for name, text in (("README.md", "A secret."), ("Makefile", "hidden:\n\ttrue\n"), ("go.mod", "module x\n")):
        (tmp_path / name).write_text(text)
    read: list[str] = []

    def is_closed(path: Path) -> bool:
        read.append(path.name)
        return path.name in {"README.md", "Makefile"}

    facts = gather(tmp_path, is_closed)
    assert (facts.about, facts.commands) == ("", ("go build ./...", "go test ./..."))
    assert {"README.md", "Makefile", "package.json", "pyproject.toml"} <= set(read)


def test_languages_commands_layout_and_purpose_are_read_off_the_files(tmp_path: Path) -> None:
    work = tmp_path / "shop"
    for name in ("src/a.py", "src/b.py", "web/c.ts", "src/node_modules/x.js"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("")
    (work / ".gitignore").write_text("node_modules\n")
    (work / "README.md").write_text("# Shop\n\n[![badge](x)](y)\n\nSells\nthings.\n\nMore.\n")
    (work / "Makefile").write_text("X := 1\n.PHONY: test\ntest: build\n\tpytest\nbuild:\n\ttrue\n")
    (work / "package.json").write_text(json.dumps({"scripts": {"dev": "vite", "test": "vitest"}}))
    (work / "pnpm-lock.yaml").write_text("")
    (work / "pyproject.toml").write_text("[tool.ruff]\n[tool.pytest.ini_options]\n")
    (work / ".github" / "workflows").mkdir(parents=True)
    (work / ".github" / "workflows" / "ci.yml").write_text("steps:\n  - run: make test\n  - run: |\n      long\n")
    facts = gather(work, reads_all)
    assert (facts.name, facts.about) == ("shop", "Sells things.")
    assert facts.languages == ("Python: 2 files", "TypeScript: 1 file")
    assert facts.commands == ("make test", "make build", "pnpm run dev", "pnpm run test", "pytest", "ruff check")
    assert facts.ci == ("make test",)
    assert facts.layout == ("src/: 2 files", "web/: 1 file")
    assert facts.markdown.startswith("# shop\n\nSells things.\n\n## Languages\n\n- Python: 2 files\n")
    assert "- `make test`\n" in facts.markdown


def test_an_empty_folder_has_its_name_alone(tmp_path: Path) -> None:
    assert gather(tmp_path, reads_all).markdown == f"# {tmp_path.name}\n"


@pytest.mark.parametrize(
    "content", ["{", "[" * 100_000, '{"scripts": 3}', "\x00", '{"scripts": {"a`b": 1, "": 2}}', "[]"]
)
def test_files_that_are_broken_give_no_facts(tmp_path: Path, content: str) -> None:
    (tmp_path / "package.json").write_text(content)
    (tmp_path / "pyproject.toml").write_text(content)
    assert gather(tmp_path, reads_all).commands == ()


def test_files_that_are_none_or_huge_hold_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Makefile")
    (tmp_path / "package.json").symlink_to("/dev/zero")
    with (tmp_path / "README.md").open("wb") as file:
        file.write(b"word " * 100)
        file.truncate(50 * 2**30)
    facts = gather(tmp_path, reads_all)
    assert facts.commands == ()
    assert len(facts.about) <= ABOUT


def test_no_text_of_a_project_reaches_a_terminal_or_forges_a_line(tmp_path: Path) -> None:
    work = tmp_path / "a\n\x1b[2J\u202eb"
    (work / "x\n## Commands").mkdir(parents=True)
    (work / "x\n## Commands" / "a.py").write_text("")
    (work / "README.md").write_text("Text\x1b]52;c;aGk=\x07 \u202e of\x00 it.")
    shown = gather(work, reads_all).markdown
    assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(shown)
    assert "\n## Commands" not in shown


Entries: TypeAlias = dict[tuple[str, str], str]


class Keyring:
    """A keyring whose entries a test sees; `wrong` happens at each use."""

    def __init__(self, entries: Entries, wrong: Callable[[], None] = lambda: None) -> None:
        self.entries, self.wrong = entries, wrong

    def get_password(self, service: str, name: str) -> str | None:
        self.wrong()
        return self.entries.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.wrong()
        self.entries[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.entries[service, name]


def stored_in(entries: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Keyring(entries))


def test_tokens_move_from_the_file_into_the_keyring_and_go_from_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: Entries = {}
    stored_in(entries, monkeypatch)
    file = CredentialsFile(tmp_path / "mcp_tokens.json")
    for key in ("mcp:a", "mcp:b"):
        file.put(key, Raw(b'{"old":1}'))
    tokens = KeyringTokens(file)
    assert bytes(tokens.get("mcp:a")) == b'{"old": 1}'
    tokens.put("mcp:a", Raw(b'{"new":"\xc3\xa9"}'))
    assert entries == {("phoenix-tui", "mcp:a"): '{"new":"é"}'}
    assert bytes(tokens.get("mcp:a")).decode() == '{"new":"é"}'
    assert json.loads(file.path.read_text()) == {"mcp:b": {"old": 1}}
    for key in ("mcp:a", "mcp:b", "mcp:gone"):
        tokens.put(key, NOTHING)
    assert (entries, json.loads(file.path.read_text())) == ({}, {})


def _hangs() -> None:
    threading.Event().wait()


def _refuses() -> None:
    raise RuntimeError("no session bus\nat all")


@pytest.mark.parametrize(
    ("keyring", "why"),
    [
        (None, "the keyring is not installed; install `phoenix-tui"),
        (Keyring({}, _refuses), "the keyring refuses: no session bus"),
        (Keyring({}, _hangs), "unlock it"),
    ],
    ids=["missing", "refusing", "hanging"],
)
def test_a_keyring_that_does_not_work_is_a_sentence_and_keeps_nobody(
    keyring: object, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setattr(mcp, "KEYRING_PATIENCE", 0.05)
    tokens = KeyringTokens(CredentialsFile(tmp_path / "mcp_tokens.json"))
    for ask in (lambda: tokens.get("a"), lambda: tokens.put("a", Raw(b"1"))):
        with pytest.raises(OSError, match=why):
            ask()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "keyring")


def test_odd_content_of_the_keyring_is_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = "phoenix-tui"
    stored_in({(service, "a"): "no JSON", (service, "b"): f'"{"x" * LONGEST}"'}, monkeypatch)
    tokens = KeyringTokens(CredentialsFile(tmp_path / "mcp_tokens.json"))
    assert [bytes(tokens.get(key)) for key in ("a", "b")] == [bytes(NOTHING)] * 2
    with pytest.raises(OSError, match="too long"):
        tokens.put("c", Raw(b'"' + b"x" * LONGEST + b'"'))


def test_the_choice_is_in_credentials_toml_and_a_new_key_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "credentials.toml"
    assert load_credentials(path, {}).mcp_tokens == "file"
    path.write_text('[openai]\napi_key = "k"\n\n[mcp]\ntokens = "keyring"\n')
    save_key(path, "groq", "g")
    save_key(path, "mcp", "of a provider of this name")
    found = load_credentials(path, {})
    assert (found.mcp_tokens, found.key("openai"), found.key("groq")) == ("keyring", "k", "g")
    assert found.key("mcp") == "of a provider of this name"
    path.write_text('[openai]\napi_key = "k"\n[mcp]\ntokens = "vault"\n')
    with pytest.raises(ConfigError) as caught:
        load_credentials(path, {})
    assert str(caught.value) == f'{path}:4: tokens must be "file" or "keyring".'


async def test_a_sign_in_is_kept_in_the_keyring_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries: Entries = {}
    stored_in(entries, monkeypatch)
    server, path = SignInServer(), tmp_path / "mcp_tokens.json"
    async with serving(server):
        async with hub_in(tmp_path, over_http(server.url)) as one:
            one.hub.credentials = KeyringTokens(CredentialsFile(path))
            found = await address(one)
            state = parse_qs(urlsplit(found.url).query)["state"][0]
            await fetch(f"{found.callback}?code=c&state={state}")
            await wait_until_connected(one)
        assert "token1" in "".join(entries.values())
        assert not path.exists()
        async with hub_in(tmp_path, over_http(server.url)) as one:
            one.hub.credentials = KeyringTokens(CredentialsFile(path))
            await one.hub.settle(one.record, 20.0)
            assert (await one.view("web")).state is ServerState.CONNECTED


def test_tokens_of_servers_that_are_stored_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "mcp_tokens.json"
    start = threading.Barrier(8)

    def put(number: int) -> None:
        start.wait()
        for turn in range(5):
            CredentialsFile(path).put(f"{number}-{turn}", Raw(b"1"))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads(path.read_text())) == 40


def test_a_theme_takes_what_it_does_not_name_from_its_base(tmp_path: Path) -> None:
    path = tmp_path / "dawn.toml"
    path.write_text('base = "phoenix-light"\nyou = "#123456"\nquiet = "#777"\nbackground = "#fffdf0"\n')
    theme = read_theme(path)
    assert (theme.name, theme.dark, theme.accent, theme.primary) == ("dawn", False, "#123456", "#0b62b8")
    assert theme.variables["text-muted"] == "#777"
    assert theme.variables["scrollbar-background"] == "#fffdf0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('you = "#123456"\nwork = "blue"\n', "dawn.toml:2: 'work' must be a colour such as \"#6cb2ff\", not 'blue'"),
        (
            '# mine\npurple = "#123456"\n',
            "dawn.toml:2: 'purple' is not a theme colour. Valid keys are base, background",
        ),
        ('base = "solarized"\n', "dawn.toml:1: 'base' must be one of phoenix-dark, phoenix-light"),
        ("you = \n", "is not valid TOML: Invalid value (at line 1"),
        ("you = 3\n", "must be a colour"),
    ],
)
def test_a_broken_theme_names_file_line_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "dawn.toml"
    path.write_text(text)
    with pytest.raises(ThemeError) as error:
        read_theme(path)
    assert expected in str(error.value)


def test_a_file_cannot_take_the_name_of_a_theme_of_phoenix(tmp_path: Path) -> None:
    path = tmp_path / "phoenix-dark.toml"
    path.write_text("")
    with pytest.raises(ThemeError, match="any of phoenix-dark"):
        read_theme(path)


def test_only_theme_files_are_looked_at(tmp_path: Path) -> None:
    for name in ("b.toml", "a.toml", ".swp.toml", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in theme_files(tmp_path)] == ["a.toml", "b.toml"]
    assert list(theme_files(tmp_path / "missing")) == []


def test_a_mistake_in_the_home_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "themes" / "dawn.toml"
    path.parent.mkdir()
    path.write_text('you = "blue"\n')
    with pytest.raises(ThemeError) as caught:
        read_theme(path)
    assert str(caught.value).startswith("~/themes/dawn.toml:1: 'you' must be a colour")
