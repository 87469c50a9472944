"""The records of actors: who is found out, who is not, and how much of a lie gets through meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from cascade_memory.capabilities.sources.reputation import TRUSTED, Heard, Turns
from cascade_memory.capabilities.sources.source_records import SourceRecords

LIAR = 0


def heard(
    reporter: int,
    author: int,
    reward: float,
    *,
    case: int = 1,
    key: int = 0,
    predicted: float = 0.85,
    others: Sequence[tuple[int, float]] | None = None,
    agrees: float = 0.0,
) -> Heard:
    """One outcome with a case of ``author`` that was shown; with ``others``, further candidates (author, agreement) follow."""
    authors = [author, *(one for one, _ in others or ())]
    return Heard(
        key=key,
        reporter=reporter,
        reward=reward,
        predicted=predicted,
        authors=np.array(authors, np.int64),
        cases=np.arange(case * 100, case * 100 + len(authors), dtype=np.int64),
        chosen=np.array([0], np.int64),
        shown=True,
        agreement=None if others is None else np.array([agrees, *(label for _, label in others)]),
    )


def honest_past(records: SourceRecords, actors: Sequence[int] = range(1, 11), rounds: int = 12) -> None:
    """Let actors do well with each other's cases, each with many cases."""
    for number in range(rounds):
        for actor in actors:
            other = actors[(actors.index(actor) + 1 + number % (len(actors) - 1)) % len(actors)]
            records.observe(heard(actor, other, 1.0, case=1000 + number * 50 + actor, key=number))


def test_whose_cases_fail_others_is_convicted_and_those_who_do_well_are_established():
    records = SourceRecords()
    honest_past(records)
    assert all(records.established(actor) for actor in range(1, 11))
    for case in range(20):
        records.observe(heard(1 + case % 10, LIAR, 0.0, case=case))
        if LIAR in records.convicted:
            break
    assert LIAR in records.convicted
    assert case < 6
    assert records.share(LIAR) == 0.0


def test_one_who_slanders_convicts_nobody():
    records = SourceRecords()
    honest_past(records)
    for case in range(50):
        records.observe(heard(11, 3, 0.0, case=case, key=case))
    assert 3 not in records.convicted


def test_many_new_names_convict_nobody():
    records = SourceRecords()
    honest_past(records)
    for case in range(400):
        records.observe(heard(100 + case, 3, 0.0, case=case, key=case))
    assert 3 not in records.convicted


@pytest.mark.parametrize("seed", range(4))
def test_names_with_two_turns_each_neither_praise_each_other_nor_take_the_good_record_of_the_honest(seed: int):
    """One turn in eight is that of a new name. It claims that a case of its like was right, and six honest ones were wrong."""
    records, rng, honest = SourceRecords(), np.random.default_rng(seed), range(1, 37)
    for number in range(400):
        if number % 8:
            reporter, author = (int(one) for one in rng.permutation(honest)[:2])
            records.observe(heard(reporter, author, float(rng.random() < 0.85), case=10_000 + number, key=number))
        else:
            others = [*((int(one), 0.0) for one in rng.permutation(honest)[:6]), *((100 + one, 1.0) for one in range(5))]
            records.observe(heard(200 + number // 16, 100, 1.0, case=number, key=number, others=others, agrees=1.0))
    assert not any(records.established(actor) for actor in range(100, 300))
    assert np.median([records.records[actor].cases for actor in honest]) < -3.0


def test_where_a_person_verifies_that_solutions_recur_they_do():
    records = SourceRecords()
    for number in range(100):
        records.observe(heard(TRUSTED, 1, 1.0, case=number, key=number, others=[(2, 1.0)], agrees=1.0))
    for number in range(20):
        records.observe(heard(3 + number % 5, 1, 1.0, case=200 + number, key=number))
    assert records.teaches(heard(3, 20, 1.0, case=900, key=1, others=[(21, 1.0)], agrees=1.0))


def test_two_who_come_first_are_not_enough_for_solutions_to_recur():
    records = SourceRecords()
    for number in range(12):
        records.observe(heard(number % 2, 1 - number % 2, 1.0, case=number, key=number, others=[(2, 0.0)], agrees=1.0))
    for number in range(4):
        records.observe(heard(3 + number, 8, 0.0, case=100 + number, others=[(9, 0.0)]))
    assert not records.few
    assert not records.teaches(heard(0, 1, 1.0, case=900, others=[(2, 0.0)], agrees=1.0))


def test_whoever_came_first_is_judged_again_when_there_are_soon_enough_actors():
    flood = [heard(0, 1, 1.0, case=number, key=number, others=[(2, 0.0)], agrees=1.0) for number in range(8)]
    records, again = SourceRecords(), SourceRecords(soon_many=True)
    assert all(records.observe(one) for one in flood)
    assert not any(again.observe(one) for one in flood)
    assert not records.judged_too_early
    for number in range(SourceRecords.BEGINNING - len(flood)):
        records.observe(heard(3 + number % 6, 9, 1.0, case=100 + number))
    assert records.judged_too_early
    assert not again.judged_too_early


def test_guests_do_not_make_a_team_of_two_a_crowd():
    records = SourceRecords()
    reporters = [number % 2 for number in range(60)] + [5, 6, 7] + [number % 2 for number in range(70)]
    for number, reporter in enumerate(reporters):
        records.observe(heard(reporter, 1 - reporter % 2, 1.0, case=number, key=number, others=[(2, 0.0)], agrees=1.0))
    assert not records.few
    assert not records.judged_too_early


def test_a_team_that_grows_later_is_not_judged_again():
    records = SourceRecords()
    for number in range(100):
        records.observe(heard(number % 2, 1 - number % 2, 1.0, case=number, key=number))
    for number in range(60):
        records.observe(heard(3 + number % 6, 9, 1.0, case=200 + number))
    assert not records.judged_too_early


@pytest.mark.slow
def test_puppets_who_speak_against_a_liar_first_do_not_save_it():
    """So many of them that an actor's list of witnesses would be full, if their word counted."""
    records = SourceRecords()
    honest_past(records)
    for case in range(40):
        records.observe(heard(100 + case, LIAR, 0.0, case=case, key=case))
    for number in range(20 * Turns.WINDOW // 10):
        honest_past(records, rounds=1)
        records.observe(heard(1 + number % 10, LIAR, 0.0, case=1_000_000 + number, key=number))
    assert LIAR in records.convicted


def test_one_wrong_case_makes_no_bad_actor():
    records = SourceRecords()
    honest_past(records)
    for outcome in range(8):
        records.observe(heard(2 + outcome, 1, 0.0, case=7))
    assert 1 not in records.convicted


def test_who_was_good_for_long_and_becomes_bad_loses_its_good_name_at_once_and_is_found_out_soon():
    records = SourceRecords()
    honest_past(records, rounds=60)
    lost: list[int] = []
    for case in range(40):
        records.observe(heard(2 + case % 9, 1, 0.0, case=90_000 + case))
        lost += [] if records.established(1) else [case]
        if 1 in records.convicted:
            break
    assert lost[0] < 10
    assert 1 in records.convicted


def test_its_own_reports_say_nothing_about_an_actor():
    records = SourceRecords()
    honest_past(records)
    for case in range(50):
        records.observe(heard(LIAR, LIAR, 1.0, case=case, key=case))
    assert not records.established(LIAR)


def test_hindsight_convicts_whose_candidates_are_wrong_where_those_of_others_are_right():
    records = SourceRecords()
    honest_past(records)
    for number in range(12):
        reporter = 1 + number % 4
        others = [(LIAR, 0.0), (5, 1.0), (6, 1.0), (7, 1.0), (8, 1.0)]
        records.observe(heard(reporter, 9, 1.0, case=200 + number, others=others, agrees=1.0))
    assert LIAR in records.convicted
    assert all(records.established(actor) for actor in (5, 6, 7, 8, 9))


def test_an_honest_actor_whose_tasks_are_harder_is_neither_convicted_nor_called_a_liar():
    rng = np.random.default_rng(4)
    records = SourceRecords()
    honest_past(records)
    for number in range(400):
        records.observe(heard(1 + number % 9, 10, float(rng.random() < 0.7), case=3000 + number, key=number))
        records.observe(heard(10, 1 + number % 9, float(rng.random() < 0.7), case=8000 + number, key=number))
    assert 10 not in records.convicted
    assert 10 not in records.liars


def test_newcomers_are_shown_freely_until_the_cases_of_newcomers_fail():
    records = SourceRecords()
    honest_past(records)
    assert records.share(50) == 1.0
    for case in range(40):  # each by another actor, whom no record can convict
        records.observe(heard(1 + case % 10, 100 + case, 0.0, case=case))
    assert records.share(50) == SourceRecords.FAIR
    assert records.share(3) == 1.0


def test_nobody_is_held_back_where_all_are_new_and_do_well():
    records, rng = SourceRecords(), np.random.default_rng(5)
    for number in range(200):
        actor, other = (int(one) for one in rng.permutation(40)[:2])
        records.observe(heard(actor, other, float(rng.random() < 0.85), case=number, key=number))
        assert not records.held(np.arange(40), np.arange(40), actor, draw=0.999).any()


def test_few_actors_are_not_capped():
    records = SourceRecords()
    for number in range(60):
        records.observe(heard(number % 2, (number + 1) % 2, 1.0, case=number))
    assert records.fair == 1.0
    assert records.share(7) == 1.0


def test_who_floods_is_shown_and_teaches_in_a_fair_share_only():
    records = SourceRecords()
    taught = 0
    for number in range(600):
        taught += records.observe(heard(LIAR, LIAR, 1.0, case=number, key=7 * number))
        if number % 2 == 0:
            actor = 1 + number // 2 % 40
            records.observe(heard(actor, 1 + (actor + 5) % 40, 1.0, case=5000 + number, key=number))
    assert taught / 600 < 0.2
    assert records.share(LIAR) < 0.2


def test_one_whose_cases_others_are_shown_in_every_second_recall_is_shown_less():
    records = SourceRecords()
    for number in range(200):
        actor = 1 + number % 40
        if number % 2:
            records.observe(heard(actor, 99, float(number % 6 > 1), case=number, key=number, predicted=0.9))
        else:
            records.observe(heard(actor, 1 + (actor + 5) % 40, 1.0, case=5000 + number, key=number))
    assert records.newcomers > 0.8
    assert not records.established(99)
    assert records.share(99) < records.fair


def test_who_reports_the_opposite_is_called_a_liar_and_pardoned_when_that_ends():
    records = SourceRecords()
    honest_past(records)
    for number in range(30):
        records.observe(heard(11, 1 + number % 10, 0.0, case=number, key=number))
    assert 11 in records.liars
    assert not records.teaches(heard(11, 1, 0.0))
    for number in range(30):
        records.observe(heard(11, 1 + number % 10, 1.0, case=100 + number, key=number))
    assert 11 not in records.liars


def test_a_solution_that_an_established_actor_has_found_too_may_be_shown():
    records = SourceRecords()
    honest_past(records)
    for case in range(40):
        records.observe(heard(1 + case % 10, 100 + case, 0.0, case=case))
    authors, groups = np.array([50, 51, 3, TRUSTED]), np.array([7, 8, 7, 9])
    assert records.held(authors, groups, asker=60, draw=0.5).tolist() == [False, True, False, False]
    assert records.held(authors, groups, asker=51, draw=0.5).tolist() == [False, False, False, False]
    assert not records.held(authors, groups, asker=60, draw=0.01).any()


def test_a_convict_is_held_back_whoever_agrees_with_it():
    records = SourceRecords()
    honest_past(records)
    for case in range(20):
        records.observe(heard(1 + case % 10, LIAR, 0.0, case=case))
    assert records.held(np.array([LIAR, 3]), np.array([7, 7]), asker=60, draw=0.0).tolist() == [True, False]


@pytest.mark.long
def test_what_is_kept_is_bounded():
    records = SourceRecords()
    for number in range(12_000):
        records.observe(heard(number, number + 1, 1.0, case=number, key=number, predicted=math.nan))
    assert len(records.records) <= SourceRecords.ACTORS
    assert records.turns.active <= Turns.WINDOW
