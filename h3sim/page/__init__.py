"""Pages: what is loaded, and why each part of it is asked for."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach
from h3sim.page.files import page_from_dict, page_to_dict, read_page, schema
from h3sim.page.hosts import ConnectionMode, Host
from h3sim.page.marks import MarksFrom
from h3sim.page.model import Page
from h3sim.page.recorded_groups import RecordedGroup
from h3sim.page.recorded_load import RecordedLoad
from h3sim.page.resource import (
    FLAGS,
    At,
    Discovery,
    FetchPriority,
    Group,
    Kind,
    Level,
    PriorityChange,
    RecordedFrom,
    RecordedPriority,
    Resource,
)
from h3sim.page.server_priority import ServerPriority
from h3sim.page.standing import AS_WRITTEN, Standing

if TYPE_CHECKING:
    from h3sim.page.beside import Opened, beside
    from h3sim.page.first_layout import with_first_layout
    from h3sim.page.synthetic import synthetic
    from h3sim.page.variants import (
        with_cached,
        with_early_hints,
        with_inlined_styles,
        with_push,
        with_revalidated,
        with_staged_hints,
    )

__all__ = [
    "AS_WRITTEN",
    "FLAGS",
    "At",
    "ConnectionMode",
    "Discovery",
    "FetchPriority",
    "Group",
    "Host",
    "Kind",
    "Level",
    "MarksFrom",
    "Opened",
    "Page",
    "PriorityChange",
    "RecordedFrom",
    "RecordedGroup",
    "RecordedLoad",
    "RecordedPriority",
    "Resource",
    "ServerPriority",
    "Standing",
    "beside",
    "page_from_dict",
    "page_to_dict",
    "read_page",
    "schema",
    "synthetic",
    "with_cached",
    "with_early_hints",
    "with_first_layout",
    "with_inlined_styles",
    "with_push",
    "with_revalidated",
    "with_staged_hints",
]

__getattr__, __dir__ = attach(
    __name__,
    beside="Opened beside",
    first_layout="with_first_layout",
    synthetic="synthetic",
    variants="with_cached with_early_hints with_inlined_styles with_push with_revalidated"
    " with_staged_hints",
)
