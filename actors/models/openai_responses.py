"""OpenAI's Responses through the official SDK, stateless: nothing is kept at the server."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from attrs import evolve

from ._api import Capabilities, Request
from ._cache import IdentityCache
from ._clients import Server
from ._items import Item
from ._remote import Body, Reader, RemoteModel, key_or_server, named_and_extra
from ._response_events import Accumulator
from ._responses import Json, body_of, estimated_input, items_of
from .openai import connected


class OpenAIResponses(RemoteModel):
    """`openai-responses:<model>`; `OPENAI_API_KEY` and `OPENAI_BASE_URL`.

    The options (`reasoning`, `max_output_tokens`, `text`, ...) are the API's own.
    """

    provider = "openai-responses"
    reserved = (*RemoteModel.reserved, "input", "instructions", "store", "previous_response_id", "conversation")

    def __init__(self, model: str, *, capabilities: Capabilities | None = None) -> None:
        super().__init__(model, capabilities=capabilities)
        known, name = self.capabilities, self.name
        self._items: IdentityCache[Item, tuple[Json, ...]] = IdentityCache(lambda item: items_of(item, name, known))

    def _address(self, environ: Mapping[str, str]) -> tuple[str | None, str]:
        return key_or_server(self.name, environ, "OPENAI_API_KEY", "OPENAI_BASE_URL")

    def _connected(self, address: tuple[str | None, str]) -> Server:
        server = connected(self.name, *address)
        return evolve(server, parameters=frozenset(inspect.signature(server.client.responses.create).parameters))

    def _body(self, request: Request) -> Body:
        return body_of(request, self.model, self._items.get, self.capabilities)

    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        parameters = named_and_extra(options, server.parameters)
        if "include" in parameters:
            parameters["include"] = [*body.get("include", ()), *parameters["include"]]
        stream: AbstractAsyncContextManager[Any] = await server.client.responses.create(**{**body, **parameters})
        return stream

    def _reader(self) -> Reader:
        return Accumulator(self.name)

    def _estimate(self, body: Body) -> int:
        return estimated_input(body)
