// Runs before the page's own scripts: remembers the largest contentful paint, and makes room for
// the timings of many resources. It also notes synchronous requests: what follows waits for them.
(() => {
  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, url, later = true, ...rest) {
    if (!later) {
      const address = new URL(url, document.baseURI).href.split("#")[0];
      (top.__h3sim_waited ??= []).push(address);
    }
    return open.call(this, method, url, later, ...rest);
  };
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
