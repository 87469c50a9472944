"""Generated rooms: their receptacles, their objects, and the task to do in them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

# The kinds of rooms in which a type of task can take place, as in ALFRED. Looking at something needs a lamp.
PLACES = {
    "pick_and_place_simple": ("kitchen", "bedroom", "bathroom", "living room"),
    "look_at_obj_in_light": ("bedroom", "living room"),
    "pick_clean_then_place_in_recep": ("kitchen", "bathroom"),
    "pick_heat_then_place_in_recep": ("kitchen",),
    "pick_cool_then_place_in_recep": ("kitchen",),
    "pick_two_obj_and_place": ("kitchen", "bedroom", "bathroom", "living room"),
}
_NEEDED = {"clean": "Cleanable", "heat": "Heatable", "cool": "Coolable"}
LAMP = "DeskLamp"
LAMP_STANDS_ON = ("Desk", "Dresser", "SideTable")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of room: the smallest and largest number of each receptacle in it, and the objects that it may hold."""

    receptacles: Mapping[str, tuple[int, int]]
    objects: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ROOMS = {
    "kitchen": _Kind(
        {
            **{"Cabinet": (2, 5), "Drawer": (2, 4), "CounterTop": (1, 3), "DiningTable": (0, 1), "Shelf": (0, 2)},
            **{"Fridge": (1, 1), "Microwave": (1, 1), "SinkBasin": (1, 1), "StoveBurner": (2, 2), "GarbageCan": (1, 1)},
        },
        _words(
            "Apple Bread Egg Potato Tomato Lettuce Fork Knife Spoon ButterKnife Spatula Ladle Bowl Cup Mug "
            "Plate Pan Pot DishSponge SaltShaker PepperShaker SoapBottle"
        ),
    ),
    "bedroom": _Kind(
        {
            **{"Bed": (1, 1), "Desk": (1, 1), "Drawer": (2, 5), "Dresser": (0, 1), "Shelf": (1, 4), "SideTable": (1, 2)},
            **{"ArmChair": (0, 1), "GarbageCan": (1, 1), "Safe": (0, 1)},
        },
        _words("AlarmClock Book CD CellPhone CreditCard KeyChain Pen Pencil Pillow Laptop RemoteControl Watch Mug"),
    ),
    "bathroom": _Kind(
        {
            **{"Cabinet": (2, 4), "Drawer": (0, 3), "CounterTop": (1, 1), "Shelf": (1, 2), "SinkBasin": (1, 2)},
            **{"BathtubBasin": (1, 1), "Toilet": (1, 1), "GarbageCan": (1, 1), "Cart": (0, 1)},
        },
        _words("SoapBar SoapBottle Cloth ToiletPaper Candle SprayBottle DishSponge HandTowel TissueBox PaperTowel"),
    ),
    "living room": _Kind(
        {
            **{"Sofa": (1, 1), "ArmChair": (1, 2), "CoffeeTable": (1, 1), "SideTable": (1, 3), "Shelf": (1, 4)},
            **{"Drawer": (2, 4), "DiningTable": (0, 1), "Cabinet": (0, 3), "GarbageCan": (1, 1), "Safe": (0, 1)},
        },
        _words(
            "Book Box CD CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl Statue Vase "
            "Watch Candle WateringCan"
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class World:
    """The rules of the world of ALFWorld's engine: what each receptacle can hold, and what can be done with each object."""

    holds: Mapping[str, Set[str]]
    able: Mapping[str, Set[str]]


@dataclass(frozen=True, slots=True)
class Scene:
    """A room, the places of its objects, and its task."""

    receptacles: tuple[str, ...]  # the kind of each receptacle in the room
    things: tuple[tuple[str, int], ...]  # for each object: its kind, and the index of its receptacle
    task_type: str
    target: str
    goal: str  # the kind of receptacle to put the target in; if the task is to look at it, the lamp


def draw_scene(task_type: str, world: World, rng: np.random.Generator) -> Scene:
    """Draw a room and a task in it that is possible and not done yet."""
    while True:
        room = _ROOMS[str(rng.choice(PLACES[task_type]))]
        kinds = [kind for kind, (least, most) in room.receptacles.items() for _ in range(rng.integers(least, most + 1))]
        looks = task_type == "look_at_obj_in_light"
        lamps = [place for place, kind in enumerate(kinds) if kind in LAMP_STANDS_ON]
        pairs = [(LAMP if looks else goal, target) for goal in _goals(kinds, looks=looks) for target in room.objects]
        pairs = [pair for pair in pairs if _possible(pair, task_type, kinds, world)]
        if not pairs or (looks and not lamps):
            continue
        goal, target = pairs[rng.integers(len(pairs))]
        things = [(LAMP, int(rng.choice(lamps)))] if looks else []
        for kind in room.objects:
            least = (2 if task_type == "pick_two_obj_and_place" else 1) if kind == target else 0
            places = _places(kind, kinds, world, but=goal if kind == target else "")
            count = max(least, int(rng.choice(3, p=(0.15, 0.65, 0.2)))) if places else 0
            things += [(kind, int(rng.choice(places))) for _ in range(count)]
        return Scene(tuple(kinds), tuple(things), task_type, target, goal)


def _goals(kinds: list[str], *, looks: bool) -> list[str]:
    return [LAMP] if looks else sorted(set(kinds))


def _possible(pair: tuple[str, str], task_type: str, kinds: list[str], world: World) -> bool:
    goal, target = pair
    needed = next((able for verb, able in _NEEDED.items() if f"_{verb}_" in task_type), None)
    fits = goal == LAMP or target in world.holds[goal]
    return fits and (needed is None or target in world.able[needed]) and bool(_places(target, kinds, world, but=goal))


def _places(kind: str, kinds: list[str], world: World, *, but: str) -> list[int]:
    """List the indices of the receptacles that can hold an object of this kind, except receptacles of the kind ``but``."""
    return [place for place, receptacle in enumerate(kinds) if receptacle != but and kind in world.holds[receptacle]]
