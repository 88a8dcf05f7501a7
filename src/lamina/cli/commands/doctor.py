"""`lamina doctor`: whether everything needed is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lamina.cli.options import common_options, examples
from lamina.cli.present.checkup import checkup_document, checkup_text

if TYPE_CHECKING:
    from lamina.cli.invocation import Invocation


@click.command(epilog=examples("lamina doctor", "lamina doctor --json"))
@common_options
def doctor(invocation: Invocation) -> int:
    """Check what Lamina needs, with a fix for each fault.

    Looked at are Java, Spark, formats, the catalog and the state. Spark is started for it, which is announced.
    """
    with invocation.progress() as progress:
        checks = invocation.services.diagnose(invocation.open_options, progress.show)
    if invocation.output.is_json:
        invocation.output.document(checkup_document(checks))
    else:
        invocation.output.result(checkup_text(checks))
    return 1 if any(check.status == "fault" for check in checks) else 0
