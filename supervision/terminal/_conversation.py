"""`postroom run`: one task, watched, with a person who may speak or press Ctrl-C while it runs.

    a typed line      is mail to the agent, also between two answers
    Ctrl-C            stops the run; at a terminal the next line says what to do instead
    Ctrl-C again      stops the tree in order

It ends with the run that leaves no word of the person unread, and says how by its exit code.
"""

import signal
from collections.abc import AsyncIterable, Callable

import trio
from attrs import define, field

from actors import RunFailed, SendRefused
from actors.events import Answer, AnyEvent, MailDelivered, RunStarted, RunStopped
from supervision._session_ref import SessionRef

from ._keyboard import is_terminal, typed_lines

ANSWERED, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


@define(eq=False)
class Conversation:
    """A person's side of one session."""

    session: SessionRef
    show: Callable[[AnyEvent], None]
    note: Callable[[str], None]
    _unread: set[str] = field(factory=set, init=False)  # ids of what the person said and no run has read
    _read: set[str] = field(factory=set, init=False)  # ids of mail that a run has read
    _answered: bool = field(default=False, init=False)  # the run in progress, or the last one
    _halted: bool = field(default=False, init=False)  # by Ctrl-C, and nothing typed since
    _person: bool = field(factory=is_terminal, init=False)  # somebody can still type

    async def hold(self, task: str) -> int:
        """Give the task, follow the session until nothing is left to do; the exit code."""
        code = INTERRUPTED  # of whoever cancels the nursery
        async with self.session.events() as events, trio.open_nursery() as nursery:
            nursery.start_soon(self._keyboard, nursery.cancel_scope)
            await nursery.start(self._signals, nursery.cancel_scope)
            await self._say(task)
            code = await self._follow(events)
            nursery.cancel_scope.cancel()
        return code

    async def _follow(self, events: AsyncIterable[AnyEvent]) -> int:
        async for event in events:
            self.show(event)
            match event:
                case RunStarted():
                    self._answered = False
                case Answer():
                    self._answered = True
                case MailDelivered(mail=mail):
                    self._read |= {envelope.id for envelope in mail}
                case RunStopped(reason="stopped") if not self._person:
                    return INTERRUPTED
                case RunStopped(reason="stopped"):
                    pass
                case RunStopped() if not self._answered:
                    return await self._failed()
                case RunStopped() if self._unread <= self._read:
                    return ANSWERED
                case _:
                    pass
        return await self._failed()

    async def _failed(self) -> int:
        try:
            await self.session.wait_answer(timeout=1)
        except (RunFailed, TimeoutError) as failure:
            self.note(str(failure))
        return FAILED

    async def _say(self, text: str) -> None:
        try:
            receipt = await self.session.send(text)
        except SendRefused as refusal:
            self.note(str(refusal))
        else:
            self._unread.add(receipt.id)
            self._halted = False

    async def _keyboard(self, leave: trio.CancelScope) -> None:
        async with typed_lines() as lines:
            async for line in lines:
                await self._say(line)
        self._person = False
        if self._halted:
            leave.cancel()

    async def _signals(self, leave: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                if self._halted:
                    break
                self._halted = True
                await self.session.stop_run()
                self.note(
                    "run stopped: type what to do instead, or press Ctrl-C again to leave" if self._person else "stopping"
                )
        leave.cancel()
