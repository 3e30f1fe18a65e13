#!/usr/bin/env bash
# Builds a wheel, installs it into a fresh environment that borrows the dependencies of another one, and uses it in an
# empty folder. Usage: tools/check_wheel.sh PYTHON, the Python of the environment with the dependencies.
set -euo pipefail
python=$(realpath --no-symlinks "${1:-.venv/bin/python}")
checkout=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH ROLLCALL_STORE MLFLOW_TRACKING_URI

git -C "$checkout" archive --format=tar HEAD | tar -x --one-top-level="$work/source"  # only what is committed
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$work" "$work/source"
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-deps "$work"/rollcall_fl-*.whl

# The dependencies follow on the path after the wheel. A .pth file inside that folder, such as one of an editable
# installation, is not read.
own=$("$work/venv/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
"$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))" >"$own/dependencies.pth"

mkdir "$work/empty"
cd "$work/empty"
PATH="$work/venv/bin:$PATH"
for package in rollcall rollcall.benchmark rollcall.leaderboard rollcall.participation rollcall.algorithms rollcall.tasks; do
    python -c "import $package; assert $package.__file__.startswith('$own'), $package.__file__"
done
test -f "$own/rollcall/py.typed"
rollcall list experiment >list.txt
grep -q fedpbc/table1 list.txt
rollcall run quickstart --executor inline --rounds 4 --seeds 0
rollcall leaderboard quickstart --html pages
rollcall leaderboard harrak/fig1 >fig1.txt  # kept results come with the wheel
head -20 fig1.txt
test -f pages/index.html
touch tasks.py benchmark.py algorithms.py  # files of the user do not hide those of the suite
python -c "from rollcall import simulate; simulate({'task': {'name': 'quadratic', 'targets': [0, 2]}, 'algorithm': 'fedavg', 'rounds': 2})"
echo "the wheel works"
