"""The text of a reply that breaks: one message of it, its reason, and a turn that can go on."""

from __future__ import annotations

import pytest

from engine.machine import texts
from engine.machine.effects import FinishRun, RequestLlm, RunStatus, SaveNotice
from engine.machine.events import CompactionEnded, LlmFailed, RetryAsked, RetryDue, UserCancelled
from engine.machine.messages import LastMessage, StopReason, TextBlock
from engine.machine.states import AgentRun, AwaitingLlm, BrokenText, Errored, Failed, Idle, Requesting, Run, StopCause
from engine.machine.transition import opens_turn
from tests.support.machine import nothing_compacted
from tests.support.moves import Driver, reply, user

LOST = "The connection broke off."


def breaks(driver: Driver, written: str, *, retryable: bool = True, cause: str = LOST) -> Driver:
    name = f"m-{driver.gen}"
    failed = LlmFailed(driver.gen, "network", cause, retryable, message_id=name, written=written)
    driver.on(failed)
    return driver


def again(driver: Driver) -> Driver:
    return driver.on(RetryDue(driver.gen))


def kept(driver: Driver) -> list[tuple[tuple[object, ...], str]]:
    return [(message.blocks, message.cut) for message in driver.saved if message.cut]


def test_text_that_broke_is_stored_with_its_reason_in_the_move_that_ends_the_run() -> None:
    driver = breaks(Driver().on(user()), "half an ans", retryable=False)
    assert kept(driver) == [((TextBlock("half an ans"),), LOST)]
    assert driver.effect(SaveNotice).text == f"The answer broke off here and is kept: {LOST}"
    assert driver.effect(FinishRun).status is RunStatus.FAILURE
    assert isinstance(driver.state, Errored)


def test_a_retry_that_succeeds_stores_its_answer_alone() -> None:
    driver = again(breaks(Driver().on(user()), "half"))
    driver.on(reply(driver.gen, TextBlock("half and whole")))
    assert [message.blocks for message in driver.saved[1:]] == [(TextBlock("half and whole"),)]
    assert driver.state == Idle(driver.gen)


def test_of_all_attempts_the_longest_text_is_kept_once() -> None:
    driver = Driver().on(user())
    for written in ("half", "half an answer", ""):
        again(breaks(driver, written, cause=f"broke at {written!r}"))
    breaks(driver, "ha")
    assert kept(driver) == [((TextBlock("half an answer"),), "broke at 'half an answer'")]
    assert isinstance(driver.state, Errored)


def test_the_text_of_an_earlier_attempt_stands_in_the_state_so_that_a_crash_keeps_it() -> None:
    driver = again(breaks(Driver().on(user()), "half"))
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.state.broken == BrokenText("half", LOST, "m-1")


def test_what_was_being_continued_is_kept_with_what_broke() -> None:
    driver = Driver().on(user()).on(reply(1, TextBlock("one "), stop=StopReason.MAX_TOKENS))
    breaks(driver, "two and", retryable=False)
    assert kept(driver) == [((TextBlock("one two and"),), LOST)]
    driver = Driver().on(user()).on(reply(1, TextBlock("one "), stop=StopReason.MAX_TOKENS))
    breaks(driver, "", retryable=False)
    assert kept(driver) == [((TextBlock("one "),), LOST)]


@pytest.mark.parametrize("written", ["", " \n"])
def test_a_failure_without_words_stores_nothing(written: str) -> None:
    driver = breaks(Driver().on(user()), written, retryable=False)
    assert (kept(driver), driver.has(SaveNotice)) == ([], False)


def test_a_reply_that_goes_on_forgets_what_an_earlier_attempt_had_written() -> None:
    driver = again(breaks(Driver().on(user()), "a long text that broke"))
    driver.on(reply(driver.gen, TextBlock("one "), stop=StopReason.MAX_TOKENS))
    breaks(driver, "", retryable=False)
    assert kept(driver) == [((TextBlock("one "),), LOST)]


def test_a_compaction_between_two_attempts_loses_no_text() -> None:
    driver = again(breaks(Driver().on(user()), "half"))
    driver.on(LlmFailed(driver.gen, "overflow", "too long", retryable=False, context_overflow=True))
    driver.on(CompactionEnded(driver.gen, nothing_compacted("no model")))
    breaks(driver, "", retryable=False)
    assert kept(driver) == [((TextBlock("half"),), LOST)]


def test_a_stop_while_a_retry_waits_keeps_what_had_broken() -> None:
    driver = breaks(Driver().on(user()), "half").on(UserCancelled("m-stop", 3))
    assert kept(driver) == [((TextBlock("half"),), LOST)]
    notices = [effect.text for effect in driver.effects if isinstance(effect, SaveNotice)]
    assert notices == [texts.broke_off(LOST), "Stopped by you after 3 s"]
    assert driver.effect(FinishRun).status is RunStatus.CANCELLED


def test_a_stop_while_text_arrives_keeps_none_of_it() -> None:
    driver = again(breaks(Driver().on(user()), "half")).on(UserCancelled("m-stop", 3, written="other"))
    assert kept(driver) == []


def test_the_time_limit_of_a_run_keeps_the_text_that_it_ends() -> None:
    driver = Driver().on(user()).on(UserCancelled("m-stop", 9, by=StopCause.TIME_LIMIT, written="half"))
    assert kept(driver) == [((TextBlock("half"),), texts.TIME_LIMIT)]
    assert driver.effect(SaveNotice).text == "Stopped at the time limit after 9 s"


@pytest.mark.parametrize("timed_out", [False, True])
def test_a_sub_agent_hands_the_text_that_broke_to_its_parent(timed_out: bool) -> None:
    driver = Driver(AwaitingLlm(1, Run("run-1", 20, agent=AgentRun()), Requesting()))
    if timed_out:
        driver.on(UserCancelled("m-stop", 9, by=StopCause.TIME_LIMIT, written="found a"))
    else:
        breaks(driver, "found a", retryable=False)
    assert isinstance(driver.state, Failed)
    assert driver.state.partial == "found a"
    assert [blocks for blocks, _ in kept(driver)] == [(TextBlock("found a"),)]


def test_a_text_that_broke_is_continued_by_a_retry_and_opens_no_turn() -> None:
    driver = Driver(Idle(4)).on(RetryAsked(LastMessage.CUT, "run-2", 250))
    assert driver.effect(RequestLlm).run_id == "run-2"
    assert not opens_turn(LastMessage.CUT)
    driver.on(reply(driver.gen, last=LastMessage.CUT))
    assert driver.effect(FinishRun).status is RunStatus.SUCCESS, "nothing more to say is no failure there"


def test_a_sub_agent_that_declines_fails_with_what_it_said() -> None:
    driver = Driver(AwaitingLlm(1, Run("run-1", 20, agent=AgentRun()), Requesting()))
    driver.on(reply(1, TextBlock("Well, "), stop=StopReason.REFUSAL))
    assert isinstance(driver.state, Failed)
    assert (driver.state.kind, driver.state.error, driver.state.partial) == ("refusal", texts.DECLINED, "Well, ")
