"""BeLLM's runs: its decoder by profile, a second stage, training on C-STS."""

import json

import pytest
import torch

import cselab
from cselab.errors import SettingsError
from cselab.experiments import PROFILES, configure
from cselab.experiments.measures import measure


def test_the_papers_decoder_is_at_paper_size_alone(open_lab):
    """Prevents a run of profile paper that trains the small decoder, and one that finds out in its
    first step that there is no other."""
    decoders = {name: configure("bellm", name).method.decoder for name in PROFILES}
    assert decoders.pop("paper") == "meta-llama/Llama-2-7b-hf"
    assert set(decoders.values()) == {"tiny-llama"}
    lab = open_lab(decoder="meta-llama/Llama-2-7b-hf")
    with pytest.raises(SettingsError, match=r"^bellm: decoder: no 'meta-llama.*tiny-llama"):
        lab.check("bellm")


@pytest.mark.parametrize("how", ["none", "last", "sum", 2])
def test_masks_are_settings(how):
    """Prevents "none" that switches the setting off, and a number that is read as a name."""
    assert configure("bellm", changes={"bidirectional": how}).method.bidirectional == how


def test_a_mask_that_there_is_not_is_one_line():
    """Prevents the two messages of a union."""
    with pytest.raises(SettingsError, match="bidirectional") as caught:
        configure("bellm", changes={"bidirectional": "lst"})
    assert "\n" not in str(caught.value)


def test_the_second_stage_starts_from_the_first(open_lab, capsys):
    """Prevents a second stage that trains on the bare decoder, or comes back without the first."""
    lab = open_lab(**{"towers.lora_rank": 6, "max_length": 40})
    config = lab.config("bellm_two_stages")
    (first,) = config.towers
    weights = {name: term.weight for name, term in first.terms.items()}
    assert (weights, list(config.terms)) == ({"triplet": 20, "angle": 1}, ["triplet"])
    lab.check("bellm_two_stages")
    trained = lab.train("bellm_two_stages")
    lines = [line for line in capsys.readouterr().out.splitlines() if "computed" in line]
    assert [line.split(":")[0] for line in lines] == ["bellm", "bellm_two_stages"]
    (start,) = lab.towers("bellm_two_stages")
    adapters = json.loads((trained.folder / "encoder" / "adapter_config.json").read_text())
    assert adapters["base_model_name_or_path"] == str(start.folder / "encoder")
    assert adapters["r"] == 4
    texts = lab.data.sentences(5)
    again = cselab.load(str(trained.folder / "encoder"))
    assert torch.equal(again.encode(texts), trained.encode(texts))
    alone = lab.train("bellm")
    assert not torch.allclose(alone.encode(texts), trained.encode(texts))
    released = configure("bellm_two_stages", preset="released").method
    assert (released.lora_rank, released.towers[0].lora_rank) == (32, 64)
    assert released.prompt == released.towers[0].prompt == "representative_released"


def test_training_on_csts(open_lab, tmp_path):
    """Prevents pairs without their condition, ratings of other rows, and a checkpoint that the
    pairs that are reported have picked."""
    lab = open_lab(max_length=60, lora_rank=2)
    lab.check("bellm_csts")
    trained = lab.train("bellm_csts")
    assert trained.fit["history"][-1]["ordered"] > 0
    assert trained.encoder.prompt == "representative"
    (row,) = measure(lab.data, trained.encoder, ["csts"])
    assert (row.measure, row.task, row.n) == ("csts", "Synthetic C-STS", 600)
    batch = next(lab.batches("bellm_csts"))
    tokenizer = trained.encoder.tokenizer
    one, two = torch.stack(batch["input_ids"].chunk(2))[:, 0].tolist()
    rows, _ = lab.data.csts
    texts = [tokenizer.decode(side, skip_special_tokens=True) for side in (one, two)]
    found = [
        rating
        for *sides, condition, rating in zip(
            rows.sentences1, rows.sentences2, rows.conditions, rows.scores, strict=True
        )
        if all(
            f"given the context {condition}, summarize the sentence {side} in one word"
            in " ".join(text.replace(" ,", ",").replace(" .", ".").split())
            for side, text in zip(map(str.lower, sides), map(str.lower, texts), strict=True)
        )
    ]
    assert found == pytest.approx([batch["target"][0].item()])
