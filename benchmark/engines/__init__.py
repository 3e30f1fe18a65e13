"""Engines: how the local work of a round is computed. All engines give the same result up to rounding."""

from rollcall.benchmark.engines.base import Engine as Engine
from rollcall.benchmark.engines.base import LocalTraining as LocalTraining
from rollcall.benchmark.engines.base import Work as Work
from rollcall.benchmark.engines.choice import ENGINES as ENGINES
from rollcall.benchmark.engines.choice import Auto as Auto
from rollcall.benchmark.engines.feed import Feed as Feed
from rollcall.benchmark.engines.feed import held_out_splits as held_out_splits
from rollcall.benchmark.engines.flat_task import Evaluator as Evaluator
from rollcall.benchmark.engines.flat_task import FlatTask as FlatTask
from rollcall.benchmark.engines.flat_task import kernels_of_one_thread as kernels_of_one_thread
from rollcall.benchmark.engines.sequential import Sequential as Sequential
from rollcall.benchmark.engines.vectorised import Vectorised as Vectorised
