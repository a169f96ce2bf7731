"""Addresses: who is where, who was, and which one was perhaps meant."""

from collections import OrderedDict
from difflib import get_close_matches
from itertools import islice

from actors._errors import ConfigError, RecipientStopped, UnknownRecipient
from actors._exit import Exit, Failed, Status

from ._place import Place

COMPARED = 200  # addresses that a mistyped one is held against
REMEMBERED = 4096  # final exits kept, so that a late send can say how the recipient ended


class Router:
    """The places of a system by address, and the final exits of those that are gone."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.exits: OrderedDict[str, Exit] = OrderedDict()
        self.asleep: OrderedDict[str, Status] = OrderedDict()  # those that left memory and are no less there

    def add(self, place: Place) -> None:
        """Give a place its address. ConfigError if somebody has it."""
        if place.address in self.places:
            raise ConfigError(f"{place.address} is already there; choose another name, or stop it first")
        self.places[place.address] = place
        self.exits.pop(place.address, None)
        self.asleep.pop(place.address, None)

    def saw(self, address: str, status: Status) -> None:
        """How a session was found in the store, for as long as it is not here."""
        if address not in self.places:
            self.asleep[address] = status
            self.asleep.move_to_end(address)
            if len(self.asleep) > REMEMBERED:
                self.asleep.popitem(last=False)

    def remove(self, place: Place, exit: Exit) -> None:
        """Free its address and remember how it ended."""
        if self.places.get(place.address) is place:
            del self.places[place.address]
            if place.kind == "call":
                return
            if place.leaving or (place.kind == "session" and place.passes() and place.runtime.closing):  # type: ignore[attr-defined]
                self.saw(place.address, place.state.status)  # type: ignore[attr-defined]  # only sessions leave
                return
            self.exits[place.address] = exit
            if len(self.exits) > REMEMBERED:
                self.exits.popitem(last=False)

    def find(self, address: str) -> Place:
        """The place at an address.

        Raises:
            RecipientStopped: Its last actor ended for good.
            UnknownRecipient: Nobody has it, and nobody had.
        """
        place = self.places.get(address)
        if place is not None:
            return place
        if address in self.exits:
            raise RecipientStopped(address=address, exit=self.exits[address])
        raise UnknownRecipient(address=address, near=tuple(get_close_matches(address, self._alike(address), n=3, cutoff=0.6)))

    def _alike(self, address: str) -> list[str]:
        """All, or those that look alike at first glance: comparing with 100,000 thoroughly would hold the loop for seconds."""
        if len(self.places) <= COMPARED:
            return list(self.places)
        head, tail, length = address[:2], address[-2:], len(address)
        glance = (each for each in self.places if abs(len(each) - length) <= 3 and (each[:2] == head or each[-2:] == tail))
        return list(islice(glance, COMPARED))

    def status(self, address: str) -> Status:
        """The status of an address, also of one that ended."""
        if address in self.exits:
            return Status.FAILED if isinstance(self.exits[address], Failed) else Status.STOPPED
        if address in self.asleep:
            return self.asleep[address]
        return self.find(address).standing()
