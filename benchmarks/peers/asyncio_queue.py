"""asyncio with its own queue: what an actor is made of where there is no actor library."""

import asyncio

from benchmarks._measure import Growth, Measured, Stopwatch
from benchmarks._work import ADD, CAPACITY, RECEIVERS, SENDERS, SETTLE, Add

Mail = asyncio.Queue[Add | None]  # None ends the receiver


class Count:
    def __init__(self) -> None:
        self.queue: Mail = asyncio.Queue(CAPACITY)
        self.total = 0

    async def consume(self, ready: asyncio.Event | None = None) -> None:
        if ready is not None:
            ready.set()
        while (message := await self.queue.get()) is not None:
            self.total += message.amount

    async def end(self, task: "asyncio.Task[None]") -> int:
        await self.queue.put(None)
        await task
        return self.total


def tell(n: int) -> Measured:
    async def run() -> Measured:
        watch, count = Stopwatch(), Count()
        task = asyncio.create_task(count.consume())
        with watch:
            for _ in range(n):
                await count.queue.put(ADD)
            done = await count.end(task)
        return watch.each(n, done)

    return asyncio.run(run())


def tell_idle(n: int) -> Measured:
    async def run() -> Measured:
        watch, counts = Stopwatch(), [Count() for _ in range(RECEIVERS)]
        tasks = [asyncio.create_task(count.consume()) for count in counts]
        await asyncio.sleep(0.01)
        with watch:
            for _ in range(n // RECEIVERS):
                for count in counts:
                    count.queue.put_nowait(ADD)
                for _ in range(SETTLE):
                    await asyncio.sleep(0)
        return watch.each(n, sum([await count.end(task) for count, task in zip(counts, tasks, strict=True)]))

    return asyncio.run(run())


def fan_in(n: int) -> Measured:
    async def run() -> Measured:
        watch, count = Stopwatch(), Count()
        task = asyncio.create_task(count.consume())

        async def send() -> None:
            for _ in range(n // SENDERS):
                await count.queue.put(ADD)

        with watch:
            await asyncio.gather(*[send() for _ in range(SENDERS)])
            done = await count.end(task)
        return watch.each(n, done)

    return asyncio.run(run())


def ask(n: int) -> Measured:
    async def run() -> Measured:
        watch = Stopwatch()
        requests: asyncio.Queue[tuple[Add, asyncio.Future[int]]] = asyncio.Queue(CAPACITY)

        async def serve() -> None:
            total = 0
            while True:
                message, reply = await requests.get()
                total += message.amount
                reply.set_result(total)

        task = asyncio.create_task(serve())
        done = 0
        with watch:
            for _ in range(n):
                reply = asyncio.get_running_loop().create_future()
                await requests.put((ADD, reply))
                done = await reply
        task.cancel()
        return watch.each(n, done)

    return asyncio.run(run())


async def _start(count: Count) -> "asyncio.Task[None]":
    ready = asyncio.Event()
    task = asyncio.create_task(count.consume(ready))
    await ready.wait()
    return task


async def _end(started: list[tuple[Count, "asyncio.Task[None]"]]) -> int:
    for count, _ in started:
        await count.queue.put(ADD)
    return sum([await count.end(task) for count, task in started])


def spawn(n: int) -> Measured:
    async def run() -> Measured:
        watch = Stopwatch()
        with watch:
            started = [(count := Count(), await _start(count)) for _ in range(n)]
        return watch.each(n, await _end(started))

    return asyncio.run(run())


def idle_memory(n: int) -> Measured:
    async def run() -> Measured:
        growth = Growth()
        started = [(count := Count(), await _start(count)) for _ in range(n)]
        measured = growth.each(n, 0)
        return Measured(await _end(started), measured.figures)

    return asyncio.run(run())
