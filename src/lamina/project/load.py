"""Reading what has changed of a project's files, and making the graph of everything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lamina.errors import (
    BadConfigValue,
    BadSeed,
    LaminaError,
    Location,
    SyntaxProblem,
    UnknownColumn,
    UnknownMacro,
    raise_all,
)
from lamina.graph.kinds import Seed
from lamina.graph.names import Naming
from lamina.graph.sealing import holds_any
from lamina.project.cache.entries import ENTRIES, Entry
from lamina.project.cache.file import Dependencies, combine, pack, unpack
from lamina.project.cache.look import SEED_FILES, empty
from lamina.project.cache.shapes import GRAPH
from lamina.project.configuration.environment import attach_environment, names_any_variable, secrets_shown
from lamina.project.function_files import read_functions
from lamina.project.python.functions import HOOK, SIGNAL, bind_functions, load_functions, names_any
from lamina.project.python.macros import Macros, load_macros
from lamina.project.python.models import read_python_file
from lamina.project.python.nodes import read_misplaced, read_python_nodes
from lamina.project.seeds import bare_seed, problems_in, seed_path, with_content
from lamina.project.sources import read_source_file
from lamina.project.sql_files import read_sql_file
from lamina.project.text_files import decode, read_bytes
from lamina.project.unit_tests import read_unit_tests
from lamina.project.without_models import unimported, unread
from lamina.reading.audit_references import resolve_audits
from lamina.reading.audits import bind_audits, read_audit_file
from lamina.reading.check_columns import missing_in_audits
from lamina.reading.drafts import Surroundings
from lamina.reading.kinds import read_kind
from lamina.reading.plain_values import read_plain_properties
from lamina.reading.resolve import resolve
from lamina.reading.standalone_audits import attach_audits, audited_sources, standalone_audits
from lamina.reading.without_effect import each_place_once, no_effect
from lamina.sql.header.values import KindValue
from lamina.sql.lexed import check_dialect
from lamina.sql.macros.expander import PREDEFINED
from lamina.sql.macros.times import TIME_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lamina.graph.dag import Graph, Notice
    from lamina.graph.model import AuditCode, Source
    from lamina.project.cache.look import Look
    from lamina.project.discover import ProjectFile
    from lamina.project.python.functions import Role
    from lamina.project.python.modules import Capture
    from lamina.reading.audits import AuditDefinition
    from lamina.reading.drafts import Draft
    from lamina.reading.resolve import ColumnsOf
    from lamina.reading.standalone_audits import StandaloneAudit
    from lamina.reading.windows import Windows
    from lamina.sql.header.values import Property
    from lamina.sql.lineage.missing_columns import ColumnFindings

T = TypeVar("T")
Remember: TypeAlias = "Callable[[object, Callable[[], T]], T]"

_FIRST_BYTES = 1 << 20
# Rows behind these are looked at when the seed is built.
_CHECKED_BYTES = 64 << 20
# Where it is remembered how far queries read into their parents, which columns they give, and which they miss.
_QUERIES = "<queries>"
# Where it is remembered which seeds have rows that nothing is wrong with.
_SEEDS = "<seeds>"
# Where the queries that audits in `audits/` become for the models that call them are remembered.
_AUDITS = "<audits>"
_KEPT = "Mapping[str, Entry]"

# Under this and its path is remembered what a file says that nothing acts on.
_SAID = "<said>"


class Load:
    """One load of the files that a look has found; `read` names those that were parsed."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._root, self._config, self._files = look.root, look.config, look.files
        self._remembered, self._hashes = look.remembered, look.hashes
        self._problems, self._dependencies = look.problems, look.dependencies
        self._entries: Mapping[str, Entry] | None = None
        self._new_entries: dict[str, Entry] = {}
        self._surroundings: Surroundings | None = None
        self.read: list[str] = []
        self._has_broken_macros = False
        self._audit_definitions: list[AuditDefinition] = []
        self._standalone: tuple[StandaloneAudit, ...] = ()
        self._notices: list[Notice] = []
        self._helpers: list[str] = []
        self._bad_rows: list[LaminaError] = []
        self._sound: dict[str, bool] = {}
        self._columns: dict[str, ColumnFindings] = {}

    def build(self) -> Graph:
        """The graph; raises everything wrong at once."""
        self._check_defaults()
        drafts = [
            *self._read_all(self._files.sql_models, self._sql_file),
            *self._read_all(self._files.python_models, self._python_file),
        ]
        self._read_without_effect()
        drafts = self._with_functions(SIGNAL, self._files.signals, self._with_seeds(drafts))
        drafts = self._with_audits(self._with_functions(HOOK, self._files.python, drafts))
        sources = self._audits_apart(self._read_all(self._files.sources, self._source_file))
        graph: Graph | None = None
        try:
            # With files missing, references to them would look like tables that nothing defines.
            if not self._problems:
                graph = self._with_environment(self._resolve(drafts, sources))
            else:
                self._problems.extend(self._missed_columns(drafts, sources))
        except LaminaError as error:
            self._problems.extend(error.problems)
        self._problems.extend(self._bad_rows)
        if self._bad_rows or (graph is not None and not graph.models):
            graph = None
        self._remember(graph)
        if self._has_broken_macros:
            # What broken files would have defined is not the fault of those who use it.
            self._problems = [problem for problem in self._problems if not isinstance(problem, UnknownMacro)]
        raise_all(_in_order(self._problems))
        if graph is None:
            raise empty("the files in `models/` define none, or none that is enabled")
        return graph

    def _read_all(self, files: tuple[ProjectFile, ...], read: Callable[[ProjectFile], Any]) -> list[Any]:
        found: list[Any] = []
        for file in files:
            try:
                found.extend(read(file))
            except LaminaError as error:
                self._problems.extend(error.problems)
            except RecursionError:
                place = Location(file=file.path, line=1)
                message = f"`{file.path}` is nested too deep to be read"
                self._problems.append(SyntaxProblem(message, hint="take parts of it out", location=place))
        return found

    def _remembered_or(self, file: ProjectFile, key: str, read: Callable[[], Entry]) -> Entry:
        """What the file says, from the cache when its key is the same."""
        known = self._earlier(file.path, key)
        if known is None:
            self.read.append(file.path.removeprefix(f"{_SAID} "))
            known = read()
        self._new_entries[file.path] = known
        return known

    def _sql_file(self, file: ProjectFile) -> tuple[Draft, ...]:
        def read() -> Entry:
            return Entry(key=key, drafts=read_sql_file(self._text(file.path), file.path, file.stem, self._around()))

        key = combine(self._look.surroundings_key, self._hashes.of(file.path, file.stamp))
        return self._remembered_or(file, key, read).drafts

    def _python_file(self, file: ProjectFile) -> tuple[Draft, ...]:
        model_files = {each.path for each in self._files.python_models}

        def read() -> Entry:
            found = read_python_file(self._look.capture(file.path), model_files, file.stem, self._around())
            return Entry(key=key, drafts=found.drafts, is_helper=found.is_helper)

        state = self._look.state_of_dependencies(file.path)
        if state is None:
            return ()
        key = combine(self._look.surroundings_key, self._hashes.of(file.path, file.stamp), state, sorted(model_files))
        found = self._remembered_or(file, key, read)
        if found.is_helper:
            self._helpers.append(file.path)
        return found.drafts

    def _source_file(self, file: ProjectFile) -> tuple[Source, ...]:
        def read() -> Entry:
            sources, notices = read_source_file(self._text(file.path), file.path)
            return Entry(key=key, sources=sources, notices=notices)

        key = combine(self._look.code_key, self._hashes.of(file.path, file.stamp))
        found = self._remembered_or(file, key, read)
        self._notices.extend(found.notices)
        return found.sources

    def _read_without_effect(self) -> None:
        """Check files that nothing acts on yet, and remember what to say about them."""
        for files, read in (
            (self._files.python, read_python_nodes),
            (self._files.functions, read_functions),
            (self._files.tests, read_unit_tests),
            ((*self._files.python_models, *self._files.macros, *self._files.signals), read_misplaced),
        ):
            self._notices.extend(self._read_all(files, partial(self._notices_of, read)))
        for name in sorted((TIME_NAMES | PREDEFINED) & set(self._config.variables)):
            why = f"in SQL `@{name}` is what it is in every project"
            self._notices.append(no_effect(f"variable `{name}`", why, self._variable_place(name)))

    def _variable_place(self, name: str) -> Location:
        text = self._config.text
        places = (("variables",), ("targets", self._config.target.name, "variables"))
        return next(
            (place for path, place in text.keys.items() if path[:-1] in places and str(path[-1]).lower() == name),
            Location(file=text.file),
        )

    def _notices_of(self, read: Callable[[str, str], tuple[Notice, ...]], file: ProjectFile) -> tuple[Notice, ...]:
        key = combine(self._look.code_key, self._hashes.of(file.path, file.stamp))
        # The same file may also hold models.
        beside = replace(file, path=f"{_SAID} {file.path}")
        found = self._remembered_or(beside, key, lambda: Entry(key=key, notices=read(self._text(file.path), file.path)))
        return found.notices

    def _with_seeds(self, drafts: list[Draft]) -> list[Draft]:
        """The drafts with the content of seeds, and the CSV files that no model names as seeds of their own."""
        named = {path for draft in drafts if (path := seed_path(draft)) is not None}
        plain = self._plain_surroundings()
        unnamed = tuple(file for file in self._files.seeds if file.path not in named)
        bare = self._read_all(unnamed, lambda file: bare_seed(file.path, file.stem, plain))
        found: list[Draft] = []
        for draft in (*drafts, *bare):
            path = seed_path(draft)
            try:
                found.append(draft if path is None else self._fill_seed(draft, path))
            except LaminaError as error:
                self._problems.extend(error.problems)
            else:
                # What is wrong with rows keeps nothing else from being looked at.
                self._bad_rows.extend(self._check_seed(draft, path) if path is not None else ())
        self._dependencies[SEED_FILES] = Dependencies(files=tuple(sorted(named)))
        self._new_entries[_SEEDS] = Entry(key=self._look.code_key, sound=self._sound)
        return found

    def _with_functions(self, role: Role, files: tuple[ProjectFile, ...], drafts: list[Draft]) -> list[Draft]:
        """The drafts with the code of the functions they name, which an edit of a model's file does not read again."""
        if role is HOOK and not names_any(drafts, role):
            return drafts
        broken = {problem.location.file for problem in self._problems if problem.location is not None}
        whole = tuple(file for file in files if file.path not in broken)
        captures: list[Capture] = self._read_all(whole, lambda file: (self._look.capture(file.path),))
        if len(captures) < len(files):
            # What broken files would have defined is not the fault of those who use it.
            return drafts
        try:
            return bind_functions(role, drafts, load_functions(role, captures, self._config.variables))
        except LaminaError as error:
            self._problems.extend(error.problems)
            return drafts

    def _audit_file(self, file: ProjectFile) -> tuple[AuditDefinition, ...]:
        def read() -> Entry:
            return Entry(key=key, audits=read_audit_file(self._text(file.path), file.path, self._around()))

        key = combine(self._look.surroundings_key, self._hashes.of(file.path, file.stamp))
        return self._remembered_or(file, key, read).audits

    def _with_audits(self, drafts: list[Draft]) -> list[Draft]:
        """The drafts with the queries of the audits they name."""
        before = len(self._problems)
        definitions: list[AuditDefinition] = self._read_all(self._files.audits, self._audit_file)
        self._audit_definitions = definitions
        self._notices.extend(notice for definition in definitions for notice in definition.notices)
        if len(self._problems) > before:
            # What broken files would have defined is not the fault of those who use it.
            return drafts
        earlier = self._earlier(_AUDITS, self._look.surroundings_key)
        known = earlier.codes if earlier is not None else {}
        found: dict[str, AuditCode] = {}
        self._new_entries[_AUDITS] = Entry(key=self._look.surroundings_key, codes=found)

        def remember(key: object, compute: Callable[[], AuditCode]) -> AuditCode:
            name = combine(key)
            if name not in found:
                found[name] = known[name] if name in known else compute()
            return found[name]

        try:
            return bind_audits(drafts, definitions, self._around, remember)
        except LaminaError as error:
            self._problems.extend(error.problems)
            return drafts

    def _audits_apart(self, sources: list[Source]) -> list[Source]:
        """The sources with their audits; standalone ones are kept for the whole graph."""
        if self._problems:
            # What broken files would have defined is not the fault of those who use it.
            return sources
        try:
            self._standalone = standalone_audits(self._audit_definitions, self._around)
            return audited_sources(sources, self._audit_definitions, self._around)
        except LaminaError as error:
            self._problems.extend(error.problems)
            return sources

    def _earlier(self, name: str, key: str) -> Entry | None:
        """What an earlier load has kept under a name; None when it was found in other surroundings."""
        if self._entries is None:
            self._entries = unpack(self._remembered.entries, ENTRIES, _KEPT) or {}
        known = self._entries.get(name)
        return known if known is not None and known.key == key else None

    def _fill_seed(self, draft: Draft, path: str) -> Draft:
        place = self._root / path
        if not place.is_file():
            raise BadSeed(
                f"the file `{path}` of the seed does not exist",
                hint="`path` is relative to the model's file; `$root/` in front makes it relative to the project",
                location=draft.model.location,
                node=draft.name.to_text(),
            )

        def first_bytes() -> bytes:
            with place.open("rb") as file:
                return file.read(_FIRST_BYTES)

        return with_content(draft, path, self._hashes.of(path), first_bytes)

    def _check_seed(self, draft: Draft, path: str) -> tuple[LaminaError, ...]:
        """What is wrong with the rows of a seed, found once for each content."""
        kind = draft.model.kind
        if not isinstance(kind, Seed):
            return ()
        settings = kind.csv_settings
        columns = draft.model.columns
        declared = None if columns is None else tuple(column.name for column in columns)
        key = combine(path, self._hashes.of(path), repr(settings), declared)
        known = self._earlier(_SEEDS, self._look.code_key)
        if known is None or key not in known.sound:
            with (self._root / path).open("rb") as file:
                content = file.read(_CHECKED_BYTES + 1)
            is_cut = len(content) > _CHECKED_BYTES
            problems = problems_in(content[:_CHECKED_BYTES], path, settings, declared, is_cut=is_cut)
            if problems:
                return problems
        self._sound[key] = True
        return ()

    def _text(self, path: str) -> str:
        return decode(read_bytes(self._root / path, path), path)

    # --- surroundings ---
    def _around(self) -> Surroundings:
        """What files are read against; macros are imported when the first file needs to be read."""
        if self._surroundings is None:
            macros = self._macros()
            self._surroundings = replace(
                self._plain_surroundings(), functions=macros.functions, macro_modules=macros.modules
            )
        return self._surroundings

    def _plain_surroundings(self) -> Surroundings:
        dialect = str(self._config.defaults.get("dialect") or "spark")
        return Surroundings(dialect=dialect, variables=self._config.variables, defaults=self._defaults(dialect))

    def _defaults(self, dialect: str) -> tuple[Property, ...]:
        found: list[Property] = []
        problems: list[LaminaError] = []
        for key, value in self._config.defaults.items():
            place = self._config.text.key_location(("defaults", key))
            if key != "dialect":
                found.extend(read_plain_properties({key: value}, place, dialect, problems))
        raise_all(problems)
        return tuple(found)

    def _check_defaults(self) -> None:
        """Report what is wrong with a default whether or not a model has it; nothing can be read in no dialect."""
        location = self._config.text.key_location(("defaults", "dialect"))
        check_dialect(str(self._config.defaults.get("dialect") or "spark"), location)
        try:
            around = self._plain_surroundings()
        except LaminaError as error:
            self._problems.extend(error.problems)
            return
        for each in around.defaults:
            if isinstance(each.value, KindValue):
                read_kind(each.value, around.dialect, self._problems)

    def _macros(self) -> Macros:
        try:
            return load_macros([self._look.capture(file.path) for file in self._files.macros])
        except LaminaError as error:
            self._problems.extend(error.problems)
            self._has_broken_macros = True
            return Macros()

    # --- the whole ---
    def _resolve(self, drafts: list[Draft], sources: list[Source]) -> Graph:
        self._check_targets(drafts)
        graph = self._joined(drafts, sources)
        naming = self._naming()
        graph = resolve_audits(graph, naming, sources, strict_sources=self._config.strict_sources)
        graph = attach_audits(graph, naming, self._standalone, sources)
        raise_all(missing_in_audits(graph.models, {source.name: source for source in sources}, self._once_per_query()))
        left_out = [*unimported(self._helpers, self._dependencies), *unread(self._files.unread, drafts)]
        return replace(graph, warnings=each_place_once((*graph.warnings, *self._notices, *left_out)))

    def _missed_columns(self, drafts: list[Draft], sources: list[Source]) -> list[LaminaError]:
        """What queries ask for in vain, where other files are wrong: what these would define may have any columns."""
        try:
            self._joined(drafts, sources)
        except LaminaError as error:
            return [problem for problem in error.problems if isinstance(problem, UnknownColumn)]
        return []

    def _once_per_query(self) -> Remember[ColumnFindings]:
        """Remembers what queries miss, beside what those of models do."""
        known = self._earlier(_QUERIES, self._look.code_key) or Entry(key="")
        return _once(known.columns, self._columns)

    def _naming(self) -> Naming:
        return Naming(schema=self._config.target.schema, schema_suffix=self._config.target.schema_suffix)

    def _joined(self, drafts: list[Draft], sources: list[Source]) -> Graph:
        def read_again(draft: Draft, columns_of: ColumnsOf) -> Draft:
            file = draft.model.location.file or ""
            stem = file.rpartition("/")[2].removesuffix(".sql")
            around = replace(self._around(), columns_of=columns_of)
            again = read_sql_file(self._text(file), file, stem, around)
            found = next(each for each in again if each.blueprint_number == draft.blueprint_number)
            own = draft.model
            kept = {key: getattr(own, key) for key in ("audits", *SIGNAL.properties, *HOOK.properties)}
            return replace(found, model=replace(found.model, **kept))

        windows: dict[str, Windows] = {}
        columns = self._columns = {}
        known = self._earlier(_QUERIES, self._look.code_key) or Entry(key="")
        self._new_entries[_QUERIES] = Entry(key=self._look.code_key, windows=windows, columns=columns)
        return resolve(
            drafts,
            sources,
            self._naming(),
            strict_sources=self._config.strict_sources,
            read_again=read_again,
            remember=_once(known.windows, windows),
            remember_columns=_once(known.columns, columns),
        )

    def _check_targets(self, drafts: list[Draft]) -> None:
        """Refuse targets that would give a model the same name in the same warehouse."""
        targets = list(self._config.targets.values())
        for number, second in enumerate(targets):
            for first in targets[:number]:
                if first.warehouse() != second.warehouse():
                    continue
                names = {
                    Naming(schema=first.schema, schema_suffix=first.schema_suffix).full_name(d.name) for d in drafts
                }
                naming = Naming(schema=second.schema, schema_suffix=second.schema_suffix)
                shared = sorted(name for draft in drafts if (name := naming.full_name(draft.name)) in names)
                if shared:
                    raise BadConfigValue(
                        f"targets `{first.name}` and `{second.name}` both have a model `{shared[0]}`",
                        hint=f"give one of them a suffix: `schema_suffix: _{second.name}`",
                        location=self._config.text.key_location(("targets", second.name)),
                    )

    def _with_environment(self, graph: Graph) -> Graph:
        """The graph with models that know what comes from the environment; secrets must not be among that."""
        raise_all(secrets_shown(graph))
        use = self._config.environment
        return attach_environment(graph, use, self._text, self._around().macro_modules) if use.values else graph

    def _may_be_kept(self, path: str, entry: Entry) -> bool:
        """Whether nothing of what was read comes from the environment: that must not get into files.

        Short values are part of many words: what names no variable with such a value does not have it either.
        """
        use = self._config.environment
        if not use.values:
            return True
        is_file = (self._root / path).is_file()
        if is_file and (use.in_defaults or names_any_variable(self._text(path), use.in_variables)):
            return not holds_any(entry, use.values.values())
        return not holds_any(entry, use.distinctive() if is_file else use.values.values())

    def _remember(self, graph: Graph | None) -> None:
        """Keep what was found; a file that is wrong has no entry, so that it is read again."""
        if self._has_broken_macros:
            # Files that use none of them were read, and would hide next time that macros cannot be imported.
            self._new_entries = {}
        remembered = self._remembered
        remembered.stamps = self._hashes.stamps()
        remembered.dependencies = self._dependencies
        kept = {path: one for path, one in self._new_entries.items() if self._may_be_kept(path, one)}
        remembered.entries = pack(kept, ENTRIES, _KEPT)
        is_kept = graph is not None and not any(model.environment for model in graph.models.values())
        is_kept = is_kept and not holds_any(graph, self._config.environment.distinctive())
        remembered.graph_key = (self._look.graph_key() or "") if is_kept else ""
        remembered.graph = pack(graph, GRAPH, "Graph") if remembered.graph_key else b""
        self._look.cache.save(remembered)


def _once(before: Mapping[str, T], after: dict[str, T]) -> Remember[T]:
    """Computes what follows from a key alone, unless an earlier load has."""

    def remember(key: object, compute: Callable[[], T]) -> T:
        short = combine(key)
        after[short] = before[short] if short in before else compute()
        return after[short]

    return remember


def _in_order(problems: list[LaminaError]) -> list[LaminaError]:
    """Problems by file and place, each once."""
    unique = {(problem.code, problem.message, problem.location): problem for problem in problems}

    def place(problem: LaminaError) -> tuple[str, int, int]:
        location = problem.location or Location()
        return location.file or "", location.line or 0, location.column or 0

    return sorted(unique.values(), key=place)
