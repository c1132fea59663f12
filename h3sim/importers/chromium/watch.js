// Runs before the page's own scripts, in a world of its own that they cannot change: remembers the
// largest contentful paint, and makes room for the timings of many resources.
(() => {
  performance.setResourceTimingBufferSize(20000);
  if (window !== top) return;
  new PerformanceObserver((list) => {
    const entry = list.getEntries().at(-1);
    const style = entry.element ? getComputedStyle(entry.element) : null;
    globalThis.__h3sim_largest = {
      at_ms: entry.startTime,
      url: entry.url ? entry.url.split("#")[0] : "",
      font: style ? [style.fontFamily, style.fontWeight, style.fontStyle] : null,
    };
  }).observe({ type: "largest-contentful-paint", buffered: true });
})();
