"""Values that must not be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

HIDDEN = "***"
_SENSITIVE = re.compile(
    r"password|passwd|secret|token|credential|private.?key|access.?key|api.?key|account.?key", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(://[^/@:\s]*):([^/@\s]+)@")
_URL_PARAMETER = re.compile(r"([?&;](?:[^=&;\s]*(?:password|secret|token|key)[^=&;\s]*)=)([^&;\s]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A text that shows only what may be shown; `reveal` gives it whole."""

    _value: str

    def reveal(self) -> str:
        """The value itself, for the one place that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __str__(self) -> str:
        return redact_url(self._value) if "://" in self._value else HIDDEN


def is_sensitive(key: str) -> bool:
    """Whether a setting of this name is likely to hold a secret."""
    return _SENSITIVE.search(key) is not None


def redact_url(url: str) -> str:
    """A URL without the passwords and tokens in it.

    >>> redact_url("postgresql://ann:s3cret@db/lamina?sslpassword=x")
    'postgresql://ann:***@db/lamina?sslpassword=***'
    """
    return _URL_PARAMETER.sub(rf"\1{HIDDEN}", _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", url))
