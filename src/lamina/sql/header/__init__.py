"""The text of model, audit and function files: cut into parts, headers read into properties, none understood yet."""
