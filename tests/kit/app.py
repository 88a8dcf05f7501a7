"""The use cases on fakes: one place with state, catalog and clock, and processes that come, go and die there."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from lamina.app.application import Application
from lamina.app.ports.bundle import Ports
from lamina.app.ports.loaded import LoadRequest, Owner
from lamina.app.rendering.models import no_macros
from lamina.app.requests import PlanRequest
from lamina.errors import NoAnswer
from lamina.planning.inputs import Flags
from lamina.project.python.recorded_signals import ask_recorded_signal
from lamina.state.memory import MemoryStateStore, _copied
from lamina.timeline.interval import MICROS_PER_SECOND
from tests.kit.engine import FakeCatalog, FakeEngine, from_inputs, logical
from tests.kit.models import daily, instant, model
from tests.kit.project import FakeProject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lamina.app.ports.events import Event
    from lamina.app.ports.loaded import Unsettled
    from lamina.app.report import Report
    from lamina.graph.model import Model
    from lamina.timeline.interval import Instant, Intervals
    from tests.kit.engine import Row

_PROCESSES = count(1)

LEASE_TIME = 121.0
"""Long enough for any lease to run out."""
A_DAY_AND_MORE = 25 * 3600.0
"""Long enough for any lost lease to be settled."""


class Killed(BaseException):
    """The process is dead: nothing it would still do happens."""


class ManualClock:
    """Time that passes when a test says so; every process sees the same."""

    def __init__(self, now: str = "2024-06-01T12:00:00Z") -> None:
        self._now, self._elapsed = instant(now), 0.0

    def now(self) -> Instant:
        return self._now

    def elapsed(self) -> float:
        return self._elapsed

    def advance(self, seconds: float) -> None:
        self._now = self._now.plus(round(seconds * MICROS_PER_SECOND))
        self._elapsed += seconds


class SkewedClock(ManualClock):
    """The clock of a machine that is so many seconds ahead of the others, or behind."""

    def __init__(self, skew: float, clock: ManualClock | None = None) -> None:
        self._clock, self._skew = clock or ManualClock(), round(skew * MICROS_PER_SECOND)

    def now(self) -> Instant:
        return self._clock.now().plus(self._skew)

    def elapsed(self) -> float:
        return self._clock.elapsed()

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)


class FakeProcesses:
    """Those in `gone` are known to be gone, of others nothing is known."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    def identify(self, process: int) -> str | None:
        return f"desk {process}"

    def is_gone(self, identity: str) -> bool:
        return identity in self.gone


class Stops:
    """What happens at kill points: `actions` by name and how often the point was reached before.

    Every name that was reached is kept, so that tests know what a history goes through.
    """

    def __init__(self, actions: Mapping[tuple[str, int], Callable[[], None]] | None = None) -> None:
        self.reached: Counter[str] = Counter()
        self._actions = dict(actions or {})
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self._lock:
            self.reached[name] += 1
            action = self._actions.get((name, self.reached[name]))
        if action is not None:
            action()


class Sleep:
    """A place where a process stops until a test wakes it."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.over.wait(20), "nobody woke the sleeper"


class _Mortal:
    """A port as one process sees it: once the process is dead, every use of it ends there."""

    def __init__(self, port: Any, process: Process) -> None:
        self._port, self._process = port, process

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self._process.live()
            return found(*arguments, **options)

        return call


@dataclass(slots=True)
class Process:
    """One command at work: an application with an engine of its own on the shared state and catalog."""

    place: Place
    engine: FakeEngine
    stops: Stops
    events: list[Event] = field(default_factory=list)
    on_event: Callable[[Event], object] = lambda _: None
    is_dead: bool = False
    identity: str = field(default_factory=lambda: f"desk {next(_PROCESSES)}")
    skew: float = 0.0
    """By how many seconds this process's clock is ahead of the store's."""

    def live(self) -> None:
        if self.is_dead:
            if threading.current_thread().name == "lamina-leases":
                # Nobody above that thread could catch what ends it; it is left without an answer instead.
                raise NoAnswer("the process is dead")
            raise Killed

    def die(self) -> None:
        """What `kill -9` does."""
        self.is_dead = True
        raise Killed

    def reach(self, name: str) -> None:
        self.live()
        self.place.watch()
        self.stops(name)

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def application(self) -> Application:
        number = next(self.place.numbers)
        clock = SkewedClock(self.skew, self.place.clock)
        ports = Ports(
            project=self.place.project,
            store=_Mortal(self.place.store, self),
            engine=_Mortal(self.engine, self),
            clock=clock,
            emit=self._emit,
            reach=self.reach,
            owner=Owner(
                host="desk",
                boot="b00t",
                process=number,
                command="build",
                started_at=clock.now(),
                processes=(self.identity,),
            ),
            processes=self.place.processes,
            load_macros=no_macros,
            ask_signal=ask_recorded_signal,
            folders=FakeFolders(self.place.catalog),
            retry_pause=0.001,
        )
        return Application(ports, new_run_id=lambda: f"run-{number}-{next(self.place.numbers)}")

    def build(self, now: str, environment: str | None = None, **options: Any) -> Report:
        return self.application().build(_request("build", now, environment, options))

    def run(self, now: str, environment: str | None = None, **options: Any) -> Report:
        return self.application().run(_request("run", now, environment, options))

    def plan(self, now: str, environment: str | None = None, **options: Any) -> Report:
        return self.application().plan(_request("plan", now, environment, options))

    def event(self, sort: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, sort)]


def _request(command: str, now: str, environment: str | None, options: dict[str, Any]) -> PlanRequest:
    beyond = {name: options.pop(name) for name in ("concurrency", "is_fail_fast", "skips_audits") if name in options}
    return PlanRequest(command=command, now=instant(now), environment=environment, flags=Flags(**options), **beyond)


@dataclass
class FakeFolders:
    """The folders of a catalog in memory."""

    catalog: FakeCatalog

    def knows(self, schema: str) -> bool:
        return not self.catalog.is_far_away

    def absent(self, schema: str, folders: Sequence[str]) -> tuple[str, ...]:
        return self.catalog.absent(folders) if self.knows(schema) else ()

    def left_behind(self, schemas: Sequence[str]) -> tuple[str, ...]:
        seen = [schema for schema in schemas if self.knows(schema)]
        return tuple(schema for schema in seen if any(name.startswith(f"{schema}.") for name in self.catalog.tables))


class Place:
    """A project with its state, catalog and clock: everything that outlives a process."""

    def __init__(self, *models: Model, sources: Mapping[str, dict[str, str]] | None = None) -> None:
        self.project = FakeProject(models)
        self.store = MemoryStateStore(self._now)
        self.catalog = FakeCatalog(sources)
        self.clock = ManualClock()
        self.processes = FakeProcesses()
        self.numbers = count(1)
        self.watch: Callable[[], None] = lambda: None

    def _now(self) -> Instant:
        return self.clock.now()

    def bury(self, process: Process) -> None:
        """Have everyone on this machine see that a process is gone."""
        self.processes.gone.add(process.identity)

    def twin(self) -> Place:
        """Another place that looks exactly like this one and goes its own way from here."""
        other = Place(*self.project.models)
        other.project.seeds = dict(self.project.seeds)
        other.store.store_id, other.store.seal_key = self.store.store_id, self.store.seal_key
        other.store._contents = _copied(self.store._contents)
        other.store._next_attempt = self.store._next_attempt
        other.catalog = self.catalog.twin()
        other.clock = ManualClock(self.clock.now().isoformat())
        other.numbers = count(next(self.numbers))
        return other

    def process(
        self,
        actions: Mapping[tuple[str, int], Callable[[], None]] | None = None,
        *,
        is_alone: bool = False,
        skew: float = 0.0,
        **engine: Any,
    ) -> Process:
        """A fresh process; `actions` are what happens at its kill points."""
        stops = Stops(actions)
        engine.setdefault("compute", from_inputs(self.catalog))
        made = FakeEngine(self.catalog, is_alone=is_alone, **engine)
        process = Process(self, made, stops, skew=skew)
        made.reach, made.watch = process.reach, self._watch_now
        return process

    def dying(self, point: str, occurrence: int = 1, **options: Any) -> Process:
        """A process that is killed when it reaches a kill point."""
        process = self.process(**options)
        process.stops = Stops({(point, occurrence): process.die})
        return process

    def _watch_now(self) -> None:
        self.watch()

    def build(self, now: str, environment: str | None = None, **options: Any) -> Report:
        return self.process().build(now, environment, **options)

    def run(self, now: str, environment: str | None = None, **options: Any) -> Report:
        return self.process().run(now, environment, **options)

    def rows(self, name: str, environment: str = "prod") -> tuple[Row, ...]:
        """What a reader of the environment sees."""
        return self.catalog.rows(logical(name, environment))

    def unsettled(self) -> Unsettled:
        return self.store.unsettled()

    def covered(self, name: str, environment: str = "prod") -> Intervals:
        """What is recorded as done for the version an environment shows."""
        loaded = self.store.load(LoadRequest(environments=(environment,)))
        pointer = loaded.revisions[environment].pointers[name]  # type: ignore[index]
        assert pointer.physical is not None
        return loaded.facts[pointer.physical].covered

    def pointers(self, environment: str = "prod") -> dict[str, str]:
        """Versions by node."""
        found = self.store.load(LoadRequest(environments=(environment,))).revisions[environment].pointers
        return {str(name): str(pointer.version) for name, pointer in found.items()}


class Running:
    """A command in a thread of its own."""

    def __init__(self, command: Callable[[], Report]) -> None:
        self.report: Report | None = None
        self.error: BaseException | None = None

        def work() -> None:
            try:
                self.report = command()
            except BaseException as error:  # noqa: BLE001  # whatever it is, the test looks at it
                self.error = error

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def end(self) -> Running:
        self._thread.join(20)
        assert not self._thread.is_alive(), "the command does not end"
        return self


def sleeping(place: Place, point: str, occurrence: int = 1, **options: Any) -> tuple[Process, Sleep]:
    """A process that stops at a kill point until it is woken."""
    sleep = Sleep()
    return place.process({(point, occurrence): sleep}, **options), sleep


# --- a small shop -----------------------------------------------------------------------------------------------------
def january(days: int, value: str = "a") -> dict[str, str]:
    """One source row for each of the first days of January."""
    return {f"2024-01-{day:02}": f"{value}{day}" for day in range(1, days + 1)}


def orders(text: str = "x", **settings: Any) -> Model:
    """Incremental by day from a source, partitioned by day."""
    kind = settings.pop("kind", {})
    settings.setdefault("partitioned_by", ("ds",))
    settings.setdefault("start", "2024-01-01")
    return model(
        "shop.orders", ["raw.orders"], kind=daily(**kind), query=f"SELECT ds, {text} FROM raw.orders", **settings
    )


def reading(name: str, *parents: str, text: str = "x", **settings: Any) -> Model:
    """A model over others; FULL unless a kind is given."""
    return model(name, parents, query=f"SELECT ds, {text} FROM {', '.join(parents)}", **settings)


def shop(days: int = 31, **settings: Any) -> Place:
    """Orders by day and totals over all of them."""
    return Place(orders(**settings), reading("shop.totals", "shop.orders"), sources={"raw.orders": january(days)})


def statuses(report: Report) -> dict[str, str]:
    """How every node with a result came out."""
    return {str(name): result.status for name, result in report.results.items()}
