"""Writing files: each beside its name, and renamed when it is whole."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from paramcalc.errors import InputError

_SHORT = 40
"""Letters of a name that the one beside it keeps: it must not become too long for a folder."""
_NUMBER = re.compile(r"\[Errno (\d+)\]", re.IGNORECASE)


def free(out: str | Path, *, force: bool) -> Path:
    """Return the path of a file that may be written: a new one, or with ``force`` any, in a folder
    that is there. Raises ``InputError``."""
    path = Path(out)
    if path.exists() and not force:
        raise InputError(f"out = {out}: exists; name another or give --force")
    if not path.parent.is_dir():
        raise InputError(f"out = {out}: {path.parent} is no directory; make it first")
    return path


@contextmanager
def beside(path: Path, option: str = "out") -> Iterator[Path]:
    """Yield a name to write to; the file takes the name ``path`` when the block is done, and is
    gone where it fails.

    A file that is there already leaves its mode, and its owner where the system allows that, to
    the new one. A symbolic link stays one: what it points to is written. Raises ``InputError``
    under the name of ``option`` where the file cannot be written.
    """
    held = None
    try:
        target = Path(os.path.realpath(path))
        own = _own(target, path, option)
        held = target.with_name(f".{target.name[:_SHORT]}.{os.getpid()}.{uuid4().hex[:8]}")
        # made before it is filled, so that no reader whom the old file kept out sees the new one
        os.close(os.open(held, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if own else 0o666))
        yield held
        if own is not None:
            _leave(held, own)
        os.replace(held, target)
    except OSError as error:
        fix = "close it, or name another" if isinstance(error, PermissionError) else "name another"
        raise InputError(f"{option} = {path}: {reason(error)}; {fix}") from None
    finally:
        if held is not None:
            with suppress(OSError):
                held.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Return why a file could not be written, in the system's words: no number, no other name.

    Libraries wrap the system's error in their own, or repeat it in a text of theirs.
    """
    inner = error.args[0] if error.args and isinstance(error.args[0], OSError) else error
    found = _NUMBER.search(str(inner))
    number = inner.errno if inner.errno is not None else int(found[1]) if found else None
    return "cannot be written" if number is None else os.strerror(number).lower()


def _own(target: Path, path: Path, option: str) -> os.stat_result | None:
    """What there is to know of a file that is there already; None where there is none."""
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):  # one is left only where links point at each other
        raise OSError(errno.ELOOP, "")
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "")
    if not stat.S_ISREG(found.st_mode):  # a pipe, a device: something else must fill it
        raise InputError(f"{option} = {path}: is no plain file; name another")
    return found


def _leave(held: Path, own: os.stat_result) -> None:
    """Give a new file the owner and mode of the old one."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(held, own.st_uid, own.st_gid)
    os.chmod(held, stat.S_IMODE(own.st_mode))
