"""The lists of all checks. Each takes a `Subject` or, of other kinds than algorithms, the choice; its docstring is its
title in the report."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmark.conformance import (
    analysis_checks,
    augmentation_checks,
    client_checks,
    contract_checks,
    first_checks,
    metric_checks,
    optimizer_checks,
    participation_checks,
    state_checks,
    task_checks,
    training_checks,
)
from benchmark.conformance.subject import Subject

FIRST: Sequence[Callable[[Subject], str | None]] = (
    first_checks.declared_knowledge,
    first_checks.runs,
    contract_checks.empty_rounds,
    contract_checks.shapes_and_types,
    first_checks.returns_the_update,
    contract_checks.inputs_unmodified,
    contract_checks.deterministic,
)
"""Of algorithms: what the other checks rely on."""

CHECKS: Sequence[Callable[[Subject], str | None]] = (
    *FIRST,
    contract_checks.devices,
    client_checks.renumbering,
    client_checks.only_the_active_work,
    client_checks.own_steps,
    state_checks.inactive_clients_stay,
    state_checks.state_is_kept,
    state_checks.state_is_used,
    contract_checks.single_clients,
    state_checks.reload,
    training_checks.engines,
    training_checks.the_future,
    training_checks.full_participation,
    training_checks.limit,
)

OF_KIND: Mapping[str, Sequence[Callable[[Any], str | None]]] = {
    "participation": (
        participation_checks.valid_ids,
        participation_checks.same_draw,
        participation_checks.any_order,
        participation_checks.knowledge,
        participation_checks.marginals,
        participation_checks.long_run,
    ),
    "probability": (participation_checks.valid_probabilities, participation_checks.same_probabilities),
    "variation": (participation_checks.valid_variation,),
    "partition": (task_checks.every_sample_once, task_checks.same_partition),
    "model": (task_checks.logits, task_checks.same_network),
    "task": (task_checks.task_and_data, task_checks.mean_loss, task_checks.pure_loss, task_checks.same_task),
    "schedule": (task_checks.factors,),
    "augmentation": (
        augmentation_checks.same_form,
        augmentation_checks.by_key,
        augmentation_checks.same_augmentation,
    ),
    "metric": (
        metric_checks.a_number,
        metric_checks.over_all_samples,
        metric_checks.forgets,
        metric_checks.pure_metric,
    ),
    "server_optimizer": (optimizer_checks.steps, optimizer_checks.starts_anew),
    "local_optimizer": (optimizer_checks.steps, optimizer_checks.starts_anew),
    "analysis": (analysis_checks.numbers_by_round, analysis_checks.same_table),
}
"""Of other kinds. The others rely on the first check of a list."""
