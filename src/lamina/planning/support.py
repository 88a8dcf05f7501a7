"""What this release understands but cannot carry out: said at plan time, never silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import CatalogUnfit, NotYetSupported
from lamina.graph.catalogs import catalogs_used, unfit_catalog
from lamina.graph.dag import Notice
from lamina.graph.formats import ICEBERG, TABLE_FORMATS, find_format
from lamina.graph.kinds import (
    Embedded,
    External,
    Full,
    IncrementalByTimeRange,
    Seed,
    View,
    folds,
    has_intervals,
    needs_partitions,
    stores_rows,
)
from lamina.graph.model import SqlBody
from lamina.planning.batches import runs_side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lamina.errors import PlanError
    from lamina.graph.catalogs import CatalogAbilities
    from lamina.graph.dag import Graph
    from lamina.graph.model import Model
    from lamina.graph.names import NodeName
    from lamina.planning.inputs import Flags

_KINDS = (Full, View, Embedded, Seed, IncrementalByTimeRange, External)
_WHY = {
    "MANAGED": "it is kept current by a stream, which nothing hosts yet",
    "CUSTOM": "materializations of a project's own are not run yet",
}


def unsupported(graph: Graph, flags: Flags, catalogs: Mapping[str, CatalogAbilities]) -> Iterator[PlanError]:
    """Every model and flag that cannot be carried out."""
    for model in graph.models.values():
        yield from _unsupported_model(model)
        yield from _unfit_catalog(model, catalogs)
    for flag, value in (
        ("--forward-only", flags.forward_only),
        ("--breaking", flags.breaking),
        ("--non-breaking", flags.non_breaking),
        ("--effective-from", flags.effective_from),
    ):
        if value:
            yield NotYetSupported(
                f"`{flag}` is not carried out by this release",
                hint="leave the flag out: a changed model is rebuilt over its whole history",
            )


def blocked_by_kind(graph: Graph) -> Mapping[NodeName, str]:
    """Models of kinds that cannot be built, those that read them, and why; all others can do without them."""
    found: dict[NodeName, str] = {}
    for name, model in graph.models.items():
        above = next((parent for parent in graph.parents(name) if parent in found), None)
        if not isinstance(model.kind, _KINDS) and not folds(model.kind):
            found[name] = (
                f"it is of kind {model.kind.name}, which this release cannot build: {_WHY[model.kind.name]}; use FULL "
                "or INCREMENTAL_BY_TIME_RANGE, or set `enabled false` on the model"
            )
        elif above is not None:
            found[name] = f"it reads `{above}`, which is blocked"
    return found


def _unsupported_model(model: Model) -> Iterator[NotYetSupported]:
    yield from _unsupported_format(model)
    if model.signals and not has_intervals(model.kind):
        yield NotYetSupported(
            f"`{model.name}` of kind {model.kind.name} has signals, which this release asks only about intervals",
            hint="use INCREMENTAL_BY_TIME_RANGE, or move `signals` to the models that it reads",
            location=model.location,
            node=model.name,
        )


def _unsupported_format(model: Model) -> Iterator[NotYetSupported]:
    table_format = find_format(model.table_format)
    if table_format is None:
        known = ", ".join(f"`{name}`" for name in TABLE_FORMATS)
        yield NotYetSupported(
            f"`{model.name}` asks for the table format `{model.table_format}`, which this release cannot write",
            hint=f"the formats are {known}",
            location=model.location,
            node=model.name,
        )
    elif stores_rows(model.kind) and (model.storage_format or "parquet").lower() not in table_format.storages:
        yield NotYetSupported(
            f"`{model.name}`: {table_format.title} tables cannot have `storage_format {model.storage_format}`",
            hint=f"it can be {' or '.join(f'`{name}`' for name in table_format.storages)}",
            location=model.location,
            node=model.name,
        )
    elif table_format.has_transactions and model.clustered_by and needs_partitions(model.kind):
        yield NotYetSupported(
            f"`{model.name}` has `clustered_by` and replaces whole partitions; {table_format.title} tables are either "
            "clustered or partitioned",
            hint="remove `clustered_by`",
            location=model.location,
            node=model.name,
        )


def _unfit_catalog(model: Model, catalogs: Mapping[str, CatalogAbilities]) -> Iterator[CatalogUnfit]:
    for catalog, formats in catalogs_used([model]).items():
        error = unfit_catalog(catalog, catalogs[catalog], formats) if catalog in catalogs else None
        if error is not None:
            yield CatalogUnfit(error.message, hint=error.hint, location=model.location, node=model.name)


def _never_run(model: Model) -> Iterator[Notice]:
    """The statements that a file gives its model, which is no table and no view of its own."""
    body = model.body
    around = (*body.pre_statements, *body.post_statements) if isinstance(body, SqlBody) else ()
    for place, texts in (("in ON_VIRTUAL_UPDATE", body.on_virtual_update), ("around the query", around)):
        if any(text.source.location.file == model.location.file for text in texts):
            yield Notice(
                code="LAM-WARN-022",
                message=f"statements {place} of `{model.name}` never run: kind EMBEDDED has neither batches nor a view",
                node=model.name,
                location=model.location,
            )


def _side_by_side(model: Model, concurrency: int | None) -> Iterator[Notice]:
    """Why fewer batches run side by side than a model asks for."""
    asked = getattr(model.kind, "batch_concurrency", None)
    if asked is None or asked == 1:
        return
    why = None
    if not runs_side_by_side(model):
        why = "its batches run one after the other: "
        if model.name in model.reads:
            why += "each reads what the one before it wrote"
        else:
            why += "two of them could share a partition, because they do not end where partitions by its time column do"
    elif find_format(model.table_format) == ICEBERG:
        why = "its batches run one after the other: on Iceberg each begins where the last one ended"
    elif concurrency is not None and asked > concurrency:
        why = (
            f"the project runs {concurrency} at once; "
            f"`concurrency: {asked}` in lamina.yaml, or `--concurrency {asked}`, lets it"
        )
    if why is not None:
        yield Notice(
            code="LAM-WARN-047",
            message=f"`{model.name}` ({model.location}) asks for {asked} batches at once, and {why}",
            node=model.name,
            location=model.location,
        )


def limitations(graph: Graph, concurrency: int | None = None) -> Iterator[Notice]:
    """What is left out without harm to data, as warnings; `concurrency` is how many batches run at once at most."""
    for model in graph.models.values():
        yield from _side_by_side(model, concurrency)
        if isinstance(model.kind, Embedded):
            yield from _never_run(model)
        table_format = find_format(model.table_format)
        if table_format is not None and model.clustered_by and not table_format.can_cluster:
            yield Notice(
                code="LAM-WARN-019",
                message=f"`clustered_by` of `{model.name}` has no effect on {table_format.title} tables",
                node=model.name,
                location=model.location,
            )
        if folds(model.kind) and model.kind.policy.auto_restatement_cron is not None:
            yield Notice(
                code="LAM-WARN-017",
                message=f"`auto_restatement_cron` of `{model.name}` has no effect: {model.kind.name} has no intervals",
                node=model.name,
                location=model.location,
            )
        if isinstance(model.kind, View) and model.kind.materialized:
            yield Notice(
                code="LAM-WARN-012",
                message=f"`{model.name}` asks for a materialized view; Spark has none, so it becomes a plain view",
                node=model.name,
                location=model.location,
            )
