"""What every test shares: which group it belongs to, in which order groups run, and when a skip is not acceptable."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

# Quick groups first, so that a simple mistake is reported before Spark has started; order inside a group stays random.
GROUPS = ("architecture", "unit", "docs", "golden", "ports", "protocol", "spark", "e2e", "conformance")
MARKS = {
    "protocol": pytest.mark.slow,
    "spark": pytest.mark.spark,
    "e2e": pytest.mark.spark,
    "conformance": pytest.mark.spark,
}

# What takes minutes, longest first.
LONGEST = (
    *("test_kills.py", "test_every_kind.py", "test_audited.py", "test_handed_in.py", "test_faults.py"),
    *("test_bad_input.py", "test_formats.py", "test_shop.py", "test_lent.py", "test_kill.py", "test_stress.py"),
    *("test_cluster.py", "test_engine_rows.py", "test_kept_histories.py", "test_on_connect.py", "test_maintained.py"),
    *("test_sessions.py", "test_folding_kinds.py", "test_virtual_update.py", "test_simulated_days.py"),
    *("test_audits.py", "test_rewrites.py", "test_replay.py", "test_protocol_model.py", "test_state_store.py"),
)

# A shared machine pauses whenever it likes: how long one example took says nothing about the code.
settings.register_profile("lamina", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lamina")

# A JVM of the tests lives for seconds: thorough compilation costs it more than it gains. Without it the JVM would also
# keep room for very little code, and with every table format loaded run out of it.
JVM_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m"]
# What `make test` has made beforehand: half of a start goes into loading classes.
ARCHIVE = Path(sys.prefix) / "spark.jsa"
if ARCHIVE.is_file() and ARCHIVE.stat().st_size:
    JVM_OPTIONS.append(f'"-XX:SharedArchiveFile={ARCHIVE}"')
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(JVM_OPTIONS))

# The tests start hundreds of Python processes; each would compile every module anew. Whoever does not want compiled
# modules beside the sources still does not get them there.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(TESTS.parent / ".pytest_cache" / "bytecode"))

# A shell that starts something in the background lets it ignore Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What a developer has set for a project of their own must not reach the tests.
for variable in [name for name in os.environ if name.startswith("LAMINA__")]:
    del os.environ[variable]


def group_of(item: pytest.Item) -> str:
    """The folder directly under `tests` that a test lies in."""
    return item.path.relative_to(TESTS).parts[0]


def is_marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None


def pytest_itemcollected(item: pytest.Item) -> None:
    mark = MARKS.get(group_of(item))
    if mark:
        item.add_marker(mark)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (is_marked(item, "spark"), is_marked(item, "slow"), order_of(group_of(item))))
    if hasattr(config, "workerinput"):
        # Side by side the long files come first, so that no worker is left with one of them in the end.
        items.sort(key=lambda item: (_place_among_longest(item), not is_marked(item, "spark")))


def _place_among_longest(item: pytest.Item) -> int:
    return LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)


def order_of(group: str) -> int:
    return GROUPS.index(group) if group in GROUPS else len(GROUPS)


def is_everything_required() -> bool:
    """Whether parts that may be missing on a laptop (jars, a database) must be there, as they must in CI."""
    return os.environ.get("LAMINA_REQUIRE_FORMATS") == "1"


def refuse_skip(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail") and is_everything_required():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"LAMINA_REQUIRE_FORMATS=1 does not accept a skip: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    refuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    seed = getattr(config.option, "randomly_seed", None)
    if exitstatus and isinstance(seed, int):
        terminalreporter.write_line(f"repeat this order with --randomly-seed={seed}")
