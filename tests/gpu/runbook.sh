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
#   study     SEEDS (default 1-3), WORKERS (4) at a time: the methods of GRID (default
#             outputs/reference/grids/real.toml) on BACKBONE, or those whose labels are in ONLY (one
#             a line), into the store $OUT/study.sqlite. Trainings are longer than the grid's: 800
#             steps of 128 for 200 of 64 (towers, single methods, students), 400 of 128 for stage
#             2's 60 of 64. The grid's rates are the shipped backbone's: for another one tune first,
#             GRID=outputs/reference/grids/real-tune.toml SEEDS=7, and write its own grid
#
# Each step runs alone. `pretrain` needs `pack`; `study` takes any BACKBONE (default $OUT/gpu-bert if
# it is there, else the shipped one) and skips the runs that $OUT/study.sqlite already has, so put
# back what an earlier call brought.
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
	default=tiny-bert
	[ -d "$OUT/gpu-bert" ] && default=$OUT/gpu-bert
	mapfile -t only < <(printf '%s' "${ONLY:-}")
	long="steps = 800, batch_size = 128, eval_every = 50"
	long2="steps = 400, batch_size = 128, eval_every = 50"
	sed -e "s/steps = 200, batch_size = 64, eval_every = 50/$long/" \
		-e "s/steps = 60, batch_size = 64, eval_every = 20/$long2/" \
		"${GRID:-outputs/reference/grids/real.toml}" >"$OUT/study.toml"
	timeout 530 "$PYTHON" -m cselab sweep "$OUT/study.toml" --seeds "${SEEDS:-1-3}" \
		--workers "${WORKERS:-4}" --store "$OUT/study.sqlite" --outputs "$OUT" -p profile=small \
		-p device=auto -p bf16=true -p backbone="${BACKBONE:-$default}" ${only:+"${only[@]/#/--only=}"}
	;;
*)
	sed -n '2,21s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
