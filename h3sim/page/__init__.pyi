"""The public names of `h3sim.page`, each loaded when it is first used."""

from h3sim.page.beside import (
    Opened as Opened,
    beside as beside,
)
from h3sim.page.files import (
    page_from_dict as page_from_dict,
    page_to_dict as page_to_dict,
    read_page as read_page,
    schema as schema,
)
from h3sim.page.first_layout import with_first_layout as with_first_layout
from h3sim.page.hosts import (
    Host as Host,
    ConnectionMode as ConnectionMode,
)
from h3sim.page.marks import MarksFrom as MarksFrom
from h3sim.page.model import Page as Page
from h3sim.page.recorded_groups import RecordedGroup as RecordedGroup
from h3sim.page.recorded_load import RecordedLoad as RecordedLoad
from h3sim.page.resource import (
    FLAGS as FLAGS,
    At as At,
    Discovery as Discovery,
    FetchPriority as FetchPriority,
    Group as Group,
    Kind as Kind,
    Level as Level,
    PriorityChange as PriorityChange,
    RecordedFrom as RecordedFrom,
    RecordedPriority as RecordedPriority,
    Resource as Resource,
)
from h3sim.page.server_priority import ServerPriority as ServerPriority
from h3sim.page.standing import (
    AS_WRITTEN as AS_WRITTEN,
    Standing as Standing,
)
from h3sim.page.synthetic import synthetic as synthetic
from h3sim.page.variants import (
    with_cached as with_cached,
    with_early_hints as with_early_hints,
    with_inlined_styles as with_inlined_styles,
    with_push as with_push,
    with_revalidated as with_revalidated,
    with_staged_hints as with_staged_hints,
)

__all__: list[str]
