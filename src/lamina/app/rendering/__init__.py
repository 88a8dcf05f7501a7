"""From models and audits to the SQL that Spark gets, by what state says is published."""
