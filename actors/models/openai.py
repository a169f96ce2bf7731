"""OpenAI's chat completions through the official SDK, and every server that speaks them (`OPENAI_BASE_URL`)."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from ._api import Capabilities, Request
from ._cache import IdentityCache
from ._chat import Message, body_of, estimated_input, messages_of, transcribed
from ._chunks import Accumulator
from ._clients import Server
from ._items import Item
from ._remote import Body, Reader, RemoteModel, key_or_server, named_and_extra
from ._sdk import errors_of, load


class OpenAIChat(RemoteModel):
    """`openai:<model>`; `OPENAI_API_KEY` and `OPENAI_BASE_URL`. Another `provider` is another server that speaks the same.

    Args:
        model: Its name, as the server knows it.
        capabilities: What it can be told; by default what its name says.
        provider: The first part of its name.
        key: The variable with its key.
        url: The variable with its address.
        home: Its address where that variable is not set; None for OpenAI's own.
    """

    provider = "openai"

    def __init__(
        self,
        model: str,
        *,
        capabilities: Capabilities | None = None,
        provider: str = "openai",
        key: str = "OPENAI_API_KEY",
        url: str = "OPENAI_BASE_URL",
        home: str | None = None,
    ) -> None:
        self.provider = provider
        super().__init__(model, capabilities=capabilities)
        self._variables = key, url
        self._home = home
        known, name = self.capabilities, self.name
        self._messages: IdentityCache[Item, tuple[Message, ...]] = IdentityCache(lambda item: messages_of(item, name, known))

    def _address(self, environ: Mapping[str, str]) -> tuple[str | None, str]:
        base_url, key = key_or_server(self.name, environ, *self._variables)
        return base_url or self._home, key

    def _connected(self, address: tuple[str | None, str]) -> Server:
        base_url, key = address
        return connected(self.name, base_url, key, counts=self.capabilities.counts)

    def _body(self, request: Request) -> Body:
        return body_of(
            request, self.model, transcribed(request.transcript, self._messages.get, self.capabilities), self.capabilities
        )

    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        while True:
            usage = {"stream_options": {"include_usage": True}} if server.counts else {}
            try:
                stream: AbstractAsyncContextManager[Any] = await server.client.chat.completions.create(
                    **body, **{**usage, **named_and_extra(options, server.parameters)}
                )
            except server.errors as error:
                if not (server.counts and getattr(error, "status_code", None) in (400, 422) and "stream_options" in str(error)):
                    raise
                server.counts = False  # it knows no such option: ask again without, from now on
            else:
                return stream

    def _reader(self) -> Reader:
        return Accumulator()

    def _estimate(self, body: Body) -> int:
        return estimated_input(body)


def connected(model: str, base_url: str | None, key: str, *, counts: bool = True) -> Server:
    """A client of OpenAI's SDK; for a thread."""
    sdk = load("openai", extra="openai", wanted_by=model)
    client = sdk.AsyncOpenAI(base_url=base_url, api_key=key)
    parameters = frozenset(inspect.signature(client.chat.completions.create).parameters)
    return Server(client, errors_of(sdk.OpenAIError, client, "openai", model), parameters, client.close, counts)


def mistral(model: str) -> OpenAIChat:
    """`mistral:<model>`, on the wire it shares with OpenAI; `MISTRAL_API_KEY` and `MISTRAL_BASE_URL`."""
    return OpenAIChat(
        model, provider="mistral", key="MISTRAL_API_KEY", url="MISTRAL_BASE_URL", home="https://api.mistral.ai/v1"
    )
