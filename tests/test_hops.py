"""Few files lie between a key and what it does."""

from __future__ import annotations

import pytest

from tests.hops import CHAINS, Chain, Step, body


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_each_step_of_a_chain_exists_and_leads_to_the_next(chain: Chain) -> None:
    lost = [step for step in chain.steps if not body(step) or step.leads_to not in body(step)]
    assert lost == []


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_a_chain_stays_within_its_limit_of_files(chain: Chain) -> None:
    assert (len(chain.files) <= chain.limit, len(chain.screens) <= chain.of_screens) == (True, True)


def test_a_step_that_does_not_exist_is_found() -> None:
    assert body(Step("tests/hops.py", "no_such_function", "")) == ""
    assert body(Step("tests/no_such_file.py", "body", "")) == ""
    assert "source of a step's function" in body(Step("tests/hops.py", "body", ""))
