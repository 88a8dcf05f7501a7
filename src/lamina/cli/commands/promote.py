"""`lamina promote`: let one environment show what another one shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lamina.app.requests import PromoteRequest
from lamina.cli.options import common_options, examples, promotion_options
from lamina.cli.present.promotion import promotion_text

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(
    epilog=examples(
        "lamina promote --from dev --to prod",
        "lamina promote --from dev --to prod --select +shop.orders",
        "lamina promote --from dev --to prod --allow-gaps",
    )
)
@promotion_options
@common_options
def promote(invocation: Invocation, source: str, destination: str, select: tuple[str, ...], **allowed: Any) -> int:
    """Let one environment show what another one shows.

    Pointers are copied, nothing is computed. Refused when the environment is not complete, when a table is missing, or
    when a version covers less time than what it replaces.
    """
    request = PromoteRequest(
        source=source.lower(), destination=destination.lower(), now=invocation.now(), select=select, **allowed
    )
    with invocation.application() as (application, _):
        report = application.promote(request)
    if invocation.output.is_json:
        invocation.output.document(report.to_dict())
    else:
        invocation.output.result(promotion_text(report))
    return 0
