"""Writing the columns of external tables into the files that declare them; everything else in a file stays as it is.

A file is edited as text, at the places where YAML says that an entry stands: comments, quotes, order and line ends are
the user's. What comes out is read again before it is written, and must say what was meant.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from lamina.errors import ConfigError, Location, UnreadableFile
from lamina.graph.names import NodeName, schema_of
from lamina.project.discover import EXTERNAL_MODELS_FILES
from lamina.project.sources import read_entries
from lamina.project.text_files import decode, read_bytes
from lamina.sql.names import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from lamina.graph.model import Column
    from lamina.project.yaml.places import YamlPath

_PLAIN = re.compile(r"[A-Za-z_][\w-]*(?:\([\d, ]+\))?(?:\.[A-Za-z_][\w-]*)*")
_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    start: int
    end: int
    text: str


def file_for(root: Path, table: NodeName) -> str:
    """The file that a table which no file declares belongs in, relative to the project."""
    single = next((name for name in EXTERNAL_MODELS_FILES if (root / name).is_file()), None)
    if single is not None:
        return single
    stem = re.sub(r"\W", "_", schema_of(table) if "." in table else "external")
    names = [f"sources/{stem}.{ending}" for ending in ("yml", "yaml")]
    return next((name for name in names if (root / name).is_file()), names[0])


def read_source_text(root: Path, file: str) -> str:
    """The text of a file with its own line ends; nothing when it does not exist yet."""
    return decode(read_bytes(root / file, file), file, keep_line_ends=True) if (root / file).is_file() else ""


def with_columns(text: str, file: str, columns: Mapping[NodeName, Sequence[Column]]) -> str:
    """The text with these columns for these tables; those that it does not declare yet are added at its end.

    Raises `ConfigError` where the file is written in a way that cannot be edited.
    """
    line_end = "\r\n" if "\r\n" in text else "\n"
    before = text.replace("\r\n", "\n")
    after = before
    for table, found in columns.items():
        after = _with_table(after, file, table, found)
    _check(before, after, file, columns)
    return after.replace("\n", line_end)


def write_source_text(root: Path, file: str, text: str) -> None:
    """Replace the file in one step."""
    place = root / file
    aside = place.with_name(f".{place.name}.lamina")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(text.encode())
        aside.replace(place.resolve())
    except OSError as error:
        raise UnreadableFile(
            f"`{file}` cannot be written: {os.strerror(error.errno) if error.errno else error}",
            hint="check that you may write to the folder",
            location=Location(file=file),
        ) from error
    finally:
        aside.unlink(missing_ok=True)


def _check(before: str, after: str, file: str, columns: Mapping[NodeName, Sequence[Column]]) -> None:
    """Refuse a text that does not say what was meant, or says something else about another table."""
    expected = {source.name: source.columns for source, _ in read_entries(before, file)}
    expected |= {table: tuple(found) for table, found in columns.items()}
    found = {source.name: source.columns for source, _ in read_entries(after, file)}
    if found != expected:
        raise _not_editable(file, min(columns))


def _not_editable(file: str, table: str) -> ConfigError:
    return ConfigError(
        f"the entry of `{table}` in `{file}` is written in a way that cannot be edited, such as with anchors",
        hint="write its columns by hand, or write the entry as `- name: …` with its keys below each other",
        location=Location(file=file),
    )


def _with_table(text: str, file: str, table: NodeName, columns: Sequence[Column]) -> str:
    path = next((path for source, path in read_entries(text, file) if source.name == table), None)
    edit = _new_entry(text, table, columns) if path is None else _changed_entry(text, file, path, table, columns)
    return text[: edit.start] + edit.text + text[edit.end :]


# --- an entry that is there -------------------------------------------------------------------------------------------
def _changed_entry(text: str, file: str, path: YamlPath, table: NodeName, columns: Sequence[Column]) -> _Edit:
    parent, key, node = _walk(text, file, path, table)
    flow = _flow(columns)
    if isinstance(node, yaml.MappingNode):
        return _in_mapping(text, node, columns)
    is_empty = node.start_mark.index == node.end_mark.index
    if parent.flow_style:
        if key is None:
            written = text[node.start_mark.index : node.end_mark.index]
            return _replace(node, f"{{name: {written}, columns: {flow}}}")
        return _behind(key, text, f" {{columns: {flow}}}") if is_empty else _replace(node, f"{{columns: {flow}}}")
    if key is None:
        indent = " " * node.start_mark.column
        written = text[node.start_mark.index : node.end_mark.index]
        return _replace(node, f"name: {written}\n{indent}columns:\n{_block(columns, indent + _INDENT)}")
    indent = " " * key.start_mark.column + _INDENT
    lines = f"{indent}columns:\n{_block(columns, indent + _INDENT)}"
    if is_empty:
        end = _end_of_line(text, key.end_mark.index)
        return _Edit(start=end, end=end, text=f"\n{lines}")
    return _replace(node, f"\n{lines}")


def _in_mapping(text: str, node: yaml.MappingNode, columns: Sequence[Column]) -> _Edit:
    """The edit that sets the key `columns` of an entry."""
    found = next(((key, value) for key, value in node.value if key.value == "columns"), None)
    if node.flow_style:
        if found is None:
            return _before_closing(text, node, f"columns: {_flow(columns)}")
        key, value = found
        is_empty = value.start_mark.index == value.end_mark.index
        return _behind(key, text, f" {_flow(columns)}") if is_empty else _replace(value, _flow(columns))
    indent = " " * node.value[0][0].start_mark.column
    lines = _block(columns, indent + _INDENT)
    if found is None:
        end = _end_of_line(text, _end(text, node))
        return _Edit(start=end, end=end, text=f"\n{indent}columns:\n{lines}")
    key, value = found
    last = _end(text, value)
    if last <= key.end_mark.index or value.start_mark.index == value.end_mark.index:
        start = _end_of_line(text, key.end_mark.index)
        return _Edit(start=start, end=start, text=f"\n{lines}")
    return _Edit(start=text.index(":", key.end_mark.index) + 1, end=last, text=f"\n{lines}")


def _walk(
    text: str, file: str, path: YamlPath, table: NodeName
) -> tuple[yaml.CollectionNode, yaml.ScalarNode | None, yaml.Node]:
    """The entry at a path, what it stands in, and its key where it has one."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    parent, key = node, None
    for part in path:
        parent, key = node, None
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is None:
                raise _not_editable(file, table)
            key, node = pair
        else:
            node = node.value[part]
        if node.start_mark.index < parent.start_mark.index or node.end_mark.index > parent.end_mark.index:
            raise _not_editable(file, table)
    return parent, key, node


# --- an entry that is new ---------------------------------------------------------------------------------------------
def _new_entry(text: str, table: NodeName, columns: Sequence[Column]) -> _Edit:
    """The edit that adds a table behind those that are there."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    key: Any = None
    if isinstance(root, yaml.MappingNode):
        key, inner = next(((k, v) for k, v in root.value if k.value == "sources"), (None, root))
        root = inner
    name = _scalar(_written(table))
    if root is None or (isinstance(root, yaml.ScalarNode) and root.start_mark.index == root.end_mark.index):
        end = len(text.rstrip()) if root is None else _end_of_line(text, key.end_mark.index)
        entry = _list_item("", name, columns)
        before, behind = "\n" if end else "", "" if root is not None and end < len(text) else "\n"
        last = end if root is not None else len(text)
        return _Edit(start=end, end=last, text=f"{before}{entry}{behind}")
    if root.flow_style:
        is_list = isinstance(root, yaml.SequenceNode)
        flow = f"{{name: {name}, columns: {_flow(columns)}}}" if is_list else f"{name}: {{columns: {_flow(columns)}}}"
        return _before_closing(text, root, flow)
    end = _end_of_line(text, _end(text, root))
    indent = " " * root.start_mark.column
    if isinstance(root, yaml.SequenceNode):
        entry = _list_item(indent, name, columns)
    else:
        lines = _block(columns, indent + 2 * _INDENT)
        entry = f"{indent}{name}:\n{indent}{_INDENT}columns:\n{lines}"
    return _Edit(start=end, end=end, text=f"\n{entry}" + ("" if text[end:] else "\n"))


def _list_item(indent: str, name: str, columns: Sequence[Column]) -> str:
    return f"{indent}- name: {name}\n{indent}{_INDENT}columns:\n{_block(columns, indent + 2 * _INDENT)}"


def _written(table: NodeName) -> str:
    """A table's name as a file writes it: parts that are more than words in backticks."""
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else quote(part) for part in table.split("."))


# --- text -------------------------------------------------------------------------------------------------------------
def _replace(node: yaml.Node, text: str) -> _Edit:
    return _Edit(start=node.start_mark.index, end=node.end_mark.index, text=text)


def _behind(key: yaml.Node, text: str, inserted: str) -> _Edit:
    """Insert behind the colon of a key, which is added where a flow mapping leaves it out."""
    end = key.end_mark.index
    colon = re.compile(r"\s*:").match(text, end)
    place = colon.end() if colon else end
    return _Edit(start=place, end=place, text=inserted if colon else f":{inserted}")


def _before_closing(text: str, node: yaml.Node, inserted: str) -> _Edit:
    closing = node.end_mark.index - 1
    place = len(text[:closing].rstrip())
    comma = "" if text[place - 1] in "[{" else " " if text[place - 1] == "," else ", "
    return _Edit(start=place, end=place, text=f"{comma}{inserted}")


def _end(text: str, node: yaml.Node) -> int:
    """Where the last thing of a node ends; YAML counts blank lines and comments behind a block to it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        inner = last[1] if isinstance(last, tuple) else last
        first = last[0].end_mark.index if isinstance(last, tuple) else node.start_mark.index
        return max(first, _end(text, inner))
    end = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        return len(text[:end].rstrip())
    return end


def _end_of_line(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


def _block(columns: Iterable[Column], indent: str) -> str:
    lines: list[str] = []
    for column in columns:
        name, written = _scalar(column.name), _scalar(column.type) if column.type else "null"
        if column.comment:
            lines += [f"{indent}{name}:", f"{indent}{_INDENT}type: {written}"]
            lines += [f"{indent}{_INDENT}description: {_scalar(column.comment)}"]
        else:
            lines.append(f"{indent}{name}: {written}")
    return "\n".join(lines) if lines else f"{indent}{{}}"


def _flow(columns: Iterable[Column]) -> str:
    pairs: list[str] = []
    for column in columns:
        name, written = _scalar(column.name, is_flow=True), "null"
        if column.type:
            written = _scalar(column.type, is_flow=True)
        comment = _scalar(column.comment, is_flow=True) if column.comment else None
        pairs.append(f"{name}: {{type: {written}, description: {comment}}}" if comment else f"{name}: {written}")
    return f"{{{', '.join(pairs)}}}"


def _scalar(text: str, *, is_flow: bool = False) -> str:
    """A text as YAML: bare where that reads as the same text, quoted otherwise."""
    is_word = _PLAIN.fullmatch(text) is not None and not (is_flow and "," in text)
    if is_word and yaml.safe_load(text) == text:
        return text
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**6)).strip()
