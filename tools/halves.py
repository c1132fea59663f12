"""Sections of docs/generated on clients, servers and schemes, from their files."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim import catalog
from h3sim.browser.capabilities import Ability, Hint
from h3sim.schema.fields import write_table
from h3sim.schemes import Arrangement, SchedulerKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.schemes import Client, Rule, Scheme, Server, SignalClass, SignalTable

__all__ = ["capabilities", "clients", "pairs", "schemes", "servers"]

_FLAGS = {
    ("in_head", True): "in the head",
    ("in_head", False): "not in the head",
    ("async", True): "async",
    ("async", False): "not async",
    ("defer", True): "deferred",
    ("defer", False): "not deferred",
    ("preload", True): "preloaded",
    ("preload", False): "not preloaded",
    ("critical", True): "critical",
    ("above_the_fold", True): "above the fold",
    ("module", True): "a module",
    ("render_blocking", True): "render-blocking",
    ("other_media", True): "for other media",
    ("after_first_image", True): "after the first image",
    ("after_first_image", False): "not after the first image",
}
_SIGNALS = {"eps": "RFC 9218", "tree": "RFC 7540", "buckets": "bucket", "strict": "strict priority"}
_DESCRIBED = ("name", "title", "version", "date", "source", "notes", "caveat")


def capabilities() -> Iterator[tuple[str, ...]]:
    """Yield a row for each feature of browsers: since which version each of them has it."""
    shown = [client for client in catalog.list_clients() if client.capabilities]
    own = [client for client in shown if not client.like and client.name != "curl"]
    yield "feature", *(f"{client.name} {client.version}" for client in own), "sources"
    for feature in (*Hint, *Ability):
        rows = [row for client in own for row in client.capabilities if row.name == feature.value]
        sources = dict.fromkeys(f"{row.source}, {row.date}" for row in rows)
        cells = (row.value or (f"since {row.since}" if row.since else "no") for row in rows)
        yield feature.value, *cells, "; ".join(sources)


def clients() -> str:
    """Return a section per client: its classes, and how it signals each."""
    return "\n".join("\n".join(_client(client)) for client in catalog.list_clients())


def servers() -> str:
    """Return a section per server: what it reads, and its settings."""
    return "\n".join("\n".join(_server(server)) for server in catalog.list_servers())


def schemes() -> str:
    """Return a section per scheme that is no named pair: its mechanism, and its classes."""
    sections = []
    for scheme in h3sim.list_schemes():
        document = tomllib.loads(catalog.text_of("scheme", scheme.name))
        if not {"client", "server"} <= set(document):
            sections.append("\n".join(_scheme(scheme, document)))
    return "\n".join(sections)


def pairs() -> Iterator[tuple[str, ...]]:
    """Yield a row for each scheme that names its halves."""
    yield "scheme", "client", "server", "but"
    for scheme in h3sim.list_schemes():
        document = tomllib.loads(catalog.text_of("scheme", scheme.name))
        client, server = document.pop("client", None), document.pop("server", None)
        if client is None or server is None:
            continue
        left_out = {"format", *_DESCRIBED}
        own = [f"`{key} = {_value(document[key])}`" for key in document if key not in left_out]
        yield (
            f"`{scheme.name}`",
            _link("client", client),
            _link("server", server),
            ", ".join(own),
        )


def _value(value: object) -> str:
    return str(value).replace("'", '"').replace("False", "false").replace("True", "true")


def _link(half: str, name: str) -> str:
    known = {each.name for each in getattr(catalog, f"list_{half}s")()}
    return f"[{name}]({half if name in known else 'scheme'}s.md#{_anchor(name)})"


def _anchor(name: str) -> str:
    return name.replace("+", "")


def _described(value: Client | Server) -> Iterator[str]:
    yield f"## {value.name}\n"
    text = f"{value.title}. Version: {value.version}; read {value.date}. {value.notes}".rstrip()
    yield f"{text}\n"
    if value.caveat:
        yield f"**Caveat:** {value.caveat}.\n"


def _client(client: Client) -> Iterator[str]:
    yield from _described(client)
    ignored = ", ".join(f"`{hint.value}`" for hint in Hint if not client.has(hint))
    if ignored and client.capabilities[0].since:
        yield f"It ignores {ignored}.\n"
    has_own_rules = "rules" in tomllib.loads(catalog.text_of("client", client.name))
    if client.like:
        what = "capabilities" if has_own_rules or not client.rules else "capabilities and rules"
        yield f"Its {what} are those of {_link('client', client.like)}, as of its version.\n"
    for key, table in client.tables.items():
        yield from _about_table(key, table)
    if client.tables and not has_own_rules:
        yield from _classes(client)
    elif client.rules:
        heads = [_SIGNALS[key] for key in client.tables]
        yield f"| resource | class | {' | '.join(heads)} |"
        yield f"|{'---|' * (2 + len(heads))}"
        for rule in client.rules:
            yield _row(client, _words(rule), rule.class_name)
        yield _row(client, "anything else", client.otherwise) + "\n"
    if client.client_windows is not None:
        stated = write_table(client.client_windows).items()
        windows = ", ".join(f"`{key} = {value}`" for key, value in stated)
        yield f"[Flow control of HTTP/2](../networks.md#http2s-flow-control): {windows}.\n"
    yield f"Source: {client.source}.\n"


def _classes(client: Client) -> Iterator[str]:
    """Yield the signals of each class alone, as the rules are those of another client."""
    heads = [_SIGNALS[key] for key in client.tables]
    yield f"| class | {' | '.join(heads)} |"
    yield f"|{'---|' * (1 + len(heads))}"
    for name in dict.fromkeys([*(rule.class_name for rule in client.rules), client.otherwise]):
        yield _row(client, "", name).removeprefix("|  ")
    yield ""


def _about_table(key: str, table: SignalTable) -> Iterator[str]:
    if table.placeholders:
        yield "| placeholder | under | weight |\n|---|---|---|"
        for holder in table.placeholders:
            under = f"`{holder.parent}`" if holder.parent else "the root"
            yield f"| `{holder.name}` | {under} | {holder.weight} |"
        yield ""
    changed = ", ".join(f"`{each}`" for each in table.updates) or "none"
    over = "" if table.http2_updates else "; over HTTP/2 it sends none"
    yield f"Changes of open requests that it sends over {_SIGNALS[key]}: {changed}{over}.\n"


def _row(client: Client, words: str, class_name: str) -> str:
    said = []
    for key, table in client.tables.items():
        name = table.signal_names[class_name]
        (entry,) = (each for each in table.classes if each.name == name)
        said.append(_signal(key, entry))
    return f"| {words} | `{class_name}` | {' | '.join(said)} |"


def _signal(key: str, entry: SignalClass) -> str:
    if key == "eps":
        return f"urgency {entry.urgency}{', incremental' if entry.incremental else ''}"
    under = f" under `{entry.group}`" if entry.group else ""
    chain = ", in the chain" if entry.arrangement.value != "siblings" else ""
    return f"weight {entry.weight}{under}{chain}"


def _words(rule: Rule) -> str:
    kinds = " or ".join(kind.value for kind in rule.kinds)
    words = [kinds or ("the main document" if rule.root else "anything")]
    words += [_FLAGS[flag] for flag in rule.flags]
    words += [" or ".join(rule.any_of)] if rule.any_of else []
    words += [f"fetchpriority {rule.fetchpriority.value}"] if rule.fetchpriority else []
    words += ["shown by layout"] if rule.visible else []
    words += ["in a tab in the background"] if rule.hidden else []
    words += [f"one of the first {rule.first_images}"] if rule.first_images else []
    return ", ".join(words)


def _scheme(scheme: Scheme, document: dict[str, Any]) -> Iterator[str]:
    yield f"## {scheme.name}\n"
    table = write_table(scheme)
    left_out = {*_DESCRIBED, "mechanism", "placeholders", "classes", "rules", "otherwise"}
    settings = "".join(f", `{key} = {_value(table[key])}`" for key in table if key not in left_out)
    text = f"{scheme.title}. Mechanism `{scheme.mechanism.value}`{settings}. {scheme.notes}"
    yield f"{text.rstrip()}\n"
    if scheme.caveat:
        yield f"**Caveat:** {scheme.caveat}.\n"
    if scheme.placeholders:
        yield "| placeholder | under | signal |\n|---|---|---|"
        for holder in scheme.placeholders:
            under = f"`{holder.parent}`" if holder.parent else "the root"
            while_ = f"; {holder.yielding_weight} while class `{holder.yields_to}` has a stream"
            yields = f"{while_} in the tree" if holder.yields_to else ""
            strict = f", strict priority {holder.strict}" if "strict" in write_table(holder) else ""
            yield f"| `{holder.name}` | {under} | weight {holder.weight}{strict}{yields} |"
        yield ""
    if "rules" in document:
        yield "| resource | class | signal |\n|---|---|---|"
        rows = [(_words(rule), rule.class_name) for rule in scheme.rules]
        for words, name in [*rows, ("anything else", scheme.otherwise)]:
            yield f"| {words} | `{name}` | {_signal_of(scheme, name)} |"
        yield ""
    elif "client" in document:
        yield f"The rules are those of {_link('client', document['client'])}.\n"
        if "classes" in document:
            yield "| class | signal |\n|---|---|"
            for entry in scheme.classes:
                yield f"| `{entry.name}` | {_signal_of(scheme, entry.name)} |"
            yield ""
    yield f"Source: {scheme.source}.\n"


def _signal_of(scheme: Scheme, name: str) -> str:
    """Return the signal of a class in words of the scheme's mechanism."""
    entry = scheme.class_named(name)
    under = f" under `{entry.group}`" if entry.group else ""
    if entry.bucket is not None:
        return f"bucket {entry.bucket}, level {entry.level}"
    if scheme.mechanism is SchedulerKind.EPS:
        return f"urgency {entry.urgency}{', incremental' if entry.incremental else ''}"
    if scheme.mechanism is SchedulerKind.STRICT:
        is_chain = entry.arrangement is not Arrangement.SIBLINGS
        return f"strict priority {entry.strict}{' and down, a chain' if is_chain else ''}{under}"
    chain = "" if entry.arrangement is Arrangement.SIBLINGS else f", {entry.arrangement.value}"
    return f"weight {entry.weight}{under}{chain}"


def _server(server: Server) -> Iterator[str]:
    yield from _described(server)
    table = write_table(server)
    settings = [f"`{key} = {_value(table[key])}`" for key in table if key not in _DESCRIBED]
    yield f"{', '.join(settings)}.\n"
    yield f"Source: {server.source}.\n"
