"""Completions of skills and command files: what a query finds, in which order, with which words."""

from __future__ import annotations

from pathlib import Path

from engine.ports.extensions import Invocable, InvocableCatalogue, InvocableKind, InvocableOrigin
from phoenix_tui.features.custom_commands import CustomCommands, parse_name
from phoenix_tui.widgets.completion_popup import Token
from phoenix_tui.widgets.completions import custom_completions


def one(name: str, description: str, kind: InvocableKind = InvocableKind.COMMAND, hint: str = "") -> Invocable:
    return Invocable(name, description, "", kind, InvocableOrigin.PROJECT, Path("/c.md"), "0", argument_hint=hint)


def custom(*found: Invocable) -> CustomCommands:
    calls = {one.name: one for one in found} | {f"project:{one.name}": one for one in found}
    return CustomCommands(InvocableCatalogue(by_call=calls))


def texts(query: str, found: CustomCommands) -> list[str]:
    line = f"/{query}"
    return [one.text for one in custom_completions(Token(line, 0, 0, len(line)), line, found)]


def test_beginnings_come_before_parts_letters_and_descriptions() -> None:
    found = custom(
        one("git:commit", "Writes it."), one("commit", "x"), one("cam-out-mint", "x"), one("save", "Commits.")
    )
    assert [each.name for each in found.matching("commit")] == ["commit", "git:commit", "save"]
    assert [each.name for each in found.matching("cmt")] == ["cam-out-mint", "commit", "git:commit"]


def test_phoenix_own_commands_with_this_beginning_come_first() -> None:
    assert texts("comp", custom(one("compile", "x")))[:2] == ["/compact", "/compile"]


def test_names_with_their_owner_are_offered_where_a_colon_is_typed() -> None:
    found = custom(one("fix", "x"))
    assert "/project:fix" not in texts("f", found)
    assert texts("project:", found) == ["/project:fix"]


def test_a_row_says_description_owner_and_arguments_and_runs_only_without_any() -> None:
    found = custom(one("fix", "Fix it.", hint="ISSUE"), one("pdf", "", InvocableKind.SKILL))
    [fix] = custom_completions(Token("/fix", 0, 0, 4), "/fix", found)[:1]
    assert (fix.text, fix.shown, fix.meaning, fix.runs) == ("/fix", "/fix ISSUE", "Fix it. · project", False)
    [pdf] = custom_completions(Token("/pdf", 0, 0, 4), "/pdf", found)[:1]
    assert (pdf.meaning, pdf.runs) == ("project skill", True)
    [hint] = custom_completions(Token("", 0, 5, 5), "/fix ", found)
    assert (hint.text, hint.hint) == ("/fix ISSUE", True)
    assert custom_completions(Token("", 0, 5, 5), "/pdf ", found) == []


def test_a_call_begins_the_text_and_a_path_is_none() -> None:
    assert parse_name("/git:commit now\nand then") == "git:commit"
    assert [parse_name(text) for text in (" /fix", "a /fix", "/usr/bin", "/", "/-x", "//fix")] == [""] * 6
