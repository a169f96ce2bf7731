"""`postroom run`: one task, watched, with a person who may speak or press Ctrl-C while it runs.

    a typed line      is mail to the agent, also between two answers; `/pause` and the like are orders to its session
    Ctrl-C            stops the run; at a terminal the next line says what to do instead
    Ctrl-C again      stops the tree in order

It ends with the run that leaves no word of the person unread, and says how by its exit code.
"""

import signal
from collections.abc import AsyncIterable, Callable, Sequence

import trio
from attrs import define, field

from actors import RunFailed, SendRefused, Status
from actors.events import Answer, AnyEvent, MailDelivered, RunStarted, RunStopped, StatusChanged
from supervision._session_ref import SessionRef

from ._keyboard import is_terminal, typed_lines
from ._orders import Typed, understood

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
    _halted: bool = field(default=False, init=False)  # by Ctrl-C or `/stop`, and nothing said since
    _closed: bool = field(default=False, init=False)  # nobody will type any more
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
                case StatusChanged(status=Status.PAUSED) if self._closed:
                    return INTERRUPTED
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

    async def _say(self, text: str, *, interrupt: bool = False) -> None:
        receipt = await self.session.send(text, interrupt=interrupt)
        self._unread.add(receipt.id)
        self._halted = False

    async def _typed(self, typed: Typed) -> None:
        self._person |= typed.what not in {"say", "interrupt"}  # whoever gives orders can give another
        match typed.what:
            case "say" | "interrupt":
                await self._say(typed.words, interrupt=typed.what == "interrupt")
            case "pause":
                await self.session.pause()
            case "resume":
                await self.session.resume()
            case "stop":
                self._halted = True
                await self.session.stop_run()
            case "cancel":
                await self._cancel(typed.words.split())
            case "note":
                self.note(typed.words)

    async def _cancel(self, ids: Sequence[str]) -> None:
        running = {row.id: row.tool for row in (await self.session.record()).calls if not row.final}
        strange = [call for call in ids if call not in running]
        if ids and not strange:
            await self.session.cancel_calls(*ids)
            return
        listed = ", ".join(f"{call} ({tool})" for call, tool in running.items()) or "none"
        self.note(f"{f'no call {strange[0]} runs; ' if strange else ''}running: {listed}")

    async def _keyboard(self, leave: trio.CancelScope) -> None:
        async with typed_lines() as lines:
            async for line in lines:
                try:
                    await self._typed(understood(line))
                except SendRefused as refusal:
                    self.note(str(refusal))
        self._person, self._closed = False, True
        if self._halted or self.session.status is Status.PAUSED:
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
