"""A small host of the control protocol: drives the real program by lines on stdin, and answers what it asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.support.cli import Phoenix, end_input
from tests.support.waiting import PATIENCE

Frame: TypeAlias = dict[str, Any]
Answer: TypeAlias = "Callable[[Frame], Frame | None]"
"""Answer to a request of Phoenix; None: there is none."""
LONGEST_LINE: Final = 1024 * 1024
"""Bytes that the Python SDK buffers for one line."""
FLAGS: Final = ("--output-format", "stream-json", "--verbose", "--system-prompt", "", "--input-format", "stream-json")


@dataclass(slots=True)
class ControlHost:
    """One running Phoenix; every frame that it writes is kept."""

    process: asyncio.subprocess.Process
    answers: dict[str, Answer]
    frames: list[Frame] = field(default_factory=list[Frame])
    err: bytearray = field(default_factory=bytearray)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _ended: bool = False
    _ids: Iterator[int] = field(default_factory=lambda: iter(range(1, 10_000)))

    def send(self, *frames: Frame) -> None:
        """Write lines."""
        self.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def write(self, content: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(content)

    def say(self, content: Any, **more: Any) -> None:
        """Send a message of the user."""
        self.send({"type": "user", "message": {"role": "user", "content": content}, "session_id": "default"} | more)

    def begin(self, subtype: str, **more: Any) -> str:
        """Send a request; returns its id."""
        request_id = f"req_{next(self._ids)}"
        request = {"subtype": subtype} | more
        self.send({"type": "control_request", "request_id": request_id, "request": request})
        return request_id

    async def ask(self, subtype: str, **more: Any) -> Frame:
        """Send a request and wait for the answer: its `response`, with subtype success or error."""
        request_id = self.begin(subtype, **more)
        return await self.answer_to(request_id)

    async def answer_to(self, request_id: str) -> Frame:
        """The answer to a request."""
        frame = await self.wait(lambda one: one.get("response", {}).get("request_id") == request_id)
        found: Frame = frame["response"]
        return found

    async def turn(self, content: Any, **more: Any) -> list[Frame]:
        """Send a message and wait for its result; returns the frames of the turn, the result last."""
        start = len(self.frames)
        self.say(content, **more)
        await self.wait(lambda one: one["type"] == "result", start)
        return self.messages(start)

    async def wait(self, condition: Callable[[Frame], object], start: int = 0) -> Frame:
        """The first frame, from number `start` on, for which the condition holds."""
        async with asyncio.timeout(PATIENCE), self._changed:
            while True:
                for frame in self.frames[start:]:
                    if condition(frame):
                        return frame
                assert not self._ended, f"Phoenix ended: {bytes(self.err).decode()}"
                await self._changed.wait()

    def messages(self, start: int = 0) -> list[Frame]:
        """The frames without requests, answers and states."""
        skipped = {"control_request", "control_response", "control_cancel_request"}
        kept = (one for one in self.frames[start:] if one["type"] not in skipped)
        return [one for one in kept if one.get("subtype") != "session_state_changed"]

    def kinds(self, start: int = 0) -> list[str]:
        """Type and subtype of the frames without requests, answers and states."""
        return ["/".join(filter(None, (one["type"], one.get("subtype")))) for one in self.messages(start)]

    def requests(self, subtype: str) -> list[Frame]:
        """The requests of Phoenix of one kind."""
        asked = (one for one in self.frames if one["type"] == "control_request")
        return [one["request"] for one in asked if one["request"]["subtype"] == subtype]

    async def close(self) -> int:
        """Close stdin and wait for the end; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.end()

    async def end(self) -> int:
        """Wait for the end; returns the exit code."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def read(self) -> None:
        """Take in stdout until it ends, and answer requests."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            assert len(line) <= LONGEST_LINE, f"a line of {len(line)} bytes: {line[:200]!r}"
            frame = json.loads(line)
            async with self._changed:
                self.frames.append(frame)
                self._changed.notify_all()
            if frame["type"] == "control_request":
                self._answer(frame)
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    async def read_errors(self) -> None:
        """Take in stderr until it ends."""
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(4096):
            self.err += piece

    def _answer(self, frame: Frame) -> None:
        answer = self.answers.get(frame["request"]["subtype"])
        given = answer(frame["request"]) if answer is not None else None
        if given is not None:
            response = {"subtype": "success", "request_id": frame["request_id"], "response": given}
            self.send({"type": "control_response", "response": response})


@contextlib.asynccontextmanager
async def hosted(
    phoenix: Phoenix, *flags: str, base: Sequence[str] = FLAGS, **answers: Answer
) -> AsyncGenerator[ControlHost]:
    """A Phoenix that waits for lines; ended at the end of the block."""
    process = await phoenix.start(*base, *flags, stdin=asyncio.subprocess.PIPE)
    host = ControlHost(process, answers)
    readers = [asyncio.ensure_future(host.read()), asyncio.ensure_future(host.read_errors())]
    try:
        yield host
    finally:
        if process.returncode is None:
            await end_input(process)
        await asyncio.gather(*readers)
