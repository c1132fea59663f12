"""The public names of `h3sim.metrics`, each loaded when it is first used."""

from h3sim.metrics.critical_path import PathStep as PathStep
from h3sim.metrics.critical_path import critical_path as critical_path
from h3sim.metrics.hol import Frame as Frame
from h3sim.metrics.hol import HolBlocking as HolBlocking
from h3sim.metrics.hol import SanderCount as SanderCount
from h3sim.metrics.hol import hol_blocking as hol_blocking
from h3sim.metrics.hol import sander_count as sander_count
from h3sim.metrics.hol import stack_heights as stack_heights
from h3sim.metrics.hol import stack_histogram as stack_histogram
from h3sim.metrics.hol import stacks as stacks
from h3sim.metrics.lower_bounds import Response as Response
from h3sim.metrics.lower_bounds import lower_bound_ns as lower_bound_ns
from h3sim.metrics.multiplexing import Sent as Sent
from h3sim.metrics.multiplexing import fairness as fairness
from h3sim.metrics.multiplexing import interleaving as interleaving
from h3sim.metrics.multiplexing import inversion_bytes as inversion_bytes
from h3sim.metrics.multiplexing import reprioritization_delays_ns as reprioritization_delays_ns
from h3sim.metrics.multiplexing import sent_bytes as sent_bytes
from h3sim.metrics.multiplexing import slope as slope
from h3sim.metrics.multiplexing import streams_in_flight as streams_in_flight
from h3sim.metrics.hol import count_blocked as count_blocked
from h3sim.metrics.hol import count_packets as count_packets
from h3sim.metrics.hol import count_queue_drops as count_queue_drops
from h3sim.metrics.hol import count_sander as count_sander
from h3sim.metrics.hol import frames_by_number as frames_by_number
from h3sim.metrics.hol import loss_bursts as loss_bursts
from h3sim.metrics.visual import Element as Element
from h3sim.metrics.visual import Paint as Paint
from h3sim.metrics.visual import first_contentful_paint_ns as first_contentful_paint_ns
from h3sim.metrics.progress import SAMPLE_MS as SAMPLE_MS
from h3sim.metrics.progress import Timing as Timing
from h3sim.metrics.progress import byte_index_ns as byte_index_ns
from h3sim.metrics.visual import largest_paint_ns as largest_paint_ns
from h3sim.metrics.progress import object_index_ns as object_index_ns
from h3sim.metrics.visual import seen_at_ns as seen_at_ns
from h3sim.metrics.visual import speed_index_ns as speed_index_ns
from h3sim.metrics.progress import timings as timings

__all__: list[str]
