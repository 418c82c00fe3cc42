#!/bin/sh
# Train `base` on a machine with one GPU, in calls of a few minutes each (README, "On one GPU").
#
#   models/training/gpu.sh pack               here: put what the machine needs into one file
#   models/training/gpu.sh train MINUTES OUT  there: examples, then so many minutes of training
#
# `train` goes on where the last call stopped. TOTAL is the length of the whole run in minutes.
set -eu
data=models/training/data
run=models/training/runs/base
export PYTHONPATH=app:.
case "$1" in
pack)
    tar -cJf "$data/pack.tar.xz" -C "$data" train.jsonl heldout.jsonl tokenizer.json \
        applicability.json eval_known.jsonl eval_new.jsonl eval_steered.jsonl
    ls -l "$data/pack.tar.xz"
    ;;
train)
    minutes=$2 out=$3 total=${TOTAL:-27}
    [ -f "$data/train.jsonl" ] || tar -xJf "$data/pack.tar.xz" -C "$data"
    jobs=$(nproc)
    [ "$jobs" -gt 3 ] && jobs=$((jobs - 2))
    first=$(find "$data" -name 'shard-*.npz' | wc -l)
    # Small shards first, so that training starts at once; it takes up the others as they appear.
    python -m models.training.data --config models/training/configs/base.toml --jobs "$jobs" \
        --first "$first" --passes 1 --snippets 20000
    python -m models.training.data --config models/training/configs/base.toml --jobs "$jobs" \
        --first "$((first + 1))" --passes 12 &
    resume=
    [ -f "$run/last.pt" ] && resume=--resume
    # shellcheck disable=SC2086
    python -m models.training.train --config models/training/configs/base.toml --out "$run" \
        --init standard --compile --minutes "$total" --stop-after "$minutes" $resume
    kill $! 2>/dev/null || true
    cp "$run/last.pt" "$run/curve.jsonl" "$run/config.json" "$out"
    ;;
*)
    sed -n '2,8p' "$0"
    exit 2
    ;;
esac
