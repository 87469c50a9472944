"""The form of a task: the words that recur among the tasks. It counts where the solutions of such tasks have the same form."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from inside import state_of

from cascade_memory import CascadeMemory, Ranking, RecalledCase
from cascade_memory.cycle.recall import recall
from cascade_memory.encoders.alignment import Form, NewestForms
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.lexical import Rarity, word_terms
from cascade_memory.encoders.light import FEATURES, FORM, LightEncoder
from cascade_memory.ports.encoders import Candidates, Query
from cascade_memory.stores.index import ExactIndex

# What has to be done, in the words of a task and of its solution; and what it is about, in words of its own.
FORMS = [
    ("Return {}, ordered by age from old to new.", "sort {} by age descending and print"),
    ("Return how many there are in total of {}.", "count {} in total and print"),
    ("Delete those above the average among {}.", "remove {} where value above average"),
    ("Skip the first and return the next of {}.", "rank {} then drop first"),
]
TOPICS = {
    "boats": "boats in the harbour with masts, sails, keels, anchors and a crew",
    "trees": "trees of the forest with bark, roots, leaves, acorns and moss",
    "wines": "wines from the cellar with corks, barrels, grapes, tannin and labels",
    "roads": "roads through the valley with lanes, bridges, tunnels, signs and tolls",
    "poems": "poems by the laureate with verses, rhymes, stanzas, metaphors and irony",
    "lamps": "lamps for the kitchen with bulbs, shades, switches, cables and dimmers",
    "birds": "birds at the lake with feathers, nests, beaks, songs and wings",
    "coins": "coins in the museum with silver, gold, emperors, mints and eagles",
    "shoes": "shoes on the shelf with laces, heels, soles, buckles and polish",
    "soups": "soups on the menu with onions, carrots, lentils, broth and parsley",
    "clocks": "clocks in the tower with hands, dials, springs, bells and chimes",
    "plays": "plays at the theatre with acts, curtains, actors, props and critics",
}


def tasks(n: int, seed: int = 0) -> list[tuple[str, str, int]]:
    """Tasks of all forms about all topics in any order, each with its solution and the number of its form; none recurs."""
    every = list(itertools.product(range(len(FORMS)), TOPICS))
    order = np.random.default_rng(seed).permutation(len(every))[:n]
    chosen = [every[i] for i in order]
    return [(FORMS[form][0].format(TOPICS[topic]), FORMS[form][1].format(topic), form) for form, topic in chosen]


def candidates(pairs: list[tuple[str, str]]) -> Candidates:
    texts, heads = [text for text, _ in pairs], [head for _, head in pairs]
    groups = np.unique(heads, return_inverse=True)[1]
    return Candidates(
        keys=np.arange(len(pairs)), texts=texts, heads=heads, vectors=HashingEmbedder(64).embed(texts), groups=groups
    )


def weight_of(pairs: list[tuple[str, str]], *, at_once: bool = True) -> float:
    words, form, every = Rarity(word_terms), Form(), candidates(pairs)
    for start, stop in [(0, len(pairs))] if at_once else [(i, i + 1) for i in range(len(pairs))]:
        some = Candidates(
            keys=every.keys[start:stop],
            texts=every.texts[start:stop],
            heads=every.heads[start:stop],
            vectors=every.vectors[start:stop],
            groups=every.groups[start:stop],
        )
        form.retain(some, [words.add(some.texts)])
    return form.weight


@pytest.mark.parametrize("seed", range(3))
def test_the_form_counts_where_it_decides(seed: int):
    assert weight_of([pair[:2] for pair in tasks(48, seed)]) > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_it_counts_for_nothing_where_the_topic_decides(seed: int):
    about = {topic: f"call the {topic} department in room {number}" for number, topic in enumerate(TOPICS)}
    assert weight_of([(text, about[next(one for one in TOPICS if one in text)]) for text, _, _ in tasks(48, seed)]) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_few_labels_are_no_evidence_however_often_they_recur(seed: int):
    labels = ["sort, print", "count, print", "remove, stop", "rank, print"]
    assert weight_of([(text, labels[form]) for text, _, form in tasks(48, seed)] * 5) == 0.0


def test_it_counts_for_nothing_where_the_solutions_are_by_chance():
    pairs = [pair[:2] for pair in tasks(48)]
    order = np.random.default_rng(1).permutation(len(pairs))
    assert weight_of([(text, pairs[other][1]) for (text, _), other in zip(pairs, order, strict=True)]) < 0.1


@pytest.mark.parametrize("said", ["solution {}", "the answer is {}", "transfer the caller to desk {} of the hall"])
@pytest.mark.parametrize("recur", [50, 400])
def test_a_form_that_all_solutions_share_decides_nothing(said: str, recur: int):
    words = np.random.default_rng(1).integers(0, 3_000, (400, 9))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    assert weight_of([(text, said.format(number % recur)) for number, text in enumerate(texts)]) == 0.0


def test_texts_without_words_and_a_single_case_say_nothing():
    assert weight_of([("", ""), ("?", "!"), ("...", "")]) == 0.0
    assert weight_of([("List the boats.", "list")]) == 0.0


def test_it_counts_for_less_where_the_candidates_hardly_differ_in_form():
    words, form, every = Rarity(word_terms), Form(), candidates([pair[:2] for pair in tasks(48)])
    form.retain(every, [words.add(every.texts)])
    apart, alike = np.linspace(0.0, 1.0, 8, dtype=np.float32), np.linspace(0.50, 0.51, 8, dtype=np.float32)
    assert form.weight_for(apart) == form.weight > 0.5
    assert 0.0 < form.weight_for(alike) < 0.05 * form.weight


def test_one_by_one_is_nearly_the_same_as_all_at_once():
    pairs = [pair[:2] for pair in tasks(48)]
    assert weight_of(pairs, at_once=False) == pytest.approx(weight_of(pairs))


def _same_form(memory: CascadeMemory, asked: list[tuple[str, str, int]], form_of: dict[str, int]) -> float:
    shown = [memory.recall(text).cases for text, _, _ in asked]
    right = [bool(cases) and form_of[str(cases[0].solution)] == form for cases, (_, _, form) in zip(shown, asked, strict=True)]
    return float(np.mean(right))


def test_before_any_reward_a_memory_shows_the_case_of_the_same_form_and_not_that_of_the_same_topic():
    shown: dict[str, list[float]] = {"light": [], "similarity": []}
    for seed, ranker in itertools.product(range(4), shown):
        every = tasks(48, seed)
        form_of = {solution: form for _, solution, form in every}
        with CascadeMemory(embedder="hashing", ranker=ranker, learn="inline", ranking=Ranking(abstain=False)) as memory:
            memory.add([pair[:2] for pair in every[:42]], progress=False)
            shown[ranker].append(_same_form(memory, every[42:], form_of))
    assert np.mean(shown["light"]) > np.mean(shown["similarity"]) + 0.25


def test_the_weight_survives_a_restart_and_what_is_purged_counts_no_more(tmp_path: Path):
    def weight(memory: CascadeMemory) -> float:
        memory.recall(f"Return how many there are of {TOPICS['boats']}")
        return state_of(memory).learner.encoder.form.weight

    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        memory.add([pair[:2] for pair in tasks(48)], progress=False)
        before = weight(memory)
    assert before > 0.5
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        assert weight(memory) == pytest.approx(before)
        memory.forget(everything=True, purge=True)
        assert memory.stats().cases == 0
        memory.sync()
        assert weight(memory) == 0.0


def test_cases_of_the_same_form_are_candidates_although_others_are_nearer():
    parts = ("mast", "sail", "keel", "crew", "deck", "rope", "helm", "oar", "bow", "flag", "hull", "net")
    about = [" ".join(f"{part}{n}" for part in parts) for n in range(40)]
    stored = [
        (f"{form.format(topic)} {n}", f"{do.format(topic)} {n}") for form, do in FORMS[1:] for topic in about for n in (1, 2)
    ]
    stored += [(FORMS[0][0].format(topic), FORMS[0][1].format(topic)) for topic in about[20:]]
    stored = [stored[place] for place in np.random.default_rng(0).permutation(len(stored))]
    asked = FORMS[0][0].format(about[0])  # six cases are about these things, and none of them sorts

    def sorting(cases: Iterable[RecalledCase]) -> int:
        return sum(str(case.solution).startswith("sort") for case in cases)

    def opened(candidates: int) -> CascadeMemory:
        memory = CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False, candidates=candidates))
        memory.add(stored, progress=False)
        return memory

    with opened(candidates=8) as memory:
        assert sorting(memory.recall(asked, k=1).cases) == 1  # the best is of the form
    with opened(candidates=4) as memory:
        encoder = state_of(memory).learner.encoder
        assert encoder.form.weight > 0.5
        find, encoder.further = encoder.further, None
        assert sorting(memory.recall(asked, k=4).cases) == 0
        encoder.further = find
        cases = memory.recall(asked, k=4).cases
        assert len({case.id for case in cases}) == 4
        assert sorting(cases) == 1  # one candidate in four
        assert sorting(memory.cases.search(asked, k=4).cases) == 0  # a search shows the nearest


@pytest.mark.parametrize("decides", [0.0, 0.5, 1.0])
def test_where_a_paragraph_tells_the_solution_the_form_counts_for_less(decides: float):
    made = candidates([pair[:2] for pair in tasks(48)])
    encoder = LightEncoder(64, lambda keys: made.vectors[np.asarray(keys)])
    encoder.retain(made)
    encoder.alignment.weights = np.array([decides, 0.0], np.float32)  # of cases with paragraphs, which are none of these
    asked = FORMS[0][0].format(TOPICS["boats"])

    def counts(text: str) -> tuple[float, int]:
        query = Query(text=text, vector=HashingEmbedder(64).embed([text])[0])
        features = encoder.encode(query, made, made.vectors @ query.vector)
        found = encoder.further(query, 8) if encoder.further else ()
        return float(features[:, FEATURES.index(FORM)].std()), len(found)

    in_one_paragraph, (spread, found) = counts(asked), counts(f"{asked}\n\nThe harbour is quiet.")
    assert in_one_paragraph == (pytest.approx(encoder.form.weight), 8)
    assert spread == pytest.approx((1.0 - decides) * encoder.form.weight, abs=1e-6)
    assert found == 8 * (1.0 - decides)


def test_a_candidate_of_the_form_obeys_the_filter_of_the_recall():
    stored = [(text, solution, {"kind": "a"}) for text, solution, _ in tasks(48)]
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
        memory.add([*stored, ("Return maps, ordered by age.", "sort maps", {"kind": "b"})], progress=False)
        assert state_of(memory).learner.encoder.form.weight > 0.5
        cases = memory.recall(FORMS[0][0].format(TOPICS["boats"]), where={"kind": "b"}, k=9).cases
        assert [case.solution for case in cases] == ["sort maps"]


def test_a_candidate_that_is_gone_takes_no_place():
    """What another process evicted or forgot is still known to the encoder, until it learns of it."""
    index = ExactIndex(2)
    index.upsert(np.arange(10), np.stack([np.cos(np.arange(10)), np.sin(np.arange(10))], axis=1).astype(np.float32))
    asked: list[int] = []

    class NoRows:
        def candidates(self, keys: np.ndarray, *_: object) -> dict[int, object]:
            asked.extend(keys.tolist())
            return {}

    query = Query(text="", vector=np.array([1.0, 0.0], np.float32))
    recall(query, index=index, ledger=cast("Any", NoRows()), size=4, further=np.array([2, 77, 88]))
    assert len(asked) == 4
    assert 2 in asked
    asked.clear()
    recall(query, index=index, ledger=cast("Any", NoRows()), size=4, further=np.array([2, 77]), among=np.array([0, 1, 6, 7, 8]))
    assert set(asked) <= {0, 1, 6, 7, 8}
    assert len(asked) == 4


def test_an_encoder_that_is_let_go_is_gone_at_once():
    """Its words and texts must not stay in memory after a purge until Python happens to look for circles."""
    made = candidates([pair[:2] for pair in tasks(48)])
    encoder = LightEncoder(64, lambda keys: made.vectors[np.asarray(keys)])
    encoder.retain(made)
    assert encoder.further is not None
    gone = weakref.ref(encoder)
    gc.disable()
    try:
        del encoder
        assert gone() is None
    finally:
        gc.enable()


def test_only_the_newest_are_kept_and_what_is_forgotten_is_no_candidate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(NewestForms, "MOST", 3)
    words, forms = Rarity(word_terms), NewestForms()
    for key, text in enumerate(["sort cups by size", "sort lamps by size", "", "count desks", "sort desks by size"]):
        forms.add(np.array([key]), [words.add([text])])
    assert forms.nearest("sort roads by size", words, k=9).tolist() == [4]
    assert forms.nearest("", words, k=9).tolist() == []
    assert NewestForms().nearest("sort roads", words, k=9).tolist() == []


def test_what_texts_have_in_common_is_the_cosine_of_their_common_words():
    rarity = Rarity(word_terms)
    stored = ["list cups by size", "", "count the cups", "...", "list lamps by size, list them twice"]
    rarity.add(stored)
    owners, buckets = word_terms(stored)
    for text in ("list desks by size", "size", "nothing known", ""):
        rows = rarity.common_rows(word_terms([text, *stored]), 6).astype(np.float64)
        common = rarity.common(word_terms([text])[1], buckets, np.searchsorted(owners, np.arange(6)))
        assert common == pytest.approx(rows[1:] @ rows[0], abs=1e-6)
    words, forms = Rarity(word_terms), NewestForms()
    forms.add(np.arange(5), [words.add(stored)])
    assert forms.nearest("list roads by size", words, k=2).tolist() == [0, 4]
    assert forms.nearest("list roads by size", words, k=9).tolist() == [0, 4]
    assert forms.nearest("list roads by size", words, k=0).tolist() == []


def test_of_cases_with_the_same_words_the_oldest_is_nearest_also_with_many_words():
    words, forms = Rarity(word_terms), NewestForms()
    words.add([" ".join(f"word{n}" for n in range(3_000))])  # so many that the counts stand in a table
    forms.add(np.arange(4), [words.add(["sort cups", "list cups by size", "list cups by size", "list cups by size"])])
    assert forms.nearest("list lamps by size", words, k=2).tolist() == [1, 2]


def test_explain_names_the_form():
    every = tasks(48)
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
        memory.add([pair[:2] for pair in every[:42]], progress=False)
        explained = memory.recall(every[44][0]).explain()
    assert FORM in FEATURES
    assert FORM in str(explained)
