"""The list of all checks. Each takes a `Subject`; its docstring is its title in the report."""

from collections.abc import Callable, Sequence

from benchmark.conformance import client_checks, contract_checks, state_checks, training_checks
from benchmark.conformance.subject import Subject

CHECKS: Sequence[Callable[[Subject], str | None]] = (
    contract_checks.shapes_and_types,
    contract_checks.devices,
    contract_checks.inputs_unmodified,
    contract_checks.deterministic,
    client_checks.renumbering,
    client_checks.only_the_active_work,
    client_checks.own_steps,
    state_checks.inactive_clients_stay,
    state_checks.state_is_kept,
    state_checks.state_is_used,
    contract_checks.empty_rounds,
    contract_checks.single_clients,
    state_checks.reload,
    training_checks.engines,
    training_checks.the_future,
    training_checks.full_participation,
    training_checks.limit,
)
