"""Anthropic's messages through the official SDK, and every server that speaks them (`ANTHROPIC_BASE_URL`)."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from ._api import Capabilities, Request
from ._cache import IdentityCache
from ._clients import Server
from ._items import Item
from ._message_events import Accumulator
from ._messages import Json, blocks_of, body_of, estimated_input, must_not_think
from ._remote import Body, Reader, RemoteModel, key_or_server, named_and_extra
from ._sdk import errors_of, load

_ANSWER = 16_000  # tokens, where nothing is known of the model


class AnthropicMessages(RemoteModel):
    """`anthropic:<model>`; `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`.

    The options `max_tokens` (required there, so it has a default), `thinking`, `cache_control` and all others are the API's own.
    """

    provider = "anthropic"
    reserved = (*RemoteModel.reserved, "system")

    def __init__(self, model: str, *, capabilities: Capabilities | None = None) -> None:
        super().__init__(model, capabilities=capabilities)
        known, name = self.capabilities, self.name
        self._blocks: IdentityCache[Item, tuple[Json, ...]] = IdentityCache(lambda item: blocks_of(item, name, known))

    def _address(self, environ: Mapping[str, str]) -> tuple[str | None, str]:
        return key_or_server(self.name, environ, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")

    def _connected(self, address: tuple[str | None, str]) -> Server:
        base_url, key = address
        sdk = load("anthropic", extra="anthropic", wanted_by=self.name)
        client = sdk.AsyncAnthropic(base_url=base_url, api_key=key)
        parameters = frozenset(inspect.signature(client.messages.create).parameters)
        return Server(client, errors_of(sdk.AnthropicError, client, "anthropic", self.name), parameters, client.close)

    def _body(self, request: Request) -> Body:
        return body_of(request, self.model, self._blocks.get, self.capabilities)

    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        limit = {"max_tokens": self.capabilities.output_tokens or _ANSWER}
        parameters = {**limit, **named_and_extra(options, server.parameters)}
        if must_not_think(body, parameters.get("thinking")):
            del parameters["thinking"]
        stream: AbstractAsyncContextManager[Any] = await server.client.messages.create(**body, **parameters)
        return stream

    def _reader(self) -> Reader:
        return Accumulator()

    def _estimate(self, body: Body) -> int:
        return estimated_input(body)
