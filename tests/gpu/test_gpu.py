"""What only a GPU can show: the same losses, the same vectors, the same resumed run, dropout
replayed."""

import pytest
import torch

from cselab import open_lab
from cselab.data.batching import ViewCollator
from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.data.sources import embedded_dir
from cselab.data.synthetic import sentences
from cselab.errors import SettingsError
from cselab.losses import icnce, ictm, info_nce
from cselab.methods import Schedule, StepContext, create, registered
from cselab.models import SentenceEncoder, load, load_backbone, load_tokenizer
from cselab.training import fit
from cselab.training.checkpoints import trained_state
from cselab.training.large_batch import cached_backward
from cselab.training.preconditions import check_trainable

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
TINY = str(embedded_dir() / "backbones" / "tiny-bert")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    (folder / "text.txt").write_text("\n".join(sentences(400, 3)))
    return tokenize_corpus(
        load_corpus([str(folder / "text.txt")]),
        load_tokenizer(TINY),
        max_length=32,
        cache_dir=folder,
    )


def relative(a, b):
    return ((a.cpu() - b).norm() / b.norm()).item()


def gradient(method):
    """All gradients in one row, on the CPU."""
    found = [p.grad.flatten() for p in method.parameters() if p.grad is not None]
    return torch.cat(found).cpu()


def test_losses_and_gradients_are_the_cpus_in_double():
    """Prevents a loss that leaves a tensor on the CPU, or rounds its cosines to tf32."""
    inputs = [torch.randn(2, 64, 192, dtype=torch.float64) for _ in range(4)]
    for loss in (lambda a, *_: info_nce(a[0], a[1]), lambda a, b, *_: icnce(a, b), ictm):
        found = []
        for device, dtype in (("cpu", torch.float64), ("cuda", torch.float32)):
            x = [i.clone().to(device, dtype).requires_grad_() for i in inputs]
            value = loss(*x)
            value.backward()
            found.append((value.detach(), x[0].grad))
        assert relative(found[1][0], found[0][0]) < 1e-4
        assert relative(found[1][1], found[0][1]) < 1e-4


@pytest.mark.parametrize(("bf16", "tolerance"), [(False, 1e-4), (True, 3e-2)])
def test_vectors_are_the_cpus(bf16, tolerance):
    """Prevents padding or a mask that is read differently on a GPU."""
    text = list(sentences(300, 9))
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY))
    expected = encoder.encode(text)
    encoder.to("cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
        assert relative(encoder.encode(text), expected) < tolerance


def test_dropout_is_replayed(rows):
    """Prevents a second pass of cached gradients that draws other masks on the GPU's own
    generator."""
    method = create(registered("simcse").Config(dropout=0.3), folders=[TINY]).to("cuda").train()
    collated = ViewCollator(load_tokenizer(TINY))(list(rows.select(range(12))))
    batch = {name: x.cuda() for name, x in collated.items() if name != "text_hash"}

    def loss_of(outputs):
        return sum(method.compare(outputs, StepContext.at(0, 0)).values())

    gradients = []
    for chunk in (12, 12):
        torch.manual_seed(5)
        method.zero_grad()
        cached_backward(method, loss_of, batch, chunk=chunk)
        gradients.append(gradient(method))
    torch.manual_seed(5)
    method.zero_grad()
    loss_of(method(batch)).backward()
    assert relative(gradients[0], gradient(method)) < 1e-3
    assert relative(gradients[0], gradients[1]) < 1e-4


@pytest.mark.parametrize("name", ["simcse", "jtcse"])
@pytest.mark.parametrize("switches", [{}, {"bf16": True}, {"chunk": 16}])
def test_an_interrupted_run_goes_on(rows, tmp_path, name, switches):
    """Prevents a resume that forgets the GPU's random state. Sums on a GPU are not bit for bit the
    same, so: nearly."""
    plan = Schedule(
        steps=12, batch_size=32, learning_rate=1e-4, max_length=32, eval_every=4, **switches
    )
    towers = [TINY] * (2 if name == "jtcse" else 1)
    rising = iter(range(100))
    config = registered(name).Config(**({"caels": 3} if name == "jtcse" else {}))

    def run(checkpoints=None, stop=99):
        method, looks = create(config, folders=towers), 0

        def dev(method):
            nonlocal looks
            looks += 1
            if looks == stop:
                raise KeyboardInterrupt
            return float(next(rising))

        fit(method, rows, plan, dev=dev, seed=3, device="cuda", checkpoints=checkpoints)
        return torch.cat([p.detach().flatten().cpu() for p in method.parameters()])

    untrained = create(config, folders=towers)
    start = torch.cat([p.detach().flatten() for p in untrained.parameters()])
    whole = run()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", stop=3)
    again = run(tmp_path / "run")
    assert (again - whole).norm() < 0.05 * (whole - start).norm()


def test_four_bits_train_adapters_that_come_back(tmp_path):
    """Prevents frozen 4-bit weights that a checkpoint holds, or that come back in another
    precision; and a device without them, found late."""
    pytest.importorskip("bitsandbytes")
    decoder = str(embedded_dir() / "backbones" / "tiny-llama")
    lab = open_lab(
        "gpu",
        decoder=decoder,
        four_bit=True,
        bf16=True,
        gradient_checkpointing=True,
        outputs=tmp_path,
        steps=4,
        eval_every=2,
        triplets=100,
        dev_pairs=20,
        synthetic_pairs=20,
        device="cuda",
    )
    trained = lab.train("bellm")
    text = list(sentences(50, 9))
    again = load(trained.folder / "encoder").to("cuda")
    assert again.backbone.is_quantized
    assert torch.equal(again.encode(text), trained.encode(text))
    plain = SentenceEncoder.from_pretrained(trained.folder / "encoder", four_bit=False).to("cuda")
    assert relative(again.encode(text), plain.encode(text)) < 0.3
    method = lab.create("bellm")
    assert all(".lora_" in name for name in trained_state(method))
    with pytest.raises(SettingsError, match="four_bit needs CUDA, the device is cpu"):
        check_trainable(method, method.settings.schedule, torch.device("cpu"))
