"""What holds for the files of the repository as a whole."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import lamina

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
LEFT_OUT = frozenset(
    {
        ".git",
        ".venv",
        "demo",
        "build",
        "dist",
        ".lamina",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".import_linter_cache",
        "__pycache__",
    }
)

# Spelled in two halves: this file is searched too.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b")
MACHINE_PATH = re.compile(r"(?:^|[^A-Za-z0-9_.\-])/(?:work|root|farm|home|Users)/")


def text_files() -> list[Path]:
    tops = [path for path in sorted(ROOT.iterdir()) if path.name not in LEFT_OUT]
    paths = [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*")))]
    return [
        path
        for path in paths
        if path.is_file() and not LEFT_OUT.intersection(path.relative_to(ROOT).parts) and is_text(path)
    ]


def is_text(path: Path) -> bool:
    return path.suffix != ".lock" and b"\0" not in path.read_bytes()[:4096]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def lock() -> str:
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_nothing_is_left_unfinished():
    assert lines_with(UNFINISHED) == []


def test_no_file_names_a_path_of_somebodys_machine():
    assert lines_with(MACHINE_PATH) == []


def test_the_lock_names_no_host():
    assert "://" not in lock()
    assert "index-url" not in lock()


def test_the_lock_has_a_hash_for_every_pin():
    pins = re.split(r"^(?=\S)", lock(), flags=re.MULTILINE)[1:]

    assert [pin.split()[0] for pin in pins if "--hash=sha256:" not in pin] == []


@pytest.mark.parametrize("group", ["runtime", "spark", "connect", "postgres", "dev"])
def test_the_lock_pins_every_dependency_within_its_range(group: str):
    declared = {
        "runtime": project()["project"]["dependencies"],
        **project()["project"]["optional-dependencies"],
        **project()["dependency-groups"],
    }[group]
    pinned: dict[str, list[str]] = {}
    for name, number in re.findall(r"^([A-Za-z0-9_.\-]+)==([^\s;]+)", lock(), re.MULTILINE):
        pinned.setdefault(canonicalize_name(name), []).append(number)

    for requirement in map(Requirement, declared):
        numbers = pinned.get(canonicalize_name(requirement.name), [])
        assert numbers, f"`{requirement}` is not in requirements.lock: run `make lock`"
        assert [number for number in numbers if number not in requirement.specifier] == []


def test_the_package_knows_its_declared_version():
    assert lamina.__version__ == project()["project"]["version"]


def test_the_changelog_knows_no_version_beyond_the_declared_one():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *released = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)

    assert unreleased == "Unreleased"
    assert all(Version(number) <= Version(project()["project"]["version"]) for number in released)


def test_every_library_that_is_asked_for_is_imported() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[\[<>=; ]", line)[0].replace("-", "_") for line in asked}
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", sources, re.MULTILINE))
    # Zones that `zoneinfo` finds by itself; and the package that is imported as `yaml`.
    assert names - imported == {"tzdata", "pyyaml"}
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("-", "_")
    assert not [name for name in names if f"\n{name}==" not in f"\n{locked}"]


def test_actions_of_others_are_named_by_commit() -> None:
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8"))
        assert used
        assert not [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)]


def test_every_file_that_the_architecture_page_names_exists() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    house = ROOT / "src" / "lamina"
    folders = [ROOT, house, *(path for path in house.rglob("*") if path.is_dir())]
    named = set(re.findall(r"`([\w/]+\.py|[\w/]+/)`", page))
    assert {name for name in named if not any((folder / name).exists() for folder in folders)} == set()
