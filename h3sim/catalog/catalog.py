"""Pages, networks, schemes and sets of them, by name or by path."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from h3sim import transport
from h3sim.catalog.resources import root
from h3sim.catalog.web import (
    PERIODS,
    SET,
    is_web,
    n_requests,
    web_documents,
    web_names,
    web_page,
)
from h3sim.page import Page, page_from_dict, read_page
from h3sim.page.categories import SIZES, size_class
from h3sim.schema import format_value, parse_toml, read_text, shown_path
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.fields import declare, read_document, validate
from h3sim.schema.files import ZIP_MAGIC, read_head
from h3sim.schema.values import ListOf, TableOf, Text
from h3sim.schemes.halves import (
    BEFORE,
    Client,
    Server,
    client_from_toml,
    client_of,
    name_of_pair,
    pair_document,
    server_from_toml,
    server_of,
)
from h3sim.schemes.model import FORMAT as SCHEME
from h3sim.schemes.model import Scheme, scheme_from_dict
from h3sim.transport import Network, network_from_toml, read_network
from h3sim.values.errors import (
    InputError,
    NetworkError,
    PageError,
    SchemeError,
    UnknownNameError,
    ValidationIssue,
)
from h3sim.values.table import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.resources.abc import Traversable

    from h3sim.transport import TransportProfile


_SETS_FILE = "sets.toml"
_NAMES_BY_SET = TableOf(ListOf(Text(is_needed=True), "names"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NameSets:
    """Named sets of schemes and pages, in display order.

    Raises:
        InputError: listing every set that is not a list of names.
    """

    schemes: Mapping[str, tuple[str, ...]] = field(
        metadata=declare(_NAMES_BY_SET, "schemes by set")
    )
    pages: Mapping[str, tuple[str, ...]] = field(metadata=declare(_NAMES_BY_SET, "pages by set"))

    def __post_init__(self) -> None:
        validate(self, InputError)


@cache
def shipped_sets() -> NameSets:
    """Return the shipped sets."""
    text = (root("models") / _SETS_FILE).read_text("utf-8")
    document = parse_toml(text, InputError, source=_SETS_FILE)
    return read_document(NameSets, document, InputError, source=_SETS_FILE)


HalfLike: TypeAlias = "str | Path"
"""The name of a client or a server, or the path of its file."""
ValueT = TypeVar("ValueT")
DEFAULT_CLIENT = "chrome"
"""The client before a server if none is named: today's Chrome."""
DEFAULT_SERVER = "rfc9218"
"""The server behind a client if none is named."""
_ALL = "all"
"""Names all shipped clients or servers."""
_CORPUS_SET = "corpus"
"""Name of the set of all shipped pages except the made-up ones."""
_RECORDING_EXTENSIONS = (".har", ".har.gz", ".har.zip", ".html", ".htm")
"""File name extensions of recordings, which only `h3sim import` reads."""
_PAGE_FORMAT = b'"h3sim-page/'
_SIZE_BY_SET = {f"{_CORPUS_SET}:{size}": size for size in SIZES}
"""Sets of the corpus's pages of one size class, which depends on the bytes of their bodies."""
_WEB_SIZES = {
    f"{SET}:small": range(43),
    f"{SET}:medium": range(43, 121),
    f"{SET}:large": range(121, sys.maxsize),
}
"""Sets of pages of the web by their numbers of requests: below the 25th percentile of desktop home
pages in HTTP Archive's crawl of October 2024, up to its 75th, and above (docs/corpus.md)."""
_WEB_PERIODS = {f"{SET}:{period}": period for period in PERIODS}


@dataclass(frozen=True)
class _ShippedFolder(Generic[ValueT]):
    """Folder of shipped files of one kind, and the function that parses such a file."""

    kind: str
    """The kind in messages: "page"."""
    folder: str
    """Package of data files, followed by the folder in it if any: "models/networks"."""
    suffix: str
    parse: Callable[..., ValueT]

    @cached_property
    def files(self) -> dict[str, Traversable]:
        """Shipped files by name; for portability, file names have "-plus" for "+"."""
        package, _, subfolder = self.folder.partition("/")
        folder = root(package) / subfolder if subfolder else root(package)
        return {
            file.name.removesuffix(self.suffix).replace("-plus", "+"): file
            for file in folder.iterdir()
            if file.name.endswith(self.suffix)
        }

    def text(self, name: str) -> str:
        """Return the text of the shipped file of that name."""
        return self.files[name].read_text(encoding="utf-8")

    def shipped_text(self, name: str) -> str:
        """Return the text of the shipped file of that name, for a file that is like it.

        Raises:
            UnknownNameError: if there is none.
        """
        if name not in self.files:
            raise UnknownNameError(self.kind, name, sorted(self.files))
        return self.text(name)

    def shipped(self, name: str) -> ValueT:
        """Return the shipped value of that name."""
        return self.parse(self.text(name), source=self.files[name].name)

    def is_shipped(self, name: str | Path) -> bool:
        """Return whether *name* is that of a shipped value, rather than the path of a file.

        Raises:
            UnknownNameError: if it is neither.
        """
        given: object = name  # callers may ignore the annotation
        if not isinstance(given, str | os.PathLike):
            message = f"must be a name or a path, is {format_value(name)}"
            raise InputError.at(self.kind, message)
        # Shipped names take precedence over a file of that name in the working folder.
        if isinstance(name, str) and name in self.files:
            return True
        text = os.fspath(name)
        looks_like_path = text.endswith(self.suffix) or os.sep in text or isinstance(name, Path)
        # os.path, unlike pathlib, returns False for invalid paths.
        if looks_like_path or os.path.isfile(text):  # noqa: PTH113
            return False
        raise UnknownNameError(self.kind, text, sorted(self.files))

    def load(self, name: str | Path, read: Callable[[str | Path], ValueT]) -> ValueT:
        """Return the shipped value of that name, or what *read* returns of the file."""
        return self.shipped(str(name)) if self.is_shipped(name) else read(name)

    def listing(self, *also: str, names: Iterable[str] | None = None) -> Listing[ValueT]:
        """Return the shipped values, sorted by name or in the order of *names*.

        Their table also shows the attributes *also*.
        """
        return Listing(map(self.shipped, names or sorted(self.files)), also=also)


# All kinds are cached: their values are immutable, and parsed once per process, not per load.
@cache
def _parse_page(text: str, *, source: str) -> Page:
    return page_from_dict(json.loads(text), source=source)


@cache
def _parse_profile(text: str, *, source: str) -> TransportProfile:
    return transport.profile_from_toml(text, source=source)


@cache
def scheme_from_toml(text: str, *, source: str) -> Scheme:
    """Return the scheme in *text*, whose halves may be named.

    Raises:
        SchemeError: listing every error.
    """
    document = parse_toml(text, SchemeError, source=source)
    own = {key: value for key, value in document.items() if key not in ("client", "server")}
    if len(own) < len(document):
        halves: dict[str, Any] = {"client": load_client, "server": load_server}
        found, problems = {}, []
        for key, load in halves.items():
            try:
                found[key] = load(document[key]) if key in document else None
            except UnknownNameError as error:
                problems.append(ValidationIssue(key=key, message=str(error)))
        if problems:
            raise SchemeError(problems, source)
        own = pair_document(found["client"], found["server"], own)
    return scheme_from_dict(own, source=source)


_PAGES = _ShippedFolder("page", "corpora", ".json", _parse_page)
_NETWORKS = _ShippedFolder("network", "models/networks", ".toml", cache(network_from_toml))
_SCHEMES = _ShippedFolder("scheme", "models/schemes", ".toml", scheme_from_toml)


@cache
def _parse_client(text: str, *, source: str) -> Client:
    return client_from_toml(text, source=source, shipped=lambda name: _CLIENTS.shipped_text(name))


@cache
def _parse_server(text: str, *, source: str) -> Server:
    return server_from_toml(text, source=source, shipped=lambda name: _SERVERS.shipped_text(name))


_CLIENTS = _ShippedFolder("client", "models/clients", ".toml", _parse_client)
_SERVERS = _ShippedFolder("server", "models/servers", ".toml", _parse_server)
_PROFILES = _ShippedFolder("profile", "models/profiles", ".toml", _parse_profile)


def load_page(name: str | Path) -> Page:
    """Return the shipped page of that name, or the one in the file at that path.

    Of a page of the set "web" nothing but the load itself is recorded: its name may end with
    " draw N" for other draws of the rest.

    Raises:
        UnknownNameError: if there is neither.
        PageError: listing every error in the file.

    >>> len(load_page("http2rulez").resources)
    32
    """
    if is_web(name):
        return web_page(str(name))
    return _PAGES.load(name, _read_page_file)


def _read_page_file(path: str | Path) -> Page:
    """Read a page file, and say of other files that they may be recordings.

    Raises:
        PageError: listing every error in the file.
    """
    what = "it"
    if not is_recording(path):
        try:
            return read_page(path)
        except PageError:
            if not _may_be_recording(path):
                raise
        what = "a recording"
    command = f"h3sim import {shown_path(path)} -o page.json"
    message = f"is not a page file: convert {what} with `{command}`"
    raise PageError.at("", message, os.fspath(path))


def _may_be_recording(path: str | Path) -> bool:
    """Return whether a file with errors is no attempt at a page file at all.

    Every page file is a JSON object with a format and resources, possibly compressed with gzip.
    """
    begin = read_head(path, PageError).removeprefix(codecs.BOM_UTF8).lstrip()
    if begin.startswith(ZIP_MAGIC):
        return True
    if not begin or b'"resources"' in begin:
        return False
    try:
        document = json.loads(read_text(path, PageError))
    except (PageError, ValueError, RecursionError):  # too large, cut off, or one object per line
        return begin.startswith((b"{", b"[")) and _PAGE_FORMAT not in begin
    keys = document if isinstance(document, dict) else ()
    return bool(document) and "format" not in keys and "resources" not in keys


def is_recording(path: object) -> bool:
    """Return whether *path* is a file with the extension of a recording."""
    if not isinstance(path, str | os.PathLike):
        return False
    name = os.fsdecode(path)
    # os.path, unlike pathlib, returns False for invalid paths.
    return name.lower().endswith(_RECORDING_EXTENSIONS) and os.path.isfile(name)  # noqa: PTH113


def load_network(name: str | Path) -> Network:
    """Return the shipped network of that name, or the one in the file at that path.

    Raises:
        UnknownNameError: if there is neither.
        NetworkError: listing every error in the file.

    >>> load_network("marx-2019").rtt_ns
    0
    """
    return _NETWORKS.load(name, _network_file)


def load_scheme(name: str | Path) -> Scheme:
    """Return the shipped scheme of that name, the one in the file at that path, or a pair.

    A pair is a client before a server, each as `load_client` and `load_server` take them.

    Raises:
        UnknownNameError: if there is none of these.
        SchemeError: listing every error in the file.

    >>> load_scheme("p+").mechanism.value
    'tree'
    >>> load_scheme("safari before nghttp3").turn.size_bytes
    800
    """
    if _is_pair(name):
        client, _, server = str(name).partition(BEFORE)
        return _pair(load_client(client), load_server(server))
    return _SCHEMES.load(name, read_scheme)


def _is_pair(name: object) -> bool:
    return isinstance(name, str) and BEFORE in name and not os.path.isfile(name)  # noqa: PTH113


def read_scheme(path: str | Path) -> Scheme:
    """Return the scheme in the file at *path*.

    Raises:
        SchemeError: if the file cannot be read or is invalid, listing every error.
    """
    return scheme_from_toml(read_text(path, SchemeError), source=str(path))


@cache
def _pair(client: Client, server: Server) -> Scheme:
    document = pair_document(client, server, name_of_pair(client, server))
    return scheme_from_dict(document, source=document["name"])


def load_client(name: str | Path) -> Client:
    """Return the shipped client of that name, the one in the file at that path, or a scheme's.

    Raises:
        UnknownNameError: if there is none of these.
        SchemeError: listing every error in the file.

    >>> load_client("chrome").eps.signal_names["lowest"], load_client("bucket-html").name
    ('lowest', 'bucket-html')
    """
    if isinstance(name, str) and name not in _CLIENTS.files and name in _SCHEMES.files:
        return client_of(_SCHEMES.shipped(name))
    return _CLIENTS.load(
        name, lambda path: _parse_client(read_text(path, SchemeError), source=str(path))
    )


def load_server(name: str | Path) -> Server:
    """Return the shipped server of that name, the one in the file at that path, or a scheme's.

    Raises:
        UnknownNameError: if there is none of these.
        SchemeError: listing every error in the file.

    >>> load_server("nghttp3").reads, load_server("fifo").mechanism.value
    (<Reads.EPS: 'eps'>, 'fifo')
    """
    if isinstance(name, str) and name not in _SERVERS.files and name in _SCHEMES.files:
        return server_of(_SCHEMES.shipped(name))
    return _SERVERS.load(
        name, lambda path: _parse_server(read_text(path, SchemeError), source=str(path))
    )


def pair_names(
    client: HalfLike | Iterable[HalfLike] | None, server: HalfLike | Iterable[HalfLike] | None
) -> tuple[str, ...]:
    """Return the names of the pairs of each client and each server, for `load_scheme`.

    "all" means all that are shipped; None is `DEFAULT_CLIENT` or `DEFAULT_SERVER`.

    Raises:
        InputError: listing every unknown name.
        UnknownNameError: if the only error is an unknown name.

    >>> pair_names(["chrome", "firefox"], "quic-go")
    ('chrome before quic-go', 'firefox before quic-go')
    """
    clients = _each(DEFAULT_CLIENT if client is None else client, _CLIENTS)
    servers = _each(DEFAULT_SERVER if server is None else server, _SERVERS)
    with ErrorCollector() as errors:
        for one in clients:
            errors.collect("client", partial(load_client, one))
        for other in servers:
            errors.collect("server", partial(load_server, other))
    return tuple(f"{one}{BEFORE}{other}" for one in clients for other in servers)


def _each(names: HalfLike | Iterable[HalfLike], folder: _ShippedFolder[Any]) -> list[str]:
    given: object = names  # callers may ignore the annotation
    listed: list[Any] = [given]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | os.PathLike):
        listed = list(given)
    found: list[str] = []
    for name in listed:
        if not isinstance(name, str | os.PathLike):
            message = f"must be a name or a path, is {format_value(name)}"
            raise InputError.at(folder.kind, message)
        found += sorted(folder.files) if name == _ALL else [os.fspath(name)]
    return found


def load_profile(name: str | Path) -> TransportProfile:
    """Return the shipped transport profile of that name, or the one in the file at that path.

    Raises:
        UnknownNameError: if there is neither.
        ProfileError: listing every error in the file.

    >>> load_profile("quicly").quic.datagram_bytes
    1280
    """
    from h3sim.transport.profile import read_profile  # lazy: unused at a constant rate

    return _PROFILES.load(name, read_profile)


def list_profiles() -> Listing[TransportProfile]:
    """Return the shipped transport profiles, by name."""
    return _PROFILES.listing("protocol", "cc", "source")


def list_pages() -> Listing[Page]:
    """Return the pages with a file of their own, by name: all shipped ones but the set "web"."""
    return _PAGES.listing("source")


class PageSummary(NamedTuple):
    """Summary of a shipped page for listings."""

    name: str
    n_resources: int
    total_bytes: int
    n_above_the_fold: int
    source: str


def page_summaries() -> list[PageSummary]:
    """Return summaries of the shipped pages by name, those of the set "web" last.

    They are computed from the parsed JSON: constructing the pages takes ten times as long.

    >>> next(row for row in page_summaries() if row.name == "http2rulez").n_resources
    32
    """
    files = dict(sorted(_PAGES.files.items())).values()
    pages = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return [
        PageSummary(
            name=page["name"],
            n_resources=len(page["resources"]),
            total_bytes=sum(resource["bytes"] for resource in page["resources"]),
            n_above_the_fold=sum(r.get("above_the_fold", False) for r in page["resources"]),
            source=page.get("provenance", {}).get("source", ""),
        )
        for page in (*pages, *web_documents())
    ]


def list_networks() -> Listing[Network]:
    """Return the shipped networks, by name."""
    return _NETWORKS.listing("source")


def list_schemes() -> Listing[Scheme]:
    """Return the shipped schemes: those of sets in their order, then the others by name."""
    in_sets = (name for names in shipped_sets().schemes.values() for name in names)
    names = dict.fromkeys((*in_sets, *sorted(_SCHEMES.files)))  # a scheme may be in several sets
    return _SCHEMES.listing("mechanism", "signalling", "source", names=names)


def list_clients() -> Listing[Client]:
    """Return the shipped clients, by name."""
    return _CLIENTS.listing("version", "date", "source")


def list_servers() -> Listing[Server]:
    """Return the shipped servers, by name."""
    return _SERVERS.listing("version", "date", "mechanism", "reads", "source")


def scheme_set(name: str) -> tuple[str, ...] | None:
    """Return the names of the schemes in that set, or None if there is no such set.

    >>> scheme_set("marx-2019")[:3]
    ('rr', 'wrr', 'fifo')
    """
    return shipped_sets().schemes.get(name) if isinstance(name, str) else None


def page_set(name: str) -> tuple[str, ...] | None:
    """Return the names of the pages in that set, or None if there is no such set.

    "corpus" has all shipped pages by name, except those in the set "made-up"; "corpus:small",
    "corpus:medium" and "corpus:large" are its pages with body bytes below 500 kB, up to 1000 kB,
    and above (the classes of Marx 2019 § 5). "web" has the pages of real sites; it has sets by
    size, "web:small", "web:medium" and "web:large", and by year, "web:2015-2019" and
    "web:2020-2026".

    >>> page_set("papers")
    ('http2rulez', 'davies-meenan')
    """
    given: object = name  # callers may ignore the annotation
    if not isinstance(given, str):
        return None
    sets = shipped_sets().pages
    corpus = sorted(set(_PAGES.files) - set(sets["made-up"]))
    if name == _CORPUS_SET:
        return tuple(corpus)
    if name in _SIZE_BY_SET:
        size = _SIZE_BY_SET[name]
        return tuple(page for page in corpus if size_class(load_page(page).total_bytes) == size)
    if name == SET or name in _WEB_PERIODS:
        return web_names(_WEB_PERIODS.get(name, ""))
    if name in _WEB_SIZES:
        return tuple(page for page in web_names() if n_requests(page) in _WEB_SIZES[name])
    return sets.get(name)


def scheme_set_names() -> tuple[str, ...]:
    """Return the names of all sets of schemes."""
    return tuple(shipped_sets().schemes)


def page_set_names() -> tuple[str, ...]:
    """Return the names of all sets of pages, the computed ones first.

    >>> page_set_names()[:2]
    ('corpus', 'corpus:small')
    """
    web = (SET, *_WEB_SIZES, *_WEB_PERIODS)
    return (_CORPUS_SET, *_SIZE_BY_SET, *web, *shipped_sets().pages)


def text_of(kind: str, name: str) -> str:
    """Return the text of the file that `load_<kind>(name)` reads.

    *kind* is "page", "network", "scheme", "client", "server" or "profile".

    Raises:
        UnknownNameError: if there is no such name or file.
        InputError: if it cannot be read.

    >>> text_of("scheme", "rr").splitlines()[0]
    'format = "h3sim-scheme/1"'
    """
    known = (_PAGES, _NETWORKS, _SCHEMES, _CLIENTS, _SERVERS, _PROFILES)
    folders = {folder.kind: folder for folder in known}
    if kind == "scheme" and _is_pair(name):
        scheme, (client, _, server) = load_scheme(name), name.partition(BEFORE)
        described = {key: getattr(scheme, key) for key in ("name", "title", "source")}
        keys = {"format": SCHEME, **described, "client": client, "server": server}
        # JSON's strings are TOML's.
        return "".join(f"{key} = {json.dumps(text)}\n" for key, text in keys.items())
    if kind == "page" and is_web(name):
        return json.dumps(load_page(name).to_dict(), indent=1) + "\n"
    folder: _ShippedFolder[Any] = folders[kind]
    if kind in ("client", "server") and name not in folder.files and name in _SCHEMES.files:
        folder = _SCHEMES
    return folder.text(name) if folder.is_shipped(name) else read_text(name, InputError)


def _network_file(path: str | Path) -> Network:
    """Read a network file; of a CrUX file, easily taken for one, say which commands read it."""
    if str(path).endswith((".json", ".json.gz")):
        message = (
            "is JSON, but a network file is TOML. A file of CrUX: `h3sim hints --networks FILE`"
            " takes it, and `h3sim import FILE -o FOLDER/` makes network files of it"
        )
        raise NetworkError.at("", message, shown_path(path))
    return read_network(path)
