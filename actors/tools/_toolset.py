"""The tools of one session at this moment: the agent's own, and what its MCP servers offer now."""

from collections.abc import Mapping

from attrs import define, field

from actors.models._api import ToolSchema

from ._mcp import name_here
from ._mcp_link import Link
from ._tool import Tool


@define(eq=False)
class Toolset:
    """Looked up at each call, shown with each request. `system` are the schemas of system tools, which come last."""

    own: Mapping[str, Tool]
    system: tuple[ToolSchema, ...]
    links: tuple[Link, ...] = ()
    _versions: tuple[int, ...] | None = None
    _tools: Mapping[str, Tool] = field(factory=dict)
    _schemas: tuple[ToolSchema, ...] = ()

    @property
    def tools(self) -> Mapping[str, Tool]:
        """By name, the hidden ones too."""
        self._renew()
        return self._tools

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """What a model is shown. The same object until something changes."""
        self._renew()
        return self._schemas

    async def settled(self) -> None:
        """Wait, for a moment, for what servers have said to be known."""
        for link in self.links:
            await link.settled()

    def _renew(self) -> None:
        versions = tuple([link.version for link in self.links])
        if versions == self._versions:
            return
        tools = dict(self.own)
        taken = {*tools, *(each.name for each in self.system)}
        for link in self.links:
            for offer in link.offers:
                name = name_here(link.server.name, offer.name, taken)
                taken.add(name)
                tools[name] = link.tool(offer, name)
        shown = [ToolSchema(each.name, each.description, each.schema) for each in tools.values() if not each.hidden]
        self._versions, self._tools, self._schemas = versions, tools, (*shown, *self.system)
