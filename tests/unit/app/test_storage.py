"""Rows that are recorded and gone are told wherever they are read, and brought back where somebody asks for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.app.requests import AuditsRequest, PromoteRequest
from lamina.errors import LaminaError, StateMissing, StorageMissing
from lamina.graph.kinds import IncrementalUnmanaged, View
from lamina.identity.naming import version_folder
from lamina.state.memory import MemoryStateStore
from tests.kit.app import LEASE_TIME, Killed, Place, january, orders, reading, shop
from tests.kit.models import instant, model
from tests.unit.app.test_audit_records import call, with_audits
from tests.unit.app.test_audits_apart import alone

NOW = "2024-01-05"


def physical(place: Place, name: str, environment: str = "prod") -> str:
    pointer = place.process().application().environment(environment)[0].pointers[name]  # type: ignore[index]
    assert pointer.physical is not None
    return pointer.physical


def lose(place: Place, name: str, below: str = "", environment: str = "prod") -> None:
    """Have a model's folders, or one of its partitions, no longer be there."""
    where = physical(place, name, environment)
    if not below:
        place.catalog.gone.add(f"{version_folder(where, place.store.store_id)}/")
        return
    (table,) = [each for each in place.catalog.tables if each.startswith(f"{where}__g_")]
    place.catalog.gone |= {f"{folder}/" for key, folder in place.catalog.tables[table].items() if below in key}


def drop(place: Place, version: str) -> None:
    """Have nothing left that a reader of a lost version could see."""
    for name in [name for name in place.catalog.tables if f"{version}__g_" in name]:
        del place.catalog.tables[name]


def built(*more) -> Place:
    place = shop()
    place.project.models += more
    place.build(NOW)
    return place


def told(work) -> list[str]:
    with pytest.raises(LaminaError) as caught:
        work()
    assert all(isinstance(problem, StorageMissing) for problem in caught.value.problems)
    return sorted(str(problem.node) for problem in caught.value.problems)


def test_every_command_tells_all_models_whose_rows_are_gone_and_changes_nothing():
    place = built()
    before, statements = place.catalog.everything(), len(place.catalog.statements)
    for name in ("shop.orders", "shop.totals"):
        lose(place, name)
    application = place.process().application()
    for command in (place.process().plan, place.build, place.run):
        assert told(lambda command=command: command("2024-01-06")) == ["shop.orders", "shop.totals"]
    query = lambda: application.query("SELECT * FROM shop.orders", environment=None, now=instant(NOW), limit=1)  # noqa: E731
    assert told(query) == ["shop.orders"]
    assert [problem.node for problem in application.missing_rows(instant(NOW))] == ["shop.orders", "shop.totals"]
    assert (place.catalog.everything(), len(place.catalog.statements)) == (before, statements)


def test_one_partition_that_is_gone_stops_whoever_would_read_it():
    place = built()
    lose(place, "shop.orders", below="2024-01-02")
    assert told(lambda: place.build("2024-01-06")) == ["shop.orders"]
    assert told(lambda: place.run("2024-01-06")) == ["shop.orders"]
    assert place.build(NOW).status == "nothing_to_do"


@pytest.mark.parametrize("below", ["", "2024-01-02"])
@pytest.mark.parametrize("options", [{"force": True}, {"restate": ("shop.orders",)}])
@pytest.mark.parametrize("is_far_away", [False, True])
def test_computing_again_brings_rows_back_although_they_come_out_as_recorded(below, options, is_far_away):
    place = built()
    place.catalog.is_far_away = is_far_away
    before, lost = place.catalog.everything(), physical(place, "shop.orders")
    lose(place, "shop.orders", below)
    report = place.build(NOW, **options)
    assert report.status == "succeeded"
    assert place.catalog.everything() == before
    assert physical(place, "shop.orders") == f"{lost}_2"
    place.catalog.tables = {
        name: rows for name, rows in place.catalog.tables.items() if not name.startswith(f"{lost}__g")
    }
    assert place.catalog.everything() == before
    assert place.build("2024-01-06").status == "succeeded"


def test_restating_one_model_does_not_hide_that_another_is_gone():
    place = built()
    lose(place, "shop.orders")
    lose(place, "shop.totals")
    assert told(lambda: place.build(NOW, restate=("shop.orders",))) == ["shop.totals"]


def repair(process, now: str = NOW):
    return process.application().repair(None, instant(now))


def test_a_repair_computes_what_is_gone_by_the_recorded_code_and_nothing_else():
    view = model("shop.seen", ["shop.orders"], kind=View(), query="SELECT ds, x FROM shop.orders")
    place = built(view)
    before = place.catalog.everything()
    lose(place, "shop.orders")
    # What was edited since is the next build's matter.
    place.project.models = (orders("y"), *place.project.models[1:])
    process = place.process()
    report = repair(process)
    assert (report.status, [(row.name, row.status) for row in report.rows if row.type == "rows"]) == (
        "succeeded",
        [("shop.orders", "repaired")],
    )
    assert {node for node, _ in process.engine.writes} == {"shop.orders"}
    drop(place, place.catalog.gone.pop().split("/")[1])
    assert place.catalog.everything() == before
    assert repair(place.process()).status == "nothing_to_do"


def test_a_repair_that_is_killed_anywhere_is_finished_by_the_next_one():
    healthy = built()
    lose(healthy, "shop.orders")
    process = healthy.process()
    repair(process)
    points = {name for name in process.stops.reached if not name.startswith("engine.")}
    assert {"write.intent", "write.decided", "promote.pointer"} <= points
    for point in sorted(points):
        place = built()
        before = place.catalog.everything()
        lose(place, "shop.orders")
        with pytest.raises(Killed):
            repair(place.dying(point))
        place.clock.advance(LEASE_TIME)
        assert place.catalog.everything() == before, point
        repair(place.process())
        assert place.catalog.everything() == before, point
        assert place.build(NOW).status == "nothing_to_do", point


def test_a_history_that_is_gone_is_named_and_left_to_people():
    log = model("shop.log", ["raw.orders"], kind=IncrementalUnmanaged(), query="SELECT ds, x FROM raw.orders")
    place = built(log)
    lose(place, "shop.log")
    report = repair(place.process())
    assert (report.status, report.exit_code) == ("failed", 1)
    assert [(row.name, row.status) for row in report.rows] == [("shop.log", "lost")]
    assert "--reset shop.log" in report.rows[0].message
    assert told(lambda: place.build(NOW, force=True)) == ["shop.log"]
    assert place.build(NOW, reset=("shop.log",)).status == "succeeded"


def test_a_view_that_shows_something_else_is_set_right():
    place = built()
    before = place.catalog.everything()
    place.build("2024-01-06", restate=("shop.totals",), start="2024-01-01")
    now = place.catalog.everything()
    version = physical(place, "shop.totals")
    older = min(name for name in place.catalog.tables if name.startswith(f"{version}__g_"))
    place.catalog.versions[version] = type(place.catalog.versions[version])(older)
    assert place.catalog.everything() != now
    report = repair(place.process(), "2024-01-06")
    assert [(row.type, row.status) for row in report.rows] == [("view", "repaired")]
    assert place.catalog.everything() == now != before


def test_another_environment_takes_over_what_the_baseline_has_brought_back():
    place = built()
    place.build(NOW, "dev")
    lose(place, "shop.orders")
    repair(place.process())
    report = place.process().application().repair("dev", instant(NOW))
    assert report.status in {"succeeded", "nothing_to_do"}
    assert physical(place, "shop.orders", "dev") == physical(place, "shop.orders")


def test_rows_that_only_another_environment_has_lost_are_computed_where_they_are_wanted():
    place = built()
    place.project.change(orders("y"))
    place.build(NOW, "dev")
    lost = physical(place, "shop.orders", "dev")
    place.catalog.gone.add(f"{version_folder(lost, place.store.store_id)}/")
    assert told(lambda: place.build(NOW, "dev")) == ["shop.orders"]
    assert place.build(NOW).status == "succeeded"
    assert physical(place, "shop.orders") == f"{lost}_2"
    assert {text for _, text in place.rows("shop.orders")} == {
        text.replace("x", "y") for _, text in place.rows("shop.orders")
    }


def test_an_empty_state_beside_tables_that_lamina_made_is_told():
    place = built()
    place.store = MemoryStateStore(place.clock.now)
    for command in (place.process().plan, place.build):
        with pytest.raises(StateMissing, match="shop__lamina"):
            command(NOW)


def test_an_empty_state_beside_versions_that_only_the_catalog_knows_of_is_told_before_anything_is_made():
    place = built()
    place.catalog.is_far_away = True
    place.store = MemoryStateStore(place.clock.now)
    before, statements = place.catalog.everything(), len(place.catalog.statements)
    for environment in ("prod", "dev"):
        with pytest.raises(StateMissing, match=r"`shop__lamina`") as caught:
            place.build(NOW, environment)
        assert "drop these schemas" in (caught.value.hint or "")
    assert (place.catalog.everything(), len(place.catalog.statements)) == (before, statements)


def test_totals_over_rows_that_are_gone_are_not_computed():
    place = Place(
        orders(), reading("shop.totals", "shop.orders"), sources={"raw.orders": {"2024-01-01": "a", "2024-01-02": "b"}}
    )
    place.build("2024-01-03", select=("shop.orders",))
    lose(place, "shop.orders", below="2024-01-01")
    assert told(lambda: place.build("2024-01-03")) == ["shop.orders"]


# --- files that a table reads and another one has lost ----------------------------------------------------------------
def lent_files() -> Place:
    """A log and totals over it on Delta, and a log over the totals that must not run without need."""
    log = model(
        "shop.log",
        ["raw.orders"],
        kind=IncrementalUnmanaged(),
        query="SELECT ds, x FROM raw.orders",
        table_format="delta",
    )
    return built(log, reading("shop.of_log", "shop.log"))


def rob(place: Place, name: str, rows: str = "elsewhere") -> None:
    where = physical(place, name)
    (table,) = [each for each in place.catalog.lakes if each.startswith(f"{where}__g_")]
    place.catalog.robbed[table] = rows


def test_a_table_whose_lent_files_are_gone_is_put_together_under_another_name_and_nothing_is_computed():
    place = lent_files()
    before = place.catalog.everything()
    rob(place, "shop.log")
    assert [problem.node for problem in place.process().application().missing_files()] == ["shop.log"]
    process = place.process()
    report = repair(process)
    assert (report.status, [(row.name, row.status) for row in report.rows]) == ("succeeded", [("shop.log", "repaired")])
    assert (process.engine.writes, place.catalog.everything()) == ([], before)
    assert place.process().application().missing_files() == ()
    assert repair(place.process()).status == "nothing_to_do"
    # The rows are the same, so that nobody above has anything to follow.
    assert place.build(NOW).status == place.run(NOW).status == "nothing_to_do"
    assert place.build("2024-01-06").status == "succeeded"


def test_putting_together_that_is_killed_anywhere_is_finished_by_the_next_repair():
    healthy = lent_files()
    rob(healthy, "shop.log")
    process = healthy.process()
    repair(process)
    points = {name for name in process.stops.reached if not name.startswith("engine.")}
    assert {"seed.intent", "write.decided", "write.published"} <= points
    for point in sorted(points):
        place = lent_files()
        before = place.catalog.everything()
        rob(place, "shop.log")
        with pytest.raises(Killed):
            repair(place.dying(point))
        place.clock.advance(LEASE_TIME)
        repair(place.process())
        assert place.catalog.everything() == before, point
        assert place.process().application().missing_files() == (), point
        assert place.build(NOW).status == "nothing_to_do", point


def test_lent_rows_that_are_nowhere_else_are_computed_again_or_named_as_lost():
    place = lent_files()
    orders_in_delta = orders("x", table_format="delta")
    place.project.models = (orders_in_delta, *place.project.models[1:])
    place.build(NOW)
    before = place.catalog.everything()
    rob(place, "shop.log", "lost")
    rob(place, "shop.orders", "lost")
    report = repair(place.process())
    assert {row.name: row.status for row in report.rows} == {"shop.log": "lost", "shop.orders": "repaired"}
    assert report.exit_code == 1
    assert place.catalog.everything() == before


# --- folders that only an engine can look for -------------------------------------------------------------------------
def far_away(*more) -> Place:
    place = built(*more)
    place.catalog.is_far_away = True
    return place


def test_rows_that_are_gone_far_away_are_told_before_anything_is_read():
    place = far_away()
    before = place.catalog.everything()
    lose(place, "shop.orders", below="2024-01-02")
    application = place.process().application()
    query = lambda: application.query("SELECT * FROM shop.orders", environment=None, now=instant(NOW), limit=1)  # noqa: E731
    assert told(query) == ["shop.orders"]
    for command in (place.build, place.run):
        assert told(lambda command=command: command("2024-01-06")) == ["shop.orders"]
    # Without an engine nobody can tell; and where nothing is read, nobody has to.
    assert place.process().plan("2024-01-06").plan.has_work
    assert place.build(NOW).status == "nothing_to_do"
    assert repair(place.process()).status == "succeeded"
    assert place.catalog.everything() == before


def test_far_away_a_restatement_looks_for_what_it_names_and_what_it_reads():
    place = far_away(reading("shop.other", "raw.orders"))
    lose(place, "shop.other")
    process = place.process()
    assert process.build(NOW, restate=("shop.orders",)).status == "succeeded"
    asked = {folder.split("/")[1].partition("__v_")[0] for folder in process.engine.looked_for}
    assert "other" not in asked


def test_far_away_only_what_a_batch_reads_is_looked_for():
    place = far_away(reading("shop.other", "raw.orders"))
    process = place.process()
    process.build("2024-01-06", select=("shop.orders",))
    asked = {folder.split("/")[1].partition("__v_")[0] for folder in process.engine.looked_for}
    assert asked == {"orders"}


# --- tables with a history, which lie in folders of their own ---------------------------------------------------------
@pytest.mark.parametrize("table_format", ["hive", "delta", "iceberg"])
def test_tables_of_every_format_that_are_gone_are_told_and_computed_again(table_format: str):
    place = Place(orders(table_format=table_format), sources={"raw.orders": january(31)})
    place.build(NOW)
    before, where = place.catalog.everything(), physical(place, "shop.orders")
    lose(place, "shop.orders")
    place.catalog.gone |= {f"{table.rpartition('.')[2]}/" for table in place.catalog.lakes if table.startswith(where)}
    for command in (place.process().plan, place.build, place.run):
        assert told(lambda command=command: command(NOW)) == ["shop.orders"]
    assert [problem.node for problem in place.process().application().missing_rows(instant(NOW))] == ["shop.orders"]
    assert repair(place.process()).status == "succeeded"
    assert (place.catalog.everything(), physical(place, "shop.orders")) == (before, f"{where}_2")
    assert place.build(NOW).status == "nothing_to_do"


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("how", ["repair", "force", "restate"])
def test_tables_that_are_gone_far_away_are_brought_back_by_who_asks_for_that(table_format: str, how: str):
    place = Place(orders(table_format=table_format), sources={"raw.orders": january(31)})
    place.build(NOW)
    place.catalog.is_far_away = True
    before, where = place.catalog.everything(), physical(place, "shop.orders")
    place.catalog.gone |= {f"{table.rpartition('.')[2]}/" for table in place.catalog.lakes if table.startswith(where)}
    assert [problem.node for problem in place.process().application().missing_files()] == ["shop.orders"]
    if how == "repair":
        assert repair(place.process()).status == "succeeded"
    else:
        options = {"force": True} if how == "force" else {"restate": ("shop.orders",)}
        assert place.build(NOW, **options).status == "succeeded"
    assert (place.catalog.everything(), physical(place, "shop.orders")) == (before, f"{where}_2")
    assert place.build(NOW).status == "nothing_to_do"


def test_a_table_that_can_be_opened_is_there_wherever_its_catalog_has_put_it():
    place = Place(orders(table_format="delta"), sources={"raw.orders": january(31)})
    place.build(NOW)
    place.catalog.is_far_away = True
    where = physical(place, "shop.orders")
    place.catalog.gone |= {f"{table.rpartition('.')[2]}/" for table in place.catalog.lakes}
    place.catalog.is_kept_elsewhere = True
    assert repair(place.process()).status == "nothing_to_do"
    assert physical(place, "shop.orders") == where


def test_a_table_whose_files_lie_elsewhere_is_not_looked_for_where_tables_usually_lie():
    elsewhere = {"write.metadata.path": "s3a://bucket/t"}
    place = Place(orders(table_format="iceberg", physical_properties=elsewhere), sources={"raw.orders": january(31)})
    place.build(NOW)
    place.catalog.gone |= {f"{table.rpartition('.')[2]}/" for table in place.catalog.lakes}
    assert place.build(NOW).status == "nothing_to_do"


# --- whoever asks or shows instead of computing -----------------------------------------------------------------------
def audited(place: Place, **options):
    return place.process().application().audit(AuditsRequest(now=instant(NOW), **options))


@pytest.mark.parametrize("below", ["", "2024-01-02"], ids=["all", "one partition"])
def test_audits_are_not_asked_about_what_is_left(below: str):
    place = built(
        replace(reading("shop.other", "raw.orders"), standalone_audits=(alone(),)),
        with_audits(reading("shop.seen", "shop.orders", kind=View()), call("visible", "2")),
    )
    lose(place, "shop.orders", below)
    before = place.catalog.everything()
    assert told(lambda: audited(place)) == ["shop.orders"]
    assert told(lambda: audited(place, select=("shop.seen",))) == ["shop.orders"]
    assert audited(place, select=("shop.totals",)).status == "nothing_to_do"
    assert place.catalog.everything() == before


@pytest.mark.parametrize("is_far_away", [False, True])
def test_a_new_audit_is_not_asked_about_what_is_left(is_far_away: bool):
    place = built()
    lose(place, "shop.orders", below="2024-01-02")
    place.catalog.is_far_away = is_far_away
    place.project.change(with_audits(orders(), call()), *place.project.models[1:])
    assert told(lambda: place.build(NOW)) == ["shop.orders"]


def test_an_audit_that_reads_another_model_misses_its_rows():
    place = built()
    lose(place, "shop.orders", below="2024-01-02")
    reads = alone("known")
    other = replace(reading("shop.other", "raw.orders"), audits=(reads,))
    place.project.change(*place.project.models, other)
    assert told(lambda: place.build(NOW, select=("shop.other",))) == ["shop.orders"]


def test_a_new_standalone_audit_is_not_asked_about_what_is_left():
    place = built()
    lose(place, "shop.orders", below="2024-01-02")
    place.project.change(replace(orders(), standalone_audits=(alone(),)), *place.project.models[1:])
    assert told(lambda: place.build(NOW)) == ["shop.orders"]


@pytest.mark.parametrize("is_far_away", [False, True])
@pytest.mark.parametrize("below", ["", "2024-01-02"], ids=["all", "one partition"])
def test_rows_that_are_gone_are_not_promoted(below: str, is_far_away: bool):
    place = built()
    place.project.models = (orders("y"), *place.project.models[1:])
    place.build(NOW, "dev")
    before, shown = place.rows("shop.orders"), physical(place, "shop.orders")
    lose(place, "shop.orders", below, "dev")
    place.catalog.is_far_away = is_far_away
    request = PromoteRequest(source="dev", destination="prod", now=instant(NOW))
    assert told(lambda: place.process().application().promote(request)) == ["shop.orders"]
    assert (place.rows("shop.orders"), physical(place, "shop.orders")) == (before, shown)
    place.process().application().repair("dev", instant(NOW))
    assert place.process().application().promote(request).status == "succeeded"
    assert [text for _, text in place.rows("shop.orders")] == [f"orders:y<a{day}>" for day in range(1, 5)]
