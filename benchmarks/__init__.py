"""Speed, shown as ratios to probes that run in the same process, interleaved with the model."""
