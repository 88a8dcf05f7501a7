"""One version, from intent to done, as `docs/concepts/write-protocol.md` says."""
