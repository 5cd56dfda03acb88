"""Caption retrieval against brute force; multiply-adds against the papers' and by hand."""

import gzip

import numpy as np
import pytest
from transformers import BertConfig, LlamaConfig

from cselab.data.captions import load_captions
from cselab.errors import DataError
from cselab.evaluation import caption_retrieval, twin_training_cost
from cselab.evaluation.cost import inference_cost


def by_hand(vectors, size, queries):
    """Rank all other captions for each query; a tie goes against it."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    first = strict = 0
    for i in queries:
        own = [j for j in range(len(unit)) if j // size == i // size and j != i]
        others = (j for j in range(len(unit)) if j != i)
        ranked = sorted(others, key=lambda j: (-(unit[i] @ unit[j]), j in own))
        first += ranked[0] in own
        strict += set(ranked[: size - 1]) == set(own)
    return 100 * first / len(queries), 100 * strict / len(queries)


@pytest.mark.parametrize("size", [2, 5])
def test_retrieval_ranks_all_captions_for_the_first_of_each_scene(size):
    """Prevents other captions from being queries: with all of them the scores differ."""
    random = np.random.default_rng(size)
    centres = np.repeat(random.normal(size=(30, 6)), size, axis=0)
    vectors = centres + 0.35 * random.normal(size=(30 * size, 6))
    scenes = [[f"{s} {c}" for c in range(size)] for s in range(30)]
    found = caption_retrieval(lambda sentences: vectors, scenes)
    firsts, everyone = range(0, 30 * size, size), range(30 * size)
    assert found[:2] == pytest.approx(by_hand(vectors, size, firsts))
    assert found[:2] != pytest.approx(by_hand(vectors, size, everyone))
    assert found.k == size - 1
    assert 0 < found.strict_accuracy < 100


CIRCLE = np.deg2rad([0, 10, 40, 100, 60, 95])
NEAR = np.array([0.3, 0.1, 0.9])


@pytest.mark.parametrize(
    ("vectors", "scenes", "score"),
    [
        # on a circle, by hand: from 0°, 10° and 40° are nearer than 60°; from 100°, 95° and 60°
        # are nearer than 40°; as queries, 40° and 60° would be wrong, for each is nearest
        (np.stack([np.cos(CIRCLE), np.sin(CIRCLE)], axis=1), ["abc", "def"], (100, 100)),
        # first captions of other scenes are candidates: nearest to a is c, to c is a
        (np.array([[1.0, 0.0], [0.6, 0.8], [0.99, 0.1], [0.0, 1.0]]), ["ab", "cd"], (0, 0)),
        # a collapsed encoder finds nothing: a tie is no hit
        (np.ones((9, 3)), ["abc", "def", "ghi"], (0, 0)),
        # copies of a caption come out of different batches, yet tie; b is in both scenes
        (np.array([[0.1, 0.2, 0.7], NEAR, [1.0, 0.0, 0.0], NEAR - 1e-7]), ["ab", "cb"], (0, 0)),
        # equal directions of different lengths tie
        (np.array([[0.1, 0.2, 0.7], NEAR, [1.0, 0.0, 0.0], 3 * NEAR]), ["ab", "cd"], (0, 0)),
    ],
)
def test_queries_candidates_and_ties_by_hand(vectors, scenes, score):
    """Prevents other queries, other candidates, and a tie that rounding decides."""
    assert caption_retrieval(lambda captions: vectors, map(list, scenes))[:2] == score


@pytest.mark.parametrize("scenes", [[], [["a", "b"]], [["a", "b"], ["c"]], [["a"], ["b"]]])
def test_scenes_of_unequal_sizes_are_refused(scenes):
    """Prevents captions that are counted with another scene."""
    with pytest.raises(DataError, match="at least 2 scenes with the same number of captions"):
        caption_retrieval(lambda s: np.ones((len(s), 3)), scenes)


@pytest.mark.parametrize(
    ("towers", "linear", "both"), [(1, 5.44, 5.51), (2, 10.87, 11.02), (6, 32.6, 33.07)]
)
def test_bert_base_costs_what_the_papers_print(towers, linear, both):
    """JTCSE Table VII: 5.44 GMACs of linear layers; prevents flops taken for multiply-adds."""
    cost = inference_cost(BertConfig(), towers=towers)
    assert cost.linear == pytest.approx(linear, abs=0.02)
    assert cost.with_attention == pytest.approx(both, abs=0.01)


def test_a_decoder_by_hand(word_tokenizer):
    """Prevents a decoder's gated feed-forward layer from being counted as BERT's."""
    config = LlamaConfig(
        vocab_size=len(word_tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        pad_token_id=word_tokenizer.pad_token_id,
    )
    layer = 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48
    assert inference_cost(config, length=10).linear == pytest.approx(2 * 10 * layer / 1e9)


def test_cost_by_hand():
    """Prevents projections that are missed, and attention that grows linearly with the length."""
    config = BertConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=2, intermediate_size=100
    )
    linear = 3 * 10 * (4 * 64 * 64 + 2 * 64 * 100) / 1e9
    cost = inference_cost(config, length=10)
    assert cost.linear == pytest.approx(linear)
    assert cost.with_attention == pytest.approx(linear + 3 * 2 * 10 * 10 * 64 / 1e9)


def test_a_cross_stream_costs_what_it_computes(make_bert):
    """Closed form; prevents a stream counted outside its CAELs, or a last layer of all tokens."""
    config, length = make_bert(0).config, 32
    h, depth = config.hidden_size, config.num_hidden_layers
    cost = twin_training_cost(config, length=length)
    layer = inference_cost(config, length=length).linear / depth
    last = (2 * h * h * length + 2 * h * h + 2 * h * config.intermediate_size) / 1e9
    tower = (depth - 1) * layer + last
    assert cost((), "parallel").linear == pytest.approx(2 * tower)
    assert cost((2, 4), "parallel").linear == pytest.approx(2 * (tower + 2 * layer + last))
    assert cost((2, 4), "last_only").linear == pytest.approx(2 * (tower + last))
    own = 3 * h * h * length / 1e9  # query, key and value once more; "fused" computes every token
    assert cost((4,), "fused").linear == pytest.approx(2 * (depth * layer + own))


FLICKR = """\
1.jpg#0\tA dog runs .
1.jpg#1\tA brown dog .
2.jpg#0\tTwo men .
1.jpg#2\tOne more .
2.jpg#1\tMen talk .
"""


def test_captions_of_a_folder(tmp_path):
    """Prevents scenes split at their numbering or of other sizes, and a header as a scene."""
    (tmp_path / "flickr.token").write_text(FLICKR)
    with gzip.open(tmp_path / "more.tsv.gz", "wt") as file:
        file.write("scene\tcaption\n7\tA cat\n7\tA grey cat\n8\talone\n")
    (tmp_path / "README.md").write_text("no captions")
    groups = load_captions(tmp_path, of_each=2)
    dogs, men = ("A dog runs .", "A brown dog ."), ("Two men .", "Men talk .")
    assert groups == [dogs, men, ("A cat", "A grey cat")]
    assert load_captions(tmp_path / "flickr.token", of_each=3) == [(*dogs, "One more .")]
    assert caption_retrieval(lambda s: np.eye(len(s)), groups).k == 1


def test_scenes_with_too_few_captions_are_refused(tmp_path):
    """Prevents a retrieval on a part of the captions."""
    with pytest.raises(DataError, match="has no captions"):
        load_captions(tmp_path)
    (tmp_path / "captions.tsv").write_text(FLICKR)
    with pytest.raises(DataError, match="no scene has 5 captions, the most is 3; give a smaller"):
        load_captions(tmp_path)
