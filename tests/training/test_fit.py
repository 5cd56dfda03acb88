"""`fit`: the dev score picks the weights, the seed decides everything, the schedule is kept."""

import math

import pytest
import torch
from build_method import build
from training_helpers import Scores, same, schedule, train

from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.errors import DataError, DivergenceError, SettingsError
from cselab.methods import StepContext
from cselab.models.texts import _warn_once
from cselab.training import fit
from cselab.training.checkpoints import Best
from cselab.training.fit import _arguments
from cselab.training.preconditions import check_trainable
from cselab.training.trainer import ContrastiveTrainer
from cselab.training.watch import Probe, Watch


@pytest.mark.parametrize(
    ("scores", "best"),
    [((90, 10, 30, 20), 0), ((30, 10, 30, 20), 2), ((0, 50, 30, 20), 1), ((0, 1, 2, 3), 3)],
)
def test_the_best_dev_score_picks_the_weights(towers, corpus, scores, best, capsys):
    """Prevents the last weights from being kept, and a training that only harms."""
    method, dev = build("simcse", towers), Scores(*scores)
    result, weights = train(method, corpus, schedule(), dev=dev)
    assert [row["step"] for row in result.history] == [0, 2, 4, 6]
    assert [row["dev"] for row in result.history] == list(scores)
    assert (result.best_step, result.best_dev) == (2 * best, scores[best])
    assert same(weights, dev.seen[best])
    assert not same(weights, dev.seen[(best + 1) % 4])
    assert not method.training
    assert ("the start, which is kept" in capsys.readouterr().out) == (best == 0)


def test_without_steps_it_takes_epochs(towers, corpus):
    """Prevents steps that do not follow the size of the text, as of a paper's one epoch over the
    sentences or over the sentences and their round trips."""
    batches = len(corpus) // 8
    for epochs, steps in ((1, batches), (3, 3 * batches), (0.5, round(batches / 2)), (0.01, 1)):
        plan = schedule(steps=None, epochs=epochs, eval_every=100)
        assert plan.steps_for(len(corpus)) == steps
    result, _ = train(build("simcse", towers), corpus, schedule(steps=None, eval_every=100))
    assert result.history[-1]["step"] == batches


def test_the_history_has_every_term_and_the_rate(towers, corpus):
    """Prevents curves without a term, or with one before the first step."""
    result, _ = train(build("jtcse", towers), corpus, schedule(decay="constant"))
    assert set(result.history[0]) == {"step", "dev", "learning_rate", "alignment", "uniformity"}
    for row in result.history[1:]:
        assert {"nce", "icnce", "ictm"} <= set(row)
        assert all(math.isfinite(value) for value in row.values())
        assert row["learning_rate"] == pytest.approx(1e-3)


def test_equal_sentences_are_negatives_if_asked(towers, corpus):
    """Prevents a switch that is not read: in a corpus of one sentence, every negative is equal to
    the positive, so without the mask the loss is log N, with it 0."""
    one = corpus.select([0] * 16)
    for masked, loss in ((True, 0.0), (False, math.log(8))):
        plan = schedule(steps=1, eval_every=1, mask_duplicates=masked)
        method = build("simcse", towers, dropout=0.0)
        result, _ = train(method, one, plan)
        assert result.history[-1]["nce"] == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("name", ["simcse", "jtcse"])
def test_the_seed_decides_and_looking_changes_nothing(towers, corpus, name):
    """Prevents an evaluation (or its frequency) from moving batches, dropout or coins."""

    def nosy(method):
        torch.rand(17)
        return 0.0

    def weights(steps, every, dev, seed=7):
        plan = schedule(steps=steps, eval_every=every)
        return train(build(name, towers), corpus, plan, dev=dev, seed=seed)[1]

    once = weights(4, 4, Scores(0, 1))  # a rising score keeps the last weights
    assert same(once, weights(4, 1, Scores(0, 1, 2, 3, 4)))
    assert not same(once, weights(4, 4, Scores(0, 1), seed=8))
    assert same(weights(1, 1, nosy), weights(1, 1, lambda method: 0.0))


def test_training_lowers_the_loss(towers, corpus):
    """Prevents a training loop that runs and learns nothing."""
    plan = schedule(steps=30, eval_every=10, batch_size=15, learning_rate=2e-3)
    result, _ = train(build("simcse", towers, pooling="mean"), corpus, plan)
    losses = [row["nce"] for row in result.history[1:]]
    assert losses[0] < math.log(15)  # what telling no sentence from another costs
    assert losses[-1] < 0.5 * losses[0]


def trainer(method, corpus, plan, tmp_path):
    cpu = torch.device("cpu")
    probe, watch = Probe(method, corpus, cpu), Watch("test", plan.steps, plan.batch_size, None)
    arguments, best = _arguments(plan, plan.steps, 7, cpu, tmp_path), Best(method, [], None)
    return ContrastiveTrainer(
        method, corpus, plan, lambda m: 0.0, arguments, [], best, probe, watch
    )


def test_weight_decay_falls_on_every_parameter(towers, corpus, tmp_path):
    """The released code decays biases and LayerNorms too; the Trainer would leave them out."""
    method = build("tncse", towers)
    running = trainer(method, corpus, schedule(weight_decay=0.01), tmp_path)
    running.create_optimizer()
    decayed = {group["weight_decay"]: group["params"] for group in running.optimizer.param_groups}
    assert len(decayed[0.01]) == len(list(method.parameters()))


@pytest.mark.parametrize(
    ("decay", "warmup", "rates"),
    [
        ("linear", 0, [1e-3, 5e-4, 0]),
        ("constant", 0, [1e-3, 1e-3, 1e-3]),
        ("constant", 4, [0, 5e-4, 1e-3]),
    ],
)
def test_the_rate_follows_the_schedule(towers, corpus, decay, warmup, rates):
    """Prevents a linear decay over another number of steps, and a warm-up nobody asked for."""
    plan = schedule(steps=4, decay=decay, warmup=warmup)
    result, _ = train(build("simcse", towers), corpus, plan)
    assert [row["learning_rate"] for row in result.history] == pytest.approx(rates)


def test_clipping_is_off_at_zero(towers, corpus, tmp_path):
    """Prevents max_grad_norm=0 from meaning "clip to nothing", and a limit from being ignored."""
    for limit in (0.0, 1e-4):
        method, norms = build("simcse", towers), []
        plan = schedule(steps=1, eval_every=1, max_grad_norm=limit)
        running = trainer(method, corpus, plan, tmp_path)

        def measure(*_, method=method, norms=norms):
            norms.append(torch.nn.utils.clip_grad_norm_(method.parameters(), math.inf).item())

        running.create_optimizer_and_scheduler(1)
        running.optimizer.register_step_pre_hook(measure)
        running.train()
        assert norms[0] == pytest.approx(limit, rel=1e-3) if limit else norms[0] > 0.1


def test_a_loss_that_is_not_finite_stops_with_its_terms(towers, corpus):
    """Prevents a night of training on NaN, and a message that does not say which term it is."""
    method = build("simcse", towers)
    with torch.no_grad():
        method.encoder.backbone.encoder.layer[0].output.dense.weight.fill_(float("nan"))
    with pytest.raises(DivergenceError, match=r"not finite at step 0 \(nce nan\); try a lower"):
        train(method, corpus, schedule())


@pytest.mark.parametrize(
    ("name", "plan", "device", "error", "message"),
    [
        (
            "simcse",
            {"batch_size": 31},
            "cpu",
            DataError,
            "30 sentences, fewer than one batch of 31",
        ),
        ("scd", {"chunk": 4}, "cpu", SettingsError, "SCD has a batch norm.*; set chunk=0"),
        ("simcse", {"chunk": 4}, "mps", SettingsError, "set chunk=0 on mps"),
    ],
)
def test_what_cannot_be_trained_is_refused(name, plan, device, error, message, towers, corpus):
    """Prevents an epoch without a step, a batch norm over parts, and other dropout in a chunk."""
    method = build(name, towers, **({"projection": 8} if name == "scd" else {}))
    with pytest.raises(error, match=message):
        fit(method, corpus, schedule(**plan), dev=float, seed=1, device=device)


@pytest.mark.parametrize(("name", "longest"), [("esimcse", 51), ("pcl", 51), ("sncse", 53)])
def test_tokens_that_a_view_adds_are_counted(name, longest, towers, word_tokenizer):
    """Prevents a run that dies at a long sentence, whose longer copy exceeds 66 positions."""
    method, device = build(name, towers), torch.device("cpu")
    with pytest.raises(SettingsError, match=r"tokens of augmented views: .* at most 66 tokens"):
        check_trainable(method, schedule(max_length=longest + 1), device)
    check_trainable(method, schedule(max_length=longest), device)
    cut = dict(truncation=True, max_length=longest, return_token_type_ids=False)
    batch = dict(word_tokenizer(8 * ["dog " * 99], return_tensors="pt", **cut))
    assert batch["input_ids"].shape[1] == longest
    torch.manual_seed(0)
    for step in range(8):
        method.losses(batch, StepContext.at(seed=0, step=step))


def test_no_checkpoint_is_left_behind(towers, corpus, tmp_path, monkeypatch):
    """Prevents a temporary folder that fills up with models."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    train(build("simcse", towers), corpus, schedule())
    assert list(tmp_path.iterdir()) == []


def test_text_that_the_tokenizer_cannot_hold_is_said_before_the_training(
    towers, word_tokenizer, tmp_path
):
    """Prevents hours of training on [UNK]s, or on the first words of documents."""
    (tmp_path / "a.txt").write_text("\n".join(["狗 在 跑", "the dog"] * 5))
    text = load_corpus(str(tmp_path / "a.txt"))
    rows = tokenize_corpus(text, word_tokenizer, max_length=16, cache_dir=tmp_path)
    _warn_once.cache_clear()
    with pytest.warns(UserWarning, match=r"60% of the tokens of the training text are \[UNK\]"):
        train(build("simcse", towers), rows, schedule(steps=2))
    _warn_once.cache_clear()


def test_a_twin_with_nce_alone_is_two_towers_continued_alone(towers, corpus):
    """Prevents a control of joint training in which anything passes between the towers: each
    becomes what it becomes by itself, in the same batches."""
    plan = schedule(decay="constant", weight_decay=0.01)
    twin = build("tncse", towers, terms={"nce": 1}, dropout=0.0)
    train(twin, corpus, plan, dev=Scores(0, 1, 2, 3))
    for folder, tower in zip(towers, twin.encoder.backbones, strict=True):
        alone = build("simcse", [folder], dropout=0.0)
        train(alone, corpus, plan, dev=Scores(0, 1, 2, 3))
        state = alone.encoder.backbone.state_dict()
        for name, value in tower.state_dict().items():
            if "pooler" not in name:  # which the weight decay shrinks in both
                torch.testing.assert_close(value, state[name], rtol=1e-4, atol=1e-6)
