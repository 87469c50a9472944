"""The desk: every kind of trouble has a fixed procedure, which cannot be guessed from the words of a ticket."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TypeAlias

ACTIONS = ("inspect", "restart", "reset", "replace")
Procedure: TypeAlias = "tuple[str, str]"

# (device, trouble) -> the actions that solve it. A ticket describes the trouble in words; the device alone is not enough.
PROCEDURES: dict[tuple[str, str], Procedure] = {
    ("printer", "blank"): ("inspect", "replace"),
    ("printer", "jam"): ("restart", "inspect"),
    ("laptop", "slow"): ("reset", "restart"),
    ("laptop", "dark"): ("replace", "reset"),
    ("router", "drops"): ("restart", "reset"),
    ("router", "silent"): ("inspect", "restart"),
    ("badge", "refused"): ("reset", "inspect"),
    ("badge", "lost"): ("replace", "inspect"),
}
WORDS = {
    "blank": ["every page comes out white", "there is nothing on the sheets", "the paper stays empty"],
    "jam": ["paper is stuck inside", "it eats the sheets and stops", "a page came out crumpled, then no more"],
    "slow": ["every click takes a minute", "it hangs for ages", "it crawls since Monday"],
    "dark": ["the screen stays black", "it hums but shows nothing", "no picture at all"],
    "drops": ["calls break up again and again", "the line comes and goes", "we lose the network every few minutes"],
    "silent": ["no lights, no network", "nothing gets through since this morning", "it does not answer at all"],
    "refused": ["the door stays shut for it", "the reader blinks red", "the gate does not take it any more"],
    "lost": ["it fell into the river", "I cannot find it anywhere", "it was left on a train"],
}
PATIENCE = 2  # wrong actions that a device allows; one more, and it locks itself


@dataclass(slots=True)
class Ticket:
    """One task: a device in trouble."""

    number: int
    device: str
    trouble: str
    text: str
    done: int = 0  # steps of the procedure in a row
    wrong: int = 0

    @property
    def item(self) -> str:
        """The name of the device; no two tickets have the same."""
        return f"{self.device}-{self.number}"

    @property
    def procedure(self) -> Procedure:
        """The actions that solve the ticket, in order."""
        return PROCEDURES[self.device, self.trouble]

    @property
    def solved(self) -> bool:
        """True if the device works again."""
        return self.done == len(self.procedure)


@dataclass(slots=True)
class Desk:
    """Holds the state of every device. The answer to an action depends on the actions before it."""

    tickets: dict[str, Ticket] = field(default_factory=dict)

    @classmethod
    def opened(cls, n: int, seed: int) -> Desk:
        """Return a desk with n tickets, each about a random device and trouble."""
        rng = random.Random(seed)
        desk = cls()
        for number in range(1, n + 1):
            device, trouble = rng.choice(list(PROCEDURES))
            ticket = Ticket(number, device, trouble, "")
            closing = rng.choice(["Please help.", "Urgent!", "Thanks."])
            ticket.text = f"Ticket about {ticket.item}: {rng.choice(WORDS[trouble])}. {closing}"
            desk.tickets[ticket.item] = ticket
        return desk

    def act(self, action: str, item: str) -> str:
        """Carry out an action on a device, and return what happens."""
        ticket = self.tickets.get(item)
        if ticket is None:
            return f"there is no {item}"
        if ticket.solved:
            return f"{item} works; leave it alone"
        if ticket.wrong > PATIENCE:
            return f"{item} has locked itself"
        if action == ticket.procedure[ticket.done]:
            ticket.done += 1
            return f"{item} works again" if ticket.solved else f"{item} is ready for the next step"
        ticket.done, ticket.wrong = 0, ticket.wrong + 1
        return f"nothing changes about {item}"

    def solved(self, text: str) -> bool:
        """Say whether the ticket with this text was solved. Nothing else judges the agent."""
        return any(ticket.solved for ticket in self.tickets.values() if ticket.text == text)
