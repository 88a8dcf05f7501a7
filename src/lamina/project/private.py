"""What Lamina keeps beside a project is for its owner alone.

The folder itself decides: nobody else gets past it. Files that Lamina writes are for their owner as well, in case they
are copied elsewhere. Older projects have wider modes and are tightened by the first command that opens them.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from lamina.project.discover import WORK_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_OTHERS = 0o077
_PASS = 0o011
# Nobody but Lamina reads what lies in these, wherever tables may have to be read by others.
_OWN_FOLDERS = frozenset({"cache", "logs", "metastore"})


def keep_private(root: Path, *, is_passable: bool) -> None:
    """Take the rights of others on the project's `.lamina` away, where it is ours; what cannot be done is left.

    `is_passable` lets others through it, to folders whose own rights then decide: workers of another user reach a
    warehouse in it. Links are not followed, and what has a second name elsewhere is left alone.
    """
    if os.name != "posix":
        return
    with suppress(OSError):
        folder = os.open(root / WORK_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(folder)
            mode = stat.S_IMODE(status.st_mode)
            wanted = mode & ~_OTHERS | (_PASS if is_passable else 0)
            if mode == wanted or status.st_uid != os.geteuid():
                return
            # From here on nobody else can put anything into the folder while it is looked through.
            os.fchmod(folder, wanted)
            if mode & _OTHERS & ~_PASS:
                _tighten(folder, lambda name: name in _OWN_FOLDERS, is_passable=is_passable)
        finally:
            os.close(folder)


def _tighten(folder: int, is_own: Callable[[str], bool], *, is_passable: bool) -> None:
    for name in os.listdir(folder):
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            is_folder = stat.S_ISDIR(status.st_mode)
            is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if status.st_uid != os.geteuid() or not (is_folder or is_file):
                continue
            if is_folder and is_passable and not is_own(name):
                continue
            os.chmod(name, mode & ~_OTHERS, dir_fd=folder)
            if is_folder and is_own(name):
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    _tighten(inner, lambda _name: True, is_passable=False)
                finally:
                    os.close(inner)
