"""Audits over rows before they are shown, over rows that are, of sources, and standalone ones."""
