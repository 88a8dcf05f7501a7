"""Seeds: CSV files that become tables, bare or through a model of kind SEED."""

from __future__ import annotations

import codecs
import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING

from lamina.errors import BadSeed, LaminaError, Location
from lamina.graph.kinds import Seed
from lamina.graph.model import Column, SeedBody
from lamina.project.text_files import decode
from lamina.reading.csv_text import CsvFault, csv_rows, ragged_row, unreadable_line
from lamina.reading.model_files import read_sql_model
from lamina.reading.plain_values import read_plain_properties
from lamina.sql.header.document import Document
from lamina.sql.header.read import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lamina.graph.kinds import CsvSettings
    from lamina.reading.drafts import Draft, Surroundings

_MOST_PROBLEMS = 20
_ROOT_PREFIX = "$root/"


def bare_seed(path: str, stem: str, surroundings: Surroundings) -> tuple[Draft, ...]:
    """The seed that a CSV file without a model is: named by its stem, in the target's schema."""
    place = Location(file=path, line=1)
    problems: list[LaminaError] = []
    kind = {"name": "SEED", "path": f"{_ROOT_PREFIX}{path}"}
    properties = read_plain_properties({"kind": kind}, place, surroundings.dialect, problems)
    header = Header(block="MODEL", properties=properties, location=place)
    return read_sql_model(Document(header=header, dialect=surroundings.dialect), stem, surroundings)


def seed_path(draft: Draft) -> str | None:
    """The file of a seed relative to the project, None for other models; `..` may lead out of the project."""
    kind = draft.model.kind
    if not isinstance(kind, Seed):
        return None
    if kind.path.startswith(_ROOT_PREFIX):
        return posixpath.normpath(kind.path.removeprefix(_ROOT_PREFIX))
    folder = posixpath.dirname(draft.model.location.file or "")
    return posixpath.normpath(posixpath.join(folder, kind.path))


def with_content(draft: Draft, path: str, content_hash: str, first_bytes: Callable[[], bytes]) -> Draft:
    """The draft of a seed with its file's identity, and the file's column names where none are declared."""
    model, kind = draft.model, draft.model.kind
    if isinstance(model.body, SeedBody):
        model = replace(model, body=replace(model.body, path=path, content_hash=content_hash))
    if model.columns is None and isinstance(kind, Seed):
        columns = read_columns(first_bytes(), path, kind.csv_settings)
        model = replace(
            model,
            columns=tuple(Column(name=name, comment=draft.descriptions.get(name.lower())) for name in columns),
        )
    return replace(draft, model=model)


def problems_in(
    content: bytes, path: str, settings: CsvSettings, declared: Sequence[str] | None = None, *, is_cut: bool = False
) -> tuple[LaminaError, ...]:
    """What keeps the file of a seed from being loaded: its encoding, its columns, or rows of another length.

    Of content that is cut off the last row is left out, as it may be cut too.
    """
    try:
        text = decode(content, path, settings.encoding, keep_line_ends=True, is_cut=is_cut)
    except LaminaError as error:
        return error.problems
    found: list[LaminaError] = []
    header: Sequence[str] = ()
    width: int | None = None
    last: tuple[int, int] | None = None
    try:
        for line, fields in csv_rows(text, settings):
            if last is not None and last[1] != width:
                found.append(ragged_row(path, last[0], last[1], width or 0))
                if len(found) == _MOST_PROBLEMS:
                    return tuple(found)
            if width is None:
                width, header = len(fields), [name.strip() for name in fields]
            last = (line, len(fields))
    except CsvFault as error:
        return (*found, *(() if is_cut else (unreadable_line(path, error),)))
    if last is not None and last[1] != width and not is_cut:
        found.append(ragged_row(path, last[0], last[1], width or 0))
    if width is None:
        found.append(_empty(path))
    elif declared is not None:
        found.extend(_other_columns(header, declared, path))
    return tuple(found)


def _empty(path: str) -> BadSeed:
    return BadSeed(
        f"`{path}` is empty",
        hint="the first row of a seed holds the names of its columns",
        location=Location(file=path, line=1),
    )


def _other_columns(header: Sequence[str], declared: Sequence[str], path: str) -> Iterator[BadSeed]:
    """The error of a file that does not have the columns that its model declares, or has others."""
    wanted, given = ({name.casefold() for name in names} for names in (declared, header))
    missing = [f"`{name}`" for name in declared if name.casefold() not in given]
    extra = [f"`{name}`" for name in header if name.casefold() not in wanted]
    said = [f"{', '.join(missing)} declared but not in the file"] if missing else []
    said += [f"{', '.join(extra)} in the file but not declared"] if extra else []
    if said:
        yield BadSeed(
            f"seed `{path}` does not have the declared columns: {'; '.join(said)}",
            hint="make the file's header and `columns` agree",
            location=Location(file=path, line=1),
        )


def read_columns(content: bytes, path: str, settings: CsvSettings) -> tuple[str, ...]:
    """The names in the first row of a CSV file. Raises `BadSeed`."""
    place = Location(file=path, line=1)
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode(settings.encoding, errors="replace")
    except LookupError:
        raise BadSeed(
            f"there is no encoding `{settings.encoding}`", hint="use `utf-8` or `latin-1`", location=place
        ) from None
    try:
        names = next((tuple(name.strip() for name in row) for _, row in csv_rows(text, settings)), ())
    except CsvFault as error:
        raise BadSeed(f"`{path}` cannot be read as CSV: {error}", location=place) from None
    if not names:
        raise _empty(path)
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise BadSeed(f"column {number} of `{path}` has no name", hint="name it in the first row", location=place)
        if name.lower() in seen:
            raise BadSeed(f"`{path}` has two columns called `{name}`", hint="rename one of them", location=place)
        seen.add(name.lower())
    return names
