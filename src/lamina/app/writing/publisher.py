"""Carrying out what was decided for one version, under one lease."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamina.app.leases.recover import done_by, publish_under
from lamina.app.leases.retried import PAUSE_GROWTH, TRIES
from lamina.app.ports.engine import GenerationRequest, TableOptions
from lamina.app.writing.batch_request import description_of
from lamina.errors import BatchFailed, LaminaError, PublishRefused
from lamina.graph.formats import PARQUET, find_format
from lamina.graph.kinds import is_keyed
from lamina.identity.naming import generation_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lamina.app.leases.command_ports import CommandPorts
    from lamina.app.ports.facts import AttemptDecided, Fact
    from lamina.app.ports.loaded import Lease
    from lamina.app.ports.published import Attempt, Head, PartitionKey, Publish, TableShape
    from lamina.app.writing.attempt_log import AttemptLog
    from lamina.app.writing.batch_request import WriteTarget
    from lamina.graph.formats import TableFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Makes tables of one version and shows them; batches may come from several threads."""

    ports: CommandPorts
    target: WriteTarget
    lease: Lease
    log: AttemptLog
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held from a decision until it is carried out."""

    @property
    def table_format(self) -> TableFormat:
        """The format of the version's tables."""
        return find_format(self.target.model.table_format) or PARQUET

    def generation(self, number: int) -> str:
        """The name of the table that an attempt makes."""
        return self.ports.engine.placed(generation_name(self.target.physical, number), self.table_format)

    def table_options(self, attempt: Attempt) -> TableOptions:
        """How the table of an attempt is made."""
        model = self.target.model
        return TableOptions(
            generation=attempt.generation,
            table_format=self.table_format,
            description=description_of(model),
            clustered_by=model.clustered_by,
            properties=model.physical_properties,
            storage_format=model.storage_format,
            changes_by_key=is_keyed(model.kind),
            owns_files=model.seed_copy == "always",
        )

    def create_generation(
        self,
        attempt: Attempt,
        shape: TableShape,
        manifest: Mapping[PartitionKey, str],
        source: Head | None = None,
        *,
        is_mended: bool = False,
    ) -> int | None:
        """Make the table of an attempt over folders that are there, or as a copy of what `source` shows."""
        return self.ports.engine.create_generation(
            GenerationRequest(
                physical=attempt.physical,
                shape=shape,
                manifest=manifest,
                folder=attempt.folder,
                table=self.table_options(attempt),
                partitioned_by=self.target.model.partitioned_by,
                source=source,
                is_mended=is_mended,
            )
        )

    def decide_and_carry_out(
        self,
        attempt: Attempt,
        decided: AttemptDecided,
        base_sequence: int,
        statements: int,
        begun: float,
        *,
        has_new_columns: bool = False,
        also: tuple[Fact, ...] = (),
    ) -> None:
        """Record the decision, do what it says, record that it is done."""
        ports, log = self.ports, self.log
        ports.reach("write.decide")
        log.decide(attempt, decided, base_sequence, (*log.audits_recorded(attempt), *also))
        ports.reach("write.decided")
        snapshot = self._carry_out(decided.publish, has_new_columns=has_new_columns)
        ports.reach("write.published")
        log.end(attempt, done_by(attempt.number, decided.publish, snapshot), decided.rows, statements, begun)

    def _carry_out(self, publish: Publish, *, has_new_columns: bool) -> int | None:
        """Publish what was decided; what fails in a way that may pass is tried again, because siblings wait for it."""
        ports, pause = self.ports, self.ports.retry_pause
        for tries_left in reversed(range(TRIES)):
            try:
                return publish_under(ports, self.lease, publish, has_new_columns=has_new_columns)
            except LaminaError as error:
                if not error.is_retryable or isinstance(error, PublishRefused):
                    raise
                if not tries_left:
                    raise BatchFailed(
                        f"new rows of `{self.target.model.name}` are written but could not be shown: {error.message}",
                        hint="run the command again; it carries out what was decided",
                        node=self.target.model.name,
                    ) from error
            time.sleep(pause)
            pause *= PAUSE_GROWTH
        raise AssertionError("the last try returns or raises")
