#!/usr/bin/env bash
# Runs Rollcall's GPU steps on a machine that may be bare: Python with torch, torchvision and Lightning, but no Ray, no
# MLflow and no network. Each call runs one step, ends within LIMIT seconds, and may be cut off: the next call goes on.
#
#   tools/gpu.sh pack FOLDER     at home: writes CIFAR-10 as pieces of at most 60 MiB into FOLDER
#   tools/gpu.sh join FOLDER     there: adds the pieces that arrived; unpacks once all are there
#   tools/gpu.sh check           there: shows the GPU and the versions; installs wheels of WHEELS that are missing
#   tools/gpu.sh equal           there: all engines against the sequential engine on the CPU (step 1)
#   tools/gpu.sh bench           there: client-rounds of all engines beside a plain loop (step 2)
#   tools/gpu.sh table           there: Table I of FedPBC, CIFAR-10 (step 3); finished trials are skipped
#   tools/gpu.sh share           there: one trial against several trials at once (step 4)
#   tools/gpu.sh collect FOLDER  there: writes the run folders as pieces of at most 15 MiB into FOLDER
#   tools/gpu.sh restore FOLDER  at home: unpacks collected pieces into RUNS
#
# Settings, by environment: PYTHON (python3), WORK (/tmp/rollcall), RUNS (WORK/runs), LIMIT (540), DEVICE (cuda),
# ROLLCALL_DATA (WORK/data), WHEELS (a folder with wheels), ROUNDS (of `table`; by default those of the paper), ONLY
# (of `table`; for example `participation=bernoulli`), SEEDS (0), SETTINGS (more arguments of `rollcall run`).
set -euo pipefail
checkout=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
work=${WORK:-/tmp/rollcall}
runs=${RUNS:-$work/runs}
device=${DEVICE:-cuda}
end=$((SECONDS + ${LIMIT:-540}))
export ROLLCALL_DATA=${ROLLCALL_DATA:-$work/data} PYTHONUNBUFFERED=1
export PYTHONPATH=$checkout:$work/site${PYTHONPATH:+:$PYTHONPATH}
mkdir -p "$work" "$runs" "$ROLLCALL_DATA"

# Runs the command line for what is left of LIMIT. SIGINT lets a run finish its round and save a checkpoint.
rollcall() {
    local left=$((end - SECONDS))
    if ((left < 20)); then
        echo "no time left; call this step again"
        exit 0
    fi
    timeout --signal INT --kill-after 15 $((left - 15)) "$python" -m benchmark.cli "$@"
}

pack() {
    mkdir -p "$1"
    tar --create --directory "$ROLLCALL_DATA" cifar-10-batches-py | gzip -1 | split --bytes 60M - "$1/cifar10.tgz."
    (cd "$1" && sha256sum cifar10.tgz.* >cifar10.sha256 && ls -l)
}

join() {
    mkdir -p "$work/pieces"
    cp --update "$1"/cifar10.* "$work/pieces"
    if (cd "$work/pieces" && sha256sum --check --quiet cifar10.sha256); then
        cat "$work"/pieces/cifar10.tgz.* | tar --extract --gzip --directory "$ROLLCALL_DATA"
        echo "CIFAR-10 is in $ROLLCALL_DATA"
    else
        echo "pieces are missing; bring them and call join again"
    fi
}

check() {
    if [[ -n ${WHEELS:-} ]]; then
        "$python" -m pip install --quiet --no-index --no-deps --upgrade --target "$work/site" "$WHEELS"/*.whl
    fi
    nvidia-smi || echo "there is no nvidia-smi"
    "$python" - <<'PYTHON'
import importlib.metadata as metadata
import importlib.util
import sys

import torch

print("Python", sys.version.split()[0], "torch", torch.__version__, "CUDA", torch.version.cuda)
for i in range(torch.cuda.device_count()):
    print("GPU", i, torch.cuda.get_device_properties(i))
needed = "torchvision lightning numpy pandas scipy sklearn pydantic yaml typer rich matplotlib jaxtyping PIL filelock jinja2"
missing = [name for name in needed.split() if importlib.util.find_spec(name) is None]
print("missing packages:", ", ".join(missing) or "none")
optional = [name for name in ("ray", "mlflow", "optuna") if importlib.util.find_spec(name) is None]
print("missing, not needed here:", ", ".join(optional) or "none")
print("Lightning", metadata.version("lightning"))
sys.exit(bool(missing))
PYTHON
}

equal() {
    timeout --kill-after 5 $((end - SECONDS)) "$python" "$checkout/tools/engines_equal.py" --device "$device"
}

bench() {
    rollcall bench --device "$device" --engine sequential,vectorised --clients 100 --active 10,100 --json \
        >"$runs/bench.json"
    "$python" -m json.tool "$runs/bench.json"
}

# Cheap and important cells come first: a session that is cut off has these.
table() {
    local scheme methods
    for scheme in bernoulli bernoulli_varying markov markov_varying cyclic cyclic_reset; do
        for methods in fedpbc,fedavg,fedau mifa,fedavg_known,f3ast,fedavg_all; do
            local only=panel=cifar10,participation=$scheme,algorithm=$methods
            [[ -z ${ONLY:-} || $only == *$ONLY* ]] || continue
            # shellcheck disable=SC2086
            rollcall run fedpbc/table1 --only "$only" --seeds "${SEEDS:-0}" ${ROUNDS:+--rounds $ROUNDS} \
                --executor inline --store "$runs" ${SETTINGS:-}
        done
    done
    echo "all trials of the table are finished"
}

# Throughput: one trial, then 2 and 4 at once, each a process of its own, all of the same length.
share() {
    local n i begin
    for n in 1 2 4; do
        begin=$SECONDS
        for ((i = 0; i < n; i++)); do
            rollcall run fedpbc/table1 --only panel=cifar10,participation=bernoulli,algorithm=fedavg --seeds $i \
                --rounds "${ROUNDS:-300}" --executor inline --store "$work/share/$n" \
                >"$work/share-$n-$i.log" 2>&1 &
        done
        wait
        echo "$n at once: $((SECONDS - begin)) s for $n trials of ${ROUNDS:-300} rounds"
    done
}

collect() {
    mkdir -p "$1"
    tar --create --directory "$runs" . | gzip -1 | split --bytes 15M - "$1/runs.tgz."
    ls -l "$1"
}

restore() {
    cat "$1"/runs.tgz.* | tar --extract --gzip --directory "$runs"
}

case ${1:-} in
pack | join | collect | restore) "$1" "${2:?name a folder}" ;;
check | equal | bench | table | share) "$1" ;;
*)
    sed -n '2,/^set /p' "$0" | sed -n 's/^# \{0,1\}//p'
    exit 2
    ;;
esac
