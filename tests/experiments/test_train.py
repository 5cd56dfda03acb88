"""Training: each node once however often it is asked for, from the right towers, to the right
weights."""

import pytest
import torch
from quick import same_weights, weights
from roberta_helpers import byte_tokenizer, save_roberta
from safetensors.torch import load_file
from seal_helpers import cut, flip

from cselab.errors import DataError, SettingsError
from cselab.methods import Method, method_names, registered
from cselab.models import load

TEXT = ["The dog is sleeping.", "A man is playing guitar."]


@pytest.fixture
def computed(capsys):
    """`computed()`: names of the trainings that were done since it was called last."""

    def since():
        lines = capsys.readouterr().out.splitlines()
        found = [line.partition(": computed")[0] for line in lines if ": computed" in line]
        return [name for name in found if not name.startswith("round-trips")]

    return since


def test_a_tower_is_trained_once_and_found_again(open_lab, computed):
    """Prevents notebook 03 from training its own towers after notebook 02 has."""
    first = open_lab().towers()[0]
    assert computed() == ["simcse-fr", "simcse-ru"]
    again = open_lab(tasks="Synthetic").towers()[0]  # what is only evaluated trains nothing
    assert computed() == []
    assert same_weights(first, again)
    assert [row["step"] for row in first.fit["history"]] == [0, 2]


def test_damaged_files_are_made_again_to_the_same_weights(open_lab, computed, capsys):
    """Prevents every cache from being trusted because it exists: cut trips and tokens that end all
    later runs, and a step without its weights that is "finished"."""
    lab = open_lab()
    first, cache = lab.train("simcse"), lab.cache.cache_dir
    assert computed() == ["simcse-fr"]
    (trips,) = lab.cache.steps_dir.glob("round-trips-*/round-trips.txt")
    tokens, parts = [*cache.glob("tokenised/*.arrow")], [*cache.glob("round-trips/*/*.parquet")]
    (first.folder / "encoder" / "model.safetensors").unlink()
    cut(trips)
    for path in (*tokens, *parts):
        flip(path)
    again = open_lab().train("simcse")
    said = capsys.readouterr()
    assert said.out.count(": computed") == 2  # the step and its round trips
    named = [
        line.partition(" is damaged")[0] for line in said.err.splitlines() if "damaged" in line
    ]
    assert sorted(named) == sorted(map(str, [first.folder, trips.parent, *tokens, *parts]))
    assert same_weights(first, again)
    assert first.fit["history"] == again.fit["history"]


def test_what_a_training_depends_on_makes_another(lab):
    """Prevents a sweep whose every point is the first point's model."""
    plain = lab.train("simcse")
    changes = ({"temperature": 0.1}, {"seed": 4}, {"steps": 4}, {"pivot": "nl"}, {"mode": "append"})
    for change in (*changes, {"sentences": 50}, {"terms.dcl": 5}, {"head": "mlp_train_only"}):
        assert not same_weights(plain, lab.train("simcse", **change)), change


def test_the_towers_of_a_seed_differ_and_add_up(lab):
    one, two = lab.towers()
    both = lab.train("sum")
    assert not same_weights(one, two)
    torch.testing.assert_close(both.encode(TEXT), one.encode(TEXT) + two.encode(TEXT))


def test_a_sum_of_towers_of_a_baseline(open_lab, small_pretrained):
    """Prevents a sum of one tower twice, one that cannot encode, and one of SimCSE's towers under
    another name."""
    lab = open_lab(backbone=small_pretrained)
    both = lab.train("sum", **{"towers.method": "diffcse"}).encoder
    assert both.encode(TEXT).isfinite().all()
    assert not same_weights(both.tower_i, both.tower_ii)
    assert not same_weights(both.tower_i, lab.train("sum").encoder.tower_i)


def test_stage_two_starts_from_the_towers(lab):
    """Prevents a twin that is trained from the backbone, and the rate of stage 1 in stage 2."""
    twin = lab.train("jtcse", learning_rate=1e-12)
    start = lab.train("sum")
    torch.testing.assert_close(weights(twin), weights(start), atol=1e-6, rtol=0)
    assert twin.encoder.cael == (2, 4)
    assert lab.train("tncse").encoder.cael == ()


def test_a_head_that_is_kept_is_the_towers_own(open_lab):
    """Prevents a fresh head under the name of the one that the towers trained with, and a training
    that ends hours later because they have none."""
    lab = open_lab(**{"towers.head": "mlp_train_only"})
    kept, new = (lab.create("tncse", head=head) for head in ("kept", "mlp_train_only"))
    for head, other, tower in zip(kept.heads, new.heads, lab.towers(), strict=True):
        trained = load_file(tower.folder / "head.safetensors")
        for name, value in head.state_dict().items():
            assert torch.equal(value, trained[name])
            assert not torch.equal(value, other.state_dict()[name])
    with pytest.raises(SettingsError, match="these train without; set towers.head=mlp_train_only"):
        open_lab(head="kept").check("tncse")


def test_an_ablation_of_stage_two_finds_the_towers_it_has(lab, computed):
    """Prevents eight loss ablations from training sixteen towers."""
    plain = lab.train("jtcse")
    for change in ({"terms": ["nce", "icnce"]}, {"caels": 4}, {"preset": "released"}):
        computed()
        other = lab.train("jtcse", **change)
        assert computed() == ["jtcse"]
        assert not same_weights(plain, other), change


@pytest.mark.parametrize("part", range(4))
def test_every_baseline_is_trained_and_found_again(open_lab, small_pretrained, computed, part):
    """Prevents a method that cannot be fitted, saved or opened, or that is trained each time."""
    lab = open_lab(backbone=small_pretrained, sentences=40)
    trained_elsewhere = {"simcse", "imsimcse", "simcse_noise", "bellm"}
    for name in sorted(set(method_names()) - trained_elsewhere)[part::4]:
        if issubclass(registered(name), Method) and not registered(name).Config().parts:
            first = lab.train(name)
            assert first.encode(TEXT).isfinite().all(), name
            computed()
            assert same_weights(lab.train(name), first), name
            assert computed() == []


def test_a_shared_term_beside_triplets(lab):
    """Prevents a term of two views that gets the three texts of a triplet."""
    one, other = (
        lab.train("simcse_supervised", terms={"triplet": 1, "dcl": weight}) for weight in (5, 0)
    )
    assert one.fit["history"][-1]["dcl"] > 0
    assert not same_weights(one, other)


def test_imsimcse_trains_both_of_its_terms(lab):
    """Prevents a term that does not reach the training."""
    one, other = lab.train("imsimcse"), lab.train("imsimcse", **{"terms.dcl": 5})
    assert {"off_info", "dcl"} <= one.fit["history"][-1].keys()
    assert not same_weights(one, other)


def test_rankcse_learns_from_two_towers(open_lab, computed):
    """Prevents other teachers that leave the student as it was."""
    lab = open_lab(sentences=40)
    one = lab.train("rankcse")
    assert computed() == ["simcse-fr", "simcse-ru", "rankcse-fr"]
    other = lab.train("rankcse", **{"teachers.1.pivot": "nl"})
    assert not same_weights(one, other)


@pytest.mark.parametrize("mode", ["append", "pair"])
def test_towers_of_rankcse_learn_from_their_round_trips(open_lab, mode):
    """Prevents a tower that takes no text longer than its teachers' targets, and two towers that
    are one."""
    both = open_lab(sentences=40).train("sum", **{"towers.method": "rankcse", "mode": mode})
    assert not same_weights(both.encoder.tower_i, both.encoder.tower_ii)


def test_a_decoder_and_the_settings_of_its_own(lab, computed):
    """Prevents a decoder's setting that does not train it anew, and one that reaches an encoder."""
    first = lab.train("bellm")
    assert first.encoder.prompt == "representative"
    assert first.encoder.backbone.config.bidirectional_layers == [6]
    other = lab.train("bellm", bidirectional="all", pooling="mean")
    assert not same_weights(first, other)
    lab.train("simcse_supervised")
    computed()
    again = lab.with_settings(lora_rank=8, bidirectional="none").train("simcse_supervised")
    assert computed() == []
    assert again.encoder.prompt == ""


@pytest.mark.parametrize("given", [("simcse", {"head": "mlp_train_only"}), ("bellm", {})])
def test_what_a_method_draws_is_the_seeds(open_lab, tmp_path, given):
    """Prevents a head or adapters that depend on whatever drew random numbers before, so on the
    order of notebooks."""
    (name, changes), found = given, []
    for i in range(2):
        lab = open_lab(outputs=tmp_path / str(i))
        torch.manual_seed(i)
        found.append(lab.train(name, **changes))
    assert same_weights(*found)


# ------------------------------------------------------------------- ensembles and their students


def test_an_ensemble_has_a_tower_for_each_pivot_and_shares_the_twins(lab, computed):
    """Prevents members that are one tower, and a tower that is trained for the ensemble again."""
    towers = lab.towers()
    computed()
    ensemble = lab.train("edfse").encoder  # of French, Russian and Dutch
    assert computed() == ["simcse-nl"]
    one, two, three = ensemble.members
    assert same_weights(one, towers[0])
    assert same_weights(two, towers[1])
    assert not same_weights(three, one)
    total = sum(member.encode(TEXT) for member in ensemble.members)
    torch.testing.assert_close(ensemble.encode(TEXT), total)


def test_a_student_learns_from_its_teacher_and_not_from_anothers(open_lab):
    """Prevents a student of the wrong teacher from being found, and targets in another order than
    the sentences."""
    far = {"towers.learning_rate": 1e-3, "towers.steps": 8}  # teachers that left the backbone
    lab = open_lab(**far)
    text = lab.data.sentences(50)
    fresh = lab.pretrained().encode(text)
    found = []
    for teacher in ("sum", "edfse"):
        changes = {"pivots": ["nl"]} if teacher == "edfse" else {}
        goal = lab.train(teacher, **changes).encode(text)
        changes = {f"teacher.{name}": value for name, value in changes.items()}
        schedule = {"steps": 60, "eval_every": 60, "learning_rate": 3e-4}
        given = {"teacher.method": teacher, **changes, **schedule}
        student = lab.train("distilled", **given).encode(text)
        assert (student - goal).square().mean() < 0.95 * (fresh - goal).square().mean()
        found.append(student)
    assert not torch.allclose(*found)


def test_two_kinds_of_student_do_not_share_their_targets(lab):
    """Prevents a student that learns the unit vectors of RankCSE's from the same teacher."""
    ranked = next(lab.batches("rankcse", teachers=["untrained"]))["target"]
    distilled = next(lab.batches("distilled", teacher="untrained"))["target"]
    torch.testing.assert_close(ranked.norm(dim=1), torch.ones(len(ranked)))
    assert not torch.isclose(distilled.norm(dim=1), torch.ones(len(distilled))).any()


def test_the_terms_of_a_twin_do_not_reach_its_outsider(open_lab, computed):
    """Prevents a term that the outsider of UC does not have, and an outsider trained twice."""
    outsider = {"outsider.method": "simcse_supervised"}
    lab = open_lab(**{"twin.terms": {"nce": 1, "ictm": 0.1}}, **outsider)
    open_lab().train("simcse_supervised")
    computed()
    both = lab.train("uc")
    assert computed() == ["simcse-fr", "simcse-ru", "jtcse"]
    assert both.encode(TEXT).isfinite().all()
    assert both.config.twin.terms.keys() == {"nce", "ictm"}


def test_a_finished_encoder_is_the_outsider_of_another_familys_twin(
    open_lab, computed, small_pretrained, tmp_path
):
    """Prevents an outsider that is read by the twin's tokenizer, by another pooling than its own,
    or that is trained; its folder has further heads, as public checkpoints do."""
    outsider = {"method": "untrained", "backbone": small_pretrained, "pooling": "mean"}
    lab = open_lab(
        backbone=save_roberta(tmp_path / "roberta", 1, layers=4),
        **{f"outsider.{name}": value for name, value in outsider.items()},
    )
    lab.check("uc")
    both = lab.train("uc")
    assert computed() == ["simcse-fr", "simcse-ru", "jtcse"]
    other = load(small_pretrained, pooling="mean")
    expected = 0.3 * lab.train("jtcse").encode(TEXT) + 0.7 * other.encode(TEXT)
    torch.testing.assert_close(both.encode(TEXT), expected)
    twin_reads, other_reads = (one.tokenizer(TEXT)["input_ids"] for one in both.encoder.members)
    assert twin_reads == byte_tokenizer()(TEXT)["input_ids"] != other_reads


def test_a_whitened_encoder_is_fitted_to_the_text(open_lab):
    """Prevents a map that is found in the cache although the text is another."""
    one, other = (open_lab(sentences=n).train("whitened").encode(TEXT) for n in (60, 40))
    assert one.isfinite().all()
    assert not torch.allclose(one, other)


def test_a_tower_that_is_not_trained_is_one_line(lab):
    message = "towers: 'untrained' is not trained; give a method with one tower"
    with pytest.raises(SettingsError, match=message):
        lab.train("tncse", **{"towers.0.method": "untrained"})


def test_a_map_is_fitted_to_nli_text_and_a_method_trained_on_it(open_lab):
    """Prevents a setting that changes the key and not the text, and one cache for both texts."""
    lab = open_lab()
    assert lab.data.nli_text(60) is lab.data.nli_text(60)
    one, other = (lab.train("whitened", text=name).encode(TEXT) for name in ("corpus", "nli"))
    assert not torch.allclose(one, other)
    nli = open_lab(corpus="nli")
    assert list(nli.data.text) == list(lab.data.nli_text(len(nli.data.text)))
    assert nli.train("simcse").folder != lab.train("simcse").folder


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("simcse", {"corpus": "nli,synthetic"}, "corpus: 'nli' cannot be mixed with others"),
        ("whitened", {"text": "nli", "fitted_on": 20}, "dimensions needs more sentences than that"),
        ("uc", {"outsider.method": "sif"}, "outsider: 'sif' is fitted to a text and cannot be"),
    ],
)
def test_a_text_that_cannot_be_and_a_sum_that_has_no_member(open_lab, method, settings, message):
    """Prevents two trained towers and then an error."""
    with pytest.raises((SettingsError, DataError), match=message):
        open_lab(**settings).check(method)
