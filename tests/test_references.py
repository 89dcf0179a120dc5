"""References lead somewhere, and docs/contract.md lists what the program offers; links: test_architecture.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.names import COMMANDS as PROGRAM_COMMANDS
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.config.settings import KEYS, PROVIDER_KEYS
from phoenix_tui.features.catalogue import ALIASES, BY_NAME, LINE_COMMANDS, LISTED, REGISTRY
from tests.support.references import (
    ROOT,
    documents,
    ids_of,
    known_ids,
    lost_files,
    lost_links,
    references_in,
    sources,
    unresolved_in,
    words_of,
)

DEFINING = {"spec.md"}
"""Documents that define ids and name them without saying whose they are."""


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_reference_in_the_code_resolves() -> None:
    known = known_ids()
    texts = {place(path): words_of(path.read_text("utf-8")) for path in sources()}
    assert [(name, lost) for name, text in texts.items() for lost in unresolved_in(text, known)] == []


def test_every_reference_in_the_documents_resolves() -> None:
    known = known_ids()
    texts = {place(path): path.read_text("utf-8") for path in documents() if path.name not in DEFINING}
    assert [(name, lost) for name, text in texts.items() for lost in unresolved_in(text, known)] == []


KNOWN = {"SPEC": {"BED-001", "BED-002", "I1", "T-SM", "T-SM 1", "T-SM 4"}, "CONTRACT": {"4"}} | {
    "FAULTS": {"1", "3", "3.1"},
    "SECURITY": {"V1"},
}


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("first (SPEC BED-001, T-SM 1-4, I1) and (FAULTS 1-3, 3.1; CONTRACT 4: files)", []),
        ("SPEC BED-001 to BED-002 and SECURITY V1", []),
        ("SPEC\n    BED-001", []),
        ("a made-up id: SPEC BED-999", ["SPEC BED-999"]),
        ("the second of a list: SPEC BED-001, BED-998", ["SPEC BED-998"]),
        ("a case that is none: SPEC T-SM 2", ["SPEC T-SM 2"]),
        ("the end of a range: FAULTS 1-2", ["FAULTS 2"]),
        ("no id at all: SPEC section b", ["SPEC"]),
        ("an old form: SPEC c10", ["SPEC"]),
        ("a document that is not here: LOOK.md 7, SPIKE 4", ["LOOK.md", "SPIKE 4"]),
        (
            "a section of another document: ARCHITECTURE 3, ARCHITECTURE.md section 4",
            ["ARCHITECTURE 3", "ARCHITECTURE.md section 4"],
        ),
        ("an id without its document: BED-001 and SPEC BED-001, T-SM 1 or T-SM", ["BED-001", "T-SM"]),
        ("a path that is not here: docs/nothing.md", ["docs/nothing.md"]),
        ("the constants LOOK and SPEC_FILE, and `SPEC` alone", []),
    ],
)
def test_a_made_up_reference_is_found(text: str, lost: list[str]) -> None:
    assert unresolved_in(text, KNOWN) == lost


def test_a_document_defines_ids_by_headings_and_by_numbered_rows() -> None:
    text = (
        "# Title\n## 3 Mechanisms\n### BED-001 Pure\n| 12 | a fault |\n### T-SM The machine\n| 9 | killed |\n#### I1\n"
    )
    assert ids_of(text) == {"3", "BED-001", "12", "T-SM", "T-SM 9", "I1"}


def test_only_comments_and_docstrings_of_a_source_count() -> None:
    source = '"""A rule (SPEC BED-001)."""\nSPEC = 1  # see SPEC BED-002\nnumbers = SPEC - 3\ntext = "SPEC BED-003"\n'
    assert list(references_in(words_of(source))) == [("SPEC", "BED-001"), ("SPEC", "BED-002")]


def test_a_link_or_a_file_that_is_not_there_is_found() -> None:
    text = "# One heading\n[a](#one-heading) [b](#another) [c](Makefile) [d](nothing.md) [e](https://example.org)\n"
    assert lost_links(text, ROOT) == ["#another", "nothing.md"]
    named = "`engine/a.py`, `a.py`, `b.py`, `engine/b.py`, `engine`, `tests/SCENE/x.txt`, `README.md`, `python -m x`"
    assert lost_files(f"{named}\n```\n`engine/c.py`\n```\n", {"engine/a.py", "engine"}) == ["b.py", "engine/b.py"]


def section(number: int) -> str:
    text = (ROOT / "docs" / "contract.md").read_text("utf-8")
    return text.partition(f"\n## {number} ")[2].partition("\n## ")[0]


def test_the_contract_names_every_flag_and_every_exit_code() -> None:
    flags = {option for action in run_parser()._actions for option in action.option_strings if option != "-h"}
    assert flags == set(re.findall(r"(?<![\w`-])`?(--?[a-zA-Z][\w-]*)", section(2).partition("| command |")[0]))
    assert {str(code.value) for code in Exit} == set(re.findall(r"^\| (\d+) \|", section(2), re.MULTILINE))


def test_the_contract_names_every_setting() -> None:
    settings = section(4).partition("\nSettings: ")[2].partition(", and tables")[0]
    assert set(re.findall(r"`(\w+)`", settings)) == set(KEYS)


def test_the_contract_names_every_slash_command() -> None:
    listed, _, more = section(7).partition("Slash commands: ")[2].partition(".")
    assert listed.split() == [f"/{command.name}" for command in LISTED]
    rows = {name: hidden.split() for name, hidden in re.findall(r"^\| /(\w+) \| (/.*) \|$", more, re.MULTILINE)}
    belonging = {name: [f"/{one.name}" for one in REGISTRY if one.shown_in == name] for name in BY_NAME}
    assert rows == {name: hidden for name, hidden in belonging.items() if hidden}
    of_lines = more.partition("Only in lines: ")[2].partition(".")[0]
    assert of_lines.split() == [f"/{name}" for name in sorted(LINE_COMMANDS.keys() - BY_NAME.keys())]


def test_the_contract_names_every_command_of_the_program() -> None:
    rows = section(2).partition("| command |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)", rows, re.MULTILINE)) == set(PROGRAM_COMMANDS)


def test_documents_for_users_name_only_commands_and_settings_that_exist() -> None:
    text = "\n".join((ROOT / name).read_text("utf-8") for name in ("README.md", "CHANGELOG.md"))
    named = set(re.findall(r"`/([a-z]+)(?: [^`]*)?`", text)) - {"tmp"}
    assert named - set(BY_NAME) - set(ALIASES) == set()
    settings = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)(?: = [^`]*)?`", text))
    others = (
        {
            "list_mcp_resources",
            "read_mcp_resource",
            "tool_search",
            "job_output",
            "job_kill",
            "memory_get",
            "memory_search",
            "spawn_agents",
            "spawn_task",
            "web_fetch",
            "ask_user",
            "agent_servers",
        }
        | set(PROVIDER_KEYS)
        | {"extra_body"}
    )
    assert settings - set(KEYS) - others == set()
