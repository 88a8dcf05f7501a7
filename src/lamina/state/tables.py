"""The tables of a state store.

Facts are append-only: rows of `definitions`, `identities`, `versions`, `shapes`, `attempts`, `attempt_events`, `work`,
`heads`, `rewrites`, `manifest`, `revisions`, `runs`, `run_ends`, `batches`, `audits` and `audited` are written once.
Where a fact replaces an earlier one, the key ends in a number that grows, so the latest is one step into an index
however long the history is.

`leases`, `unfinished`, `environments` and `numbers` hold what is true now and are changed in place: they answer the
start check and the requirements of a commit without looking at history.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text, text

SCHEMA_VERSION = 4
ATTEMPTS_COUNTER = "attempts"

# SQLite counts up by itself only in columns of exactly this type.
_Serial = BigInteger().with_variant(Integer, "sqlite")

# Repeated word for word in queries: a database uses a partial index only when it sees the same condition. Indexes name
# them for SQLite alone, since naming PostgreSQL here would import it everywhere; `postgres.py` takes them over.
OPEN_LEASE = "status IN ('held', 'lost')"
NOT_FOLLOWED = "followed < newest"
IS_CHECKPOINT = "status = 'finalized'"

metadata = MetaData()

store = Table(
    "lamina_store",
    metadata,
    Column("store_id", Text, primary_key=True),
    Column("schema_version", Integer, nullable=False),
    # What digests of values from the environment are keyed with, as hex digits.
    Column("seal_key", Text),
)

numbers = Table(
    "lamina_numbers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("next", BigInteger, nullable=False),
)

definitions = Table(
    "lamina_definitions",
    metadata,
    Column("definition_id", Text, primary_key=True),
    Column("model", Text, nullable=False),
)

# What a node is called now (a version or the id of a definition), and what that stands for.
identities = Table(
    "lamina_identities",
    metadata,
    Column("identity", Text, primary_key=True),
    Column("node", Text, primary_key=True),
    Column("stands_for", Text, primary_key=True),
    sqlite_with_rowid=False,
)

versions = Table(
    "lamina_versions",
    metadata,
    Column("physical", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("definition_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    # The fingerprint: what the node says itself, and what it offers to its children.
    Column("query", Text, nullable=False),
    Column("config", Text, nullable=False),
    Column("functions", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("row_set", Text, nullable=False),
    Column("whole", Text, nullable=False),
    Column("columns", Text, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Index("lamina_versions_by_version", "version"),
)

# A table of hundreds of columns has a batch every hour: its shape is kept once, named by its content.
shapes = Table(
    "lamina_shapes",
    metadata,
    Column("shape_id", Text, primary_key=True),
    Column("shape", Text, nullable=False),
)

attempts = Table(
    "lamina_attempts",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("physical", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("detail", Text, nullable=False),
)

attempt_events = Table(
    "lamina_attempt_events",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("status", Text, nullable=False),
    Column("detail", Text, nullable=False),
    # The shape of the publish that was decided.
    Column("shape_id", Text),
    sqlite_with_rowid=False,
)

unfinished = Table(
    "lamina_unfinished",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("physical", Text, nullable=False),
    Column("status", Text, nullable=False),
    Index("lamina_unfinished_by_physical", "physical"),
)

work = Table(
    "lamina_work",
    metadata,
    Column("physical", Text, primary_key=True),
    Column("mark", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", BigInteger),
    Column("added", Text),
    Column("removed", Text),
    # What counts as done after this row, complete: reading it never depends on the rows before.
    Column("covered", Text, nullable=False),
    # What counted once and does not now.
    Column("reopened", Text, nullable=False),
    Column("built_at", BigInteger),
    Column("restated_at", BigInteger),
    Column("reads", Text, nullable=False),
)

heads = Table(
    "lamina_heads",
    metadata,
    Column("physical", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("generation", Text, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("shape_id", Text, nullable=False),
    Column("view_sql", Text),
    Column("contents", Text, nullable=False),
    Column("snapshot", BigInteger),
    # The former generation that this one is laid over.
    Column("beneath", Text),
    sqlite_with_rowid=False,
)

rewrites = Table(
    "lamina_rewrites",
    metadata,
    Column("physical", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("intervals", Text, nullable=False),
    Column("is_asked", Integer, nullable=False),
    sqlite_with_rowid=False,
)

manifest = Table(
    "lamina_manifest",
    metadata,
    Column("physical", Text, primary_key=True),
    Column("partition", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    # Null when the partition is gone from this sequence on.
    Column("folder", Text),
    sqlite_with_rowid=False,
)

leases = Table(
    "lamina_leases",
    metadata,
    Column("resource", Text, primary_key=True),
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(
        "lamina_leases_open",
        "resource",
        "token",
        sqlite_where=text(OPEN_LEASE),
    ),
)

environments = Table(
    "lamina_environments",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("newest", BigInteger, nullable=False),
    Column("followed", BigInteger, nullable=False),
    Index(
        "lamina_environments_behind",
        "environment",
        sqlite_where=text(NOT_FOLLOWED),
    ),
)

revisions = Table(
    "lamina_revisions",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("status", Text, nullable=False),
    Column("created_at", BigInteger),
    Column("pointers", Text, nullable=False),
    Index(
        "lamina_revisions_checkpoints",
        "environment",
        "number",
        sqlite_where=text(IS_CHECKPOINT),
    ),
)

runs = Table(
    "lamina_runs",
    metadata,
    Column("position", _Serial, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False, unique=True),
    Column("command", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("execution_time", BigInteger, nullable=False),
)

run_ends = Table(
    "lamina_run_ends",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("status", Text, nullable=False),
    Column("finished_at", BigInteger, nullable=False),
)

batches = Table(
    "lamina_batches",
    metadata,
    Column("position", _Serial, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("physical", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("interval_start", BigInteger),
    Column("interval_end", BigInteger),
    Column("status", Text, nullable=False),
    Column("rows", BigInteger),
    Column("seconds", Float, nullable=False),
    Column("statements", Integer, nullable=False),
    Column("finished_at", BigInteger, nullable=False),
    Column("error", Text),
    Index("lamina_batches_by_run", "run_id", "finished_at", "position"),
)

audits = Table(
    "lamina_audits",
    metadata,
    Column("position", _Serial, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("physical", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("interval_start", BigInteger),
    Column("interval_end", BigInteger),
    Column("is_shown", Integer, nullable=False),
    Column("audit_key", Text),
    Column("name", Text, nullable=False),
    Column("call", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("is_blocking", Integer, nullable=False),
    Column("failing_rows", BigInteger, nullable=False),
    Column("kept_at", Text),
    Column("recorded_at", BigInteger, nullable=False),
    Index("lamina_audits_by_run", "run_id", "position"),
)

audited = Table(
    "lamina_audited",
    metadata,
    Column("physical", Text, primary_key=True),
    Column("change", BigInteger, primary_key=True, autoincrement=False),
    # How audits came out over the rows that are shown after this row, complete.
    Column("outcomes", Text, nullable=False),
    sqlite_with_rowid=False,
)
