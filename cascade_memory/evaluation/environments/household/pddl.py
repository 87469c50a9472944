"""Converts a scene to the planning problem that the engine plays."""

from __future__ import annotations

from cascade_memory.evaluation.environments.household.rooms import LAMP, Scene, World

OPENABLE = ("Fridge", "Cabinet", "Microwave", "Drawer", "Safe")


def problem(scene: Scene, goal: str, world: World) -> str:
    """Build the problem in PDDL; ``goal`` is its ``(:goal ...)``."""
    receptacles, things = _names(list(scene.receptacles)), _names([kind for kind, _ in scene.things])
    places = [f"loc_bar_{place}" for place in range(len(receptacles))]
    receptacle_kinds, thing_kinds = sorted(set(scene.receptacles)), sorted({kind for kind, _ in scene.things})
    facts = ["(= (total-cost) 0)", "(atLocation agent1 loc_init)"]
    for name, kind, place in zip(receptacles, scene.receptacles, places, strict=True):
        facts += [f"(receptacleType {name} {kind}Type)", f"(receptacleAtLocation {name} {place})"]
        facts += [f"(openable {name})"] if kind in OPENABLE else []
    for kind in receptacle_kinds:
        facts += [f"(canContain {kind}Type {thing}Type)" for thing in thing_kinds if thing in world.holds[kind]]
    for name, (kind, place) in zip(things, scene.things, strict=True):
        facts += [f"(objectType {name} {kind}Type)", f"(objectAtLocation {name} {places[place]})"]
        facts += [f"({fact} {name} {receptacles[place]})" for fact in ("inReceptacle", "wasInReceptacle")]
        facts.append(f"({'toggleable' if kind == LAMP else 'pickupable'} {name})")
        facts += [f"({able.lower()} {name})" for able in ("Cleanable", "Heatable", "Coolable") if kind in world.able[able]]
    objects = [
        f"{' '.join(things)} - object",
        f"{' '.join(receptacles)} - receptacle",
        f"{' '.join([*places, 'loc_init'])} - location",
        f"{' '.join(f'{kind}Type' for kind in receptacle_kinds)} - rtype",
        f"{' '.join(f'{kind}Type' for kind in thing_kinds)} - otype",
        "agent1 - agent",
    ]
    body = [_block("objects", objects), _block("init", facts), goal, "(:metric minimize (total-cost))"]
    return "\n".join(["(define (problem household)", "(:domain alfred)", *body, ")"])


def _block(name: str, lines: list[str]) -> str:
    return "\n ".join([f"(:{name}", *lines]) + "\n)"


def _names(kinds: list[str]) -> list[str]:
    """Number the items of each kind. The engine reads ``Sink_bar_01_bar_SinkBasin`` as the sinkbasin of a sink.

    >>> _names(["Drawer", "SinkBasin", "Drawer"])
    ['Drawer_bar_01', 'Sink_bar_01_bar_SinkBasin', 'Drawer_bar_02']
    """
    names: list[str] = []
    for place, kind in enumerate(kinds):
        number = kinds[: place + 1].count(kind)
        whole = kind.removesuffix("Basin")
        names.append(f"{whole}_bar_{number:02}" + (f"_bar_{kind}" if whole != kind else ""))
    return names
