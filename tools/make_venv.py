"""Makes `.venv` match `requirements.lock`; runs on the standard library of the Python it is started with.

A virtual environment that already matches is left alone. uv installs several times faster than pip, so it is installed
first, from the same lock; where it is not to be had or fails, pip does the whole work.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".lamina-installed"
PYTHON = VENV / "bin" / "python"
PIP_INSTALL = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install"]


class SetupFailed(Exception):
    """Something a user has to mend; the text says what."""


def main() -> int:
    wanted = wanted_stamp()
    if stands() and STAMP.is_file() and STAMP.read_text() == wanted:
        STAMP.touch()
        return 0
    try:
        if not stands():
            say(f"creating .venv with Python {sys.version.split()[0]}")
            create()
        STAMP.unlink(missing_ok=True)
        say("installing what requirements.lock names (about 500 MB the first time, most of it Spark)")
        install()
    except SetupFailed as failure:
        say(str(failure))
        return 1
    STAMP.write_text(wanted)
    return 0


def wanted_stamp() -> str:
    """Changes whenever an installed virtual environment would have to change."""
    digest = hashlib.sha256()
    # pyproject.toml decides the entry points of the editable install, this file how it is made.
    for file in (LOCK, ROOT / "pyproject.toml", Path(__file__)):
        digest.update(file.read_bytes())
    return f"{digest.hexdigest()} {VENV}\n"


def stands() -> bool:
    """Whether there is a virtual environment that works where it now lies."""
    check = "import sys; sys.exit(sys.version_info < (3, 10))"
    return answers([str(PYTHON), "-c", check])


def create() -> None:
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(VENV)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise SetupFailed(
            f"`{sys.executable}` cannot create a virtual environment ({failure}): install its venv module "
            "(Debian and Ubuntu: `apt install python3-venv`) or call make with PYTHON=/path/to/another/python3"
        ) from failure


def install() -> None:
    installer = install_with_uv() or install_with_pip()
    if not succeeds([*installer, "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]):
        raise SetupFailed("Lamina itself could not be installed into `.venv`: the reason stands above")


def install_with_uv() -> list[str] | None:
    """The command that installs further packages, None when uv is not to be had or could not install the lock."""
    uv = [str(VENV / "bin" / "uv"), "pip"]
    target = ["--python", str(PYTHON)]
    if have_uv() and succeeds([*uv, "sync", "--quiet", "--require-hashes", *target, str(LOCK)]):
        return [*uv, "install", *target]
    return None


def install_with_pip() -> list[str]:
    """The command that installs further packages, after the lock was installed."""
    say("using pip instead of uv, which takes a few minutes longer")
    if not has_pip() and not succeeds([str(PYTHON), "-m", "ensurepip"]):
        raise SetupFailed("`.venv` has neither a working uv nor pip: remove the folder and run make again")
    if not succeeds([*PIP_INSTALL, "--quiet", "--no-deps", "--require-hashes", "--requirement", str(LOCK)]):
        raise SetupFailed("the packages of requirements.lock could not be installed: the reason stands above")
    return PIP_INSTALL


def have_uv() -> bool:
    """Whether uv stands in the virtual environment, after trying to install the locked one."""
    if (VENV / "bin" / "uv").is_file():
        return True
    if not has_pip():
        return False
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.lock.txt"
        only_uv.write_text(locked("uv"))
        return succeeds([*PIP_INSTALL, "--quiet", "--no-deps", "--require-hashes", "--requirement", str(only_uv)])


def has_pip() -> bool:
    return answers([str(PYTHON), "-m", "pip", "--version"])


def locked(package: str) -> str:
    """The lines of the lock that pin one package with its hashes."""
    found = re.search(rf"^{re.escape(package)}==.*?(?=^\S|\Z)", LOCK.read_text(), re.MULTILINE | re.DOTALL)
    if not found:
        raise SetupFailed(f"requirements.lock does not pin `{package}`: run `make lock`")
    return found[0]


def succeeds(command: list[str]) -> bool:
    # The caller's virtual environment must not become the target.
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    try:
        return subprocess.run(command, check=False, env=environment).returncode == 0
    except OSError:
        return False


def answers(command: list[str]) -> bool:
    """Whether a command ends well; what it prints is nobody's concern."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def say(text: str) -> None:
    sys.stderr.write(f"lamina: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
