"""Values that must not be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

HIDDEN = "***"
_SENSITIVE = re.compile(
    r"password|passwd|passphrase|pwd|secret|token|credential|private.?key|access.?key|api.?key|account.?key",
    re.IGNORECASE,
)
# A password may hold any character that an address gives a meaning, `@` included: it ends at the last one. What looks
# like one and is none is hidden along with it, which costs nothing but a poorer message.
_URL_PASSWORD = re.compile(r"(?:://[^/:\s]*:|thin:[^/@]*/)(.*)@")
# The value goes on to the next parameter, so over characters that ought to be escaped and are not.
_URL_PARAMETER = re.compile(
    r"[?&;,(]\s*[^=&;,()?\s]*(?:password|passwd|passphrase|pwd|secret|token|key|credential|signature|\bsig)"
    r"[^=&;,()?\s]*\s*=(.*?)(?=[&;,]\s*[\w.-]+\s*=|$)",
    re.IGNORECASE | re.MULTILINE,
)


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
    spans = sorted(found.span(1) for pattern in (_URL_PASSWORD, _URL_PARAMETER) for found in pattern.finditer(url))
    shown, end = "", 0
    for first, last in spans:
        if first >= end:
            shown += url[end:first] + HIDDEN
        end = max(end, last)
    return shown + url[end:]
