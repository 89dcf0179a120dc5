"""Replies, retries, continuations, texts that break, stopped lines (SPEC BED-003, BED-006, STM-02, T-SM 5, 7, 10)."""

from __future__ import annotations

import pytest

from engine.machine import texts
from engine.machine.effects import (
    AfterRun,
    Compact,
    ExecTool,
    FinishRun,
    Notice,
    RequestLlm,
    RunStatus,
    SaveCompaction,
    SaveContext,
    SaveMessage,
    SaveNotice,
    SaveToolResult,
    SaveView,
    ScheduleRetry,
)
from engine.machine.events import (
    CancelDeadlinePassed,
    CompactAsked,
    CompactionEnded,
    LlmFailed,
    RetryAsked,
    RetryDue,
    RouteDecided,
    StoppedOutput,
    ToolAborted,
    ToolFinished,
    UserCancelled,
    UserMessage,
    UserShell,
)
from engine.machine.messages import (
    LastMessage,
    NewMessage,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    ToolStatus,
    Usage,
)
from engine.machine.states import (
    AgentRun,
    AwaitingLlm,
    BrokenText,
    CompactingContext,
    Errored,
    Failed,
    Idle,
    Requesting,
    RetryWait,
    Routing,
    Run,
    StopCause,
    ToolExecuting,
)
from engine.machine.transition import opens_turn
from engine.machine.views import ContextView
from tests.support.machine import compacted, nothing_compacted
from tests.support.moves import Driver, calls, done, reply, user

DRAFT = compacted(ContextView("the plan", 5), 40, "Summarized 9 messages")
FAILED = nothing_compacted("no model")


def failing(driver: Driver, message: str = "overloaded", retry_after: float = 0.0) -> Driver:
    return driver.on(LlmFailed(driver.gen, "overloaded", message, retryable=True, retry_after=retry_after))


def test_an_answer_is_saved_and_ends_the_run() -> None:
    driver = Driver().on(user()).on(reply(1, TextBlock("hello")))
    assert driver.state == Idle(2)
    assert driver.saved[-1].blocks == (TextBlock("hello"),)
    assert driver.effect(FinishRun).status is RunStatus.SUCCESS
    assert driver.has(AfterRun)


def test_tool_calls_are_saved_with_the_answer_and_the_first_one_starts() -> None:
    driver = Driver().on(user()).on(reply(1, TextBlock("look"), *calls("t1", "t2"), stop=StopReason.TOOL_USE))
    assert isinstance(driver.state, ToolExecuting)
    assert driver.effect(ExecTool).call.id == "t1"
    assert [call.id for call in driver.state.round.queue] == ["t2"]


def test_a_late_answer_changes_nothing() -> None:
    driver = Driver().on(user())
    before = driver.state
    assert driver.on(reply(0, TextBlock("late"))).effects == ()
    assert driver.state is before


def test_two_failures_and_a_success_take_two_retries_of_one_and_two_seconds() -> None:
    driver = Driver().on(user())
    delays = []
    for _ in range(2):
        delays.append(failing(driver).effect(ScheduleRetry).seconds)
        assert isinstance(driver.state, AwaitingLlm)
        assert isinstance(driver.state.phase, RetryWait)
        again = driver.on(RetryDue(driver.gen)).state
        assert isinstance(again, AwaitingLlm)
        assert again.phase == Requesting()
    assert delays == [1.0, 2.0]
    assert driver.on(reply(driver.gen, TextBlock("ok"))).state == Idle(driver.gen)


def test_four_failures_are_an_error_after_waits_of_one_two_and_four_seconds() -> None:
    driver, delays = Driver().on(user()), []
    for _ in range(3):
        delays.append(failing(driver).effect(ScheduleRetry).seconds)
        driver.on(RetryDue(driver.gen))
    failing(driver, "overloaded")
    assert delays == [1.0, 2.0, 4.0]
    assert isinstance(driver.state, Errored)
    expected = "Failed after 3 retries: overloaded. Press Enter to retry or send a message."
    assert driver.state.message == expected
    assert driver.effect(FinishRun).recoverable is True


def test_a_longer_retry_after_wins_up_to_a_minute() -> None:
    assert failing(Driver().on(user()), retry_after=7).effect(ScheduleRetry).seconds == 7
    assert failing(Driver().on(user()), retry_after=0.2).effect(ScheduleRetry).seconds == 1
    assert failing(Driver().on(user()), retry_after=900).effect(ScheduleRetry).seconds == 60


def test_a_reply_cut_by_the_output_limit_is_continued_and_saved_as_one_row() -> None:
    driver = Driver().on(user()).on(reply(1, ThinkingBlock("a", "s"), TextBlock("one "), stop=StopReason.MAX_TOKENS))
    assert driver.effect(RequestLlm).partial == (ThinkingBlock("a", "s"), TextBlock("one "))
    assert len(driver.saved) == 1, "nothing is stored before the reply is whole"
    driver.on(reply(driver.gen, ThinkingBlock("b", "s2"), TextBlock("two")))
    assert driver.saved[-1].blocks == (ThinkingBlock("a", "s"), TextBlock("one two"))
    assert driver.state == Idle(driver.gen)


def test_a_fourth_cut_ends_the_run_with_what_there_is() -> None:
    driver = Driver().on(user())
    for _ in range(4):
        driver.on(reply(driver.gen, TextBlock("x"), stop=StopReason.MAX_TOKENS))
    assert driver.state == Idle(driver.gen)
    assert driver.saved[-1].blocks == (TextBlock("xxxx"),)
    assert driver.effect(SaveNotice).text == texts.OUTPUT_LIMIT


def test_a_truncated_tool_call_is_not_run_but_asked_for_again() -> None:
    cut = reply(1, TextBlock("I will"), stop=StopReason.MAX_TOKENS, truncated_call=True)
    driver = Driver().on(user()).on(cut)
    assert driver.effect(RequestLlm).truncated_call is True
    assert not driver.has(ExecTool)


def test_a_refusal_never_runs_its_tool_calls() -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.REFUSAL))
    assert driver.state == Idle(2)
    assert driver.effect(SaveNotice).text == texts.DECLINED


@pytest.mark.parametrize(
    ("stop", "code", "sentence"),
    [
        (StopReason.REFUSAL, "refusal", "The model declined to answer"),
        (StopReason.CONTENT_FILTER, "content_filter", "A content filter of the provider stopped the answer"),
    ],
)
def test_what_is_declined_after_words_keeps_them_and_ends_as_a_failure(
    stop: StopReason, code: str, sentence: str
) -> None:
    driver = Driver().on(user()).on(reply(1, TextBlock("Well, "), *calls("t1"), stop=stop))
    assert driver.state == Idle(2)
    assert driver.saved[-1].blocks == (TextBlock("Well, "),)
    assert driver.effect(SaveNotice).text == sentence
    finish = driver.effect(FinishRun)
    assert (finish.status, finish.error, finish.error_code) == (RunStatus.FAILURE, sentence, code)
    assert not driver.has(AfterRun)


def test_an_empty_answer_after_tools_is_a_good_end_and_otherwise_a_failure_to_retry() -> None:
    after_tools = Driver().on(user()).on(reply(1, last=LastMessage.TOOL_RESULT))
    assert after_tools.effect(FinishRun).status is RunStatus.SUCCESS
    assert len(after_tools.saved) == 1
    assert Driver().on(user()).on(reply(1, TextBlock(" \n"))).has(ScheduleRetry)


def test_the_last_model_call_ends_the_run_after_its_tools() -> None:
    driver = Driver().on(user(limit=1)).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE))
    driver.on(ToolFinished(driver.gen, done("t1"), "m-r"))
    assert driver.state == Idle(driver.gen)
    assert driver.results() == [("t1", "ok", False)]
    assert driver.effect(FinishRun).error_code == "iteration_limit"
    assert driver.effect(SaveNotice).text == "Stopped after 1 iterations — send a message to continue"


def test_a_context_overflow_compacts_once_and_then_is_an_error() -> None:
    driver = Driver().on(user())
    overflow = LlmFailed(driver.gen, "invalid_request", "too long", retryable=False, context_overflow=True)
    driver.on(overflow)
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.state.phase == CompactingContext()
    assert driver.effect(Compact) == Compact(driver.gen, manual=False, full=True)
    driver.on(CompactionEnded(driver.gen, DRAFT))
    assert driver.has(RequestLlm)
    driver.on(LlmFailed(driver.gen, "invalid_request", "too long", retryable=False, context_overflow=True))
    assert isinstance(driver.state, Errored)


def tool_round(driver: Driver, output: str = "ok", context_tokens: int = 0, compact_above: int = 0) -> Driver:
    """One reply with a call, and its result."""
    name = f"t{driver.gen}"
    asked = calls(name)
    driver.on(
        reply(driver.gen, *asked, stop=StopReason.TOOL_USE, context_tokens=context_tokens, compact_above=compact_above)
    )
    return driver.on(ToolFinished(driver.gen, ToolResult(name, output, ToolStatus.SUCCESS), f"r{driver.gen}"))


def test_a_full_window_is_compacted_between_tools_and_the_next_call_as_often_as_it_is_due() -> None:
    driver = Driver().on(user())
    for _ in range(3):
        tool_round(driver, context_tokens=75, compact_above=75)
        assert driver.effect(Compact) == Compact(driver.gen, manual=False)
        driver.on(CompactionEnded(driver.gen, DRAFT))
        assert driver.has(RequestLlm)
    tool_round(driver, context_tokens=90, compact_above=0)
    assert driver.has(RequestLlm), "the executor gives no threshold while too few messages are new"


def test_after_a_compaction_that_changed_nothing_the_run_goes_on_without_another() -> None:
    driver = tool_round(Driver().on(user()), context_tokens=75, compact_above=75)
    driver.on(CompactionEnded(driver.gen, FAILED))
    assert driver.has(RequestLlm)
    tool_round(driver, context_tokens=80, compact_above=75)
    assert (driver.has(Compact), driver.has(RequestLlm)) == (False, True)


@pytest.mark.parametrize(("characters", "due"), [(399, False), (400, True), (40_000, True)])
def test_results_that_would_fill_the_window_are_waited_for_by_a_compaction(characters: int, due: bool) -> None:
    driver = tool_round(Driver().on(user()), "x" * characters, context_tokens=650, compact_above=750)
    assert (driver.has(Compact), driver.has(RequestLlm)) == (due, not due)


def test_an_overflow_after_a_reply_is_compacted_again() -> None:
    driver = Driver().on(user())
    for _ in range(3):
        driver.on(LlmFailed(driver.gen, "invalid_request", "too long", retryable=False, context_overflow=True))
        assert driver.effect(Compact).full
        driver.on(CompactionEnded(driver.gen, DRAFT))
        tool_round(driver)
        assert driver.has(RequestLlm)


def test_old_results_that_became_shorter_count_for_what_comes_next() -> None:
    driver = Driver().on(user())
    replied = reply(1, *calls("t1"), stop=StopReason.TOOL_USE, context_tokens=800, compact_above=750, pruned=DRAFT)
    saved = [e for e in driver.on(replied).effects if isinstance(e, SaveContext | SaveView | SaveCompaction)]
    assert saved == [SaveContext(800, False, Usage(10, 5)), SaveView(DRAFT), SaveCompaction(DRAFT.facts)]
    driver.on(ToolFinished(driver.gen, done("t1"), "m-r"))
    assert (driver.has(Compact), driver.has(RequestLlm)) == (False, True), "40 tokens are left in the window"


def test_a_message_into_a_full_window_waits_for_the_summary_whatever_comes_of_it() -> None:
    for outcome in (DRAFT, FAILED):
        message = NewMessage("m", Role.USER, Origin.HUMAN, (TextBlock("hi"),))
        driver = Driver().on(UserMessage(message, LastMessage.ANSWER, "run", 250, compact_due=True))
        assert isinstance(driver.state, AwaitingLlm)
        assert driver.state.phase == CompactingContext()
        assert driver.effect(SaveMessage).message is message
        driver.on(CompactionEnded(driver.gen, outcome))
        assert driver.has(RequestLlm)
        told = [
            effect for effect in driver.effects if isinstance(effect, Notice | SaveNotice | SaveView | SaveCompaction)
        ]
        done = [SaveNotice("Summarized 9 messages"), SaveView(DRAFT), SaveCompaction(DRAFT.facts)]
        assert told == (done if outcome is DRAFT else [SaveCompaction(FAILED), Notice("no model")])


def test_a_reply_that_is_being_continued_outlasts_the_summary() -> None:
    driver = Driver().on(user()).on(reply(1, TextBlock("half"), stop=StopReason.MAX_TOKENS))
    driver.on(LlmFailed(driver.gen, "invalid_request", "too long", retryable=False, context_overflow=True))
    driver.on(CompactionEnded(driver.gen, DRAFT))
    assert driver.effect(RequestLlm).partial == (TextBlock("half"),)


def test_a_wish_goes_along_with_a_summary_by_hand() -> None:
    driver = Driver().on(CompactAsked("tables", 7))
    assert driver.effect(Compact) == Compact(driver.gen, manual=True, focus="tables", before=7)
    driver.on(CompactionEnded(driver.gen, DRAFT))
    assert driver.state == Idle(driver.gen)
    assert driver.effects == (SaveNotice("Summarized 9 messages"), SaveView(DRAFT), SaveCompaction(DRAFT.facts))


def test_a_summary_by_hand_that_failed_says_why_and_saves_no_view() -> None:
    driver = Driver().on(CompactAsked())
    driver.on(CompactionEnded(driver.gen, FAILED))
    assert (driver.state, driver.effects) == (Idle(driver.gen), (SaveNotice("no model"), SaveCompaction(FAILED)))


def test_what_a_reply_cost_and_how_full_the_window_is_are_saved_as_its_event_says() -> None:
    driver = Driver().on(user())
    driver.on(reply(1, TextBlock("hi"), cost_usd=0.25, context_tokens=70, estimated=True))
    assert driver.effect(SaveMessage).cost_usd == 0.25
    assert driver.effect(SaveContext) == SaveContext(70, True, Usage(10, 5))


def test_routing_falls_back_to_the_main_model() -> None:
    message = NewMessage("m", Role.USER, Origin.HUMAN, (TextBlock("hi"),))
    driver = Driver().on(UserMessage(message, LastMessage.NONE, "run", 250, supervisor=True))
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.state.phase == Routing()
    assert driver.on(RouteDecided(driver.gen, "m2")).has(RequestLlm)
    assert not driver.has(SaveMessage)


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


OUTPUT = StoppedOutput("half\n[stopped by the user after 3 s]", '{"shown": 1}', truncated=True, note="a note")
KEPT = ToolResult("t1", OUTPUT.text, ToolStatus.CANCELLED, (), OUTPUT.display_json, truncated=True)


def stopped_line(send: bool) -> Driver:
    shell = UserShell("m-sh", ToolCall("t1", "bash", "{}"), "run-1", send, LastMessage.ANSWER, "make")
    return Driver().on(shell).on(UserCancelled("m-c", elapsed=3))


@pytest.mark.parametrize("send", [True, False])
@pytest.mark.parametrize("late", [True, False], ids=["at the deadline", "once it is dead"])
def test_a_stopped_line_keeps_its_output_also_for_the_model_that_was_to_read_it(send: bool, late: bool) -> None:
    driver = stopped_line(send)
    gen = driver.gen
    driver.on(CancelDeadlinePassed(gen, "m-r", OUTPUT) if late else ToolAborted(gen, "t1", "m-r", output=OUTPUT))
    assert isinstance(driver.state, Idle)
    assert driver.effect(SaveToolResult).result == KEPT
    assert driver.effect(SaveNotice).text == "a note", "no second row says that it was stopped"
    assert driver.effect(FinishRun).status is RunStatus.CANCELLED
    if send:
        saved = driver.effect(SaveMessage)
        assert (saved.message.blocks, saved.new_turn) == ((TextBlock(f"$ make\n{OUTPUT.text}"),), True)
    assert driver.has(SaveMessage) is send


@pytest.mark.parametrize("job", ["", "job-1"])
def test_a_line_without_output_and_one_that_runs_on_are_not_told_to_the_model(job: str) -> None:
    driver = stopped_line(True)
    driver.on(ToolAborted(driver.gen, "t1", "m-r", job=job, output=OUTPUT if job else None))
    assert driver.effect(SaveToolResult).result.text.startswith("Cancelled by user")
    assert not driver.has(SaveMessage)
    assert driver.effect(SaveNotice).text == "Stopped by you after 3 s"


def test_the_model_reads_nothing_of_its_own_stopped_call_and_the_screen_shows_its_output() -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE)).on(UserCancelled("m-c"))
    driver.on(ToolAborted(driver.gen, "t1", "m-r", output=OUTPUT))
    assert driver.results() == [("t1", "Cancelled by user", True)]
    assert driver.effect(SaveToolResult).result.display_json == OUTPUT.display_json
