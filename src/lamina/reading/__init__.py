"""Text into what `graph` holds: headers, kinds, audits, queries and their windows; all problems at once."""
