"""After how many tasks does a memory help? SIMULATED streams of three kinds, and two more.

    python examples/benchmarks/time_to_help.py            # play, print the tables, draw the pictures; some five minutes
    python examples/benchmarks/time_to_help.py --again    # print and draw from the rows of the last time

recurring                the same tasks come again, word for word
alike                    each task is new, and several share a solution: real messages of customers of a bank, by intent
never                    the tasks have nothing in common, neither words nor solutions
alike, misleading words  synthetic tickets with twelve solutions; most words of a ticket have nothing to do with its solution
never, similar words     the messages of the bank, each with a solution of its own: what looks alike never helps

The agent is simulated, no language model takes part. Alone, it solves a task with the probability ``alone``. With a case that
has the right solution it succeeds with probability 0.97. Any other case spoils half of what it would have solved alone.
This is drawn once for each place in the stream, so that each method gets the same tasks with the same luck.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from cascade_memory import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.minilm import default_embedder
from cascade_memory.evaluation import bundled_tasks
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.stream import PrecomputedEmbedder, SimulatedSolver
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.looks.figure import End, EndNames, new_figure, saved, styled
from cascade_memory.looks.palette import looks

ROOT = Path(__file__).parents[2]
ALONE, MATCHED, MISLED, DISTINCT = 0.6, 0.97, 0.5, 100
AHEAD, WINDOW, STRETCH, EARLY = 0.05, 40, 100, (20, 100)
METHODS: dict[str, dict[str, Any] | None] = {"no memory": None, "most similar case": {"ranker": "similarity"}, "CASCADE": {}}
PLAIN, MORE = ("recurring", "alike", "never"), ("alike, misleading words", "never, similar words")
FORMS = (
    *("Explain {} to a child", "Where can I buy {}?", "A poem about {}, please", "Who first described {}?", "Draw {}"),
    *("What does the law say about {}?", "I am afraid of {}", "The history of {} in ten lines", "How heavy: {}?"),
)
THINGS = """
glaciers|the tango|zippers|tax returns|beehives|sourdough|moon landings|knee surgery|chess openings|wallpaper|volcanoes|violins
passports|penguins|concrete|haiku|dental floss|stock exchanges|sunflowers|diesel engines|origami|Roman roads|goldfish|cinnamon
wind turbines|resignation letters|the Pythagorean theorem|roller skates|malaria|lighthouses|leases|opals|judo|printer ink
olives|monsoons|braille|bagpipes|sonnets|pension funds|earthworms|car tyres|yoghurt|tattoos|black holes|ballet shoes
parking fines|yeast|submarines|quilts|avalanches|saxophones|barcodes|tulips|the Vikings|hernias|skateboards|fire alarms|mangoes
kaleidoscopes|toll roads|pollen|sewing needles|emperors|Wi-Fi|dandruff|falcons|elevators|maple syrup|ghost stories|antibiotics
hammocks|comets|puppets|rice|customs duties|coral reefs|trumpets|mould|fencing swords|alphabets|sand dunes|vaccines
jigsaw puzzles|cheese|earthquakes|lullabies|trade unions|hedgehogs|gravel|karaoke|toothache|satellites|lawn mowers|ginger
castles|migraines|surfboards|smoke detectors|peaches|sundials|tariffs|mosquitoes|harps|rust|archery|calligraphy|tides|insulin
crossword clues|butter|tornadoes|nursery rhymes|auctions|badgers|bricks|flamenco|contact lenses|rockets|compost|garlic
cathedrals|asthma|snowboards|door locks|cherries|clocks|inflation|spiders|drums|frost|rugby|hieroglyphs|rainbows|blood pressure
riddles|vinegar|hurricanes|fairy tales|divorce|otters|cement|waltzes|hearing aids|telescopes|hedges|pepper|pyramids|insomnia
kayaks|burglars|plums|calendars|bankruptcy|butterflies|flutes|salt|cricket|shorthand|fog|kidneys|magic tricks|mustard|floods
proverbs|adoption|wolves|plaster|choirs|wheelchairs|planets|orchards|vanilla|moats|allergies|sledges|safes|apricots|hourglasses
mortgages|ants|pianos|sulphur|tennis rackets|runes|thunder|lungs|dominoes|ketchup|droughts|limericks|inheritance|foxes|asphalt
jazz|crutches|eclipses|vineyards|saffron|castanets|fever|canoes|keys|figs|wristwatches|shares|wasps|guitars|chlorine|golf clubs
postcodes|dew|stomach ulcers|playing cards|soy sauce|landslides|fables|wills|moles|granite|pottery|meteorites|lettuce|nutmeg
drawbridges|measles|bicycles|handcuffs|stopwatches|dividends|oboes|helium|hockey sticks|semaphore|hail|tonsils|dice|mayonnaise
tsunamis|epics|guardianship|squirrels|marble|mosaics|bandages|nebulae|potatoes|cloves|catapults|mumps|tractors|fingerprints
lemons|metronomes|pawnshops|moths|accordions|copper|darts|Morse code|icicles|appendicitis|yo-yos|honey|quicksand|satire
copyright|beavers|timber|stained glass|splints|gravity|tomatoes|thyme|tournaments|scurvy|trams|passwords|raisins|thermometers
credit cards|bats|tubas|mercury|boxing gloves|cuneiform|mirages|eyelashes|kites|jam|whirlpools|tragedies|patents|seals|clay
embroidery|quarks|carrots|basil|armour|cholera|ferries|alibis|almonds|compasses|bank notes|snails|cymbals|uranium|badminton
sign language|dawn|freckles|pancakes|geysers|biographies|trademarks|camels|slate|lace|dentures|photons|onions|parsley
tapestries|rabies|airships|juries|pears|barometers|subsidies|frogs|banjos|neon|bowling|punctuation|caves|hiccups|rattles
noodles|swamps|satyrs|tenancy|giraffes|glue|batik|corsets|isotopes|beetroot|sage|crossbows|tetanus|snowploughs|bail|walnuts
sextants|pocket money|crabs|zinc|curling|typewriters|deltas|warts|sandals|pulleys|chameleons|aspirin|croquet|stamps|moss|lasers
umbrellas|dragons|curtains|cocoa|hypnosis|ladders|rhubarb|gondolas|vetoes|caviar|tinnitus|welding|jellyfish|sherry|cranes|polls
lipstick|ivy|hostels|nylon|deserts|grammar|turbans|bonfires|heraldry|vertigo|espresso|blisters|ostriches|confetti|scaffolds
mirrors|pigeons|census forms|goulash|tunnels|wigs|fjords|bribes
"""
Task = tuple[str, str]  # the query, and what solves it
Flags, Floats = NDArray[np.bool_], NDArray[np.float64]


class Run(NamedTuple):
    """A method on a stream: what identifies a row."""

    stream: str
    method: str
    seed: int
    tasks: int
    alone: float = ALONE
    distinct: int = DISTINCT  # tasks, of the stream "recurring"
    before: int = 0  # solved tasks of the stream "alike" that are added before the first task


def own_solutions(queries: Sequence[str], rng: np.random.Generator) -> list[Task]:
    """Give each query a solution of its own: a word of random letters, which says nothing about the query."""
    return [(query, "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 12))) for query in queries]


def stream_of(run: Run) -> list[Task]:
    """Make the tasks in their order, those that are added before at the end; the same ones for all methods of a seed."""
    rng = np.random.default_rng([run.seed, 3])
    if run.stream == "alike, misleading words":
        return [(task.query, task.solution) for task in tickets(run.tasks, run.seed)]
    if run.stream == "never":
        things = THINGS.replace("\n", "|").strip("|").split("|")
        chosen = [things[i] for i in rng.permutation(len(things))[: run.tasks]]
        return own_solutions([str(rng.choice(FORMS)).format(thing) for thing in chosen], rng)
    messages = list(dict.fromkeys((one.query, str(one.solution)) for one in bundled_tasks()))
    messages = [messages[i] for i in rng.permutation(len(messages))]
    if run.stream == "alike":
        return messages[: run.tasks + run.before]
    few = run.distinct if run.stream == "recurring" else run.tasks
    own = own_solutions([query for query, _ in messages[:few]], rng)
    return [own[i] for i in rng.integers(few, size=run.tasks)] if run.stream == "recurring" else own


def played(run: Run, embedder: PrecomputedEmbedder) -> dict[str, Any]:
    """Play a method on a stream; return its row, with a bit for each task that was solved, and for each with a case."""
    stream = stream_of(run)
    stream, before = stream[: run.tasks], stream[run.tasks :]
    solver = SimulatedSolver([right for _, right in stream], zero_shot=run.alone, misled=MISLED, matched=MATCHED, seed=run.seed)
    options = METHODS[run.method]
    memory = None if options is None else CascadeMemory(embedder=embedder, learn="inline", **options)
    if memory is not None and before:
        memory.add(before, progress=False)
    solved, shown = np.zeros(len(stream), bool), np.zeros(len(stream), bool)
    for place, (query, _) in enumerate(stream):
        if memory is None:
            solved[place] = solver.attempt(place, ()).success
            continue
        recall = memory.recall(query)
        attempt = solver.attempt(place, recall.cases)
        memory.reward(recall.episode_id, attempt.success, solution=attempt.answer)
        solved[place], shown[place] = attempt.success, bool(recall.cases)
    if memory is not None:
        memory.close()
    return {**run._asdict(), "solved": np.packbits(solved).tobytes().hex(), "shown": np.packbits(shown).tobytes().hex()}


def all_runs(tasks: int, seeds: int) -> list[Run]:
    """List the runs of the main tables, and then those in which one setting is another one."""
    main = [(stream, {}) for stream in (*PLAIN, *MORE)]
    others = [("recurring", {"distinct": few}) for few in (25, 50, 200, 400)]
    others += [(stream, {"alone": alone}) for stream in PLAIN for alone in (0.4, 0.8)]
    others += [("alike", {"before": cases}) for cases in (100, 400)]
    return [
        Run(stream, method, seed, tasks, **setting)
        for stream, setting in (*main, *others)
        for method in METHODS
        for seed in range(seeds)
    ]


def play_all(runs: Sequence[Run], embedder: str) -> Iterator[dict[str, Any]]:
    """Play the runs one after the other. Each text is embedded once, with what a memory takes by default."""
    texts = list(dict.fromkeys(query for run in runs for query, _ in stream_of(run)))
    known = PrecomputedEmbedder(HashingEmbedder() if embedder == "hashing" else default_embedder(), texts)
    for run in tqdm(runs, unit="run"):
        yield {**played(run, known), "embedder": known.identity}


# -- the figures ---------------------------------------------------------------------------------------------------------------


class Rows:
    """What was played: for each setting of a stream and each method, who solved what, as (seeds, tasks)."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.embedder = rows[0]["embedder"]
        found: dict[tuple[Run, str], list[Flags]] = {}
        for row in rows:
            setting = Run(**{name: row[name] for name in Run._fields})._replace(method="", seed=0)
            flags = [np.unpackbits(np.frombuffer(bytes.fromhex(row[what]), np.uint8)) for what in ("solved", "shown")]
            found.setdefault((setting, row["method"]), []).append(np.stack(flags)[:, : row["tasks"]].astype(bool))
        self._flags = {key: np.stack(flags) for key, flags in found.items()}
        self.settings = list(dict.fromkeys(setting for setting, _ in self._flags))
        self.tasks, self.seeds = self.settings[0].tasks, len(next(iter(self._flags.values())))

    def solved(self, setting: Run, method: str) -> Flags:
        return self._flags[setting, method][:, 0]

    def shown(self, setting: Run, method: str) -> float:
        return float(self._flags[setting, method][:, 1].mean())

    def more(self, setting: Run, method: str) -> Floats:
        """Return for each task how many more were solved than without memory: -1, 0 or 1."""
        return self.solved(setting, method).astype(float) - self.solved(setting, "no memory")


def from_then_on(values: Floats, least: float) -> float:
    """Return the first place, counted from 1, from which on all values are large enough; inf if there is none.

    >>> from_then_on(np.array([1.0, 0.0, 0.5, 1.0]), 0.5)
    3.0
    """
    short = np.flatnonzero(values < least - 1e-9)
    first = 1.0 if not len(short) else float(short[-1]) + 2.0
    return first if first <= len(values) else np.inf


def moving(values: Any, window: int) -> Floats:
    """Return the mean of each stretch of so many values.

    >>> moving([0.0, 1.0, 1.0], 2).tolist()
    [0.5, 1.0]
    """
    return np.convolve(values, np.ones(window) / window, "valid")


def trailing(values: Floats, window: int) -> Floats:
    """Return after each value the mean of the last ones, at the beginning of all so far.

    >>> trailing(np.array([1.0, 0.0, 0.0]), 2).tolist()
    [1.0, 0.5, 0.0]
    """
    sums, ends = np.concatenate([[0.0], np.cumsum(values)]), np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def median(found: Sequence[float]) -> str:
    """Write the median over the seeds, the least and the most.

    >>> median([2.0, np.inf, 1.0]), median([3.0])
    ('2 (1 to never)', '3')
    """
    ordered = sorted(found)
    middle, low, high = ("never" if np.isinf(ordered[at]) else f"{ordered[at]:.0f}" for at in ((len(found) - 1) // 2, 0, -1))
    return middle if low == high else f"{middle} ({low} to {high})"


def signed(values: Floats) -> str:
    """Write a mean over seeds with its 95 % interval."""
    mean, half = interval(values)
    return f"{mean:+.1f}" if np.isnan(half) else f"{mean:+.1f} ± {half:.1f}"


def gains(rows: Rows, setting: Run, method: str) -> list[str]:
    more = rows.more(setting, method)
    return [*(signed(more[:, :first].sum(axis=1)) for first in EARLY), signed(100 * more.mean(axis=1))]


def whens(rows: Rows, setting: Run, method: str) -> list[str]:
    more = rows.more(setting, method)
    ahead = median([from_then_on(trailing(one, STRETCH), AHEAD) for one in more])
    return [ahead, median([from_then_on(trailing(one, rows.tasks), 0.0) for one in more])]


def tables(rows: Rows) -> str:
    """Write the three tables as they stand on the page."""
    last = rows.tasks // 4
    gained = [*(f"tasks more in the first {first}" for first in EARLY), f"points more, all {rows.tasks}"]
    timed = [f"{100 * AHEAD:g} points ahead from task", "paid back from task"]
    success = [["stream", "method", f"solved, last {last}", "a case shown", *gained]]
    times = [["stream", "method", *timed]]
    settings = [["stream", "alone", "distinct tasks", "added before", gained[0], gained[-1], *timed]]
    for one in rows.settings:
        if one == Run(one.stream, "", 0, rows.tasks):
            for method in METHODS:
                rate = percent(rows.solved(one, method)[:, -last:].mean(), 1)
                is_memory = METHODS[method] is not None
                more = [percent(rows.shown(one, method)), *gains(rows, one, method)] if is_memory else [""] * 4
                success.append([one.stream, method, rate, *more])
                times += [[one.stream, method, *whens(rows, one, method)]] if is_memory else []
    for one in sorted(rows.settings, key=lambda one: ((*PLAIN, *MORE).index(one.stream), one.alone, one.distinct, one.before)):
        if one.stream in PLAIN:
            distinct = one.distinct if one.stream == "recurring" else rows.tasks
            gain, when = gains(rows, one, "CASCADE"), whens(rows, one, "CASCADE")
            settings.append([one.stream, percent(one.alone), f"{distinct}", f"{one.before}", gain[0], gain[-1], *when])
    return "\n\n".join(markdown(table) for table in (success, times, settings))


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def markdown(lines: list[list[str]]) -> str:
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def draw(rows: Rows, streams: Sequence[str], said: str, target: Path) -> None:
    """Draw a panel for each stream: the success over the last tasks, with its 95 % interval over the seeds."""
    look, names = looks(list(METHODS)), []
    window = min(WINDOW, rows.tasks // 2)
    with styled(9.5):
        figure = new_figure(7.2, 0.5 + 2.0 * len(streams))
        for axes, stream in zip(figure.subplots(len(streams), 1, squeeze=False)[:, 0], streams, strict=True):
            setting, ends = Run(stream, "", 0, rows.tasks), []
            for method in METHODS:
                runs = np.stack([moving(one, window) for one in rows.solved(setting, method)])
                mean, half = np.array([interval(column) for column in runs.T]).T
                x, colour = np.arange(window, rows.tasks + 1), look[method].colour
                axes.plot(x, mean, color=colour, linestyle=look[method].dash, linewidth=2.0)
                low, high = np.clip([mean - half, mean + half], 0.0, 1.0)
                axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
                ends.append(End(method, mean[-1], colour))
            axes.set(title=stream, ylim=(0, 1.02), xlim=(0, rows.tasks))
            axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
            names.append(EndNames(axes, ends, 9.5))
        axes.set_xlabel(f"task · solved of the last {window}, SIMULATED agent, {rows.seeds} seeds, band: 95 % interval")
        saved(figure, names, target, dpi=150, metadata={"Description": said})


def main() -> None:
    """Play, or read what was played; print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="play nothing: print and draw from the rows")
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--embedder", choices=("default", "hashing"), default="default")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    if not options.again:
        made = play_all(all_runs(options.tasks, options.seeds), options.embedder)
        options.out.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    rows = Rows([json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()])
    said = tables(rows)
    print(f"SIMULATED agent, {rows.tasks} tasks, {rows.seeds} seeds, {rows.embedder}\n\n{said}")
    draw(rows, PLAIN, said, options.images / "time_to_help.png")
    draw(rows, MORE, said, options.images / "time_to_help_more.png")


if __name__ == "__main__":
    main()
