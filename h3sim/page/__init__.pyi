"""The public names of `h3sim.page`, each loaded when it is first used."""

from h3sim.page.model import page_from_dict as page_from_dict
from h3sim.page.model import page_to_dict as page_to_dict
from h3sim.page.model import read_page as read_page
from h3sim.page.model import schema as schema
from h3sim.page.hosts import ConnectionMode as ConnectionMode
from h3sim.page.hosts import Host as Host
from h3sim.page.model import MarksFrom as MarksFrom
from h3sim.page.model import Page as Page
from h3sim.page.recording import Layout as Layout
from h3sim.page.recording import RecordedGroup as RecordedGroup
from h3sim.page.recording import RecordedLoad as RecordedLoad
from h3sim.page.recording import Rectangle as Rectangle
from h3sim.page.resource import UNCHANGED as UNCHANGED
from h3sim.page.resource import TriggerEvent as TriggerEvent
from h3sim.page.resource import Discovery as Discovery
from h3sim.page.resource import FLAGS as FLAGS
from h3sim.page.resource import FetchPriority as FetchPriority
from h3sim.page.resource import FontDisplay as FontDisplay
from h3sim.page.resource import Group as Group
from h3sim.page.resource import ImageFormat as ImageFormat
from h3sim.page.resource import Kind as Kind
from h3sim.page.resource import Level as Level
from h3sim.page.resource import PriorityChange as PriorityChange
from h3sim.page.resource import RecordedFrom as RecordedFrom
from h3sim.page.resource import RecordedPriority as RecordedPriority
from h3sim.page.resource import Resource as Resource
from h3sim.page.resource import ServerPriority as ServerPriority
from h3sim.page.resource import ResourceState as ResourceState
from h3sim.page.synthetic import synthetic as synthetic
from h3sim.page.transforms import OpenMode as OpenMode
from h3sim.page.transforms import merge_pages as merge_pages
from h3sim.page.transforms import with_cached as with_cached
from h3sim.page.transforms import with_inlined as with_inlined
from h3sim.page.transforms import with_preconnect as with_preconnect
from h3sim.page.transforms import with_same_host as with_same_host
from h3sim.page.transforms import with_early_hints as with_early_hints
from h3sim.page.transforms import with_first_layout as with_first_layout
from h3sim.page.transforms import with_inlined_styles as with_inlined_styles
from h3sim.page.transforms import with_push as with_push
from h3sim.page.transforms import with_revalidated as with_revalidated
from h3sim.page.transforms import with_staged_hints as with_staged_hints

__all__: list[str]
