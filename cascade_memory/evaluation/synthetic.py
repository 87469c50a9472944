"""A stream of synthetic support tickets in which the case with the most similar wording is often wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_PRODUCTS = ("kettle", "router", "printer", "drill", "headset", "thermostat", "scanner", "blender", "camera", "lamp")
_OPENINGS = (
    "Hello, I bought the {product} in {place} last {month} and",
    "Dear team, my {product} from the {place} shop:",
    "Second message about the {product} ({place}, {month}):",
    "My neighbour in {place} gave me a {product} and",
)
_PLACES = ("Lisbon", "Oslo", "Turin", "Graz", "Cork", "Ghent", "Porto", "Malmö")
_MONTHS = ("March", "April", "June", "August", "October")
_CLOSINGS = ("Please advise.", "What should I do?", "Thanks for a quick answer!", "I have the receipt.")

# Each problem has several wordings that share few words; the rest of a ticket has nothing to do with the problem.
_PROBLEMS: dict[str, tuple[str, ...]] = {
    "replace the fuse": ("it is completely dead", "nothing lights up at all", "there is no sign of life"),
    "update the firmware": ("it restarts by itself", "it keeps rebooting every hour", "it goes off and on again"),
    "clean the contacts": ("it works only when shaken", "the connection comes and goes", "I must wiggle the plug"),
    "descale it": ("a white crust has formed", "chalk comes off inside", "there are limestone flakes"),
    "send a refund": ("I do not want it any more", "I would like my money back", "I wish to return it"),
    "exchange the unit": ("the housing arrived cracked", "the shell was broken on delivery", "it came with a dent"),
    "reset the password": ("it refuses my login", "I am locked out of it", "it does not accept my code"),
    "ship the missing part": ("a screw set was not in the box", "one piece is absent", "the cable is not included"),
    "tighten the hinge": ("it wobbles", "the lid hangs loose", "it feels shaky in the middle"),
    "replace the filter": ("it smells of dust", "the air from it is stale", "there is a burnt odour"),
    "recalibrate the sensor": ("the readings are off", "it shows wrong values", "the numbers are not right"),
    "oil the bearing": ("it squeals", "a high noise comes from it", "it makes a scratching sound"),
}


@dataclass(frozen=True, slots=True)
class Task:
    """A query and its right solution."""

    query: str
    solution: str


def tickets(n: int, seed: int = 0) -> list[Task]:
    """Generate a stream of tickets.

    >>> tickets(1)[0].solution in _PROBLEMS
    True
    """
    rng = np.random.default_rng(seed)

    def pick(options: tuple[str, ...]) -> str:
        return options[int(rng.integers(len(options)))]

    stream: list[Task] = []
    for _ in range(n):
        solution = pick(tuple(_PROBLEMS))
        opening = pick(_OPENINGS).format(product=pick(_PRODUCTS), place=pick(_PLACES), month=pick(_MONTHS))
        stream.append(Task(f"{opening} {pick(_PROBLEMS[solution])}. {pick(_CLOSINGS)}", solution))
    return stream
