"""Building and running on fakes: what is computed, what readers see, what is asked of the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamina.app.ports.events import BatchFinished
from lamina.app.ports.loaded import LoadRequest
from lamina.app.requests import PlanRequest
from lamina.errors import UnknownEnvironment, UsageError
from lamina.graph.kinds import Embedded, IncrementalByTimeRange, Managed, Seed, TimeColumn, View
from lamina.graph.model import Column, SeedBody
from lamina.timeline.grain import Grain
from tests.kit.app import LEASE_TIME, Killed, Place, january, orders, reading, shop, statuses
from tests.kit.models import daily, instant, model, ranges


def units(place: Place, name: str, environment: str = "prod") -> list[str]:
    return [unit for unit, _ in place.rows(name, environment)]


def seed(name: str, text: str) -> tuple:
    kind = Seed(path=f"seeds/{name}.csv")
    body = SeedBody(path=kind.path, content_hash=str(hash(text)))
    return replace(model(name, kind=kind), body=body), {kind.path: text}


# --- intervals --------------------------------------------------------------------------------------------------------
def test_a_first_build_computes_everything_and_shows_it():
    place = shop()
    report = place.build("2024-01-04")

    assert (report.status, report.exit_code) == ("succeeded", 0)
    assert statuses(report) == {"shop.orders": "succeeded", "shop.totals": "succeeded"}
    assert place.rows("shop.orders") == (
        ("2024-01-01", "orders:x<a1>"),
        ("2024-01-02", "orders:x<a2>"),
        ("2024-01-03", "orders:x<a3>"),
    )
    assert len(place.rows("shop.totals")) == 1
    assert report.environment_status == "finalized"
    assert place.unsettled().is_empty


def test_building_again_does_nothing_and_asks_the_engine_nothing():
    place = shop()
    place.build("2024-01-04")
    statements = list(place.catalog.statements)
    process = place.process()
    report = process.build("2024-01-04")

    assert (report.status, report.exit_code) == ("nothing_to_do", 0)
    assert not process.engine.calls
    assert place.catalog.statements == statements


def test_run_computes_the_next_day_only_and_what_reads_it():
    place = shop()
    place.build("2024-01-04")
    process = place.process()
    report = process.run("2024-01-05T01:00:00Z")

    assert report.status == "succeeded"
    days = [interval.to_pair()[0] for node, interval in process.engine.writes if node == "shop.orders"]
    assert days == ["2024-01-04T00:00:00Z"]
    assert units(place, "shop.orders") == ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]
    assert "2024-01-04" in place.rows("shop.totals")[0][1]


def test_run_uses_the_recorded_code_and_does_not_read_the_project():
    place = shop()
    place.build("2024-01-04")
    place.project.change(orders("changed"))
    graphs_read = place.project.graphs_read
    place.run("2024-01-05")

    assert place.project.graphs_read == graphs_read
    assert place.rows("shop.orders")[-1] == ("2024-01-04", "orders:x<a4>")


def test_run_with_nothing_due_says_when_the_next_interval_is_released():
    place = shop()
    place.build("2024-01-04")
    report = place.run("2024-01-04T05:00:00Z")

    assert report.status == "nothing_to_do"
    assert report.next_release == instant("2024-01-05")


@pytest.mark.parametrize("kind", [View(), Embedded()])
def test_what_no_run_computes_is_never_due(kind: View | Embedded):
    shown = model("shop.shown", ["shop.orders"], kind=kind, cron="@hourly", query="SELECT ds, x FROM shop.orders")
    place = shop()
    place.project.change(shown)
    place.build("2024-01-04")
    assert place.run("2024-01-04T05:00:00Z").next_release == instant("2024-01-05")


def test_running_an_environment_that_does_not_exist_says_so():
    with pytest.raises(UnknownEnvironment):
        shop().run("2024-01-04", "dev")


def test_batches_are_as_large_as_the_model_says():
    place = shop(kind={"batch_size": 2})
    process = place.process()
    process.build("2024-01-06")

    batches = [event for event in process.event(BatchFinished) if event.node == "shop.orders"]
    assert [(event.index, event.total, event.rows) for event in batches] == [(0, 3, 2), (1, 3, 2), (2, 3, 1)]
    assert len(place.rows("shop.orders")) == 5


def test_a_gap_is_filled_by_the_next_build():
    place = shop()
    place.build("2024-01-03", end="2024-01-01")
    place.build("2024-01-05", start="2024-01-03")
    assert units(place, "shop.orders") == ["2024-01-01", "2024-01-03", "2024-01-04"]
    report = place.build("2024-01-05")

    assert [step.intervals for step in report.plan.steps if step.node == "shop.orders"] == [
        ranges(("2024-01-02", "2024-01-03"))
    ]
    assert units(place, "shop.orders") == ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]


def test_a_restated_day_holds_what_the_source_gives_now():
    place = shop()
    place.build("2024-01-05")
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    place.build("2024-01-05", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")

    assert dict(place.rows("shop.orders"))["2024-01-02"] == "orders:x<late>"
    assert len(place.rows("shop.orders")) == 4
    assert "late" in place.rows("shop.totals")[0][1]


def test_a_day_that_became_empty_ends_up_empty():
    place = shop()
    place.build("2024-01-05")
    del place.catalog.sources["raw.orders"]["2024-01-02"]
    place.build("2024-01-05", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")

    assert units(place, "shop.orders") == ["2024-01-01", "2024-01-03", "2024-01-04"]
    assert place.covered("shop.orders") == ranges(("2024-01-01", "2024-01-05"))


def test_an_empty_first_interval_is_done_like_any_other():
    place = Place(orders(), sources={"raw.orders": {}})
    assert place.build("2024-01-03").status == "succeeded"
    assert place.rows("shop.orders") == ()
    assert place.build("2024-01-03").status == "nothing_to_do"


@pytest.mark.parametrize("partitioned_by", [(), ("month",)])
def test_days_that_share_a_partition_keep_their_neighbours(partitioned_by):
    place = shop(partitioned_by=partitioned_by, kind={"batch_size": 1, "partition_by_time_column": False})
    place.build("2024-01-05", concurrency=4)
    place.catalog.sources["raw.orders"]["2024-01-02"] = "late"
    place.build("2024-01-06", restate=("shop.orders",), start="2024-01-02", end="2024-01-02")
    place.build("2024-01-06")

    assert place.rows("shop.orders") == tuple(
        (day, f"orders:x<{value}>") for day, value in sorted(place.catalog.sources["raw.orders"].items())[:5]
    )


def test_lookback_reaches_the_models_below_too():
    place = Place(
        orders(kind={"lookback": 1}),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",)),
        reading("shop.weekly", "shop.daily", kind=daily(), partitioned_by=("ds",)),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-05")
    place.catalog.sources["raw.orders"]["2024-01-04"] = "late"
    place.run("2024-01-06")

    assert dict(place.rows("shop.weekly"))["2024-01-04"] == "weekly:x<daily:x<orders:x<late>>>"
    assert place.run("2024-01-06").status == "nothing_to_do"


def test_a_model_that_is_not_selected_follows_a_restated_parent_later():
    place = Place(
        orders(),
        reading("shop.daily", "shop.orders", kind=daily(), partitioned_by=("ds",)),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-05")
    place.catalog.sources["raw.orders"]["2024-01-03"] = "late"
    place.build("2024-01-05", select=("shop.orders",), restate=("shop.orders",), start="2024-01-03", end="2024-01-03")
    assert dict(place.rows("shop.daily"))["2024-01-03"] == "daily:x<orders:x<a3>>"
    place.run("2024-01-05")

    assert dict(place.rows("shop.daily"))["2024-01-03"] == "daily:x<orders:x<late>>"


# --- kinds ------------------------------------------------------------------------------------------------------------
def test_a_view_shows_its_parents_without_being_computed():
    place = Place(orders(), reading("shop.v", "shop.orders", kind=View()), sources={"raw.orders": january(31)})
    process = place.process()
    process.build("2024-01-03")
    assert place.rows("shop.v") == place.rows("shop.orders")
    assert {node for node, _ in process.engine.writes} == {"shop.orders"}
    statements = len(place.catalog.statements)
    place.run("2024-01-04")

    assert len(place.rows("shop.v")) == 3
    assert not any("shop__lamina.v__" in about for _, about in place.catalog.statements[statements:])


def test_a_model_below_a_view_reads_the_generation_behind_it():
    place = Place(
        orders(),
        reading("shop.v", "shop.orders", kind=View(), text="v"),
        reading("shop.totals", "shop.v"),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-03")
    place.run("2024-01-04")
    assert "2024-01-03=orders:x<a3>" in place.rows("shop.totals")[0][1]


def test_an_embedded_model_is_part_of_its_readers():
    place = Place(
        reading("shop.e", "raw.orders", kind=Embedded(), text="e"),
        reading("shop.totals", "shop.e"),
        sources={"raw.orders": january(2)},
    )
    place.build("2024-01-03")
    assert "2024-01-02=a2" in place.rows("shop.totals")[0][1]
    assert sorted(place.catalog.environments) == ["shop.totals"]


def test_a_seed_is_loaded_once_and_again_when_its_content_changes():
    first, texts = seed("shop.codes", "a\nb")
    place = Place(first, reading("shop.totals", "shop.codes"))
    place.project.seeds = texts
    place.build("2024-01-03")
    assert place.rows("shop.codes") == (("all", "a"), ("all", "b"))
    assert place.build("2024-01-03").status == "nothing_to_do"
    second, texts = seed("shop.codes", "c")
    place.project.change(second)
    place.project.seeds = texts
    place.build("2024-01-03")

    assert place.rows("shop.codes") == (("all", "c"),)
    assert "all=c" in place.rows("shop.totals")[0][1]


def test_a_full_model_that_reads_itself_is_not_stale_for_ever():
    place = Place(orders(), reading("shop.totals", "shop.orders", "shop.totals"), sources={"raw.orders": january(31)})
    place.build("2024-01-03")
    place.build("2024-01-04")
    assert place.build("2024-01-04").status == "nothing_to_do"


# --- changes and environments -----------------------------------------------------------------------------------------
def test_a_changed_query_is_rebuilt_with_what_reads_it_and_nothing_else():
    place = shop()
    place.project.change(reading("shop.other", "raw.other"))
    place.build("2024-01-04")
    place.project.change(orders("y"))
    process = place.process()
    report = process.build("2024-01-04")

    assert statuses(report) == {"shop.orders": "succeeded", "shop.totals": "succeeded"}
    assert {node for node, _ in process.engine.writes} == {"shop.orders", "shop.totals"}
    assert place.rows("shop.orders")[0] == ("2024-01-01", "orders:y<a1>")


def test_going_back_to_an_older_query_reuses_what_was_built():
    place = shop()
    place.build("2024-01-04")
    before = place.catalog.everything()
    place.project.change(orders("y"))
    place.build("2024-01-04")
    place.project.change(orders("x"))
    process = place.process()
    report = process.build("2024-01-04")

    assert statuses(report) == {"shop.orders": "reused", "shop.totals": "reused"}
    assert not process.engine.writes
    assert place.catalog.everything() == before


def test_a_metadata_change_needs_no_engine_call_at_all_and_is_what_run_uses():
    place = shop()
    place.build("2024-01-04")
    place.project.change(orders(owner="somebody", cron="@hourly", tags=("daily",)))
    process = place.process()
    report = process.build("2024-01-04")

    assert report.status == "succeeded"
    assert not process.engine.calls
    assert place.build("2024-01-04").status == "nothing_to_do"
    loaded = place.store.load(LoadRequest(environments=("prod",), definitions_of_pointers=True))
    pointer = loaded.revisions["prod"].pointers["shop.orders"]
    assert loaded.definitions[pointer.definition_id].owner == "somebody"


def test_a_removed_model_loses_its_view_and_keeps_its_data():
    place = shop()
    place.build("2024-01-04")
    folders = dict(place.catalog.folders)
    place.project.remove("shop.totals")
    place.build("2024-01-04")

    assert sorted(place.catalog.environments) == ["shop.orders"]
    assert place.catalog.folders == folders
    assert sorted(place.pointers()) == ["shop.orders"]


def test_a_new_environment_shares_everything_without_computing_anything():
    place = shop()
    place.build("2024-01-04")
    process = place.process()
    report = process.build("2024-01-04", "dev")

    assert report.status == "succeeded"
    assert not process.engine.writes
    assert place.rows("shop.orders", "dev") == place.rows("shop.orders")
    assert place.pointers("dev") == place.pointers()


def test_a_change_in_dev_is_seen_in_dev_only_and_reused_in_prod():
    place = shop()
    place.build("2024-01-04")
    before = {name: place.rows(name) for name in ("shop.orders", "shop.totals")}
    place.project.change(orders("y"))
    place.build("2024-01-05", "dev")

    assert {name: place.rows(name) for name in before} == before
    assert units(place, "shop.orders", "dev") == units(place, "shop.orders")
    assert place.rows("shop.orders", "dev")[0][1] == "orders:y<a1>"
    process = place.process()
    report = process.build("2024-01-04")
    assert statuses(report) == {"shop.orders": "reused", "shop.totals": "reused"}
    assert not process.engine.writes
    assert place.rows("shop.totals") == place.rows("shop.totals", "dev")


def test_dev_does_not_extend_what_it_shares_with_prod():
    place = shop()
    place.build("2024-01-04")
    place.build("2024-01-04", "dev")
    assert place.run("2024-01-09", "dev").status == "nothing_to_do"
    assert len(place.rows("shop.orders")) == 3


def test_a_partial_build_is_active_and_run_does_not_finalize_it():
    place = shop()
    place.project.change(reading("shop.other", "raw.other"))
    report = place.build("2024-01-04", select=("shop.orders",))
    assert report.environment_status == "active"
    report = place.run("2024-01-05")

    assert report.environment_status == "active"
    assert place.build("2024-01-05").environment_status == "finalized"


def test_a_blocked_selection_changes_nothing():
    place = shop()
    report = place.build("2024-01-04", select=("shop.totals",))
    assert (report.status, report.exit_code) == ("blocked", 1)
    assert not place.catalog.statements


def test_a_declined_plan_changes_nothing():
    place = shop()
    process = place.process()
    request = PlanRequest(command="build", now=instant("2024-01-04"))
    report = process.application().build(request, confirm=lambda _: False)
    assert report.status == "planned"
    assert not place.catalog.statements
    assert not process.engine.calls


def test_plan_touches_nothing():
    place = shop()
    process = place.process()
    report = process.plan("2024-01-04")
    assert report.status == "planned"
    assert not process.engine.calls
    assert not place.store.history()


def test_the_name_of_the_physical_schema_is_no_environment():
    with pytest.raises(UsageError):
        shop().build("2024-01-04", "lamina")


def test_a_start_in_the_future_builds_nothing_and_says_so():
    place = Place(orders(start="2030-01-01"), sources={"raw.orders": {}})
    report = place.build("2024-01-04")
    assert report.exit_code == 0
    assert [step.action for step in report.plan.steps] == ["wait"]
    assert place.rows("shop.orders") == ()
    assert place.build("2024-01-04").status == "nothing_to_do"


def test_a_model_whose_first_unit_is_not_over_is_built_by_the_run_after_it():
    monthly = reading("shop.monthly", "shop.orders", kind=daily(), partitioned_by=("ds",), cron="@monthly")
    place = Place(
        orders(),
        replace(monthly, grain=Grain.MONTH),
        reading("shop.totals", "shop.monthly"),
        sources={"raw.orders": january(31)},
    )
    place.build("2024-01-10")
    assert (place.rows("shop.monthly"), place.covered("shop.monthly")) == ((), ranges())
    assert statuses(place.run("2024-01-11")) == {"shop.orders": "succeeded"}
    report = place.run("2024-02-01")
    assert set(statuses(report)) == {"shop.orders", "shop.monthly", "shop.totals"}
    assert place.covered("shop.monthly") == ranges(("2024-01-01", "2024-02-01"))
    assert len(place.rows("shop.monthly")) == 31


@pytest.mark.parametrize("point", ["write.intent", "write.written", "write.decided", "write.published"])
def test_a_table_without_rows_that_was_killed_is_made_by_the_next_command(point: str):
    place = Place(orders(start="2030-01-01"), sources={"raw.orders": {}})
    with pytest.raises(Killed):
        place.dying(point).build("2024-01-04")
    place.clock.advance(LEASE_TIME)
    place.build("2024-01-04")
    assert place.rows("shop.orders") == ()


def test_history_knows_runs_batches_and_rows():
    place = shop(kind={"batch_size": 2})
    place.build("2024-01-04")
    (entry,) = place.store.history()
    assert (entry.command, entry.environment, entry.status) == ("build", "prod", "succeeded")
    assert [(batch.node, batch.rows) for batch in entry.batches] == [
        ("shop.orders", 2),
        ("shop.orders", 1),
        ("shop.totals", 1),
    ]


def test_query_reads_the_generations_that_state_names():
    place = shop()
    place.build("2024-01-04")
    application = place.process().application()
    answer = application.query("SELECT * FROM shop.orders", environment=None, now=instant("2024-01-04"), limit=2)
    assert answer.rows == place.rows("shop.orders")[:2]
    assert answer.is_truncated


def test_intervals_names_what_is_covered_and_missing():
    place = shop()
    place.build("2024-01-04")
    request = PlanRequest(command="run", now=instant("2024-01-06"))
    found = place.process().application().intervals("orders", request)
    assert found.covered == ranges(("2024-01-01", "2024-01-04"))
    assert found.missing == ranges(("2024-01-04", "2024-01-06"))


# --- render -----------------------------------------------------------------------------------------------------------
def test_a_query_is_rendered_by_the_files_or_by_what_an_environment_runs():
    place = shop()
    place.build("2024-01-04")
    shown = place.pointers()
    place.project.change(orders("y"))
    application = place.process().application()
    now = instant("2024-01-04")

    def rendered(model: str, environment: str | None = None) -> str:
        return application.render(model, start=None, end=None, now=now, environment=environment)

    assert "SELECT ds, y" in rendered("shop.orders")
    assert "SELECT ds, x" in rendered("shop.orders", "prod")
    assert shown["shop.orders"] not in rendered("shop.totals")
    assert shown["shop.orders"] in rendered("shop.totals", "prod")
    with pytest.raises(UnknownEnvironment):
        rendered("shop.orders", "dev")


@pytest.mark.parametrize(
    ("column", "time_format", "condition"),
    [
        ("date", None, "`ds` >= DATE '2024-01-03' AND `ds` < DATE '2024-01-05'"),
        ("timestamp_ntz", None, "`ds` >= TIMESTAMP_NTZ '2024-01-03 00:00:00'"),
        ("int", "%Y%m%d", "`ds` >= 20240103"),
        (None, None, "`ds` >= TIMESTAMP '2024-01-03 00:00:00+00:00'"),
        (None, "%Y-%m-%d", "`ds` >= '2024-01-03'"),
    ],
)
def test_what_is_rendered_has_the_filter_on_the_output(column: str | None, time_format: str | None, condition: str):
    kind = IncrementalByTimeRange(time_column=TimeColumn(name="DS", format=time_format))
    columns = (Column(name="ds", type=column), Column(name="x"))
    made = replace(reading("shop.orders", "raw.orders", kind=kind), columns=columns)
    application = Place(made).process().application()
    now = instant("2024-02-01")
    sql = application.render("shop.orders", start="2024-01-03", end="2024-01-04", now=now)
    assert sql.startswith("SELECT * FROM (\nSELECT ds, x FROM `raw`.`orders` AS `orders`\n) AS ")
    assert condition in sql
    assert ("the filter follows the type" in sql) == (column is None)


def test_what_is_rendered_is_cast_to_the_declared_columns_and_a_view_reads_versions():
    declared = (Column(name="ds", type="date"), Column(name="x", type="bigint"))
    whole = replace(reading("shop.whole", "shop.orders"), columns=declared, columns_are_declared=True)
    place = Place(orders(), whole, reading("shop.seen", "shop.whole", kind=View()), sources={"raw.orders": january(9)})
    place.build("2024-01-04")
    application = place.process().application()

    def rendered(name: str) -> str:
        return application.render(name, start=None, end=None, now=instant("2024-01-04"), environment="prod")

    assert rendered("shop.whole").startswith("SELECT CAST(`ds` AS date) AS `ds`, CAST(`x` AS bigint) AS `x` FROM (")
    assert "WHERE" not in rendered("shop.whole")
    pointers = place.store.load(LoadRequest(environments=("prod",))).revisions["prod"].pointers
    schema, _, table = str(pointers["shop.whole"].physical).partition(".")
    assert rendered("shop.seen") == f"SELECT ds, x FROM `{schema}`.`{table}` AS `whole`"


def test_a_model_that_cannot_be_built_is_blocked_and_the_others_are_built():
    managed = model("shop.live", ["shop.orders"], kind=Managed())
    below = reading("shop.on_live", "shop.live")
    place = Place(orders(), reading("shop.totals", "shop.orders"), managed, below, sources={"raw.orders": january(9)})
    report = place.process().plan("2024-01-04")
    assert (report.status, report.exit_code) == ("blocked", 1)
    report = place.build("2024-01-04")
    assert (report.status, report.exit_code) == ("blocked", 1)
    assert statuses(report) == {"shop.orders": "succeeded", "shop.totals": "succeeded"}
    nodes = {node["name"]: node for node in report.to_dict()["nodes"]}
    assert {name: node["action"] for name, node in nodes.items()} == {
        "shop.orders": "build",
        "shop.totals": "build",
        "shop.live": "blocked",
        "shop.on_live": "blocked",
    }
    assert "of kind MANAGED" in nodes["shop.live"]["explanation"]
    assert len(place.rows("shop.orders")) == 3
    again = place.build("2024-01-04")
    assert (again.status, again.exit_code, again.results) == ("blocked", 1, {})
    assert place.build("2024-01-04", select=("shop.totals",)).exit_code == 0
    assert (place.run("2024-01-05").status, len(place.rows("shop.orders"))) == ("succeeded", 4)
    place.project.models = (orders(), reading("shop.totals", "shop.orders"))
    report = place.build("2024-01-05")
    assert (report.exit_code, report.results, report.environment_status) == (0, {}, "finalized")
    assert place.build("2024-01-05").status == "nothing_to_do"


def test_intervals_of_a_shared_model_name_what_the_baseline_has_not_written_yet():
    place = shop()
    place.build("2024-01-03")
    place.build("2024-01-03", environment="dev")
    request = PlanRequest(command="run", now=instant("2024-01-05"), environment="dev")
    found = place.process().application().intervals("orders", request)
    assert found.covered == ranges(("2024-01-01", "2024-01-03"))
    assert found.missing == ranges(("2024-01-03", "2024-01-05"))
    assert "shared with the baseline `prod`" in found.explanation
