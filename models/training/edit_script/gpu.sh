#!/bin/sh
# Go on training the shipped model on a lent GPU of thirty minutes, in calls of a few minutes each.
#
#   gpu.sh pack SHARDS            here: the training data as parts of at most 60 MB in runs/gpu
#   gpu.sh trunk MINUTES OUT      there, twice: from the shipped folder, then from the last call
#   gpu.sh branch MINUTES OUT     there, last: the rate falls to zero; OUT/branch.safetensors
#
# The checkout has to travel with models/training/runs/gpu. Export and measure the branch here
# (README). DEVICE=cpu tries the same path without a GPU, TOKENS sets the size of a step.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runs=$here/../runs/gpu
device=${DEVICE:-cuda}
shares=${SHARES:-generated=0.4,commits=0.1,goals=0.2,everyday=0.3}
cd "$here"

train() { # train NAME OPTIONS...: what the run needs to go on is in runs/NAME.pt
    name=$1
    shift
    PYTHONPATH=../../.. python3 train.py --name "$name" --runs "$runs" --data "$runs/shards" \
        --tokenizer ../../rill-116m/tokenizer.json --device "$device" \
        --tokens "${TOKENS:-16384}" --shares "$shares" "$@"
}

case "${1:-}" in
pack)
    shards=$(cd "$2" && pwd)
    rm -rf "$runs" && mkdir -p "$runs"
    (cd "$shards" && tar -cJf - ./*.jsonl) | split -b 60m - "$runs/shards.tar.xz."
    ls -l "$runs"
    ;;
trunk)
    if [ ! -d "$runs/shards" ]; then
        mkdir -p "$runs/shards"
        cat "$runs"/shards.tar.xz.* | tar -xJf - -C "$runs/shards"
    fi
    if [ -f "$runs/trunk.pt" ]; then
        train trunk --resume --minutes "$2" --rate "${RATE:-4e-4}"
    else
        (cd ../../.. && PYTHONPATH=app:. python3 -m models.training.edit_script.shipped \
            models/rill-116m "$runs/start.safetensors")
        train trunk --start "$runs/start.safetensors" --minutes "$2" --rate "${RATE:-4e-4}"
    fi
    cp "$runs/trunk.safetensors" "$runs/trunk.log" "$3"
    ;;
branch)
    train branch --decay "$runs/trunk.pt" --minutes "$2" --rate "${RATE:-4e-4}"
    cp "$runs/branch.safetensors" "$runs/branch.log" "$3"
    ;;
*)
    sed -n '2,9p' "$0"
    exit 2
    ;;
esac
