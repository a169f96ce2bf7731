"""The ids that senders chose, remembered for a while: what makes a resend harmless.

A sender that lost the reply to a send sends again under the same id. The key is (sender, id): ids are their sender's own.
What is kept with it is the first receipt and what tells one body from another: a digest of its JSON, or, of an object
that has none, the object itself. Minted ids cannot be sent again and are not kept.
"""

from collections import OrderedDict

from ._codec import digest
from ._envelope import ID_FORM, MINTED_FORM, Receipt, Sender
from ._errors import IdConflict


class Window:
    """The last `size` ids that were accepted under a sender's own name."""

    __slots__ = ("_kept", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[tuple[Sender, str], tuple[Receipt, object]] | None = None

    def find(self, address: str, sender: Sender, id: str, body: object) -> Receipt | None:
        """The receipt of the first send, marked as a duplicate; None if this is the first.

        Raises:
            IdConflict: It was another body.
            ValueError: It cannot be an id.
        """
        if not ID_FORM.match(id) or MINTED_FORM.match(id):
            raise ValueError(
                f"{id!r} cannot be a message's id: give 1 to 64 of A-Z a-z 0-9 . _ : -, not of the form m-7, which is the runtime's"
            )
        known = self._kept.get((sender, id)) if self._kept is not None else None
        if known is None:
            return None
        receipt, kept = known
        mark = digest(body)
        if (mark != kept) if mark is not None else (kept is not body):
            raise IdConflict(address=address, id=id)
        return Receipt(receipt.key, receipt.seq, True, receipt.priority)

    def keep(self, sender: Sender, id: str, body: object, receipt: Receipt) -> None:
        """Remember a first send; the oldest is forgotten for it."""
        if self._kept is None:
            self._kept = OrderedDict()  # a plain dict looks for its oldest key past all that were deleted
        mark = digest(body)
        self._kept[sender, id] = (receipt, body if mark is None else mark)
        while len(self._kept) > self.size:
            self._kept.popitem(last=False)
