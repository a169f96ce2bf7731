"""Plain trio doing the same work over memory channels: the twin that always runs, for it needs no install.

`await send` and `async for` are a channel as its documentation shows it; `send_nowait` in bursts is the best it can do.
"""

from collections.abc import Awaitable, Callable

import trio
from trio.testing import wait_all_tasks_blocked

from benchmarks._measure import Growth, Measured, Stopwatch
from benchmarks._work import ADD, CAPACITY, RECEIVERS, SENDERS, SETTLE, Add, bursts


class Count:
    def __init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[Add](CAPACITY)
        self.total = 0

    async def consume(self) -> None:
        async for message in self.receive:
            self.total += message.amount


async def _tell(n: int, produce: Callable[[trio.MemorySendChannel[Add]], Awaitable[None]]) -> Measured:
    watch, count = Stopwatch(), Count()
    with watch:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count.consume)
            with count.send:
                await produce(count.send)
    return watch.each(n, count.total)


async def tell(n: int) -> Measured:
    async def produce(send: trio.MemorySendChannel[Add]) -> None:
        for _ in range(n):
            await send.send(ADD)

    return await _tell(n, produce)


async def tell_nowait(n: int) -> Measured:
    async def produce(send: trio.MemorySendChannel[Add]) -> None:
        for size in bursts(n):
            for _ in range(size):
                try:
                    send.send_nowait(ADD)
                except trio.WouldBlock:
                    await send.send(ADD)
            await trio.lowlevel.checkpoint()

    return await _tell(n, produce)


async def tell_idle(n: int) -> Measured:
    watch, counts = Stopwatch(), [Count() for _ in range(RECEIVERS)]
    async with trio.open_nursery() as nursery:
        for count in counts:
            nursery.start_soon(count.consume)
        await wait_all_tasks_blocked()
        with watch:
            for _ in range(n // RECEIVERS):
                for count in counts:
                    count.send.send_nowait(ADD)
                for _ in range(SETTLE):
                    await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    return watch.each(n, sum(count.total for count in counts))


async def fan_in(n: int) -> Measured:
    watch, count = Stopwatch(), Count()

    async def produce(own: trio.MemorySendChannel[Add]) -> None:
        with own:
            for _ in range(n // SENDERS):
                await own.send(ADD)

    with watch:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count.consume)
            with count.send:
                for _ in range(SENDERS):
                    nursery.start_soon(produce, count.send.clone())
    return watch.each(n, count.total)


Ends = tuple[trio.MemorySendChannel[Add], trio.MemoryReceiveChannel[int]]


async def _serve(task_status: trio.TaskStatus[Ends]) -> None:
    ask, requests = trio.open_memory_channel[Add](CAPACITY)
    replies, answer = trio.open_memory_channel[int](CAPACITY)
    task_status.started((ask, answer))
    total = 0
    async for message in requests:
        total += message.amount
        await replies.send(total)


async def ask(n: int) -> Measured:
    watch, done = Stopwatch(), 0
    async with trio.open_nursery() as nursery:
        ask, answer = await nursery.start(_serve)
        with watch:
            for _ in range(n):
                await ask.send(ADD)
                done = await answer.receive()
        nursery.cancel_scope.cancel()
    return watch.each(n, done)


async def ask_timed(n: int) -> Measured:
    watch, done = Stopwatch(), 0
    async with trio.open_nursery() as nursery:
        ask, answer = await nursery.start(_serve)
        with watch:
            for _ in range(n):
                with trio.fail_after(5):
                    await ask.send(ADD)
                    done = await answer.receive()
        nursery.cancel_scope.cancel()
    return watch.each(n, done)


async def spawn(n: int) -> Measured:
    """Tasks that own nothing and wait."""
    watch, ready = Stopwatch(), 0

    async def wait(task_status: trio.TaskStatus[int]) -> None:
        task_status.started(1)
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        with watch:
            for _ in range(n):
                ready += await nursery.start(wait)
        nursery.cancel_scope.cancel()
    return watch.each(n, ready)


async def spawn_channel(n: int) -> Measured:
    """Tasks that can at least be sent something."""
    watch = Stopwatch()

    async def serve(task_status: trio.TaskStatus[Count]) -> None:
        count = Count()
        task_status.started(count)
        await count.consume()

    async with trio.open_nursery() as nursery:
        with watch:
            counts = [await nursery.start(serve) for _ in range(n)]
        for count in counts:
            await count.send.send(ADD)
            count.send.close()
    return watch.each(n, sum(count.total for count in counts))


async def idle_memory(n: int) -> Measured:
    async with trio.open_nursery() as nursery:
        growth, counts = Growth(), []
        for _ in range(n):
            counts.append(Count())
            nursery.start_soon(counts[-1].consume)
        await wait_all_tasks_blocked()
        measured = growth.each(n, 0)
        for count in counts:
            await count.send.send(ADD)
            count.send.close()
    return Measured(sum(count.total for count in counts), measured.figures)
