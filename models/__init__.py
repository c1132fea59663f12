"""The shipped networks, schemes and sets, as TOML."""
