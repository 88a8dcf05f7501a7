"""YAML that remembers where every key and value was written."""

from __future__ import annotations

from typing import Any

import yaml

from lamina.errors import LaminaError, Location
from lamina.project.yaml.places import YamlPath, YamlText

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_DEEPEST = 50
# Aliases of aliases can make a few lines as large as the memory.
_MOST_VALUES = 200_000
_MOST_DIGITS = 1000
_TOO_LARGE = 10**_MOST_DIGITS


class BadYaml(LaminaError):
    """The text is not YAML as Lamina accepts it; those who read a file turn it into an error of that file."""


def read_yaml(text: str, file: str) -> YamlText:
    """Read one YAML document; an empty one has the value None. Raises `BadYaml`."""
    try:
        root = _Composer(text, file).get_single_node()
        reader = _Reader(file)
        value = reader.read(root, ()) if root is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(file=file, line=mark.line + 1, column=mark.column + 1) if mark else Location(file=file)
        raise BadYaml(f"`{file}` is not valid YAML: {error.problem or error.context}", location=place) from None
    except yaml.YAMLError as error:
        first = str(error).strip().split("\n", 1)[0]
        raise BadYaml(f"`{file}` is not valid YAML: {first}", location=Location(file=file, line=1)) from None
    return YamlText(value=value, file=file, keys=reader.keys, values=reader.values)


def read_yaml_value(text: str) -> Any:
    """The value of a text given on a command line or in the environment; what is not YAML is the text itself."""
    try:
        return read_yaml(text, "").value
    except BadYaml:
        return text


class _Composer(yaml.SafeLoader):
    """Builds the nodes of one document; goes down with every level, so that it counts them."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text)
        self._file = file
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self._depth > _DEEPEST:
            mark = self.get_mark()
            place = Location(file=self._file, line=mark.line + 1, column=mark.column + 1)
            raise BadYaml(f"`{self._file}` is nested more than {_DEEPEST} levels deep", location=place)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._constructor = yaml.SafeLoader("")
        self.keys: dict[YamlPath, Location] = {}
        self.values: dict[YamlPath, Location] = {}

    def read(self, node: yaml.Node, path: YamlPath) -> Any:
        self.values[path] = self._place(node)
        if len(path) > _DEEPEST or len(self.values) > _MOST_VALUES:
            limit = f"nested more than {_DEEPEST} levels deep" if len(path) > _DEEPEST else "too large"
            raise BadYaml(f"`{self._file}` is {limit}", location=self._place(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        if node.tag == _TIMESTAMP:
            return node.value
        try:
            value = self._constructor.construct_object(node, deep=True)
        except (ValueError, LookupError, OverflowError) as error:
            said = "" if isinstance(error, LookupError) else f": {error}"
            raise BadYaml(f"`{_shown(node)}` is not a value of YAML{said}", location=self._place(node)) from None
        if isinstance(value, int) and abs(value) >= _TOO_LARGE:
            raise BadYaml(f"a number has more than {_MOST_DIGITS} digits", location=self._place(node))
        if isinstance(value, bytes):
            raise BadYaml("a value is binary", hint="write it as text", location=self._place(node))
        return value

    def _mapping(self, node: yaml.MappingNode, path: YamlPath) -> dict[str, Any]:
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            self._constructor.flatten_mapping(node)
            # What is merged stands in front; a key written again replaces it.
            node.value = list({key.value: (key, value) for key, value in node.value}.values())
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise BadYaml("a key must be a single word", location=self._place(key_node))
            key = key_node.value
            place: YamlPath = (*path, key)
            if key in found:
                first = self.keys[place]
                raise BadYaml(f"`{key}` is written twice, first in line {first.line}", location=self._place(key_node))
            self.keys[place] = self._place(key_node)
            found[key] = self.read(value_node, place)
        return found

    def _place(self, node: yaml.Node) -> Location:
        mark = node.start_mark
        return Location(file=self._file, line=mark.line + 1, column=mark.column + 1)


def _shown(node: yaml.Node) -> str:
    text = str(node.value)
    return text if len(text) <= 60 else f"{text[:57]}…"
