"""The paper profile of a RoBERTa: TNCSE's supplement, Table I-1, and SimCSE's Table D.1."""

import pytest

from cselab.experiments import configure

ROBERTA = {"backbone": "FacebookAI/roberta-base"}


def rates(node) -> tuple[float, int]:
    """(learning rate, batch size)."""
    return node.schedule.learning_rate, node.schedule.batch_size


@pytest.mark.parametrize("given", [{"changes": ROBERTA}, {"defaults": ROBERTA}])
@pytest.mark.parametrize("name", ["tncse", "jtcse"])
def test_the_towers_of_a_roberta_have_its_pivots_and_rates(name, given):
    """Prevents towers of a RoBERTa with BERT's pivots and rates, or without the profile's
    translator."""
    twin = configure(name, "paper", **given).method
    assert [rates(tower) for tower in twin.parts] == [(1.5e-5, 64), (1.25e-5, 64)]
    trips = [tower.round_trips for tower in twin.parts]
    assert [(trip.pivot, trip.translator) for trip in trips] == [
        ("nl", "opus-mt"),
        ("zh", "opus-mt"),
    ]
    assert rates(twin) == (1e-6, 64)
    assert rates(configure(name, "paper", preset="released", **given).method) == (1e-6, 256)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("simcse", (1e-5, 512)),
        ("tncse_d", (1e-5, 256)),
        ("tncse_uc_d", (1.5e-5, 128)),
        ("uc_d", (1.5e-5, 128)),
    ],
)
def test_students_and_simcse_of_a_roberta(name, expected):
    """Prevents BERT's batch in a student of a RoBERTa, and SimCSE's values in a twin's towers."""
    assert rates(configure(name, "paper", changes=ROBERTA).method) == expected


def test_bert_and_the_other_profiles_keep_their_values():
    """Prevents Table I-1's values for RoBERTa-base in a small backbone's short training."""
    assert configure("tncse", "paper").method.parts[0].round_trips.pivot == "fr"
    for profile in ("tiny", "small"):
        bert, roberta = (
            configure("tncse", profile, changes=changes).method
            for changes in ({}, {"backbone": "roberta-of-mine"})
        )
        assert [rates(node) for node in (bert, *bert.parts)] == [
            rates(node) for node in (roberta, *roberta.parts)
        ]
