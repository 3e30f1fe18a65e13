"""From results to rankings, the papers' tables, claims and figures."""
