"""Reading what has changed of a project's files, and making the graph of everything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lamina.errors import (
    BadConfigValue,
    BadSeed,
    LaminaError,
    Location,
    SyntaxProblem,
    UnknownMacro,
    raise_all,
)
from lamina.graph.audit_references import resolve_audits
from lamina.graph.audits import bind_audits, read_audit_file
from lamina.graph.audits_apart import attach_audits, audited_sources, standalone_audits
from lamina.graph.draft import Surroundings
from lamina.graph.plain_values import read_plain_properties
from lamina.graph.resolve import Naming, resolve
from lamina.project.cache import Dependencies, Entry, combine, pack, unpack
from lamina.project.functions import HOOK, SIGNAL, bind_functions, load_functions, names_any
from lamina.project.look import SEED_FILES, empty
from lamina.project.macros import Macros, load_macros
from lamina.project.python_files import read_python_file
from lamina.project.seeds import bare_seed, seed_path, with_content
from lamina.project.sources import read_sources
from lamina.project.sql_files import read_sql_file
from lamina.project.text_files import decode, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamina.graph.audits import AuditDefinition
    from lamina.graph.audits_apart import StandaloneAudit
    from lamina.graph.dag import Graph
    from lamina.graph.draft import Draft
    from lamina.graph.model import AuditCode, Source
    from lamina.graph.resolve import ColumnsOf
    from lamina.graph.windows import Windows
    from lamina.project.discover import ProjectFile
    from lamina.project.functions import Role
    from lamina.project.look import Look
    from lamina.project.modules import Capture
    from lamina.sql.values import Property

_FIRST_BYTES = 1 << 20
# Where it is remembered how far queries read into their parents.
_WINDOWS = "<windows>"
# Where the queries that audits in `audits/` become for the models that call them are remembered.
_AUDITS = "<audits>"


class Load:
    """One load of the files that a look has found; `read` names those that were parsed."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._root, self._config, self._files = look.root, look.config, look.files
        self._remembered, self._hashes = look.remembered, look.hashes
        self._problems, self._dependencies = look.problems, look.dependencies
        self._entries: dict[str, Entry] | None = None
        self._new_entries: dict[str, Entry] = {}
        self._surroundings: Surroundings | None = None
        self.read: list[str] = []
        self._has_broken_macros = False
        self._audit_definitions: list[AuditDefinition] = []
        self._standalone: tuple[StandaloneAudit, ...] = ()

    def build(self) -> Graph:
        """The graph; raises everything wrong at once."""
        drafts = [
            *self._read_all(self._files.sql_models, self._sql_file),
            *self._read_all(self._files.python_models, self._python_file),
        ]
        drafts = self._with_functions(SIGNAL, self._files.signals, self._with_seeds(drafts))
        drafts = self._with_audits(self._with_functions(HOOK, self._files.python, drafts))
        sources = self._audits_apart(self._read_all(self._files.sources, self._source_file))
        graph: Graph | None = None
        try:
            # With files missing, references to them would look like tables that nothing defines.
            if not self._problems:
                graph = self._resolve(drafts, sources)
        except LaminaError as error:
            self._problems.extend(error.problems)
        self._remember(graph)
        if self._has_broken_macros:
            # What broken files would have defined is not the fault of those who use it.
            self._problems = [problem for problem in self._problems if not isinstance(problem, UnknownMacro)]
        raise_all(_in_order(self._problems))
        if graph is None or not graph.models:
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

    def _remembered_or(self, file: ProjectFile, key: str, read: Callable[[], Any]) -> Any:
        """What the file says, from the cache when its key is the same."""
        if self._entries is None:
            self._entries = unpack(self._remembered.entries) or {}
        known = self._entries.get(file.path)
        if known is None or known.key != key:
            self.read.append(file.path)
            known = Entry(key=key, value=read())
        self._new_entries[file.path] = known
        return known.value

    def _sql_file(self, file: ProjectFile) -> tuple[Draft, ...]:
        def read() -> tuple[Draft, ...]:
            return read_sql_file(self._text(file.path), file.path, file.stem, self._around())

        key = combine(self._look.surroundings_key, self._hashes.of(file.path, file.stamp))
        found: tuple[Draft, ...] = self._remembered_or(file, key, read)
        return found

    def _python_file(self, file: ProjectFile) -> tuple[Draft, ...]:
        model_files = {each.path for each in self._files.python_models}

        def read() -> tuple[Draft, ...]:
            return read_python_file(self._look.capture(file.path), model_files, file.stem, self._around())

        state = self._look.state_of_dependencies(file.path)
        if state is None:
            return ()
        key = combine(self._look.surroundings_key, self._hashes.of(file.path, file.stamp), state, sorted(model_files))
        found: tuple[Draft, ...] = self._remembered_or(file, key, read)
        return found

    def _source_file(self, file: ProjectFile) -> tuple[Source, ...]:
        def read() -> tuple[Source, ...]:
            return read_sources(self._text(file.path), file.path)

        key = combine(self._look.code_key, self._hashes.of(file.path, file.stamp))
        found: tuple[Source, ...] = self._remembered_or(file, key, read)
        return found

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
        self._dependencies[SEED_FILES] = Dependencies(files=tuple(sorted(named)))
        return found

    def _with_functions(self, role: Role, files: tuple[ProjectFile, ...], drafts: list[Draft]) -> list[Draft]:
        """The drafts with the code of the functions they name, which an edit of a model's file does not read again."""
        if role is HOOK and not names_any(drafts, role):
            return drafts
        captures: list[Capture] = self._read_all(files, lambda file: (self._look.capture(file.path),))
        if len(captures) < len(files):
            # What broken files would have defined is not the fault of those who use it.
            return drafts
        try:
            return bind_functions(role, drafts, load_functions(role, captures, self._config.variables))
        except LaminaError as error:
            self._problems.extend(error.problems)
            return drafts

    def _audit_file(self, file: ProjectFile) -> tuple[AuditDefinition, ...]:
        def read() -> tuple[AuditDefinition, ...]:
            return read_audit_file(self._text(file.path), file.path, self._around())

        key = combine(self._look.surroundings_key, self._hashes.of(file.path, file.stamp))
        found: tuple[AuditDefinition, ...] = self._remembered_or(file, key, read)
        return found

    def _with_audits(self, drafts: list[Draft]) -> list[Draft]:
        """The drafts with the queries of the audits they name."""
        before = len(self._problems)
        definitions: list[AuditDefinition] = self._read_all(self._files.audits, self._audit_file)
        self._audit_definitions = definitions
        if len(self._problems) > before:
            # What broken files would have defined is not the fault of those who use it.
            return drafts
        known: dict[str, AuditCode] = self._earlier(_AUDITS, self._look.surroundings_key)
        found: dict[str, AuditCode] = {}
        self._new_entries[_AUDITS] = Entry(key=self._look.surroundings_key, value=found)

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

    def _earlier(self, name: str, key: str) -> dict[str, Any]:
        """What an earlier load has kept under a name; nothing when it was found in other surroundings."""
        if self._entries is None:
            self._entries = unpack(self._remembered.entries) or {}
        known = self._entries.get(name)
        return known.value if known is not None and known.key == key else {}

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

    def _macros(self) -> Macros:
        try:
            return load_macros([self._look.capture(file.path) for file in self._files.macros])
        except LaminaError as error:
            self._problems.extend(error.problems)
            self._has_broken_macros = True
            return Macros()

    # --- the whole ---
    def _resolve(self, drafts: list[Draft], sources: list[Source]) -> Graph:
        target = self._config.target
        self._check_targets(drafts)

        def read_again(draft: Draft, columns_of: ColumnsOf) -> Draft:
            file = draft.model.location.file or ""
            stem = file.rpartition("/")[2].removesuffix(".sql")
            around = replace(self._around(), columns_of=columns_of)
            again = read_sql_file(self._text(file), file, stem, around)
            found = next(each for each in again if each.blueprint_number == draft.blueprint_number)
            own = draft.model
            kept = {key: getattr(own, key) for key in ("audits", *SIGNAL.properties, *HOOK.properties)}
            return replace(found, model=replace(found.model, **kept))

        before: dict[str, Windows] = self._earlier(_WINDOWS, self._look.code_key)
        after: dict[str, Windows] = {}
        self._new_entries[_WINDOWS] = Entry(key=self._look.code_key, value=after)

        def remember(key: object, compute: Callable[[], Windows]) -> Windows:
            name = combine(key)
            after[name] = before[name] if name in before else compute()
            return after[name]

        naming = Naming(schema=target.schema, schema_suffix=target.schema_suffix)
        graph = resolve(
            drafts,
            sources,
            naming,
            strict_sources=self._config.strict_sources,
            read_again=read_again,
            remember=remember,
        )
        graph = resolve_audits(graph, naming, sources, strict_sources=self._config.strict_sources)
        return attach_audits(graph, naming, self._standalone, sources)

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

    def _remember(self, graph: Graph | None) -> None:
        """Keep what was found; a file that is wrong has no entry, so that it is read again."""
        remembered = self._remembered
        remembered.stamps = self._hashes.stamps()
        remembered.dependencies = self._dependencies
        remembered.entries = pack(self._new_entries)
        remembered.graph_key = (self._look.graph_key() or "") if graph is not None else ""
        remembered.graph = pack(graph) if remembered.graph_key else b""
        self._look.cache.save(remembered)


def _in_order(problems: list[LaminaError]) -> list[LaminaError]:
    """Problems by file and place, each once."""
    unique = {(problem.code, problem.message, problem.location): problem for problem in problems}

    def place(problem: LaminaError) -> tuple[str, int, int]:
        location = problem.location or Location()
        return location.file or "", location.line or 0, location.column or 0

    return sorted(unique.values(), key=place)
