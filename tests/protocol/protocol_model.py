#!/usr/bin/env python3
"""Explicit-state model of how Lamina writes tables; the protocol it checks is worded in
docs/concepts/write-protocol.md.

Plain Python, no dependencies.  Every interleaving of a few small processes is explored breadth first, with a crash of
any process between any two steps, and with leases that are taken from processes that are only paused: they wake up
later and go on with their next step.  One step is one state transaction, one catalog statement or one file action.

  python protocol_model.py                   every scenario with the protocol as it is worded     (under a minute)
  python protocol_model.py --mistakes        each original mistake put back, one at a time: the violation it causes
  python protocol_model.py --mistake NAME    one of them, with the whole trace
  python protocol_model.py --as-worded       the first wording of the order of writes, all its mistakes together
  python protocol_model.py --sleeper         processes that sleep longer than the settle time: does everything heal?
  python protocol_model.py --deep [MINUTES]  the larger scenarios as well
  python protocol_model.py --only A,B        chosen scenarios          --list   the names

What is modelled
  state     leases with tokens, lost leases, attempts, heads (generation, manifest, sequence number), done units,
            pointer revisions, condemned and doomed objects.  A commit is atomic and checks what it requires.
  catalog   version views, generation tables (partition -> folder), environment views, Delta tables (rows and the
            highest transaction number), Iceberg tables (main, branches).  Statements are atomic; nothing fences them.
  files     batch folders and staging folders.
  rows      (unit, partition, attempt): duplicates, losses, mixes and unrecorded work all show.
  time      a lease may expire under a live process at any step; a condemned object may go GRACE steps later; a query
            takes at most READ_MAX steps.  The settle time is over once the owner of a lost lease really is gone.

What is checked
  in every state       a query that starts and ends right here finds its view, generation and folders and sees exactly
                       the rows of one decided publish (laws 1, 4, 7); wherever the catalog differs from the state,
                       the state says so, so that the start check of the next command finds it (law 5).
  from every state     everything crashes here, one more command runs to its end: exact content, nothing missing, no
                       hand repair (laws 1, 5); then the janitor runs: still exact, nothing left over (law 7).
  when all have ended  without a crash the content is exact at once (law 6).
"""
import argparse
import gc
import sys
import time
from collections import deque, namedtuple
from multiprocessing import Pool

RUN, DEAD, END = "run", "dead", "end"
OPEN, DECIDED, RETRACT, DONE, ABORTED = "open", "decided", "retract", "done", "aborted"
READ_MAX, GRACE = 6, 6

MISTAKES = {
    # name: (origin, what is put back, scenario that shows it, laws left out so that the later harm shows)
    # worded: the first wording said so; open: it left it open; trap: a natural shortcut in the protocol itself
    "publish-first": ("worded", "catalog switched after a mere look at the lease, state told afterwards", "pq-shared", ()),
    "publish-first/delta": ("worded", "the same on Delta, a transaction id per attempt", "delta-append", ("law 4/1",)),
    "publish-first/iceberg": ("worded", "the same on Iceberg, looking for the snapshot property before retrying", "iceberg-append", ("law 4/1",)),
    "publish-first/restate": ("worded", "the same on Delta, one interval restated twice", "delta-restate", ("law 4/1",)),
    "txn-at-intent": ("worded", "transaction number named by the intent, not when the publish is decided", "delta-parallel", ()),
    "loser-republishes": ("worded", "who loses at the last step republishes from state without the lease", "pq-restate", ()),
    "forget-lost-lease": ("open", "recovery closes the intent of one that was only asleep, and forgets it", "pq-restate", ()),
    "janitor-ignores-lost": ("open", "janitor deletes what a sleeping process can still publish", "pq-janitor", ()),
    "janitor-looks-then-deletes": ("open", "reach is looked up, then deleted: no state transaction in between", "env-janitor",
                                   ("law 5", "law 1/5", "law 7: after")),
    "plan-not-rechecked": ("open", "a plan made before the lease is trusted under it", "pq-append", ()),
    "names-reused": ("open", "a deleted version comes back under the same physical name", "recreate-delta", ()),
    "base-not-pinned": ("open", "an intent does not pin what it reads", "seed", ()),
    "pointer-is-the-end": ("open", "promote is over for the state once the pointer has moved", "env", ()),
    "statements-last": ("trap", "a revision counts as followed before the statements behind its views have run", "env", ()),
    "child-reads-view": ("open", "Lamina reads its own parents through the view", "pq-child", ()),
    "parent-not-awaited": ("open", "a child reads a parent whose publish is decided but not carried out", "pq-child-new", ()),
    "condemned-while-lost": ("trap", "the grace time runs while a lost lease can still bring the view back", "pq-janitor-reader", ()),
    "abort-without-fence": ("trap", "recovery aborts a decided publish that is refused, without fencing it off", "delta-fails", ()),
    "retract-unrecorded": ("trap", "a refused publish is fenced off without saying so in state first", "delta-fails", ()),
    "no-answer-tried-again": ("trap", "a publish without an answer is tried again under the same lease, then forgotten", "pq-zombie", ()),
    "seed-done-at-intent": ("trap", "history counts as done before the seeded table is published", "seed", ()),
    "revive-forgets": ("trap", "a pointer moves to a condemned version, its folders stay condemned", "env-janitor", ()),
    "env-name-reused": ("trap", "an environment is made again while who dropped it may only be asleep", "env-drop", ()),
    "same-without-lease": ("trap", "a batch that came out the same is recorded without looking at the lease", "pq-same", ()),
    "beneath-not-reached": ("trap", "the janitor forgets what a generation is laid over", "pq-layers-janitor", ()),
    "grace-too-short": ("trap", "the grace time is shorter than the longest query", "pq-janitor-reader", ()),
    "sleeper": ("limit", "no mistake: a process sleeps longer than the settle time", "pq-janitor", ()),
}
AS_WORDED = ("publish-first", "forget-lost-lease", "loser-republishes", "plan-not-rechecked", "base-not-pinned",
             "janitor-looks-then-deletes", "names-reused", "pointer-is-the-end", "child-reads-view")


class Violation(Exception):
    pass


def mget(m, k, default=None):
    for a, b in m:
        if a == k:
            return b
    return default


def mset(m, k, v):
    for i, x in enumerate(m):
        if x[0] == k:
            return m[:i] + ((k, v),) + m[i + 1:]
    return tuple(sorted(m + ((k, v),), key=lambda x: str(x[0])))


def mdel(m, k):
    return tuple(x for x in m if x[0] != k)


class Att(namedtuple("Att", "id status ver proc tok unit parts basegen baseman gen man adds touched seq pins reads seeded")):
    """One attempt, a line in state: replaced by a copy when it changes."""
    __slots__ = ()

    def but(self, **kw):
        return self._replace(**kw)


class World:
    __slots__ = ("lease", "lost", "att", "head", "gman", "done", "inc", "ptr", "followed", "ran", "kept", "cond", "doomed",
                 "view", "gens", "files", "env", "tab", "hist", "steals", "procs")

    def copy(self):
        n = World.__new__(World)
        (n.lease, n.lost, n.att, n.head, n.gman, n.done, n.inc, n.ptr, n.followed, n.ran, n.kept, n.cond, n.doomed,
         n.view, n.gens, n.files, n.env, n.tab, n.hist, n.steals, n.procs) = self.key()
        return n

    def key(self):
        return (self.lease, self.lost, self.att, self.head, self.gman, self.done, self.inc, self.ptr, self.followed,
                self.ran, self.kept, self.cond, self.doomed, self.view, self.gens, self.files, self.env, self.tab, self.hist,
                self.steals, self.procs)

    def goto(self, i, pc, loc=None, st=RUN):
        p = self.procs[i]
        self.procs = self.procs[:i] + ((st, pc, p[2] if loc is None else loc),) + self.procs[i + 1:]

    def put(self, a):
        self.att = self.att[:a.id - 1] + (a,) + self.att[a.id:]


class Model:
    """One scenario: the first world, the programs of the processes, the mistakes put back."""

    def __init__(self, sc, flags=frozenset(), ignore=()):
        self.sc, self.F, self.ignore = sc, frozenset(f.split("/")[0] for f in flags), tuple(ignore)
        self.fmt = sc.get("fmt", "parquet")
        self.pf = "publish-first" in self.F
        self.grace = 1 if "grace-too-short" in self.F else GRACE
        self.specs = list(sc["procs"])
        self.versions = sc.get("versions", ("b",))
        self.max_steals, self.max_crash = sc.get("steals", 2), sc.get("crashes", 9)
        self.memo = set()
        self.by_pc = {n[3:]: getattr(self, n) for n in dir(self) if n.startswith("pc_")}

    def bad(self, text):
        if not text.startswith(self.ignore or "\0"):
            raise Violation(text)

    # ---------------------------------------------------------------- the first world
    def init(self):
        w = World()
        w.lease = tuple((r, (0, "")) for r in ("E", "b", "c", "k"))
        w.lost = frozenset(); w.att = (); w.cond = (); w.doomed = frozenset(); w.steals = 0
        w.kept = frozenset(self.sc.get("kept", ()))
        w.head = w.gman = w.done = w.view = w.gens = w.files = w.tab = ()
        hist = set()
        for v in self.versions:
            rows = (("U0" + v, "p0", 0),)
            w.done = mset(w.done, (v, "U0" + v), 0)
            if self.fmt == "parquet":
                man = frozenset({("p0", "f0" + v)})
                w.head = mset(w.head, v, ("g0" + v, man, 0))
                w.gman = mset(w.gman, "g0" + v, (v, man))
                w.gens = mset(w.gens, "g0" + v, man)
                w.view = mset(w.view, v, "g0" + v)
                w.files = mset(w.files, "f0" + v, rows)
            else:
                w.head = mset(w.head, v, ("s0", frozenset(), 0))
                w.tab = mset(w.tab, v, self.new_table(rows))
            hist.add((v, rows))
        w.hist = frozenset(hist)
        w.inc = tuple((v, v) for v in "abck")
        e = self.sc.get("env", "b")
        w.ptr = (("E", (0, e)),); w.followed = w.ran = (("E", 0),); w.env = (("E", e),)
        w.procs = tuple((RUN, s["start"], ()) for s in self.specs)
        return w

    def new_table(self, rows):
        # delta: rows, highest transaction number, attempts that landed; iceberg: main's snapshot, its rows, branches
        return (rows, 0, frozenset()) if self.fmt == "delta" else ("s0", rows, ())

    # ---------------------------------------------------------------- leases
    def take(self, w, i, res, waiting):
        """The world in which i holds res, or None when it waits.  Expiry is: another process takes it."""
        tok, h = mget(w.lease, res)
        n = w.copy()
        if h != "":
            if w.procs[h][0] == RUN and h != i:
                if waiting or w.steals >= self.max_steals:
                    return None
                n.steals += 1
            if "forget-lost-lease" not in self.F:
                n.lost = n.lost | {(res, tok, h)}
        n.lease = mset(w.lease, res, (tok + 1, i))
        return n

    def current(self, w, res, tok):
        return mget(w.lease, res)[0] == tok

    def under_way(self, w, i):
        """Does a statement of process i still run somewhere, its answer lost (a server, an orphaned JVM)?"""
        return any(s["kind"] == "zombie" and s["of"] == i and w.procs[j][:2] == (RUN, "zrun")
                   for j, s in enumerate(self.specs[:len(w.procs)]))

    def settled(self, w, l):
        return (w.procs[l[2]][0] != RUN and not self.under_way(w, l[2])) or "sleeper" in self.F

    def closable(self, w, i, res):
        """Lost leases that may be closed after one check of the catalog: mine, or of an owner that is gone."""
        return frozenset(l for l in w.lost if l[0] == res and
                         ((l[2] == i and not self.under_way(w, i)) or self.settled(w, l)))

    def unfinished(self, w, v):
        for a in w.att:
            if a.ver == v and a.status in (DECIDED, RETRACT):
                return a

    def dirty(self, w, res):
        """The start check: one state query, no catalog call."""
        if mget(w.lease, res)[1] != "" or any(l[0] == res for l in w.lost):
            return True
        if res == "E":
            return mget(w.followed, "E") != mget(w.ptr, "E")[0]
        v = mget(w.inc, res)
        return any(a.ver == v and a.status in (OPEN, DECIDED, RETRACT) for a in w.att)

    # ================================================================ writer
    # loc = (token, attempt, what the catalog answered or should show, lost leases to close, healing)
    def ver(self, w, i):
        return mget(w.inc, self.specs[i]["ver"])

    def pc_plan(self, w, i):
        s = self.specs[i]
        n = w.copy()
        if s["mode"] != "restate" and mget(w.done, (self.ver(w, i), s["unit"])) is not None:
            n.goto(i, "end", (), END)
            return [("plan: nothing to do", n)]
        n.goto(i, "acq", ())
        return [("plan", n)]

    AT_WORK = ("intent", "write", "mkgen", "decide", "publish", "done", "release")

    def threads(self, w, i):
        return [j for j, s in enumerate(self.specs) if s.get("shares") == i and w.procs[j][0] == RUN
                and w.procs[j][1] not in ("plan", "acq")]

    def pc_acq(self, w, i, healing=False):
        s = self.specs[i]
        res, m = s["ver"], s.get("shares")
        n = w.copy()
        if m is not None:                               # another batch of the process that holds the lease
            if healing or w.procs[m][0] != RUN or w.procs[m][1] == "heal":
                n.goto(i, "end", (), END)
                return [("thread ends", n)]
            if w.procs[m][1] not in self.AT_WORK:
                return []
            n.goto(i, "intent", w.procs[m][2][:1] + (0, "", frozenset(), False))
            return [("works under its process's lease", n)]
        if healing and self.threads(w, i):
            return []                                   # stops its own threads first
        n = self.take(w, i, res, healing)
        if n is None:
            return []
        n.goto(i, "recover", (mget(n.lease, res)[0], 0, "", frozenset(), healing))
        return [("takes lease %s, token %d" % (res, mget(n.lease, res)[0]), n)]

    def pc_heal(self, w, i):
        return self.pc_acq(w, i, True)

    def lose(self, w, i, why):
        n = w.copy()
        n.goto(i, "loser1" if "loser-republishes" in self.F else "heal")
        return [(why + " refused: token is not current", n)]

    def unsure(self, out, i, to="heal"):
        """The same commit, but its answer is lost: the process takes a new lease and recovers like anyone."""
        if self.sc.get("unsure"):
            for label, n in list(out):
                if n.procs[i][0] == RUN and not label.endswith("current"):
                    m = n.copy()
                    m.goto(i, to)
                    out.append((label + " (answer lost)", m))
        return out

    def pc_recover(self, w, i):
        """One commit: open attempts of earlier tokens end here.  Then: is anything decided?  Was a lease lost?"""
        res = self.specs[i]["ver"]
        tok, _, _, _, healing = w.procs[i][2]
        if not self.current(w, res, tok):
            return self.lose(w, i, "recover")
        v = self.ver(w, i)
        n = w.copy()
        old = [a for a in w.att if a.ver == v and a.status == OPEN and a.tok != tok]
        for a in old:
            if self.pf and self.fmt != "parquet" and self.landed(w, a):          # "recognised on retry"
                n.put(a.but(status=DONE))
                n.done = mset(n.done, (v, a.unit), a.id)
            else:
                n.put(a.but(status=ABORTED))
        close = self.closable(w, i, res)
        note = "recover: aborts %s" % [a.id for a in old] if old else "recover"
        a = self.unfinished(w, v)
        if a is not None:
            own = self.sc.get("through")                # only its own process can make this statement
            n.goto(i, "fence" if a.status != DECIDED else "retract" if own else "roll", (tok, a.id, "", close, healing))
            return [("%s, rolls %s attempt %d on" % (note, a.status, a.id), n)]
        if self.fmt == "parquet" and mget(w.head, v) is not None and \
                (any(l[0] == res for l in w.lost) or healing or (self.pf and old)):
            n.goto(i, "verify", (tok, 0, mget(w.head, v)[0], close, healing))
            return [(note + ", looks at the view", n)]
        n.goto(i, "release" if healing else "intent", (tok, 0, "", close, healing))
        return [(note, n)]

    def pc_verify(self, w, i):
        loc = w.procs[i][2]
        v = self.ver(w, i)
        n = w.copy()
        same = mget(w.view, v) == loc[2]
        if same and self.pf:
            same = self.shown(w, loc[2]) == mget(w.head, v)[1]
        n.goto(i, ("release" if loc[4] else "intent") if same else "fix")
        return [("view shows %s" % mget(w.view, v), n)]

    def pc_fix(self, w, i):
        loc = w.procs[i][2]
        n = w.copy()
        if mget(w.gens, loc[2]) is not None:
            n.view = mset(n.view, self.ver(w, i), loc[2])
            if self.pf:
                n.gens = mset(n.gens, loc[2], mget(w.head, self.ver(w, i))[1])
        n.goto(i, "release" if loc[4] else "intent")
        return [("repairs the view: %s" % loc[2], n)]

    def revive(self, n, v):
        """Who makes something reachable again takes back its condemnation in the same commit."""
        h = mget(n.head, v)
        objs = {("v", v)}
        if h and "revive-forgets" not in self.F:
            objs |= {("g", h[0])} | {("f", f) for _, f in h[1]}
        n.cond = tuple(x for x in n.cond if x[0] not in objs)

    def pc_intent(self, w, i):
        s = self.specs[i]
        tok, _, _, close, healing = w.procs[i][2]
        if not self.current(w, s["ver"], tok):
            return self.lose(w, i, "intent")
        n = w.copy()
        v = self.ver(w, i)
        if ("v", v) in w.doomed:                        # deleted: a new incarnation under a name of its own
            if "names-reused" in self.F:
                n.tab, n.view = mdel(n.tab, v), mdel(n.view, v)
                n.doomed = n.doomed - {("v", v)}
                n.cond = mdel(n.cond, ("v", v))
            else:
                v = s["ver"] + "#%d" % (len(w.att) + 1)
                n.inc = mset(n.inc, s["ver"], v)
            n.done = tuple(x for x in n.done if x[0][0] != v)
            n.head = mdel(n.head, v)
        elif s["mode"] != "restate" and "plan-not-rechecked" not in self.F and mget(w.done, (v, s["unit"])) is not None:
            n.goto(i, "release")
            return [("intent: another command has done it", n)]
        reads, pins, seeded = None, (), ()
        if s.get("reads"):                              # a child reads its parent by the generation the state names
            src = mget(w.inc, s["reads"])
            if self.unfinished(w, src) and "parent-not-awaited" not in self.F:
                return []                               # first the parent's publish is finished, by its owner or by recovery
            reads = mget(w.head, src)[:2]
        base = mget(n.head, v)
        if base is None and s.get("seed"):
            src = mget(w.inc, s["seed"])
            if ("v", src) not in w.doomed:              # else planned again without the seed
                base = ("", mget(w.head, src)[1], 0)
                seeded = tuple((u, k) for (x, u), k in w.done if x == src)
                if "base-not-pinned" not in self.F:
                    pins = (src,)
                    self.revive(n, src)
                if "seed-done-at-intent" in self.F:
                    for u, k in seeded:
                        n.done = mset(n.done, (v, u), k)
        base = base or ("", frozenset(), 0)
        k = len(w.att) + 1
        n.att = w.att + (Att(id=k, status=OPEN, ver=v, proc=i, tok=tok, unit=s["unit"], parts=tuple(s["parts"]),
                             basegen=base[0], baseman=base[1], gen="", man=None, adds=(), touched=(), seq=k, pins=pins,
                             reads=reads, seeded=seeded),)
        self.revive(n, v)
        if s["mode"] == "restate":
            n.done = mdel(n.done, (v, s["unit"]))
        n.goto(i, "write", (tok, k, "", close, healing))
        return self.unsure([("INTENT %d for %s in %s" % (k, s["unit"], v), n)], i)

    def pc_write(self, w, i):
        """Data aside, audited there: a batch folder, a staging folder, or an Iceberg branch."""
        s = self.specs[i]
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        n = w.copy()
        f = "f%d" % a.id
        nxt = "check" if self.pf else "decide"
        if a.reads:
            self.read_parent(w, i, a)
        if self.fmt == "parquet":
            rows = {}
            for p, bf in a.baseman:
                fr = mget(w.files, bf)
                if fr is None:
                    if a.status == OPEN:
                        self.bad("law 7: folder %s, which attempt %d builds on, was deleted" % (bf, a.id))
                    n.goto(i, "heal")                   # a query of a process that has lost its lease fails: no harm
                    return [("query fails, %s is gone" % bf, n)]
                rows[p] = [r for r in fr if r[1] == p]
            if s["mode"] == "append":                   # one hidden partition per batch: an append only ever adds
                parts = ("n%d" % a.id,)
                new = {parts[0]: [(a.unit, parts[0], a.id)]}
            elif s["mode"] == "merge":                  # x = target.x + source.x, rewritten aside
                parts = ("p0",)
                new = {"p0": rows.get("p0", []) + [(a.unit, "p0", a.id)]}
            else:                                       # rows of touched partitions outside the interval are kept
                parts = a.parts
                touched = set(parts) | {p for p, rr in rows.items() if any(r[0] == a.unit for r in rr)}
                new = {p: [r for r in rows.get(p, []) if r[0] != a.unit] +
                       ([(a.unit, p, a.id)] if p in parts else []) for p in touched}
            if any(new.values()):
                n.files = mset(n.files, f, tuple(sorted(r for p in new for r in new[p])))
            a = a.but(parts=parts, touched=tuple(sorted(new)), adds=tuple(sorted((p, f) for p in new if new[p])))
            a = self.on_base(a, a.basegen, a.baseman)
            n.put(a)
            if a.gen != a.basegen:
                nxt = "mkgen"
        else:
            t = mget(w.tab, a.ver)
            if t is None:
                t = self.new_table(())
                n.tab = mset(n.tab, a.ver, t)
            if self.fmt == "delta":
                n.files = mset(n.files, f, ((a.unit, "s", a.id),))
            else:                                       # branch: its snapshot, the parent, the rows
                n.tab = mset(n.tab, a.ver, (t[0], t[1], mset(t[2], f, ("s%d" % a.id, t[0], self.apply(t[1], a)))))
        n.goto(i, nxt)
        out = [("writes %s aside, audits it" % f, n)]
        before = {r[2] for rr in rows.values() for r in rr if r[0] == a.unit} if s.get("same") else ()
        if len(before) == 1:                            # it may also come out with the rows that are shown already
            m = n.copy()
            m.goto(i, "same", loc[:2] + (min(before),) + loc[3:])
            out.append(("writes %s aside, nothing is new" % f, m))
        if s.get("audit"):
            m = n.copy()
            m.goto(i, "audit")
            out.append(("writes %s aside, a blocking audit FAILS" % f, m))
        return out

    def pc_same(self, w, i):
        """What was computed is what is shown: done, by the attempt whose rows stay, and nothing is published."""
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        if not self.current(w, self.specs[i]["ver"], loc[0]) and "same-without-lease" not in self.F:
            return self.lose(w, i, "unchanged")
        n = w.copy()
        n.put(a.but(status=DONE))
        n.done = mset(n.done, (a.ver, a.unit), loc[2])
        n.goto(i, "release", loc[:2] + ("",) + loc[3:])
        return self.unsure([("records %d as done, unchanged" % a.id, n)], i)

    def pc_audit(self, w, i):
        loc = w.procs[i][2]
        if not self.current(w, self.specs[i]["ver"], loc[0]):
            return self.lose(w, i, "abort")
        n = w.copy()
        n.put(w.att[loc[1] - 1].but(status=ABORTED))
        n.goto(i, "release")
        return [("aborts attempt %d itself" % loc[1], n)]

    def on_base(self, a, gen, man):
        """The manifest after this batch, on top of the given head; in place only if partitions are only added."""
        have = {p for p, _ in man}
        replaces = gen == "" or any(p in have for p in a.touched)
        return a.but(basegen=gen, baseman=man, gen="g%d" % a.id if replaces else gen,
                     man=frozenset({(p, x) for p, x in man if p not in a.touched} | set(a.adds)))

    def read_parent(self, w, i, a):
        gen, man = a.reads
        src = mget(w.inc, self.specs[i]["reads"])
        g = mget(w.view, src) if "child-reads-view" in self.F else gen
        have = self.shown(w, g)
        if a.status != OPEN:
            return
        if have is None or any(mget(w.files, f) is None for _, f in have):
            self.bad("law 7: the parent's generation %s was deleted under a child's batch" % g)
        elif g == gen and not man <= have:
            self.bad("law 1: a child records that it read %s of its parent; not all of it was there yet" % gen)
        elif self.made(w, g) < self.made(w, gen):
            self.bad("law 1: a child records that it read %s of its parent but has read the older %s" % (gen, g))

    def made(self, w, g):
        return w.att[int(g[1:]) - 1].seq if g[1:].isdigit() else 0

    def apply(self, rows, a):
        if self.sc.get("fold"):
            return tuple(sorted(rows + ((a.unit, "p", a.id),)))
        return tuple(sorted([r for r in rows if r[0] != a.unit] + [(a.unit, p, a.id) for p in a.parts]))

    def beneath(self, w, g):
        """What a generation is laid over, and which partitions of that are not shown: an entry beside its own."""
        return mget(tuple(mget(w.gens, g) or ()), "^")

    def shown(self, w, g):
        """What is read of a generation: its own partitions and those of the one beneath that are not hidden."""
        have, low = mget(w.gens, g), self.beneath(w, g)
        if have is None or low is None:
            return have
        rest = mget(w.gens, low[0])
        return None if rest is None else frozenset({x for x in have if x[0] != "^"} | {x for x in rest if x[0] not in low[1]})

    def laid_over(self, w, a):
        """The partitions of a new generation: all of them, or what the one beneath does not have."""
        low = self.beneath(w, a.basegen) or (a.basegen, frozenset())
        rest = mget(w.gens, low[0])
        if not self.sc.get("layers") or rest is None:
            return a.man
        return frozenset(a.man - rest | {("^", (low[0], frozenset(p for p, f in rest if (p, f) not in a.man)))})

    def pc_mkgen(self, w, i):
        a = w.att[w.procs[i][2][1] - 1]
        n = w.copy()
        n.gens = mset(n.gens, a.gen, self.laid_over(w, a))
        n.goto(i, "check" if self.pf else "decide")
        return [("creates generation %s" % a.gen, n)]

    def pc_decide(self, w, i):
        """The commit after which the publish will happen: by me, or by whoever recovers."""
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        if not self.current(w, self.specs[i]["ver"], loc[0]) or a.status != OPEN:
            return self.lose(w, i, "decide")
        if self.unfinished(w, a.ver):
            return []                                   # another batch of this process publishes: one after another
        n = w.copy()
        h = mget(w.head, a.ver)
        if self.fmt == "parquet" and h is not None and (h[0], h[1]) != (a.basegen, a.baseman):
            if any(mget(tuple(h[1]), p) != mget(tuple(a.baseman), p) for p in a.touched):
                self.bad("law 6: a partition of attempt %d changed under its lease" % a.id)
            n.put(self.on_base(a, h[0], h[1]))          # another batch of this process came first: same partitions
            n.goto(i, "mkgen" if n.att[a.id - 1].gen != h[0] else "decide")
            return [("head has moved on, takes it as base", n)]
        if self.fmt == "iceberg" and h is not None:
            br = mget(mget(w.tab, a.ver)[2], "f%d" % a.id)
            if br is None or br[1] != h[0]:
                n.goto(i, "write")
                return [("main has moved on, makes the branch again", n)]
        self.record(n, a, DECIDED)
        n.goto(i, "publish")
        return self.unsure([("DECIDES %d" % a.id, n)], i)

    def record(self, n, a, status):
        h = mget(n.head, a.ver) or ("s0", frozenset(), 0)
        seq = a.seq if "txn-at-intent" in self.F else h[2] + 1
        a = a.but(status=status, seq=seq, basegen=a.basegen if self.fmt == "parquet" else h[0])
        n.put(a)
        if self.fmt == "parquet":
            n.head = mset(n.head, a.ver, (a.gen, a.man, seq))
            n.gman = mset(n.gman, a.gen, (a.ver, a.man))
            rows = tuple(sorted(r for p, f in a.man for r in (mget(n.files, f) or ()) if r[1] == p))
        else:
            n.head = mset(n.head, a.ver, ("s%d" % a.id, frozenset(), seq))
            t = mget(n.tab, a.ver)
            if t is None:
                raise Violation("law 7: table %s was dropped under a writer that holds its lease" % a.ver)
            rows = self.apply(t[0] if self.fmt == "delta" else t[1], a)
        n.hist = n.hist | {(a.ver, rows)}

    def landed(self, w, a):
        t = mget(w.tab, a.ver)
        return t is not None and (a.id in t[2] if self.fmt == "delta" else any(r[2] == a.id for r in t[1]))

    def statement(self, n, a):
        """The catalog statement of attempt a, issued by anyone at any time: ok, noop or FAILED."""
        if self.fmt == "parquet":
            if mget(n.gens, a.gen) is None:
                return "FAILED"                         # both statements need the table: CREATE VIEW is analysed
            if a.gen != a.basegen:
                n.view = mset(n.view, a.ver, a.gen)
                return "ok"
            have = dict(mget(n.gens, a.gen))
            if any(p in have for p, _ in a.adds):       # ADD PARTITION fails as a whole: list, compare locations
                if all(have.get(p) == f for p, f in a.adds):
                    return "noop"
                if not self.pf:
                    return "FAILED"
            have.update(a.adds)
            n.gens = mset(n.gens, a.gen, frozenset(have.items()))
            return "ok"
        t = mget(n.tab, a.ver)
        if t is None:
            return "FAILED"
        if self.fmt == "delta":
            rows, mark, ids = t
            if a.id in ids if self.pf else a.seq <= mark:
                return "noop"                           # Delta skips a transaction number it has passed
            if mget(n.files, "f%d" % a.id) is None:
                return "FAILED"                         # staging is gone
            n.tab = mset(n.tab, a.ver, (self.apply(rows, a), max(mark, a.seq), ids | {a.id}))
            return "ok"
        snap, rows, brs = t
        if self.pf:                                     # a plain commit to main that carries a snapshot property
            n.tab = mset(n.tab, a.ver, ("s%d" % a.id, self.apply(rows, a), brs))
            return "ok"
        br = mget(brs, "f%d" % a.id)
        if br is None:
            return "FAILED"                             # branch is gone
        if snap == br[0]:
            return "noop"
        if snap != br[1]:
            return "FAILED"                             # fast_forward: main is not an ancestor of the branch
        n.tab = mset(n.tab, a.ver, (br[0], br[2], brs))
        return "ok"

    def pc_publish(self, w, i, nxt="done"):
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        n = w.copy()
        if self.pf and self.current(w, self.specs[i]["ver"], loc[0]):
            m = n.copy()                                # published by the rightful holder: readers may see it
            self.record(m, a, OPEN)
            n.hist = m.hist
        ok = self.statement(n, a)
        n.goto(i, "fact" if self.pf else nxt, loc[:2] + (ok,) + loc[3:])
        out = [("PUBLISHES %d: %s" % (a.id, ok), n)]
        if self.sc.get("fails"):                        # the statement is refused for good (a constraint, main moved)
            m = w.copy()
            m.goto(i, "unmake" if a.tok == loc[0] or "abort-without-fence" in self.F else
                   "fence" if "retract-unrecorded" in self.F else "retract", loc[:2] + ("",) + loc[3:])
            out.append(("publish of %d is refused" % a.id, m))
        for j, s in enumerate(self.specs[:len(w.procs)]):
            if s["kind"] == "zombie" and s["of"] == i and w.procs[j][:2] == (RUN, "zidle"):
                m = w.copy()                            # no answer: it may still land, at any time
                m.goto(j, "zrun", (a.id,))
                m.goto(i, "publish" if "no-answer-tried-again" in self.F else "heal")
                out.append(("publish of %d: no answer" % a.id, m))
        return out

    def pc_zidle(self, w, i):
        return []

    def pc_zrun(self, w, i):
        n = w.copy()
        ok = self.statement(n, w.att[w.procs[i][2][0] - 1])
        n.goto(i, "end", (), END)
        return [("the statement of %d lands: %s" % (w.procs[i][2][0], ok), n)]

    def pc_roll(self, w, i):
        return self.pc_publish(w, i, "rdone")

    def pc_done(self, w, i, nxt="release"):
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        if not self.current(w, self.specs[i]["ver"], loc[0]):
            return self.lose(w, i, "done")
        if loc[2] == "FAILED":
            self.bad("law 5: the current holder cannot publish attempt %d" % a.id)
        n = w.copy()
        n.put(a.but(status=DONE))
        n.done = mset(n.done, (a.ver, a.unit), a.id)
        for u, k in a.seeded:
            if u != a.unit and mget(n.done, (a.ver, u)) is None:
                n.done = mset(n.done, (a.ver, u), k)
        n.goto(i, nxt)
        return self.unsure([("records %d as done" % a.id, n)], i)

    def pc_rdone(self, w, i):
        return self.pc_done(w, i, "recover")

    # a decided publish that the format refuses: say so, make it impossible, look, then abort (or find it landed)
    def pc_retract(self, w, i):
        loc = w.procs[i][2]
        if not self.current(w, self.specs[i]["ver"], loc[0]):
            return self.lose(w, i, "retract")
        n = w.copy()
        n.put(w.att[loc[1] - 1].but(status=RETRACT))
        n.goto(i, "fence")
        return [("RETRACTS %d" % loc[1], n)]

    def pc_fence(self, w, i):
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        n = w.copy()
        t = mget(w.tab, a.ver)
        if self.fmt == "delta":                         # an empty commit under the same transaction number
            n.tab = mset(n.tab, a.ver, (t[0], max(t[1], a.seq), t[2]))
        else:                                           # the branch goes
            n.tab = mset(n.tab, a.ver, (t[0], t[1], mdel(t[2], "f%d" % a.id)))
        n.goto(i, "unmake")
        return [("fences %d off" % a.id, n)]

    def pc_unmake(self, w, i):
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        if not self.current(w, self.specs[i]["ver"], loc[0]):
            return self.lose(w, i, "abort")
        n = w.copy()
        if self.landed(w, a):
            n.put(a.but(status=DONE))
            n.done = mset(n.done, (a.ver, a.unit), a.id)
        else:
            n.put(a.but(status=ABORTED))
            n.head = mset(n.head, a.ver, (a.basegen, frozenset(), a.seq))
        n.goto(i, "release")
        return [("looks: %d has %slanded, records that" % (a.id, "" if self.landed(w, a) else "not "), n)]

    def pc_release(self, w, i):
        loc = w.procs[i][2]
        s = self.specs[i]
        n = w.copy()
        if s.get("shares") is not None:
            n.goto(i, "end", (), END)
            return [("thread ends", n)]
        if not self.current(w, s["ver"], loc[0]):
            return self.lose(w, i, "release")
        if self.threads(w, i):
            return []
        n.lease = mset(w.lease, s["ver"], (loc[0], ""))
        n.lost = n.lost - loc[3]
        n.goto(i, *(("j", ()) if s["kind"] == "janitor" else ("end", (), END)))
        return [("releases %s" % s["ver"], n)]

    # only with the original order: look at the lease, publish, then tell the state
    def pc_check(self, w, i):
        if not self.current(w, self.specs[i]["ver"], w.procs[i][2][0]):
            return self.lose(w, i, "lease check")
        n = w.copy()
        n.goto(i, "publish")
        return [("looks at the lease: still mine", n)]

    def pc_fact(self, w, i):
        loc = w.procs[i][2]
        a = w.att[loc[1] - 1]
        if not self.current(w, self.specs[i]["ver"], loc[0]) or a.status != OPEN:
            return self.lose(w, i, "fact")
        n = w.copy()
        self.record(n, a, DONE)
        n.done = mset(n.done, (a.ver, a.unit), a.id)
        n.goto(i, "release")
        return [("records %d as done" % a.id, n)]

    def pc_loser1(self, w, i):
        loc = w.procs[i][2]
        n = w.copy()
        h = mget(w.head, self.ver(w, i))
        n.goto(i, "loser2", loc[:2] + (h[0] if h else "",) + loc[3:])
        return [("loser reads in state: head is %s" % (h[0] if h else None), n)]

    def pc_loser2(self, w, i):
        loc = w.procs[i][2]
        n = w.copy()
        if self.fmt == "parquet" and mget(w.gens, loc[2]) is not None:
            n.view = mset(n.view, self.ver(w, i), loc[2])
        n.goto(i, "loser3")
        return [("loser republishes %s" % loc[2], n)]

    def pc_loser3(self, w, i):
        n = w.copy()
        n.lost = frozenset(l for l in w.lost if l[2] != i)
        n.goto(i, "end", (), END)
        return [("loser signs off", n)]

    # ================================================================ promote and rollback
    # loc = (token, revision, target, lost leases to close, healing)
    def pc_pacq(self, w, i, healing=False):
        n = self.take(w, i, "E", healing)
        if n is None:
            return []
        n.goto(i, "precover", (mget(n.lease, "E")[0], 0, "", frozenset(), healing))
        return [("takes lease E, token %d" % mget(n.lease, "E")[0], n)]

    def pc_pheal(self, w, i):
        return self.pc_pacq(w, i, True)

    def plose(self, w, i, why):
        n = w.copy()
        n.goto(i, "pheal")
        return [(why + " refused: token is not current", n)]

    def pc_precover(self, w, i):
        tok, _, _, _, healing = w.procs[i][2]
        if not self.current(w, "E", tok):
            return self.plose(w, i, "recover")
        n = w.copy()
        rev, v = mget(w.ptr, "E")
        close = self.closable(w, i, "E")
        look = mget(w.followed, "E") != rev or any(l[0] == "E" for l in w.lost) or healing
        n.goto(i, "pverify" if look else ("prelease" if healing else "pdecide"), (tok, rev, v, close, healing))
        return [("recover: looks at the view of E" if look else "recover", n)]

    def pc_pverify(self, w, i):
        n = w.copy()
        n.goto(i, "prerun" if mget(w.env, "E") == w.procs[i][2][2] else "pfix")
        return [("view of E shows %s" % mget(w.env, "E"), n)]

    def pc_pfix(self, w, i):
        loc = w.procs[i][2]
        n = w.copy()
        self.set_env(n, loc[2])
        n.goto(i, "prerun")
        return [("repairs the view of E: %s" % loc[2], n)]

    def pc_prerun(self, w, i):
        """The statements that follow the view, again, when the revision is not followed."""
        n = w.copy()
        rev = w.procs[i][2][1]
        if mget(w.followed, "E") != rev:
            n.ran = mset(n.ran, "E", max(mget(n.ran, "E"), rev))
        n.goto(i, "pmark")
        return [("statements of revision %d" % rev, n)]

    def set_env(self, n, v):
        if v is None:
            n.env = mdel(n.env, "E")                    # the environment is dropped
        elif not self.exists(n, v):
            return False
        else:
            n.env = mset(n.env, "E", v)
        return True

    def pc_pmark(self, w, i):
        loc = w.procs[i][2]
        if not self.current(w, "E", loc[0]):
            return self.plose(w, i, "followed")
        n = w.copy()
        n.followed = mset(n.followed, "E", loc[1])
        n.goto(i, "prelease" if loc[4] else "pdecide")
        return [("records revision %d as followed" % loc[1], n)]

    def exists(self, w, v):
        return mget(w.view, v) is not None if self.fmt == "parquet" else mget(w.tab, v) is not None

    def pc_pdecide(self, w, i):
        tok, rev, _, close, healing = w.procs[i][2]
        s = self.specs[i]
        if not self.current(w, "E", tok):
            return self.plose(w, i, "pointer")
        n = w.copy()
        v = s["to"] and mget(w.inc, s["to"])
        if v and (("v", v) in w.doomed or mget(w.head, v) is None or not self.exists(w, v) or
                  any(mget(w.done, (v, u)) is None for u in s.get("needs", ()))):
            n.goto(i, "prelease")
            return [("promote stops: %s is gone or incomplete" % v, n)]
        if mget(w.ptr, "E")[1] is None and any(l[0] == "E" for l in w.lost - close) and "env-name-reused" not in self.F:
            n.goto(i, "prelease")
            return [("stops: who dropped E may still be at it", n)]
        n.ptr = mset(n.ptr, "E", (rev + 1, v))
        self.revive(n, v)
        if "pointer-is-the-end" in self.F:
            n.followed = mset(n.followed, "E", rev + 1)
            n.lease = mset(n.lease, "E", (tok, ""))
        n.goto(i, "ppublish", (tok, rev + 1, v, close, healing))
        return self.unsure([("POINTER of E: %s, revision %d" % (v, rev + 1), n)], i, "pheal")

    def pc_ppublish(self, w, i):
        loc = w.procs[i][2]
        n = w.copy()
        ok = self.set_env(n, loc[2])
        n.goto(i, *(("end", (), END) if "pointer-is-the-end" in self.F else ("pdone" if "statements-last" in self.F else "pstatements",)))
        return [("view of E: %s%s" % (loc[2], "" if ok else " FAILED"), n)]

    def pc_pstatements(self, w, i):
        rev = w.procs[i][2][1]
        n = w.copy()
        n.ran = mset(n.ran, "E", max(mget(n.ran, "E"), rev))
        n.goto(i, "prelease" if "statements-last" in self.F else "pdone")
        return [("statements of revision %d" % rev, n)]

    def pc_pdone(self, w, i):
        loc = w.procs[i][2]
        if not self.current(w, "E", loc[0]):
            return self.plose(w, i, "followed")
        n = w.copy()
        n.followed = mset(n.followed, "E", loc[1])
        n.goto(i, "pstatements" if "statements-last" in self.F else "prelease")
        return self.unsure([("records revision %d as followed" % loc[1], n)], i, "pheal")

    def pc_prelease(self, w, i):
        loc = w.procs[i][2]
        if not self.current(w, "E", loc[0]):
            return self.plose(w, i, "release")
        n = w.copy()
        n.lease = mset(w.lease, "E", (loc[0], ""))
        n.lost = n.lost - loc[3]
        n.goto(i, *(("j", ()) if self.specs[i]["kind"] == "janitor" else ("end", (), END)))
        return [("releases E", n)]

    # ================================================================ a reader: anyone's SQL, through the views
    def pc_read0(self, w, i):
        n = w.copy()
        v = mget(w.env, "E")
        if v is None:
            self.bad("law 4: a reader finds no environment view")
        n.goto(i, "read1", (0, v))
        return [("resolves E: %s" % v, n)]

    def pc_read1(self, w, i):
        age, v = w.procs[i][2]
        n = w.copy()
        if self.fmt == "parquet":
            g = mget(w.view, v)
            if g is None:
                self.bad("law 4: a reader resolved %s and its view is gone" % v)
            n.goto(i, "read2", (age, v, g))
            return [("resolves %s: %s" % (v, g), n)]
        t = mget(w.tab, v)
        if t is None:
            self.bad("law 4: a reader resolved %s and its table is gone" % v)
            t = ((), (), ())
        n.goto(i, "read3", (age, v, t[0] if self.fmt == "delta" else t[1]))
        return [("takes a snapshot of %s" % v, n)]

    def pc_read2(self, w, i):
        age, v, g = w.procs[i][2]
        n = w.copy()
        man = self.shown(w, g)
        if man is None:
            self.bad("law 4: a reader resolved generation %s and its table is gone" % g)
        n.goto(i, "read3", (age, v, man or frozenset()))
        return [("lists the partitions of %s" % g, n)]

    def pc_read3(self, w, i):
        age, v, x = w.procs[i][2]
        n = w.copy()
        if self.fmt == "parquet":
            x = self.rows_of(w, x, "a reader")
        elif mget(w.tab, v) is None:
            self.bad("law 4: table %s was dropped under a reader" % v)
        self.judge(w, v, x)
        n.goto(i, "end", (), END)
        return [("reads the files", n)]

    def rows_of(self, w, man, who):
        rows = []
        for p, f in man:
            fr = mget(w.files, f)
            if fr is None:
                self.bad("law 4: %s finds that folder %s is gone" % (who, f))
            rows += [r for r in fr or () if r[1] == p]
        return tuple(sorted(rows))

    def judge(self, w, v, rows):
        if (v, rows) not in w.hist:
            self.bad("law 4/1: a reader of %s sees what no rightful publish contains: %s" % (v, rows))

    # ================================================================ janitor
    def unreached(self, w):
        """From state alone.  Objects: ('v', version), ('g', generation), ('f', folder, staging or branch)."""
        out, gone_v = set(), set()
        lost = set() if "janitor-ignores-lost" in self.F else {l[0] for l in w.lost if not self.settled(w, l)} \
            if "sleeper" in self.F else {l[0] for l in w.lost}
        live = [a for a in w.att if a.status in (OPEN, DECIDED, RETRACT)]
        pins = {p for a in live for p in a.pins}
        env_quiet = mget(w.followed, "E") == mget(w.ptr, "E")[0] and "E" not in lost
        for v, h in w.head:
            res = v.split("#")[0]
            if ("v", v) in w.doomed:
                gone_v.add(v)
            elif not (mget(w.ptr, "E")[1] == v or v in w.kept or v in pins or any(a.ver == v for a in live) or
                      res in lost or not env_quiet or mget(w.lease, res, (0, ""))[1] != ""):
                out.add(("v", v))
                gone_v.add(v)
        keep_g, keep_f = set(), set()
        for v, h in w.head:
            if v not in gone_v:
                keep_g.add(h[0])
                keep_f |= {f for _, f in h[1]}
        for a in live:
            keep_g |= {a.gen, a.basegen}
            keep_f.add("f%d" % a.id)
            if "base-not-pinned" not in self.F:
                keep_f |= {f for _, f in a.baseman}
                if a.reads:
                    keep_g.add(a.reads[0])
                    keep_f |= {f for _, f in a.reads[1]}
        owner = {a.gen: a.ver for a in w.att if a.gen and a.gen != a.basegen}
        owner.update({g: vm[0] for g, vm in w.gman})
        if self.fmt == "parquet":
            keep_g |= {g for g, v in owner.items() if v.split("#")[0] in lost}
            for g, (v, man) in w.gman:
                if g in keep_g:
                    keep_f |= {f for _, f in man}
            if "beneath-not-reached" not in self.F:     # its table; of its folders, those that are shown above
                keep_g |= {low[0] for g in keep_g for low in [self.beneath(w, g)] if low}
            out |= {("g", g) for g in owner if g not in keep_g}
        files = {"f%d" % a.id: a.ver for a in w.att}
        if self.fmt == "parquet":
            files.update({"f0" + v: v for v in self.versions})
        out |= {("f", f) for f, v in files.items() if f not in keep_f and v.split("#")[0] not in lost}
        return out

    def there(self, w, o):
        k, x = o
        if k == "v":
            return self.exists(w, x)
        if k == "g":
            return mget(w.gens, x) is not None
        return mget(w.files, x) is not None or \
            (self.fmt == "iceberg" and any(mget(t[2], x) is not None for _, t in w.tab))

    def pc_j(self, w, i):
        res = []
        for r in self.sc.get("heals", ("b", "E")):
            if any(l[0] == r and self.settled(w, l) for l in w.lost):
                n = w.copy()
                n.goto(i, "jheal" + r, ())
                res.append(("settle time of a lost lease on %s is over" % r, n))
        un = unlost = self.unreached(w)
        if "condemned-while-lost" in self.F:
            n = w.copy()
            n.lost = frozenset()
            unlost = self.unreached(n)
        if "janitor-looks-then-deletes" in self.F:
            gone = tuple(sorted(o for o in un if self.there(w, o)))
            if gone:
                n = w.copy()
                n.goto(i, "jdrop", (gone,))
                res.append(("finds unreached: %s" % (gone,), n))
        else:
            new = [o for o in unlost if mget(w.cond, o) is None and (o not in w.doomed or self.there(w, o))]
            if new:
                n = w.copy()
                for o in new:
                    n.cond = mset(n.cond, o, 0)
                res.append(("condemns %s" % sorted(new), n))
            ripe = tuple(sorted(o for o, age in w.cond if age >= self.grace and o in un and o not in w.doomed))
            if ripe:
                n = w.copy()
                n.doomed = n.doomed | set(ripe)
                n.goto(i, "jdrop", (ripe,))
                res.append(("DOOMS %s" % (ripe,), n))
            rest = tuple(sorted(o for o, _ in w.cond if o in w.doomed))
            if rest:
                n = w.copy()
                n.goto(i, "jdrop", (rest,))
                res.append(("goes on deleting %s" % (rest,), n))
            if any(age < self.grace for _, age in w.cond):
                res.append(("waits", w.copy()))         # time passes, one step at a time
        n = w.copy()
        n.goto(i, "end", (), END)
        res.append(("stops", n))
        return res

    def pc_jhealb(self, w, i):
        return self.pc_acq(w, i, True)

    def pc_jhealE(self, w, i):
        return self.pc_pacq(w, i, True)

    def pc_jdrop(self, w, i):
        objs = w.procs[i][2][0]
        n = w.copy()
        for k, x in objs:
            if k == "v":
                n.view = mdel(n.view, x)
                n.tab = mdel(n.tab, x)
            elif k == "g":
                n.gens = mdel(n.gens, x)
        n.goto(i, "jfiles")
        return [("drops views and tables of %s" % (objs,), n)]

    def pc_jfiles(self, w, i):
        objs = w.procs[i][2][0]
        n = w.copy()
        for k, x in objs:
            if k == "f":
                n.files = mdel(n.files, x)
                if self.fmt == "iceberg":
                    n.tab = tuple((v, (t[0], t[1], mdel(t[2], x))) for v, t in n.tab)
        n.goto(i, "jgone")
        return [("deletes folders of %s" % (objs,), n)]

    def pc_jgone(self, w, i):
        objs = w.procs[i][2][0]
        n = w.copy()
        for o in objs:
            n.cond = mdel(n.cond, o)
        n.goto(i, "j", ())
        return [("records them as gone", n)]

    # ================================================================ exploring
    READING = ("read1", "read2", "read3")

    def successors(self, w):
        urgent = [i for i, p in enumerate(w.procs) if p[0] == RUN and p[1] in self.READING and p[2][0] >= READ_MAX]
        dead = sum(p[0] == DEAD for p in w.procs)
        for i in urgent[:1] or range(len(w.procs)):
            st, pc, loc = w.procs[i]
            if st != RUN:
                continue
            s = self.specs[i]
            for label, n in self.by_pc[pc](w, i):
                self.tick(n, i)
                yield "%-8s %s" % (s["name"], label), n
            if not urgent and s["kind"] not in ("reader", "zombie") and dead < self.max_crash and s.get("shares") is None:
                n = w.copy()
                n.goto(i, "dead", (), DEAD)
                for j, o in enumerate(self.specs):
                    if o.get("shares") == i and w.procs[j][0] == RUN:
                        n.goto(j, "dead", (), DEAD)
                yield "%-8s ** crashes **" % s["name"], n

    def tick(self, n, i):
        if n.cond:
            n.cond = tuple((o, a + 1 if a < self.grace else a) for o, a in n.cond)
        for j, p in enumerate(n.procs):
            if j != i and p[0] == RUN and p[1] in self.READING:
                n.procs = n.procs[:j] + ((p[0], p[1], (min(p[2][0] + 1, READ_MAX),) + p[2][1:]),) + n.procs[j + 1:]

    def now(self, w):
        """A query that starts and ends between two steps."""
        v = mget(w.env, "E")
        rev, target = mget(w.ptr, "E")
        if v is None:
            if target is not None and mget(w.followed, "E") == rev:
                self.bad("law 4: E exists and its view is gone")
        elif self.fmt == "parquet":
            g = mget(w.view, v)
            man = self.shown(w, g)
            if g is None:
                self.bad("law 4: E reads %s, whose view is gone" % v)
            elif man is None:
                self.bad("law 4: the view of %s names generation %s, which is gone" % (v, g))
            else:
                self.judge(w, v, self.rows_of(w, man, "a reader"))
        else:
            t = mget(w.tab, v)
            if t is None:
                self.bad("law 4: E reads %s, whose table is gone" % v)
            else:
                self.judge(w, v, t[0] if self.fmt == "delta" else t[1])

    def judged(self, w):
        """Versions that exist for the state (with the janitor of old: those that something reaches)."""
        for v, h in w.head:
            if ("v", v) not in w.doomed and ("janitor-looks-then-deletes" not in self.F or
                                            v == mget(w.ptr, "E")[1] or v in w.kept):
                yield v, h

    def watched(self, w):
        """Wherever the catalog differs from the state, a line in state says so: the start check needs no listing."""
        lost = {l[0] for l in w.lost}
        if mget(w.env, "E") != mget(w.ptr, "E")[1] and mget(w.followed, "E") == mget(w.ptr, "E")[0] and "E" not in lost:
            self.bad("law 5: the view of E is not what the pointer says, and no line in state says so")
        if mget(w.ran, "E") < mget(w.ptr, "E")[0] == mget(w.followed, "E") and "pointer-is-the-end" not in self.F:
            self.bad("law 5: the statements of revision %d never ran, and no line in state says so" % mget(w.followed, "E"))
        if self.fmt == "parquet" and not self.pf:
            for v, h in self.judged(w):
                if (mget(w.view, v) != h[0] or self.shown(w, h[0]) != h[1]) and v.split("#")[0] not in lost \
                        and not self.unfinished(w, v):
                    self.bad("law 5: the view of %s shows %s, head is %s, and no line in state says so"
                             % (v, mget(w.view, v), h[0]))

    def check(self, w):
        self.now(w)
        self.watched(w)
        if all(p[1] == ("zidle" if s["kind"] == "zombie" else "end") for p, s in zip(w.procs, self.specs)):
            self.at_rest(w, "law 6: all have ended, none crashed", False)
        k = w.key()[:-2]
        if k not in self.memo:
            self.memo.add(k)
            self.quiesce(w)

    # ---------------------------------------------------------------- everything crashes, then one more command
    def alone(self, n, spec):
        i = len(n.procs)
        n = n.copy()
        n.procs = n.procs + ((RUN, spec["start"], ()),)
        self.specs[i:] = [spec]
        for _ in range(99):
            if n.procs[i][0] != RUN:
                n.procs = n.procs[:i]
                return n
            succ = self.by_pc[n.procs[i][1]](n, i)
            if not succ:
                break
            n = succ[0][1]
        raise Violation("law 5: the next command does not end (at '%s')" % n.procs[i][1])

    def quiesce(self, w):
        n = w.copy()
        n.procs = tuple((DEAD if p[0] == RUN else p[0], p[1], ()) for p in w.procs)
        size = len(self.specs)
        try:
            self.quiesce_(n)
        finally:
            del self.specs[size:]

    def heal_all(self, n, sweeps=False):
        for res, pc in (("E", "pheal"), ("b", "heal"), ("c", "heal"), ("k", "heal")):
            if self.dirty(n, res) or (sweeps and res in "Eb"):
                n = self.alone(n, dict(kind="final", name="final", ver=res, start=pc))
        return n

    def quiesce_(self, n):
        if "sleeper" in self.F:                         # what only the janitor's listing finds
            n = self.heal_all(n, True)
        n = self.heal_all(n)
        for s in self.sc["procs"]:
            if s["kind"] == "writer":
                v = mget(n.inc, s["ver"])
                if mget(n.done, (v, s["unit"])) is None or ("v", v) in n.doomed:
                    n = self.alone(n, dict(s, name="final", start="acq", shares=None))
        self.at_rest(n, "law 1/5: after one more command", True)
        for _ in range(4):                              # the janitor, after every settle time and grace time
            un = self.unreached(n)
            objs = tuple(sorted({o for o in un if o not in n.doomed or self.there(n, o)} |
                                {o for o, _ in n.cond if o in n.doomed}))
            if not objs:
                break
            n.doomed = n.doomed | set(objs)
            i = len(n.procs)
            n.procs = n.procs + ((RUN, "jdrop", (objs,)),)
            for pc in (self.pc_jdrop, self.pc_jfiles, self.pc_jgone):
                n = pc(n, i)[0][1]
            n.procs = n.procs[:i]
        self.at_rest(n, "law 7: after the janitor", True)
        live = [(v, h) for v, h in n.head if ("v", v) not in n.doomed]
        lower = {low[0] for _, h in live for low in [self.beneath(n, h[0])] if low}
        left = {x for x, _ in n.gens} - {h[0] for _, h in live} - lower | {x for x, _ in n.view} - {v for v, _ in live} | \
            {x for x, _ in n.tab} - {v for v, _ in live} | {x for x, _ in n.files} - {f for _, h in live for _, f in h[1]}
        if left or (self.fmt == "iceberg" and any(t[2] for _, t in n.tab)):
            self.bad("law 7: left over for ever: %s" % sorted(left))

    def at_rest(self, w, when, all_work):
        if mget(w.env, "E") != mget(w.ptr, "E")[1]:
            self.bad("%s: E shows %s, pointer says %s" % (when, mget(w.env, "E"), mget(w.ptr, "E")[1]))
        for v, h in self.judged(w):
            if self.fmt == "parquet":
                if mget(w.view, v) != h[0]:
                    self.bad("%s: view of %s shows %s, head is %s" % (when, v, mget(w.view, v), h[0]))
                if self.shown(w, h[0]) != h[1]:
                    self.bad("%s: generation %s has %s, head says %s"
                             % (when, h[0], sorted(self.shown(w, h[0]) or ()), sorted(h[1])))
                rows = self.rows_of(w, h[1], when)
            else:
                t = mget(w.tab, v)
                if t is None:
                    self.bad("%s: table %s is gone" % (when, v))
                    continue
                rows = t[0] if self.fmt == "delta" else t[1]
            want = []
            for (x, u), k in w.done:
                if x == v:
                    parts = ("p0",) if k == 0 else ("p",) if self.sc.get("fold") and self.fmt != "parquet" \
                        else w.att[k - 1].parts
                    want += [(u, p, k) for p in parts]
            units = {u for (x, u), _ in w.done if x == v}
            have = [r for r in rows if all_work or r[0] in units]
            if sorted(have) != sorted(want):
                self.bad("%s: %s holds %s, recorded work gives %s" % (when, v, sorted(have), sorted(want)))
        if all_work:
            for s in self.sc["procs"]:
                if s["kind"] == "writer" and mget(w.done, (mget(w.inc, s["ver"]), s["unit"])) is None:
                    self.bad("%s: %s is still missing" % (when, s["unit"]))

    def explore(self, seconds=None, compact=False):
        """Breadth first.  compact: remember 64-bit hashes only (no traces)."""
        t0 = time.time()
        w = self.init()
        k = w.key()
        seen = {hash(k)} if compact else {k: None}
        todo = deque([(k, w)])
        edges = 0
        while todo:
            k, w = todo.popleft()
            try:
                self.check(w)
                for label, n in self.successors(w):
                    edges += 1
                    nk = n.key()
                    if compact:
                        h = hash(nk)
                        if h not in seen:
                            seen.add(h)
                            todo.append((None, n))
                    elif nk not in seen:
                        seen[nk] = (k, label)
                        todo.append((nk, n))
            except Violation as e:
                return len(seen), edges, len(self.memo), str(e), [] if compact else self.trace(seen, k)
            if seconds and time.time() - t0 > seconds:
                return len(seen), edges, len(self.memo), "out of time, no violation so far", []
        return len(seen), edges, len(self.memo), None, []

    def trace(self, seen, k):
        out = []
        while seen[k] is not None:
            k, label = seen[k]
            out.append(label)
        return out[::-1]


# ==================================================================== scenarios
def W(name, unit, parts, mode="fill", ver="b", **kw):
    return dict(kind="writer", name=name, start="plan", ver=ver, unit=unit, parts=parts, mode=mode, **kw)


def P(name, to, needs=()):
    return dict(kind="promote", name=name, start="pacq", to=to, needs=needs)


J = dict(kind="janitor", name="janitor", start="j", ver="b")
J2 = dict(J, name="janitor2")
R = dict(kind="reader", name="reader", start="read0")
Z = dict(kind="zombie", name="zombie", start="zidle", of=0)
TWO = dict(versions=("a", "b"), env="a")


def append(*units, mode="append"):
    return [W("W%d" % (i + 1), u, [], mode) for i, u in enumerate(units)]


SCENARIOS = {
    # parquet generations: new partitions, a shared partition, two partitions each, restated, emptied, folded
    "pq-new": dict(procs=[W("W1", "A", ["p1"]), W("W2", "B", ["p2"]), R], crashes=1),
    "pq-shared": dict(procs=[W("W1", "A", ["p1"], audit=1), W("W2", "B", ["p1"]), R], crashes=1),
    "pq-wide": dict(unsure=1, procs=[W("W1", "A", ["p0", "p1"]), W("W2", "B", ["p1", "p2"])]),
    "pq-restate": dict(procs=[W("W1", "U0b", ["p0"], "restate", audit=1), W("W2", "U0b", ["p1"], "restate"), R], crashes=1),
    "pq-same": dict(procs=[W("W1", "U0b", ["p0"], "restate", same=1), W("W2", "U0b", ["p1"], "restate"), R], crashes=1),
    "pq-vanish": dict(unsure=1, procs=[W("W1", "U0b", [], "restate"), W("W2", "A", ["p1"])]),
    "pq-append": dict(fold=1, unsure=1, procs=append("T", "T")),
    "pq-merge": dict(fold=1, unsure=1, procs=append("T", "T2", mode="merge")),
    "pq-parallel": dict(procs=[W("W1", "A", ["p1"]), W("W2", "B", ["p0"], shares=0), W("W3", "C", ["p2"])], steals=1),
    "pq-child": dict(versions=("b", "k"), procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), W("C", "K", ["p0"], ver="k", reads="b")], steals=1, crashes=0),
    "pq-child-new": dict(versions=("b", "k"), procs=[W("W1", "A", ["p1"]), W("W2", "B", ["p1"]), W("C", "K", ["p0"], ver="k", reads="b")], steals=1, crashes=0),
    "pq-three": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), W("W3", "C", ["p1"])], crashes=0),
    "pq-zombie": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), Z, J], steals=1, crashes=1),
    "pq-janitor": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), J]),
    "pq-janitor-reader": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), J, R], steals=1, crashes=0),
    # generations laid over a former one
    "pq-layers": dict(layers=1, procs=[W("W1", "A", ["p1"]), W("W2", "B", ["p1"]), R], crashes=1),
    "pq-layers-restate": dict(layers=1, procs=[W("W1", "A", ["p1"]), W("W2", "U0b", ["p1"], "restate"), R], crashes=1),
    "pq-layers-child": dict(layers=1, versions=("b", "k"), procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), W("C", "K", ["p0"], ver="k", reads="b")], steals=1, crashes=0),
    "pq-layers-zombie": dict(layers=1, procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), Z, J], steals=1, crashes=1),
    "pq-layers-janitor": dict(layers=1, procs=[W("W1", "A", ["p1"]), W("W2", "B", ["p1"]), J]),
    "pq-layers-parallel": dict(layers=1, procs=[W("W1", "A", ["p1"]), W("W2", "B", ["p0"], shares=0), W("W3", "C", ["p2"])], steals=1),
    # Delta and Iceberg
    "delta-restate": dict(fmt="delta", procs=[W("W1", "U0b", ["p0"], "restate"), W("W2", "U0b", ["p0"], "restate"), J]),
    "delta-append": dict(fmt="delta", fold=1, procs=append("T", "T") + [J]),
    "delta-merge": dict(fmt="delta", fold=1, procs=append("T", "T2", mode="merge") + [R], crashes=1),
    "delta-zombie": dict(fmt="delta", fold=1, unsure=1, procs=append("T", "T") + [Z], steals=1),
    "delta-parallel": dict(fmt="delta", fold=1, procs=[W("W1", "T", [], "append"), W("W2", "T2", [], "append", shares=0)]),
    "delta-fails": dict(fmt="delta", fold=1, fails=1, unsure=1, procs=append("T", "T2")),
    "delta-through": dict(fmt="delta", fold=1, through=1, procs=append("T", "T") + [J]),
    "delta-through-restate": dict(fmt="delta", through=1, procs=[W("W1", "U0b", ["p0"], "restate"), W("W2", "U0b", ["p0"], "restate"), R], crashes=1),
    "delta-through-zombie": dict(fmt="delta", fold=1, through=1, unsure=1, procs=append("T", "T") + [Z], steals=1),
    "iceberg-restate": dict(fmt="iceberg", procs=[W("W1", "U0b", ["p0"], "restate"), W("W2", "U0b", ["p0"], "restate"), J]),
    "iceberg-append": dict(fmt="iceberg", fold=1, procs=append("T", "T") + [J]),
    "iceberg-merge": dict(fmt="iceberg", fold=1, procs=append("T", "T2", mode="merge") + [R], crashes=1),
    "iceberg-zombie": dict(fmt="iceberg", fold=1, unsure=1, procs=append("T", "T") + [Z], steals=1),
    "iceberg-parallel": dict(fmt="iceberg", fold=1, procs=[W("W1", "T", [], "append"), W("W2", "T2", [], "append", shares=0)]),
    "iceberg-fails": dict(fmt="iceberg", fold=1, fails=1, unsure=1, procs=append("T", "T2")),
    # environments
    "env": dict(TWO, kept=("a",), unsure=1, procs=[P("P1", "b"), P("P2", "a")]),
    "env-janitor": dict(TWO, procs=[P("P1", "b"), P("P2", "a"), J]),
    "env-drop": dict(TWO, kept=("a",), procs=[P("P1", None), P("P2", "b"), J]),
    "env-janitor-delta": dict(TWO, fmt="delta", procs=[P("P1", "b"), J, R]),
    "env-write": dict(TWO, procs=[W("W1", "A", ["p0"]), P("P1", "b", ["A"]), J, R], crashes=0),
    # deleted and built again; seeded from a version that is being deleted
    "recreate": dict(TWO, kept=("a",), procs=[W("W1", "A", ["p0"]), J, J2]),
    "recreate-delta": dict(TWO, fmt="delta", kept=("a",), procs=[W("W1", "A", ["p0"]), J, J2]),
    "seed": dict(versions=("a", "b"), env="b", procs=[W("W1", "A", ["p0"], ver="c", seed="a"), W("W2", "B", ["p1"], ver="c", seed="a"), J], crashes=1),
}
DEEP = {
    "all": dict(TWO, steals=1, crashes=1, procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p1"]), P("P1", "b", ["A"]), J, R]),
    "all-shared": dict(TWO, steals=1, crashes=1, procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), P("P1", "b", ["A"]), J, R]),
    "all-delta": dict(TWO, fmt="delta", steals=1, crashes=1, procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), P("P1", "b", ["A"]), J, R]),
    "all-iceberg": dict(TWO, fmt="iceberg", steals=1, crashes=1, procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), P("P1", "b", ["A"]), J, R]),
    "pq-zombie2": dict(unsure=1, procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), Z, J], crashes=2),
    "delta-zombie2": dict(fmt="delta", fold=1, unsure=1, procs=append("T", "T") + [Z, J]),
    "iceberg-zombie2": dict(fmt="iceberg", fold=1, unsure=1, procs=append("T", "T") + [Z, J]),
    "pq-three-crash": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), W("W3", "C", ["p0"])], steals=3),
    "pq-three-janitor": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), W("W3", "C", ["p0"]), J], crashes=2),
    "pq-janitor-reader2": dict(procs=[W("W1", "A", ["p0"]), W("W2", "B", ["p0"]), J, R]),
    "pq-wide-janitor": dict(procs=[W("W1", "A", ["p0", "p1"]), W("W2", "B", ["p1", "p2"]), J, R]),
    "pq-append-three": dict(fold=1, procs=append("T", "T", "T2") + [J], crashes=2),
    "delta-append-three": dict(fmt="delta", fold=1, procs=append("T", "T", "T2") + [J], crashes=2),
    "iceberg-append-three": dict(fmt="iceberg", fold=1, procs=append("T", "T", "T2") + [J], crashes=2),
    "delta-fails-three": dict(fmt="delta", fold=1, fails=1, procs=append("T", "T2", "T3"), crashes=2),
    "iceberg-fails-three": dict(fmt="iceberg", fold=1, fails=1, procs=append("T", "T2", "T3"), crashes=2),
    "env-three": dict(TWO, procs=[P("P1", "b"), P("P2", "a"), P("P3", "b"), J, R], crashes=1),
    "env-drop2": dict(TWO, kept=("a",), unsure=1, procs=[P("P1", None), P("P2", "b"), P("P3", "a"), J]),
    "env-janitor2": dict(TWO, procs=[P("P1", "b"), P("P2", "a"), J, J2, R], crashes=1),
    "seed-reader": dict(versions=("a", "b"), env="a", procs=[W("W1", "A", ["p0"], ver="c", seed="a"), W("W2", "B", ["p1"], ver="c", seed="a"), P("P1", "b"), J, R], crashes=1, steals=1),
}


def run(job):
    gc.disable()                                        # millions of small tuples, no cycles
    name, flags, ignore, seconds, compact = job
    t = time.time()
    m = Model(SCENARIOS.get(name) or DEEP[name], flags, ignore)
    return name, flags, m.explore(seconds, compact), time.time() - t


def line(r):
    name, _, (n, e, q, v, _), t = r
    print("  %-22s %9d states %9d steps %8d quiescence checks %6.1f s  %s" % (name, n, e, q, t, v or "no violation"),
          flush=True)


def main():
    ap = argparse.ArgumentParser(description="Model of Lamina's write protocol")
    ap.add_argument("--mistakes", action="store_true")
    ap.add_argument("--mistake")
    ap.add_argument("--as-worded", action="store_true")
    ap.add_argument("--sleeper", action="store_true")
    ap.add_argument("--deep", nargs="?", type=float, const=60.0)
    ap.add_argument("--only")
    ap.add_argument("--flags", default="")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--jobs", type=int, default=2)
    o = ap.parse_args()
    if o.list:
        print("scenarios:", ", ".join(SCENARIOS), "\ndeep:", ", ".join(DEEP), "\nmistakes:")
        for k, (origin, what, sc, _) in MISTAKES.items():
            print("  %-27s %-7s %-18s %s" % (k, origin, sc, what))
        return 0
    if o.mistakes or o.mistake:
        missing = 0
        for k, (origin, what, sc, ignore) in MISTAKES.items():
            if o.mistake in (None, k):
                _, _, (n, e, q, v, tr), t = run((sc, (k,), ignore, None, False))
                print("%s (%s): %s\n  %s, %d states: %s" % (k, origin, what, sc, n, v or "NOT FOUND"))
                for x in tr:
                    print("      ", x)
                missing += v is None
        return 1 if missing else 0
    if o.as_worded:
        print("The order of writes as first worded: the first violation that stays after one more command")
        for k in SCENARIOS:
            line(run((k, AS_WORDED, ("law 4", "law 5: the view"), 20, False)))
        return 0
    if o.sleeper:
        print("Beyond the settle time readers may meet an older publish or an error for a while; does the rest hold?")
        for k in ("pq-restate", "pq-three", "pq-janitor", "env", "env-janitor", "recreate", "delta-append", "iceberg-append"):
            line(run((k, ("sleeper",), ("law 4", "law 5: the view"), None, False)))
        return 0
    if o.only:
        names = o.only.split(",")
    else:
        names = list(SCENARIOS) + (list(DEEP) if o.deep else [])
    flags = tuple(x for x in o.flags.split(",") if x)
    t = time.time()
    states = edges = checks = bad = 0
    with Pool(o.jobs) as pool:
        jobs = [(k, flags, (), o.deep * 60 if o.deep else None, k in DEEP and not flags) for k in names]
        for r in pool.imap_unordered(run, jobs):
            line(r)
            n, e, q, v, tr = r[2]
            states += n; edges += e; checks += q
            for x in tr:
                print("      ", x)
            bad += v is not None and not v.startswith("out of time")
    print("%d states, %d steps, %d quiescence checks in %d scenarios, %.0f s: %s"
          % (states, edges, checks, len(names), time.time() - t, "no violation" if not bad else "%d VIOLATED" % bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
