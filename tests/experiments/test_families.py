"""The paper profile of a RoBERTa and of BERT-large: TNCSE's supplement, Table I-1, SimCSE's Table
D.1, ImSimCSE's section 5.1."""

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


def outsider_of(run):
    return getattr(run.method, "teacher", run.method).outsider


@pytest.mark.parametrize("name", ["uc", "tncse_uc", "uc_d"])
def test_the_outsider_of_a_roberta_twin_is_a_bert(name):
    """Prevents "+UC" with an InfoCSE of RoBERTa: the papers add one and the same BERT to both."""

    def outsider(**changes):
        node = configure(name, "paper", changes={**ROBERTA, **changes}).method
        uc = getattr(node, "teacher", node)
        assert uc.twin.towers[1].backbone == ROBERTA["backbone"]
        return uc.outsider.backbone

    assert outsider() == "google-bert/bert-base-uncased"
    assert outsider(**{"outsider.backbone": "my-bert"}) == "my-bert"
    nested = outsider_of(configure(name, "paper", changes={**ROBERTA, "outsider.method": "jtcse"}))
    assert {tower.backbone for tower in nested.towers} == {"google-bert/bert-base-uncased"}
    finished = {"outsider.method": "untrained", "outsider.backbone": "my-bert"}
    run = configure(name, "paper", defaults=finished, changes=ROBERTA)
    assert outsider_of(run).backbone == "my-bert"


@pytest.mark.parametrize(
    ("name", "rate", "head"),
    [
        ("simcse", 1e-5, "mlp_train_only"),
        ("imsimcse", 8e-6, "mlp_train_only"),
        ("tncse", 1e-6, "none"),
    ],
)
def test_bert_large_has_its_own_rate(name, rate, head):
    """Prevents BERT-base's 3e-5 for a model that needs a third of it, and SimCSE without a head."""
    for backbone in ("google-bert/bert-large-uncased", "bert-base-uncased"):
        method = configure(name, "paper", changes={"backbone": backbone}).method
        assert method.head == head
        large = method.schedule.learning_rate == rate
        assert large == (backbone != "bert-base-uncased" or name == "tncse")


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
