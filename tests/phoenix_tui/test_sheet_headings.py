"""Headings of sheets: whole keys or none."""

from __future__ import annotations

from phoenix_tui.modals.rows_sheet import heading, whole_facts

KEYS = "y uses all · n none · Enter opens"


def test_the_last_keys_go_where_they_do_not_fit_and_none_is_cut() -> None:
    assert heading("Files", KEYS, 60, "1 / 27").plain == f"Files   1 / 27   {KEYS}"
    assert heading("Files", KEYS, 45, "1 / 27").plain == "Files   1 / 27   y uses all · n none"
    assert heading("Files", KEYS, 20, "1 / 27").plain == "Files   1 / 27"
    assert heading("Files", KEYS, 4).plain == "Fil…"
    assert heading("Files", "", 40).plain == "Files"


def test_a_fact_of_which_a_few_letters_fit_is_left_out() -> None:
    facts = "on · project · reads and writes files of many kinds"
    assert whole_facts(facts, 60) == facts
    assert whole_facts(facts, 20) == "on · project"
    assert whole_facts(facts, 40) == facts
    assert whole_facts("reads and writes files", 10) == "reads and writes files"
