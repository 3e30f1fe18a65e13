"""The imports of a Ray worker when it starts, before it is given a trial."""

from rollcall.benchmark.allocator import collect_garbage_seldom, keep_freed_memory

keep_freed_memory()
collect_garbage_seldom()  # before the imports, which create a million objects

import rollcall.benchmark.sweep.ray_executor  # noqa: E402, F401
