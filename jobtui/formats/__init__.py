"""Log line shapes as data (`*.toml`), and what turns lines into records by them."""
