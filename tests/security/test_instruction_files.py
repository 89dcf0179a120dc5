"""Instruction files of a hostile folder: bounds, imports that lead out, and nothing before trust (SECURITY V5)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from phoenix_tui.config.instructions import MOST_CHARACTERS, TOTAL_CHARACTERS, Instructions
from phoenix_tui.config.trust import Trust, TrustFile, find_project
from tests.support.git_repositories import empty_repository

SECRET = "SECRET-OF-ANOTHER-PLACE"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    empty_repository(folder)
    (folder / ".git" / "config").write_text(SECRET)
    (tmp_path / "outside.md").write_text(SECRET)
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "notes.md").write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    return folder


def reader(work: Path, *, trusted: bool = True) -> Instructions:
    trust = TrustFile(work.parent / "trust.json")
    if trusted:
        trust.answer(find_project(work), trusted=True)
    return Instructions(work.parent / "config", trust)


def texts(work: Path) -> list[str]:
    return [file.text for file in reader(work).of(work)]


def test_nothing_is_read_before_trust(work: Path) -> None:
    (work / "AGENTS.md").write_text("Run curl. @more.md")
    (work / "more.md").write_text("More.")
    (work / "sub").mkdir()
    (work / "sub" / "AGENTS.md").write_text("Below.")
    untrusted = reader(work, trusted=False)
    assert untrusted.of(work) == ()
    assert untrusted.beside(work, work / "sub" / "a.py") == ()


def test_a_changed_import_withdraws_trust_until_the_next_answer(work: Path) -> None:
    (work / "AGENTS.md").write_text("See @rules/more.md, and ask @nobody.")
    (work / "rules").mkdir()
    (work / "rules" / "more.md").write_text("Use tabs.")
    instructions = reader(work)
    assert [(file.path.name, file.text) for file in instructions.of(work)] == [
        ("AGENTS.md", "See @rules/more.md, and ask @nobody."),
        ("more.md", "Use tabs."),
    ]
    assert instructions.of(work)[1].imported_by == work / "AGENTS.md"
    (work / "rules" / "more.md").write_text("Run curl.")
    assert instructions.of(work) == ()
    assert instructions.trust.status(find_project(work)).trust is Trust.CHANGED


def test_claude_md_counts_where_there_is_no_agents_md(work: Path) -> None:
    (work / "CLAUDE.md").write_text("Of Claude.")
    assert texts(work) == ["Of Claude."]
    (work / "AGENTS.md").write_text("Of agents.")
    assert texts(work) == ["Of agents."]


@pytest.mark.parametrize(
    "name",
    [
        "../outside.md", "{root}/../outside.md", "sub/../../outside.md", "~/.ssh/notes.md", "link.md",
        "folder/outside.md", ".git/config", ".env", "keys/id_rsa", "key.md", "pipe",
        "/dev/zero", "/proc/self/environ", "binary.md", "sub",
        "x" * 900, "a\x00b.md", "loop.md",
    ],
)  # fmt: skip
def test_an_import_that_leads_out_or_to_secrets_is_left_in_the_text_alone(name: str, work: Path) -> None:
    (work / "sub").mkdir()
    (work / "keys").mkdir()
    (work / "keys" / "id_rsa").write_text(SECRET)
    (work / ".env").write_text(SECRET)
    (work / "key.md").write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}")
    (work / "binary.md").write_bytes(b"\x00\x01" + SECRET.encode())
    (work / "link.md").symlink_to(work.parent / "outside.md")
    (work / "folder").symlink_to(work.parent)
    (work / "loop.md").symlink_to("loop.md")
    os.mkfifo(work / "pipe")
    name = name.format(root=work)
    (work / "AGENTS.md").write_text(f"Read @{name} now.")
    (found,) = texts(work)
    assert found == f"Read @{name} now.".replace("\x00", "")


def test_imports_in_code_are_none(work: Path) -> None:
    (work / "more.md").write_text("More.")
    (work / "AGENTS.md").write_text("`@more.md` or\n```\n@more.md\n```\nmail@more.md")
    assert len(texts(work)) == 1


def test_cycles_end_and_depth_is_bounded(work: Path) -> None:
    (work / "AGENTS.md").write_text("@1.md @AGENTS.md")
    for number in range(1, 9):
        (work / f"{number}.md").write_text(f"{number} @{number + 1}.md @{number}.md @AGENTS.md")
    assert [text[0] for text in texts(work)] == ["@", "1", "2", "3", "4", "5"]


def test_a_bomb_of_imports_is_bounded(work: Path) -> None:
    for number in range(200):
        (work / f"{number}.md").write_text(" ".join(f"@{other}.md" for other in range(200)))
    (work / "AGENTS.md").write_text(" ".join(f"@{other}.md" for other in range(200)))
    assert len(texts(work)) == 51
    assert sum(map(len, texts(work))) <= TOTAL_CHARACTERS + 51 * 200


def test_a_file_of_100_megabytes_is_cut_with_both_numbers(work: Path) -> None:
    with (work / "AGENTS.md").open("wb") as file:
        file.write(b"x" * 2**20)
        file.truncate(100 * 2**20)
    (found,) = texts(work)
    assert found == (
        "x" * MOST_CHARACTERS + "\n[Cut: 40,000 of more than 1,048,576 characters are shown; "
        "a file has at most 40,000, all together 100,000.]"
    )


def test_a_sparse_file_of_100_megabytes_is_read_to_its_bound_alone(work: Path) -> None:
    with (work / "AGENTS.md").open("wb") as file:
        file.write(b"Use tabs.")
        file.truncate(100 * 2**20)
    assert texts(work) == ["Use tabs."]
    assert len(find_project(work).files[0].content) == 2**20


def test_direct_files_have_room_before_imported_ones_and_near_ones_before_far_ones(work: Path) -> None:
    inner = work / "inner"
    inner.mkdir()
    (work / "AGENTS.md").write_text("a" * 15_000 + " @more.md")
    (work / "more.md").write_text("m" * 15_000)
    (inner / "AGENTS.md").write_text("i" * 15_000)
    trust = TrustFile(work.parent / "trust.json")
    trust.answer(find_project(inner), trusted=True)
    instructions = Instructions(work.parent / "config", trust)
    found = instructions.of(inner, 100_000)
    assert [file.path.name for file in found] == ["AGENTS.md", "more.md", "AGENTS.md"]
    assert found[2].text == "i" * 15_000
    assert (
        "[Cut: 9,991 of 15,000 characters are shown; a file has at most 40,000, all together 40,000.]" in found[1].text
    )
    outer, _, near = instructions.of(inner, 10_000)
    assert near.text.startswith("i" * 12_000 + "\n[Cut: 12,000 of 15,000 ")
    assert outer.text == "[Cut: 0 of 15,009 characters are shown; a file has at most 40,000, all together 12,000.]"


def test_nul_and_invalid_utf8_are_harmless(work: Path) -> None:
    (work / "AGENTS.md").write_bytes(b"\xef\xbb\xbfUse\x00 tabs\xff.")
    assert texts(work) == ["Use tabs\ufffd."]


def test_the_users_own_files_and_those_below_phoenix(work: Path) -> None:
    own = work.parent / "config"
    (work / ".phoenix").mkdir()
    own.mkdir()
    (own / "AGENTS.md").write_text("Mine. @more.md @credentials.toml @../outside.md @trust.json")
    (own / "more.md").write_text("More of mine.")
    (own / "credentials.toml").write_text(SECRET)
    (own / "trust.json").write_text("{}")
    (own / "SOUL.md").write_text("Calm.")
    (own / "USER.md").write_text("Ada.")
    (work / ".phoenix" / "SOUL.md").write_text("Brisk.")
    (work / "SOUL.md").write_text("An ordinary file.")
    found = {(file.kind.name, file.text) for file in reader(work).of(work)}
    assert found == {
        ("SOUL", "Brisk."),
        ("USER", "Ada."),
        ("INSTRUCTIONS", "Mine. @more.md @credentials.toml @../outside.md @trust.json"),
        ("INSTRUCTIONS", "More of mine."),
    }


def test_folders_below_add_theirs_unless_they_hold_code_of_others(work: Path) -> None:
    for name in ("sub/deep", "node_modules/x", ".hidden", "module/src"):
        (work / name).mkdir(parents=True)
    empty_repository(work / "module")
    for name in ("AGENTS.md", "sub/CLAUDE.md", "sub/deep/AGENTS.md", "node_modules/x/AGENTS.md", ".hidden/AGENTS.md"):
        (work / name).write_text(name)
    (work / "module" / "src" / "AGENTS.md").write_text("Of a submodule.")
    (work / "sub" / "link").symlink_to(work.parent)
    instructions = reader(work)

    def beside(name: str) -> list[str]:
        return [file.text for file in instructions.beside(work, work / name)]

    assert beside("sub/deep/a.py") == ["sub/CLAUDE.md", "sub/deep/AGENTS.md"]
    assert beside("sub/deep") == ["sub/CLAUDE.md", "sub/deep/AGENTS.md"]
    for name in ("a.py", "node_modules/x/a.js", ".hidden/a", "module/src/a.py", "sub/link/outside.md", "../outside.md"):
        assert beside(name) == []


@pytest.mark.parametrize("kind", ["pipe", "device", "out"])
def test_a_folders_file_that_is_none_is_passed_over(kind: str, work: Path) -> None:
    (work / "sub").mkdir()
    path = work / "sub" / "AGENTS.md"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else work.parent / "outside.md")
    (work / "AGENTS.md").write_text("Root.")
    assert reader(work).beside(work, work / "sub" / "a.py") == ()
