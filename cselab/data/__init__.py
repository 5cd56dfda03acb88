"""Data: sources, STS tasks, corpora, synthetic text, round trips and batches."""

from cselab.lazy import lazy

__all__, __getattr__ = lazy(
    __name__,
    {
        "sources": "Source data_folder embedded_dir",
        "sts": "STS7 StsData load_sts",
        "corpus": "Corpus load_corpus tokenize_corpus",
        "batching": "BucketedBatchSampler ViewCollator",
        "translation.round_trip": "RoundTrip",
        "captions": "load_captions",
        "csts": "load_csts",
    },
)
