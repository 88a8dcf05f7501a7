"""Where schemas lie is remembered for the way to Spark by which it was seen, and for this machine's disks alone."""

from __future__ import annotations

from pathlib import Path

from lamina.spark.sessions.places import LocalFolders, connection_key, lies_below, remember_place

HERE = connection_key(None, {})
THERE = connection_key(None, {"spark.hive.metastore.uris": "thrift://host"})


def test_folders_are_looked_for_where_the_schema_was_seen(tmp_path: Path) -> None:
    home, place = tmp_path / "home", tmp_path / "a b.db"
    home.mkdir()
    (place / "there").mkdir(parents=True)
    folders = LocalFolders(home, HERE)
    assert folders.absent("s__lamina", ["there", "gone"]) == ()
    remember_place(home, HERE, "s__lamina", f"file:{place}")
    assert folders.absent("s__lamina", ["there", "gone"]) == (f"{place}/gone",)
    assert folders.absent("other__lamina", ["gone"]) == ()
    assert LocalFolders(home, THERE).absent("s__lamina", ["gone"]) == ()


def test_a_schema_that_moved_to_an_object_store_is_forgotten(tmp_path: Path) -> None:
    remember_place(tmp_path, HERE, "s__lamina", str(tmp_path))
    remember_place(tmp_path, THERE, "s__lamina", str(tmp_path))
    remember_place(tmp_path, HERE, "s__lamina", "s3a://bucket/s__lamina.db")
    assert LocalFolders(tmp_path, HERE).absent("s__lamina", ["gone"]) == ()
    assert LocalFolders(tmp_path, THERE).absent("s__lamina", ["gone"]) == (f"{tmp_path}/gone",)


def test_tables_that_lamina_made_are_found_where_they_were_seen_or_by_default_lie(tmp_path: Path) -> None:
    folders = LocalFolders(tmp_path, HERE)
    assert folders.left_behind(["s__lamina"]) == ()
    made = tmp_path / "warehouse" / "s__lamina.db"
    (made / "_lamina_0123abcd").mkdir(parents=True)
    assert folders.left_behind(["s__lamina", "t__lamina"]) == (str(made),)


def test_a_warehouse_of_ones_own_is_looked_at_for_tables_that_lamina_made(tmp_path: Path) -> None:
    made = tmp_path / "a wh" / "s__lamina.db"
    (made / "_lamina_0123abcd").mkdir(parents=True)
    for warehouse in (str(tmp_path / "a wh"), f"file:{tmp_path / 'a wh'}"):
        assert LocalFolders(tmp_path / "home", HERE, warehouse).left_behind(["s__lamina"]) == (str(made),)
    for warehouse in (None, "s3a://bucket/wh"):
        assert LocalFolders(tmp_path / "home", HERE, warehouse).left_behind(["s__lamina"]) == ()


def test_tables_of_other_catalogs_are_found_where_they_were_seen_or_by_default_lie(tmp_path: Path) -> None:
    folders = LocalFolders(tmp_path, HERE)
    own, theirs = tmp_path / "iceberg" / "s__lamina", tmp_path / "lake" / "s__lamina"
    for place in (own, theirs):
        (place / "t__v_0123456789abcdef__g_1").mkdir(parents=True)
    assert folders.left_behind(["s__lamina", "t__lamina"]) == (str(own),)
    remember_place(tmp_path, HERE, "lake.s__lamina", str(theirs))
    assert folders.left_behind(["s__lamina"]) == (str(theirs),)
    assert folders.absent("lake.s__lamina", ["t__v_0123456789abcdef__g_1", "gone"]) == (f"{theirs}/gone",)
    assert lies_below(f"file:{theirs}", "t__v_0123456789abcdef__g_1")
    assert not lies_below(str(theirs), "gone")
    assert not lies_below("s3a://bucket/s__lamina", "gone")


def test_what_cannot_be_read_or_written_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "places.json").write_text("{nonsense")
    assert LocalFolders(tmp_path, HERE).absent("s", ["gone"]) == ()
    remember_place(tmp_path / "nowhere", HERE, "s", "/x")
