#!/usr/bin/env bash
# GPU work in steps of at most nine minutes, for a machine that is lent for minutes and may have no
# network.
#
#   DATA=folder OUT=folder tests/gpu/runbook.sh STEP
#
#   pack      (before, where the data is) writes what the steps need of DATA into .gpu-data, about
#             30 MB: carry that folder
#   unit      the fast tests of losses, models, methods and training, and those that need a GPU
#   bench     every benchmark on the GPU, into $OUT/benchmarks.json
#   pretrain  a BERT of 12 x 384, into $OUT/gpu-bert: weights in pieces under 15 MB, card and curve
#   study     SEEDS (default 1-12), WORKERS (16) at a time: GRID (default the study of joint
#             training, outputs/reference/grids/english.toml) into the store $OUT/study.sqlite
#
# Each step runs alone. `pretrain` and `study` need `pack`; `study` skips the runs that
# $OUT/study.sqlite already has, so put back what an earlier call brought.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=${OUT:-outputs/gpu}
DATA=${DATA:-.gpu-data}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 CSELAB_DATA=$DATA
CORPORA="wiki1m-piece wikipedia-2014 wikipedia-2018 wikipedia-core books factbook us-speeches"
CORPORA="$CORPORA onestopenglish leipzig-10k"
mkdir -p "$OUT"

case "${1:-}" in
pack)
	mkdir -p .gpu-data/corpus
	cp -r "$DATA/sts" .gpu-data/
	for name in $CORPORA; do cp "$DATA/corpus/$name.txt.gz" .gpu-data/corpus/; done
	du -sh .gpu-data
	;;
unit)
	timeout 520 "$PYTHON" -m pytest -q -p no:cacheprovider -m "not slow" \
		tests/gpu tests/losses tests/models tests/methods tests/training 2>&1 | tee "$OUT/unit.log"
	;;
bench)
	timeout 520 "$PYTHON" benchmarks/bench.py --device cuda \
		--results "$OUT/benchmarks.json" 2>&1 | tee "$OUT/bench.log"
	;;
pretrain)
	timeout 530 "$PYTHON" -m cselab pretrain "$OUT/making/gpu-bert" --device cuda --bf16 --data-dir "$DATA" \
		--layers 12 --width 384 --heads 6 --inner 1536 --batch-size 512 --steps "${STEPS:-9000}" \
		$(printf -- '--corpus %s ' $CORPORA) 2>&1 | tee "$OUT/pretrain.log"
	"$PYTHON" - "$OUT" <<-'PYTHON'
		import shutil, sys
		from pathlib import Path
		import torch
		from transformers import BertForPreTraining
		source, target = Path(sys.argv[1], "making/gpu-bert"), Path(sys.argv[1], "gpu-bert")
		BertForPreTraining.from_pretrained(source, dtype=torch.float16).save_pretrained(target, max_shard_size="15MB")
		for name in ("tokenizer.json", "tokenizer_config.json", "card.json", "README.md"):
		    shutil.copy(source / name, target)
	PYTHON
	rm -r "$OUT/making"
	;;
study)
	timeout 530 "$PYTHON" -m cselab sweep "${GRID:-outputs/reference/grids/english.toml}" \
		--seeds "${SEEDS:-1-12}" --workers "${WORKERS:-16}" --store "$OUT/study.sqlite" \
		--outputs "$OUT" -p device=auto
	;;
*)
	sed -n '2,18s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
