"""What all documents for programs have in common."""

from __future__ import annotations

SCHEMA_VERSION = 1
