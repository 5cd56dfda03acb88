"""Runs as trees: profiles, seeds, settings for many methods or for one, methods in each other's
place."""

import pytest

from cselab.errors import SettingsError
from cselab.experiments import PROFILES, configure
from cselab.experiments.run import check_settings
from cselab.methods import method_names


def schedule(profile: str, method: str, *names: str) -> tuple:
    found = configure(method, profile).method.schedule
    return tuple(getattr(found, name) for name in names)


@pytest.mark.parametrize("profile", list(PROFILES))
def test_every_method_has_a_run_of_every_profile(profile):
    """Prevents a method file whose settings a profile cannot fill."""
    for name in method_names():
        run = configure(name, profile, seed=3)
        assert (run.profile, run.seed, run.method.method) == (profile, 3, name)
        assert {place[-1] for place, _, _ in run.leaves()} >= {"method", "sentences", "device"}


def test_one_tower_alone_has_the_schedule_of_its_own_paper():
    """Prevents SimCSE at the twin's rate, for two epochs, a comparison with towers of other text or
    longer training, and a stage 2 without the released optimiser."""
    names = ("learning_rate", "steps", "epochs", "eval_every")
    assert schedule("paper", "simcse", *names) == (3e-5, None, 1, 125)
    assert configure("simcse", "paper").method.schedule.steps_for(1_000_000) == 15_625
    one, two = configure("jtcse", "paper").method.towers
    assert (one.schedule.learning_rate, one.schedule.epochs) == (1.5e-5, 1)
    assert two.schedule.learning_rate == 2e-5
    assert (one.round_trips.pivot, two.round_trips.pivot) == ("fr", "ru")
    tower, alone = configure("jtcse").method.towers[0], configure("simcse").method
    assert alone.model_copy(update={"seed": tower.seed}) == tower
    names = ("decay", "weight_decay", "max_grad_norm")
    for method in ("tncse", "jtcse"):
        assert schedule("paper", method, *names) == ("constant", 0.01, 0.0)


def seeds(method: str, seed: int) -> list[int]:
    return [
        v for place, v, _ in configure(method, seed=seed).method.leaves() if place[-1] == "seed"
    ]


def test_the_towers_of_all_seeds_differ():
    """Prevents two towers that see the same batches, and a tower that two seeds share."""
    found = [tower.seed for s in range(5) for tower in configure("jtcse", seed=s).method.towers]
    assert len(set(found)) == 10
    assert len(set(seeds("jtcse", 3))) == 3


def test_one_seed_is_that_of_all_nodes():
    """Prevents a switch to the papers' one seed that leaves a tower, or an order that matters."""
    for changes in ({"one_seed": True, "seed": 4}, {"seed": 4, "one_seed": True}):
        run = configure("uc_d", changes=changes)
        found = {v for place, v, _ in run.method.leaves() if place[-1] == "seed"}
        assert found == {4}
    members = configure("edfse", "paper", changes={"one_seed": True}, seed=4).method.parts
    assert {member.seed for member in members} == {4}


def test_a_seed_among_the_settings_is_the_seed_of_the_whole_tree():
    """Prevents rows of several seeds that are all the first seed's model."""
    assert configure("uc_d", changes={"seed": 4}) == configure("uc_d", seed=4)
    assert configure("jtcse").changed({"seed": 4}) == configure("jtcse", seed=4)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("jtcse", {"seed": 2**31}, r"seed: .* below 2147483648, got 2147483648"),
        ("jtcse", {"seed": "abc"}, "seed: expected a whole number, got 'abc'"),
        ("jtcse", {"batch_size": 1}, r"batch_size: expected 2 or more, got 1"),
        ("jtcse", {"towers.temperature": 0.0}, "temperature: expected 0.0001 or more"),
        ("jtcse", {"towers.mode": "add"}, "mode: .*'append', 'replace', 'pair', 'none' or"),
        ("jtcse", {"bidirectional": "all"}, "unknown setting 'bidirectional'"),
        ("simcse", {"terms": 5}, "terms: expected names or weights"),
        ("simcse", {"terms": [["nce"]]}, "terms: unknown term"),
        ("distilled", {"teacher.method": 5}, "unknown method 5"),
        ("simcse", {"preset": "released"}, "'preset' is of a whole run"),
        ("edfse", {"pivots": "fr,fr"}, "names one twice"),
        ("edfse", {"towers.method": "bellm"}, "towers with round trips"),
    ],
)
def test_a_wrong_setting_is_one_line(method, changes, message):
    """Prevents a typo from silently training with the default, a label of a preset that was not
    applied, and a member counted twice."""
    with pytest.raises(SettingsError, match=message) as caught:
        configure(method, changes=changes)
    assert "\n" not in str(caught.value)


def test_settings_for_many_methods_reach_those_that_have_them():
    """Prevents `-p caels=2` that fails for SimCSE, or does not reach a student's teacher."""
    defaults = {"caels": 1, "towers.steps": 3, "sentences": 30}
    assert configure("simcse", defaults=defaults).data.sentences == 30
    assert configure("jtcse", defaults=defaults).method.caels == 1
    student = configure("uc_d", defaults=defaults).method
    assert student.teacher.twin.caels == 1
    assert student.schedule.steps == configure("uc_d").method.schedule.steps
    assert [tower.schedule.steps for tower in student.teacher.twin.towers] == [3, 3]
    own = configure("jtcse", defaults=defaults, changes={"towers.0.steps": 5}).method
    assert [tower.schedule.steps for tower in own.towers] == [5, 3]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_settings_for_many_methods_the_longer_path_counts(order):
    """Prevents a sum of other towers than the twin beside it starts from."""
    defaults = dict([("towers.steps", 4), ("steps", 2)][::order])
    twin, summed = (configure(name, defaults=defaults).method for name in ("jtcse", "sum"))
    assert twin.schedule.steps == 2
    assert [tower.schedule.steps for tower in twin.towers] == [4, 4]
    assert summed.towers == twin.towers


def test_a_setting_that_only_some_methods_can_have_is_one():
    """Prevents JTCSE's terms, or a decoder's pooling, from being refused because another method
    has no such value."""
    check_settings({"terms": ["nce", "icnce"], "pooling": "last_token"})
    check_settings({"towers": {"temperature": 0.1}, "towers.method": "esimcse"})
    check_settings({"towers.method": "esimcse", "towers.momentum": 0.9})
    with pytest.raises(SettingsError, match="unknown term 'icnse'; did you mean"):
        check_settings({"terms": ["nce", "icnse"]})


def test_a_setting_of_no_method_is_an_error_that_names_the_nearest():
    check_settings({"caels": 2, "lora_rank": 4, "terms.arc.margin": 5, "weight": 0.3})
    for wrong, right in {
        "cael": "caels",
        "arc.margn": "arc.margin",
        "dev_pears": "dev_pairs",
    }.items():
        with pytest.raises(
            SettingsError, match=f"unknown setting {wrong!r}; did you mean {right!r}"
        ):
            check_settings({"seed": 1, wrong: 2})


# ----------------------------------------------------------------- methods in each other's place


@pytest.mark.parametrize("way", ["defaults", "changes"])
@pytest.mark.parametrize("given", [{"outsider.method": "infocse"}, {"outsider": "infocse"}])
def test_another_method_in_the_place_of_a_node_has_the_size_of_the_profile(way, given):
    """Prevents one swapped part that trains for the paper's million sentences, or on another seed,
    and one that is another when it is set for a whole notebook."""
    run = configure("uc", seed=4, **{way: given})
    assert run.method.outsider == configure("infocse", seed=4).method
    assert run.method.twin == configure("uc", seed=4).method.twin


def test_towers_of_another_method_keep_their_pivots_rates_and_seeds():
    """Prevents two towers of ESimCSE that are one, and a sum of SimCSE's under another name."""
    before, after = (
        configure("sum", changes=changes).method.towers
        for changes in ({}, {"towers.method": "esimcse", "towers.momentum": 0.9})
    )
    for old, new in zip(before, after, strict=True):
        assert (new.method, new.momentum) == ("esimcse", 0.9)
        assert (new.seed, new.schedule, new.round_trips) == (
            old.seed,
            old.schedule,
            old.round_trips,
        )


def test_a_setting_of_the_new_method_is_read_by_it():
    """Prevents a setting that is refused since the method before did not have it."""
    changes = {"teacher.caels": 1, "teacher.method": "jtcse", "teacher.towers.steps": 3}
    teacher = configure("distilled", changes=changes).method.teacher
    assert (teacher.method, teacher.caels, teacher.towers[0].schedule.steps) == ("jtcse", 1, 3)


def test_an_ensemble_takes_its_pivots_as_a_list_or_as_text():
    """Prevents `-p pivots=fr,nl` from being one language of six letters."""
    for given in (["fr", "nl"], "fr, nl"):
        parts = configure("edfse", changes={"pivots": given}).method.parts
        assert [part.round_trips.pivot for part in parts] == ["fr", "nl"]


def test_towers_by_name_are_of_the_profile_and_have_their_own_seeds():
    """Prevents `towers=["simcse", "simcse"]` from training at the paper's size, twice alike."""
    named = configure("jtcse", changes={"towers": ["simcse", "esimcse"]}).method.towers
    assert named[0] == configure("jtcse").method.towers[0]
    assert (named[1].method, named[1].schedule.steps) == ("esimcse", named[0].schedule.steps)
    assert named[0].seed != named[1].seed


def test_a_usual_hyperparameter_adds_no_term():
    """Prevents a baseline that trains with DCL because DCL's temperature was set beside it."""
    defaults = {"terms.dcl.temperature": 2}
    assert set(configure("simcse", defaults=defaults).method.terms) == {"nce"}
    both = configure("simcse", defaults=defaults, changes={"terms": ["nce", "dcl"]}).method.terms
    assert both["dcl"].temperature == 2


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_settings_does_not_matter(order):
    """Prevents a tree that depends on which of two settings was typed first."""
    nested = [("teacher.twin.method", "tncse"), ("teacher.method", "uc")]
    student = configure("distilled", changes=dict(nested[::order])).method
    assert student.teacher.twin.method == "tncse"
    seeds = [("seed", 7), ("towers.seed", 5)]
    towers = configure("jtcse", changes=dict(seeds[::order])).method.towers
    assert [tower.seed for tower in towers] == [5, 5]


@pytest.mark.parametrize("names", [[], ["simcse"], ["simcse"] * 3])
def test_names_of_another_number_of_towers_are_refused(names):
    """Prevents a list of no names that is left out, and one name that is for the first tower."""
    with pytest.raises(SettingsError, match="towers"):
        configure("jtcse", changes={"towers": names})
