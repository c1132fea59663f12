"""The shipped networks, schemes, sets, studies and findings, as TOML."""
