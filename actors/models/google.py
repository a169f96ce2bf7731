"""Google's Gemini through the official SDK, on an HTTP client that runs under trio."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

from actors._errors import ModelUnusable

from ._api import Capabilities, Request
from ._cache import IdentityCache
from ._clients import Server
from ._content_parts import Accumulator
from ._contents import Json, body_of, content_of, estimated_input
from ._items import Item
from ._remote import Body, Reader, RemoteModel
from ._sdk import load

_PATIENCE = 600.0  # seconds without a word from the server, as the other SDKs have it
_ATTEMPTS = 3
_OPENED: ContextVar[list[Any]] = ContextVar("actors.models.google", default=[])  # noqa: B039  # that list is never read


class Gemini(RemoteModel):
    """`google:<model>`; `GOOGLE_API_KEY` or `GEMINI_API_KEY`, and `GOOGLE_GEMINI_BASE_URL` for a server of your own.

    The options are the fields of the SDK's `GenerateContentConfig` (`thinking_config`, `max_output_tokens`, ...); an unknown one is
    refused, for there is no place in a request where it could go.
    """

    provider = "google"
    reserved = (
        *RemoteModel.reserved,
        "contents",
        "system_instruction",
        "tool_config",
        "automatic_function_calling",
        "http_options",
    )

    def __init__(self, model: str, *, capabilities: Capabilities | None = None) -> None:
        super().__init__(model, capabilities=capabilities)
        known, name = self.capabilities, self.name
        self._contents: IdentityCache[Item, Json] = IdentityCache(lambda item: content_of(item, name, known))

    def _address(self, environ: Mapping[str, str]) -> tuple[str | None, str]:
        url = environ.get("GOOGLE_GEMINI_BASE_URL", "").strip()
        key = environ.get("GOOGLE_API_KEY", "").strip() or environ.get("GEMINI_API_KEY", "").strip()
        if not key and not url:
            raise ModelUnusable(
                f"{self.name} needs a key, and GOOGLE_API_KEY is not set, nor GEMINI_API_KEY; set one, "
                "or set GOOGLE_GEMINI_BASE_URL to a server of your own",
                model=self.name,
            )
        return url or None, key or "none"

    def _connected(self, address: tuple[str | None, str]) -> Server:
        base_url, key = address
        sdk = load("google.genai", extra="google", wanted_by=self.name)
        errors = load("google.genai.errors", extra="google", wanted_by=self.name)
        http = load("httpx2", extra="google", wanted_by=self.name)
        transport = http.AsyncClient(
            timeout=http.Timeout(_PATIENCE, connect=5.0), follow_redirects=True, event_hooks={"response": [_opened]}
        )
        options = sdk.types.HttpOptions(
            base_url=base_url,
            httpx_async_client=transport,
            timeout=int(_PATIENCE * 1000),
            retry_options=sdk.types.HttpRetryOptions(attempts=_ATTEMPTS, initial_delay=0.25, max_delay=8.0, jitter=0.25),
        )
        client = sdk.Client(api_key=key, http_options=options, vertexai=False)
        fields = frozenset(sdk.types.GenerateContentConfig.model_fields)
        return Server(client, (errors.APIError, http.TransportError, ValueError), fields, transport.aclose)

    def _body(self, request: Request) -> Body:
        return body_of(request, self.model, self._contents.get, self.capabilities)

    async def _asked(self, server: Server, body: Body, options: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
        for name in options:
            if name not in server.parameters:
                near = get_close_matches(name, server.parameters, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ModelUnusable(f"{name!r} is no option of {self.name}{hint}", model=self.name)
        config = {**body["config"], **options}
        stream: AsyncGenerator[Any, None] = await server.client.aio.models.generate_content_stream(
            model=body["model"], contents=body["contents"], config=config
        )
        return _closing(stream)

    def _reader(self) -> Reader:
        return Accumulator()

    def _estimate(self, body: Body) -> int:
        return estimated_input(body)


async def _opened(response: Any) -> None:
    _OPENED.get().append(response)


@asynccontextmanager
async def _closing(stream: AsyncGenerator[Any, None]) -> AsyncGenerator[AsyncIterator[Any]]:
    """The SDK's stream, closed from its end: it is a chain of generators, and closing the outermost leaves the socket to chance."""
    opened: list[Any] = []
    token = _OPENED.set(opened)
    try:
        async with aclosing(stream):
            try:
                yield stream
            finally:
                for response in opened:
                    await response.aclose()
    finally:
        _OPENED.reset(token)
