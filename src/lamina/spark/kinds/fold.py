"""The kinds that fold rows by a key, behind one door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.graph.kinds import IncrementalByUniqueKey, ScdType2ByColumn, ScdType2ByTime
from lamina.spark.kinds.scd_type_2 import scd_type_2
from lamina.spark.kinds.upsert import upserted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lamina.app.ports.engine import Fold


def folded(base: DataFrame | None, frame: DataFrame, fold: Fold) -> DataFrame:
    """The whole table after a run of a keyed kind, with the hidden column of problems."""
    kind = fold.kind
    if isinstance(kind, IncrementalByUniqueKey):
        return upserted(base, frame, kind)
    if isinstance(kind, ScdType2ByTime | ScdType2ByColumn):
        return scd_type_2(base, frame, kind, execution_time=fold.execution_time)
    raise TypeError(kind)
