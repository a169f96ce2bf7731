"""The items of a transcript: user, assistant, results. Frozen; appended, never rewritten.

`text` on each is what the model reads, computed from the stored fields the first time somebody asks.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from attrs import evolve, field, frozen

from actors._envelope import Envelope
from actors._outcome import Media, Outcome, flatten

from ._blocks import Block, Text, ToolCall, as_blocks
from ._render import body_media, placeholder_text, user_text

Nudge = Literal["continuation", "wrap_up"]


def _mail(mail: Sequence[Envelope]) -> tuple[Envelope, ...]:
    return tuple(mail)


@frozen
class UserItem:
    """What was said to the model between two of its answers: mail, or the loop's own nudge, or both.

    `already_read` holds ids of mail whose result the model fetched before; `waiting` counts mail left unread by the fold's
    bound; `cuts` pairs ids of mail too large to show whole with the characters shown; `tools` pairs calls whose answers came as
    mail with their tools.
    """

    mail: tuple[Envelope, ...] = field(default=(), converter=_mail)
    nudge: Nudge | None = None
    already_read: tuple[str, ...] = ()
    waiting: int = 0
    cuts: tuple[tuple[str, int], ...] = ()
    tools: tuple[tuple[str, str], ...] = ()

    @cached_property
    def text(self) -> str:
        """What the model reads."""
        return user_text(self.mail, self.nudge, self.already_read, self.waiting, dict(self.cuts), dict(self.tools))

    @cached_property
    def media(self) -> tuple[Media, ...]:
        """What is attached to it, in the order of the mail."""
        return tuple(
            part for envelope in self.mail for part in body_media(envelope.body) if envelope.id not in self.already_read
        )

    def amended(self, more: "UserItem") -> "UserItem":
        """This item with another fold behind it: an unanswered user item grows, two never stand in a row.

        Words that make the rounds count anew take back that they were used up.
        """
        over = self.nudge == "wrap_up" and more.mail
        return UserItem(
            self.mail + more.mail,
            more.nudge or (None if over else self.nudge),
            self.already_read + more.already_read,
            more.waiting,
            self.cuts + more.cuts,
            self.tools + more.tools,
        )


@frozen
class AssistantItem:
    """One answer of a model: its blocks as they came, and which model it was."""

    blocks: tuple[Block, ...] = field(converter=as_blocks)
    model: str

    @property
    def text(self) -> str:
        """Its words, without thinking and calls."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls it asks for, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


@frozen
class Placeholder:
    """Stands for the outcome of a call that goes on: the outcome itself will be mail.

    `reason` is `still running after Ns`, `still queued after Ns`, `interrupted`, `asked` or `mail`; or, where it is deferred, why;
    `session` is a sub-agent's
    address; `can_wait` says whether the agent has the `wait` tool.
    """

    status: Literal["running", "deferred"]
    reason: str
    session: str | None = None
    can_wait: bool = field(default=True, kw_only=True)


@frozen
class Result:
    """The one result of one call: its outcome, or a placeholder.

    `mail` is what was said beside it, for models that take no user turn there (`mail_in_tool_result`).
    """

    call: str
    tool: str
    outcome: Outcome | Placeholder
    mail: UserItem | None = None

    @cached_property
    def text(self) -> str:
        """What the model reads."""
        return self._told if self.mail is None else f"{self._told}\n\n{self.mail.text}"

    @property
    def _told(self) -> str:
        if isinstance(self.outcome, Placeholder):
            place = self.outcome
            return placeholder_text(self.call, self.tool, place.status, place.reason, place.session, can_wait=place.can_wait)
        return self.outcome.text

    @property
    def media(self) -> tuple[Media, ...]:
        """The media that the tool returned, and those of the mail."""
        returned = flatten(self.outcome.value).media if isinstance(self.outcome, Outcome) else ()
        return returned if self.mail is None else returned + self.mail.media


def _results(results: Sequence[Result]) -> tuple[Result, ...]:
    return tuple(results)


@frozen
class ResultsItem:
    """The results of one assistant item: one per call, in call order."""

    results: tuple[Result, ...] = field(converter=_results)

    def amended(self, more: UserItem) -> "ResultsItem":
        """These results with another fold beside the last of them (`mail_in_tool_result`)."""
        *others, last = self.results
        return ResultsItem((*others, evolve(last, mail=more if last.mail is None else last.mail.amended(more))))


Item = UserItem | AssistantItem | ResultsItem
