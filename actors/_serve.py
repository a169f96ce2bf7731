"""One life of an actor, from the factory to the last message; the tree around it is not known here.

    born        the factory is called and `on_start` runs; then it is ready
    serving     messages are handled one at a time, in the order `_receive.py` gives
    over        the loop returned (finished, drained), raised, or was cancelled by a stop

A life says how it ended; who made it decides what follows. What a handler raises is of three kinds: an answer
(`Reject`, a refusal it got, an ask of its own that timed out), told to the asker or kept as a dead letter, and the
actor lives; `Cancelled`, which is the stop; and everything else, which is a crash.
"""

import inspect
from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection

from ._actor import Actor
from ._dispatch import Handler
from ._envelope import Envelope
from ._errors import ConfigError
from ._exit import Finished, Stopped
from ._life import ANSWERS, Life, answer_in


@disable_ki_protection
async def live(
    life: Life, factory: Callable[..., Any], args: tuple[Any, ...], on_ready: Callable[[Life], None]
) -> Finished | Stopped:
    """Run a life to its orderly end: `Finished`, or `Stopped` after a drain. A crash raises; a stop cancels."""
    if is_actor_function(factory):
        context = life.actor = Actor()
        context._life = life  # noqa: SLF001  # the runtime's end of the actor
        life.function = True
        on_ready(life)
        value = await factory(context, *args)
        return life.ending or Finished(value)
    actor = factory(*args)
    if not isinstance(actor, Actor):
        raise ConfigError(f"the factory of {life.address} returned {actor!r}; it must return an Actor, or be an async function")
    life.actor = actor
    actor._life = life  # noqa: SLF001
    await actor.on_start()
    on_ready(life)
    await _serve(life, actor, type(actor).__handlers__)
    return life.ending or Stopped("drain")


def is_actor_function(factory: Callable[..., Any]) -> bool:
    """Whether the factory is an `async def actor(context, *args)`."""
    while isinstance(factory, partial):
        factory = factory.func
    if isinstance(factory, type):
        return False
    return inspect.iscoroutinefunction(factory) or inspect.iscoroutinefunction(getattr(type(factory), "__call__", None))  # noqa: B004  # not whether, but what


@disable_ki_protection
async def _serve(life: Life, actor: Actor, table: dict[type, Handler]) -> None:  # noqa: C901, PLR0912  # one loop: a call costs per message
    """The message loop. Its own frame is unprotected, so that a Ctrl-C lands in handlers; all that changes state is protected."""
    box = life.box
    envelope: Envelope
    while life.ending is None:
        batch = box.take()
        if not batch:
            if life.draining:
                return
            await box.arrival()
            continue
        try:
            for envelope in batch:
                token = envelope.token
                if token is None or not token.gone:
                    life.mail = envelope
                    life.hops = envelope.hops
                    body = envelope.body
                    handler = table.get(body.__class__) or life.handler_for(table, body)
                    result = handler(actor, body)
                    if result.__class__ is CoroutineType:
                        result = await result
                        if life.revoked:  # it outlived its stop: the mailbox is another life's now
                            life.check()
                    if token is not None:
                        life.settle(token, result)
                if box.disturbed:
                    box.handled(envelope)
                    life.taken = None
                    break
                box.cursor = envelope.seq
                if box.room:
                    box.let_in()
        except (*ANSWERS, BaseExceptionGroup) as error:
            answer = answer_in(error)
            if answer is None:
                raise
            life.refused(envelope, answer)
            box.handled(envelope)
            life.taken = None
        life.mail = None
        if box.calm():  # with nothing left, the wait is the checkpoint
            await trio.lowlevel.checkpoint()
