"""mteb on encoders of ours: the same scores as its own wrapper, data, names and damaged files."""

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from cselab.data.sources import embedded_dir
from cselab.errors import SettingsError
from cselab.evaluation import evaluate_sts, mteb_data
from cselab.evaluation.sts import unit_rows
from cselab.models import Ensemble, TwinEncoder, export, load

BACKBONES = embedded_dir() / "backbones"
TEST = {"name": "test", "revision": "1"}


@pytest.fixture(scope="module")
def tiny():
    return load(BACKBONES / "tiny-bert", pooling="mean")


@pytest.fixture
def small(monkeypatch):
    """Little synthetic data."""
    for name in ("captions", "sentences", "triplets"):
        draw = getattr(mteb_data, name)
        monkeypatch.setattr(mteb_data, name, lambda count, draw=draw: draw(count // 15))
    read = mteb_data.load_sts
    monkeypatch.setattr(mteb_data, "load_sts", lambda *a, **b: read(*a, **b).subsample(60))
    monkeypatch.setattr(mteb_data, "EVENTS", 300)


def fed(names, folder=None, languages=()):
    from cselab.evaluation.mteb_feed import feed
    from cselab.evaluation.mteb_tasks import find_tasks

    return feed(find_tasks(sorted(names), languages), folder)[0]


def run(encoder, tasks, folder, say=lambda line: None):
    from cselab.evaluation.mteb_run import run_mteb

    return run_mteb(encoder, tasks, folder, **TEST, say=say)


def numbers(scores: dict, at: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a result, with its place."""
    for name, value in scores.items() if isinstance(scores, dict) else enumerate(scores):
        if isinstance(value, dict | list):
            yield from numbers(value, f"{at}/{name}")
        elif isinstance(value, float):
            yield f"{at}/{name}", value


def check_equal(encoder, tasks, folder):
    """All scores of mteb's wrapper of sentence-transformers, on the exported encoder, are ours."""
    import mteb
    from sentence_transformers import SentenceTransformer

    export(encoder, folder / "exported")
    again = copy.deepcopy(tasks)

    class Rounded(SentenceTransformer):
        def encode(self, *texts, **options):
            return np.asarray(super().encode(*texts, **options), np.float32)

    # computed in float64: in float32 a batch in another order differs by 1e-6, which turns one
    # question in 500 over
    peer = Rounded(str(folder / "exported"), device="cpu", trust_remote_code=True).double()
    off = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    theirs = {one.task_name: one for one in mteb.evaluate(peer, again, **off).task_results}
    ours = run(load(folder / "exported").double(), tasks, folder / "mteb")
    assert theirs.keys() == {one.task_name for one in ours} == {t.metadata.name for t in tasks}
    for one in ours:
        expected = dict(numbers(theirs[one.task_name].scores))
        assert dict(numbers(one.scores)) == pytest.approx(expected, abs=1e-4, nan_ok=True)


def test_every_kind_of_task_scores_as_in_mtebs_own_wrapper(small, tiny, tmp_path):
    """Prevents texts looked up in another order, or replaced by another side's vector."""
    names = [name for name in mteb_data.LOCAL_TASKS if name.startswith("Synthetic")]
    check_equal(tiny, fed(names), tmp_path)


def test_a_sentence_does_not_tell_which_word_was_taken_out_of_it():
    """Prevents a label that can be read off the text, classes of unequal size, whose score of
    chance is another, and a test sentence among the examples."""
    parts = mteb_data.LOCAL_TASKS["EnglishClassification"].read("default", None)
    texts = [text for part in parts.values() for text in part["text"]]
    assert len(set(texts)) == len(texts) == 720
    words = {word for text in texts for word in re.findall("[a-z]+", text.lower())}
    assert not words & set(mteb_data.MISSING_WORDS)
    for part in parts.values():
        assert set(Counter(part["label"]).values()) == {mteb_data.OF_EACH}


@pytest.mark.slow
@pytest.mark.real_data
def test_mteb_and_our_protocol_give_the_same_sts_scores(tiny, data_dir, tmp_path):
    """Prevents pairs in another order, other ratings, and a hub that is asked."""
    names = ("STS16", "STSBenchmark")
    ours = evaluate_sts(tiny.encode, names, folder=data_dir, resamples=0)
    for task in run(tiny, fed(names, data_dir), tmp_path):
        scores, expected = task.scores["test"][0], ours.tasks[task.task_name]
        assert 100 * scores["cosine_spearman"] == pytest.approx(expected.spearman, abs=1e-2)
        assert 100 * scores["cosine_pearson"] == pytest.approx(expected.pearson, abs=1e-2)


class Counting:
    """An encoder whose vectors are random but equal for equal texts; it keeps its inputs."""

    def __init__(self):
        self.calls: list[list[str]] = []

    def encode(self, sentences):
        self.calls.append(list(sentences))
        rows = [np.random.default_rng(abs(hash(text))).normal(size=8) for text in sentences]
        return np.array(rows)


def test_each_distinct_text_of_a_task_is_encoded_once(small, tmp_path):
    """Prevents a second column, pair of languages or side from being encoded again."""
    encoder, (task,) = Counting(), fed({"SyntheticBitextMining"})
    parts = [rows["test"] for rows in task.dataset.values()]
    texts = {text for part in parts for side in part.features for text in part[side]}
    run(encoder, [task], tmp_path)
    encoded = [text for call in encoder.calls for text in call]
    assert len(encoded) == len(texts)
    assert set(encoded) == texts


def test_vectors_of_another_task_are_not_kept_and_few_at_a_time(monkeypatch):
    """Prevents a memory that grows with every task of a benchmark, or with a large corpus."""
    from datasets import Dataset

    from cselab.evaluation import mteb_run

    monkeypatch.setattr(mteb_run, "KEPT_TEXTS", 3)
    encoder = Counting()
    model = mteb_run.MtebEncoder(encoder, "cselab/test", revision="1")

    def vectors(task, *texts):
        loader = SimpleNamespace(dataset=Dataset.from_dict({"text": texts}))
        return model.encode(loader, task_metadata=SimpleNamespace(name=task))

    first = vectors("a", "x", "y", "x")
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(vectors("a", "z", "y")[1], first[1])
    vectors("a", "u", "y")  # one more than are kept
    vectors("b", "u")
    assert encoder.calls == [["x", "y"], ["z"], ["u", "y"], ["u"]]


@pytest.mark.parametrize("kind", ["twin", "ensemble", "decoder"])
def test_any_encoder_is_evaluated(kind, small, tmp_path):
    """Prevents a bridge for single towers alone."""
    one, two = (load(BACKBONES / name) for name in ("tiny-bert", "plain-bert"))
    encoder = {
        "twin": lambda: TwinEncoder(one.backbone, two.backbone, tokenizer=one.tokenizer),
        "ensemble": lambda: Ensemble([one, two]),
        "decoder": lambda: load(BACKBONES / "tiny-llama"),
    }[kind]()
    (task,) = fed({"SyntheticPairClassification"})
    rows = task.dataset["test"][:]
    (result,) = run(encoder, [task], tmp_path)
    u, v = (unit_rows(encoder.encode(rows[side]), 66) for side in ("sentence1", "sentence2"))
    expected = average_precision_score(rows["labels"], (u * v).sum(1))
    assert result.scores["test"][0]["cosine_ap"] == pytest.approx(expected, abs=1e-3)


def test_a_caption_searches_for_the_others_of_its_picture(small):
    """Prevents a query among its own documents, and a document that is an answer to none."""
    (task,) = fed({"SyntheticCaptionRetrieval"})
    split, scenes = task.dataset["default"]["test"], list(mteb_data.captions(300))
    document = dict(zip(split["corpus"]["id"], split["corpus"]["text"], strict=True))
    answers = [{document[i] for i in split["relevant_docs"][q]} for q in split["queries"]["id"]]
    assert split["queries"]["text"][:] == [scene[0] for scene in scenes]
    assert answers == [set(scene[1:]) for scene in scenes]
    assert len(document) == 4 * len(scenes)


def test_what_local_data_cannot_feed_says_what_it_needs(monkeypatch):
    """Prevents a traceback where a task needs the hub, and silence about a missing language."""
    from cselab.evaluation.mteb_feed import feed
    from cselab.evaluation.mteb_tasks import find_tasks

    monkeypatch.delenv("CSELAB_DATA", raising=False)
    tasks = find_tasks(["SciFact", "STS12", "STS17", "MRClassification", "SyntheticSTS"], ["en"])
    with_data, lacking = feed(tasks)
    assert [task.metadata.name for task in with_data] == ["SyntheticSTS"]
    assert lacking == [
        "SciFact needs the hub (mteb/scifact): --hub",
        "STS12 needs sts/sts12-test.tsv.gz of a data folder or the hub (mteb/sts12-sts): --hub",
        "STS17 (en-ar, en-de, en-en, en-tr, es-en, fr-en, it-en, nl-en) needs "
        "sts-multilingual/sts17-en-ar-test.tsv.gz and 7 more files of a data folder or the hub "
        "(mteb/sts17-crosslingual-sts): --hub",
        "MRClassification needs transfer/mr.tsv.gz of a data folder",
    ]


@pytest.mark.real_data
def test_the_revision_of_local_data_does_not_depend_on_the_chosen_languages(data_dir):
    """Prevents a second language from making the first one's result a stranger's."""
    (one,) = fed({"STS17"}, data_dir, ["de"])
    (all_,) = fed({"STS17"}, data_dir)
    assert one.hf_subsets == ["en-de"]
    assert one.metadata.revision == all_.metadata.revision
    assert set(all_.hf_subsets) - set(one.hf_subsets)


@pytest.mark.parametrize(
    ("names", "languages", "message"),
    [
        (["STS72"], (), "unknown mteb task 'STS72'; did you mean 'STS22'?"),
        (["STS17"], ["sw"], "no task of STS17 has the language 'sw'; they have ara, deu, eng"),
        (["Flickr30kI2TRetrieval"], (), "Flickr30kI2TRetrieval reads text, image"),
    ],
)
def test_bad_names_are_one_line(names, languages, message):
    """Prevents mteb's KeyError, and a run that ends after an hour at a name of a picture task."""
    from cselab.evaluation.mteb_tasks import find_tasks

    with pytest.raises(SettingsError) as error:
        find_tasks(names, languages)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["", '{"task_name": "SynthET', "[]", '{"scores": {}}'])
def test_a_damaged_result_file_is_named_and_its_task_evaluated_again(
    content, small, tmp_path, capsys
):
    """Prevents a traceback of pydantic, and a file that stops every run until it is deleted."""
    from cselab.evaluation.mteb_run import kept_results

    path = tmp_path / "results" / "cselab__test" / TEST["revision"] / "SyntheticSTS.json"
    path.parent.mkdir(parents=True)
    path.with_name("run_settings.jsonl").write_text('{"task": "SynthET')
    for name in (path.name, "Other.json"):
        path.with_name(name).write_text(content + "\xff", encoding="latin-1")
    (result,) = run(Counting(), fed({"SyntheticSTS"}), tmp_path)
    assert [result.task_name] == [kept.task_name for kept in kept_results(tmp_path, **TEST)]
    damaged = [line for line in capsys.readouterr().err.splitlines() if "is damaged" in line]
    names = [str(path), str(path.with_name("Other.json"))]
    assert [line.partition(" is")[0] for line in damaged] == names


def test_other_data_under_the_same_name_is_evaluated_again(small, tmp_path):
    """Prevents mteb from giving an old result for new data: it looks at the name alone if no
    subset is missing."""
    encoder, lines = Counting(), []
    for turn in range(3):
        (task,) = fed({"SyntheticPairClassification"})
        if turn == 2:
            source = {**task.metadata.dataset, "revision": "other"}
            task.metadata = task.metadata.model_copy(update={"dataset": source})
        run(encoder, [task], tmp_path, lines.append)
    assert [line.endswith("(finished before)") for line in lines] == [False, True, False]
    (path,) = tmp_path.rglob("SyntheticPairClassification.json")
    assert json.loads(path.read_text())["dataset_revision"] == "other"
