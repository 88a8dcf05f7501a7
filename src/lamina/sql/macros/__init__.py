"""Everything in a text that starts with `@`: found among its tokens, worked out, and replaced by text."""
