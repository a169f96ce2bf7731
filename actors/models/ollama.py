"""Ollama through the official SDK."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from ._api import Capabilities, Request
from ._cache import IdentityCache
from ._chat import transcribed
from ._clients import Server
from ._items import Item
from ._ollama_chat import Accumulator, Json, body_of, estimated_input, messages_of
from ._remote import Body, Reader, RemoteModel
from ._sdk import load


class OllamaChat(RemoteModel):
    """`ollama:<model>`; `OLLAMA_HOST` where the server is not the usual one, `OLLAMA_API_KEY` where it wants a key.

    Options that are parameters of the API's chat go there (`think`, `format`, `keep_alive`, ...), the others to the model
    (`temperature`, `num_ctx`, ...).
    """

    provider = "ollama"

    def __init__(self, model: str, *, capabilities: Capabilities | None = None) -> None:
        super().__init__(model, capabilities=capabilities)
        known, name = self.capabilities, self.name
        self._messages: IdentityCache[Item, tuple[Json, ...]] = IdentityCache(lambda item: messages_of(item, name, known))

    def _address(self, environ: Mapping[str, str]) -> tuple[str | None, str]:
        return environ.get("OLLAMA_HOST", "").strip() or None, environ.get("OLLAMA_API_KEY", "").strip()

    def _connected(self, address: tuple[str | None, str]) -> Server:
        host, key = address
        sdk = load("ollama", extra="ollama", wanted_by=self.name)
        http = load("httpx", extra="ollama", wanted_by=self.name)
        client = sdk.AsyncClient(host=host, headers={"authorization": f"Bearer {key}"} if key else None)
        errors = (sdk.ResponseError, sdk.RequestError, ConnectionError, http.TransportError, ValueError)
        return Server(client, errors, frozenset(inspect.signature(client.chat).parameters), client.close)

    def _body(self, request: Request) -> Body:
        return body_of(request, self.model, transcribed(request.transcript, self._messages.get, self.capabilities))

    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        named = {name: value for name, value in options.items() if name in server.parameters}
        others = {name: value for name, value in options.items() if name not in server.parameters}
        if others:
            named["options"] = {**others, **(named.get("options") or {})}
        return aclosing(await server.client.chat(**body, **named))

    def _reader(self) -> Reader:
        return Accumulator()

    def _estimate(self, body: Body) -> int:
        return estimated_input(body)
