"""The public names of `h3sim.browser`, each loaded when it is first used."""

from h3sim.browser.above_the_fold import infer_above_the_fold as infer_above_the_fold
from h3sim.browser.above_the_fold import needed_for_first_paint as needed_for_first_paint
from h3sim.browser.above_the_fold import with_marks as with_marks
from h3sim.browser.base import Browser as Browser
from h3sim.browser.base import Scheduled as Scheduled
from h3sim.browser.base import ScheduledPriorityChange as ScheduledPriorityChange
from h3sim.browser.base import ScheduledRequest as ScheduledRequest
from h3sim.browser.factory import make_browser as make_browser
from h3sim.browser.model import BrowserMode as BrowserMode
from h3sim.browser.model import BrowserModel as BrowserModel
from h3sim.browser.model import TightMode as TightMode
from h3sim.browser.model import PaintMode as PaintMode
from h3sim.browser.model import BROWSER_OPTIONS as BROWSER_OPTIONS
from h3sim.browser.model import PARSING_OPTIONS as PARSING_OPTIONS
from h3sim.browser.rendering import RenderingBrowser as RenderingBrowser
from h3sim.browser.replay import ReplayBrowser as ReplayBrowser

__all__: list[str]
