"""Actors as people write them: a class with `@handle` methods, or an async function that takes a context."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal

from ._dispatch import Handler, handled_by, handlers_of
from ._envelope import Envelope
from ._errors import ActorsError
from ._exit import Exit
from ._identity import current
from ._life import Life, Timer
from ._ref import ActorRef, check_thread, here
from ._reply import ReplyToken


class Actor:
    """Base of actors: state of one's own, messages handled one at a time, a place in the tree.

    The factory given to `spawn` is called afresh for each life with the same arguments, in the life's own task. A message
    is handled by the method annotated with its class (`@handle`). Whatever a handler raises, but `Reject` and the refusals
    it got from others, ends this life (`Failed`); the supervisor decides on the next. Mail that this life did not begin
    to handle waits for the next one.

    An `async def actor(context: Actor, *args)` can be spawned too; its context offers what `self` offers here, and what it
    returns is the value of its `Finished`.
    """

    __handled__: ClassVar[dict[str, tuple[type, ...]]] = {}
    __handlers__: ClassVar[dict[type, Handler]] = {}
    _life: Life | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__handled__ = handled_by(cls, sys._getframe(1))  # noqa: SLF001  # annotations may name what an enclosing function defines
        cls.__handlers__ = handlers_of(cls, cls.__handled__)

    # -------------------------------------------------------------- what a subclass may define
    async def on_start(self) -> None:
        """Runs before the first message of each life; nobody counts the actor as ready before it returns."""

    async def on_stop(self, exit: Exit) -> None:
        """Runs once per started life, after its handler and its children ended; shielded, at most `shutdown` seconds.

        It may still send. It does not run after `kill`.
        """

    # -------------------------------------------------------------- what it may use
    def _alive(self) -> Life:
        life = self._life if self._life is not None else current.get()
        if not isinstance(life, Life):
            raise ActorsError(
                f"{type(self).__name__} is not running: spawn it first (`await system.spawn({type(self).__name__})`)"
            )
        return life

    def _acting(self) -> Life:
        """As `_alive`, for what changes something. RuntimeError in a worker thread."""
        life = self._alive()
        check_thread(life.runtime, life.address)
        return life

    @property
    def ref(self) -> ActorRef:
        """This actor's own ref."""
        return self._alive().ref

    @property
    def mail(self) -> Envelope:
        """The envelope being handled. Raises `ActorsError` outside a handler."""
        envelope = self._alive().mail
        if envelope is None:
            raise ActorsError("no message is being handled; `self.mail` is for handlers")
        return envelope

    async def spawn(
        self,
        factory: Callable[..., "Actor"] | Callable[..., Awaitable[object]],
        *args: Any,
        name: str | None = None,
        restart: Literal["permanent", "transient", "temporary"] = "transient",
        shutdown: float = 5.0,
        init_timeout: float = 10.0,
    ) -> ActorRef:
        """Start a child, stopped with its parent, and wait until it is ready. It is watched: see `watch`.

        Raises `StartFailed` if its first start fails. Cancelled, it has stopped the child before it returns.
        """
        life = self._acting()
        ref: ActorRef = await life.runtime.spawn_child(
            life, factory, args, name=name, restart=restart, shutdown=shutdown, init_timeout=init_timeout
        )
        return ref

    def find(self, address: str) -> ActorRef:
        """The ref of an address, whether or not anybody has it yet."""
        ref: ActorRef = self._alive().runtime.ref(address)
        return ref

    def watch(self, ref: ActorRef) -> None:
        """Get an `Ended` message at each end of that actor's lives; at once if it ended for good before.

        An `Ended` comes after all earlier mail of that actor. One of a spawned child that failed for good crashes an actor that
        has no handler for it.
        """
        life = self._acting()
        life.runtime.watch(life, here(ref, life.runtime))

    def unwatch(self, ref: ActorRef) -> None:
        """Take a `watch` back."""
        life = self._acting()
        life.runtime.unwatch(life, here(ref, life.runtime))

    async def receive(
        self,
        match: Callable[[Envelope], bool] | type | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # a value, not a scope
    ) -> Envelope | None:
        """Take one message out of turn, inside a handler; None when `timeout` seconds pass first.

        `match` is a predicate or a message's class. What it takes counts as handled with the message in progress.
        """
        predicate = (lambda envelope: isinstance(envelope.body, match)) if isinstance(match, type) else match
        return await self._acting().receive(predicate, timeout)

    def reply(self, value: object, *, to: Envelope) -> None:
        """Answer an ask whose handler returned `NO_REPLY`. Too late, it is dropped and counted; to a tell, it does nothing."""
        if isinstance(to.token, ReplyToken):
            self._acting().settle(to.token, value)

    def finish(self, value: object = None) -> None:
        """End this actor with `Finished(value)` once the handler in progress returns. The rest of its mail is dead letters."""
        self._acting().finish(value)

    def send_after(self, seconds: float, body: object) -> Timer:
        """Send `body` to oneself in `seconds`; gone with this life. Cancel it through the `Timer`."""
        return self._acting().send_after(seconds, body)
