"""The preset "released": a method as its own repository's code has it, and nothing of another's."""

import pytest

from cselab.errors import SettingsError
from cselab.experiments import configure
from cselab.methods import method_names, registered
from cselab.study import paper_vs_code

ROBERTA = {"backbone": "FacebookAI/roberta-base"}
TWINS = {
    "terms.nce.layout": "all",
    "terms.icnce.variant": "released",
    "terms.ictm.variant": "released",
}
SWITCHES = [row for row in paper_vs_code.rows() if row.settings or row.change]


def changed(method: str, **settings) -> dict:
    """Settings that the preset changes in a method, by full path."""
    paper, code = (
        configure(method, "paper", preset=preset, changes=settings).method
        for preset in (None, "released")
    )
    before, after = (
        {".".join(place): value for place, value, _ in node.leaves()} for node in (paper, code)
    )
    return {path: value for path, value in after.items() if before.get(path) != value}


def test_tncse_has_its_own_dropout_and_the_papers_rate():
    """Prevents JTCSE's rate in TNCSE."""
    assert changed("tncse") == {**TWINS, "dropout": 0.00025}


def test_jtcse_has_its_own_rate_and_berts_dropout():
    """Prevents TNCSE's dropout in JTCSE."""
    assert changed("jtcse") == {**TWINS, "schedule.learning_rate": pytest.approx(1.3e-6)}
    assert configure("jtcse", "paper", preset="released").method.dropout == 0.1


def test_roberta_has_values_of_its_own():
    """Prevents BERT's values from standing for RoBERTa's because the backbone is set afterwards."""
    batch = {"schedule.batch_size": 256}
    assert changed("tncse", **ROBERTA) == {**TWINS, "dropout": 0.0175, **batch}
    assert changed("jtcse", **ROBERTA) == {**TWINS, **batch}
    defaults = configure("tncse", "paper", preset="released", defaults=ROBERTA).method
    assert (defaults.dropout, defaults.schedule.batch_size) == (0.0175, 256)


def test_a_folder_says_itself_which_family_it_is(make_roberta, word_tokenizer, tmp_path):
    """Prevents a RoBERTa in a folder of another name from getting BERT's values."""
    from cselab.models import SentenceEncoder

    SentenceEncoder(make_roberta(1), word_tokenizer).save_pretrained(tmp_path / "mine")
    assert changed("tncse", backbone=str(tmp_path / "mine"))["dropout"] == 0.0175


@pytest.mark.parametrize("text", ["{}", "[]", '{"model_ty'])
def test_a_folder_that_is_no_model_is_one_line(text, tmp_path):
    """Prevents a traceback from every command after a copy that was cut off."""
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(SettingsError, match=r"config.json is no model's configuration"):
        configure("simcse", changes={"backbone": str(tmp_path)})


def test_a_released_rate_is_a_factor_of_the_profiles():
    """Prevents a rate of BERT-base for a small backbone."""
    rates = [
        configure("jtcse", "tiny", preset=preset).method.schedule.learning_rate
        for preset in ("paper", "released")
    ]
    assert rates[1] == pytest.approx(1.3 * rates[0])


def test_settings_come_after_the_preset():
    """Prevents a preset that overrides what was asked for."""
    asked = {"learning_rate": 1e-4, "dropout": 0.2, "terms.nce.layout": "cross", "terms.ictm": 0}
    for given in ({"changes": asked}, {"defaults": asked}):
        for name in ("tncse", "jtcse"):
            node = configure(name, preset="released", **given).method
            assert (node.schedule.learning_rate, node.dropout) == (1e-4, 0.2)
            assert node.terms.keys() == {"nce", "icnce"}
            assert (node.terms["nce"].layout, node.terms["icnce"].variant) == ("cross", "released")
    assert configure("bellm", preset="released", defaults={"lora_rank": 4}).method.lora_rank == 4


def test_a_student_learns_from_the_released_twin():
    """Prevents a preset that stops at the root of the tree."""
    teacher = configure("tncse_d", preset="released").method.teacher
    assert teacher == configure("tncse", preset="released").method
    assert changed("uc_d")["teacher.twin.terms.ictm.variant"] == "released"


def test_stage_one_is_the_same_in_both():
    """Prevents towers that are trained anew for the preset."""
    one, other = (configure("jtcse", preset=preset).method for preset in ("paper", "released"))
    assert one.towers == other.towers


def test_every_setting_of_a_preset_has_a_row():
    """Prevents a setting of a preset that no row explains, and a row whose setting is in no preset,
    which would change nothing."""
    explained = {(row.method, path) for row in SWITCHES for path in row.settings}
    preset = {
        (name, path)
        for name in method_names()
        for path in vars(registered(name)).get("released", {})
    }
    shared = {("tncse", path) for path in TWINS}  # their rows are measured on JTCSE
    assert preset == explained | shared


@pytest.mark.parametrize("method", ["jtcse", "bellm", "imsimcse"])
def test_the_preset_is_all_differences_of_the_preset_together(method):
    node = configure(method).method
    for row in SWITCHES:
        if row.method == method and row.settings:
            node = node.changed(row.changes(node))
    assert node == configure(method, preset="released").method
