"""A tour for a new user: the example shop is built, one model is changed, and the change is tried in `dev`.

Everything happens in `demo/`, which is made anew each time; it can be looked at and played with afterwards.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"
LAMINA = Path(sys.executable).parent / "lamina"

# A fixed clock: the same days are built whenever the tour is taken.
NOW = ("--execution-time", "2024-01-08")

# The change that the tour makes: one more column.
CHANGED_FILE = DEMO / "models" / "daily_revenue.sql"
BEFORE = "SUM(amount) AS revenue  -- in dollars"
AFTER = "SUM(amount) AS revenue,  -- in dollars\n  ROUND(AVG(amount), 2) AS average_order"

PRODUCTION = "SELECT * FROM shop.daily_revenue ORDER BY order_date"


def main() -> int:
    shutil.rmtree(DEMO, ignore_errors=True)

    say("1. A new project: SQL models over a week of orders from a small shop")
    lamina("init", DEMO.name, "--template", "shop")
    print("$ cd demo")

    say("2. The first build: every model, one interval at a time, on local Spark")
    lamina("build", *NOW)
    lamina("query", PRODUCTION)

    say("3. Building again does nothing, and says so")
    lamina("build", *NOW)

    say(f"4. A change in {CHANGED_FILE.relative_to(ROOT)}: one more column, the average order")
    change()
    lamina("plan", "dev", *NOW)

    say("5. The change is built in dev; what it does not reach is shared with production")
    lamina("build", "dev", *NOW)
    lamina("query", PRODUCTION, "--env", "dev")

    say("6. Production has not moved")
    lamina("query", PRODUCTION)

    say("Done. The project is in demo/; go on there, for instance with `../.venv/bin/lamina env list`")
    return 0


def change() -> None:
    text = CHANGED_FILE.read_text(encoding="utf-8")
    if BEFORE not in text:
        raise SystemExit(f"{CHANGED_FILE} no longer holds `{BEFORE}`: mend tools/demo.py")
    CHANGED_FILE.write_text(text.replace(BEFORE, AFTER), encoding="utf-8")


def lamina(*arguments: str) -> None:
    """Shows a command as a user would type it, then runs it; a failing one ends the tour."""
    print(f"\n$ lamina {shlex.join(arguments)}", flush=True)
    status = subprocess.run([str(LAMINA), *arguments], cwd=DEMO if DEMO.is_dir() else ROOT, check=False).returncode
    if status:
        raise SystemExit(status)


def say(text: str) -> None:
    is_coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(f"\n\033[1m{text}\033[0m" if is_coloured else f"\n{text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
