// What stands above the fold, measured in the loaded page: for each image the visible parts of its
// boxes, for each text its font and the visible parts of its lines, as [x, y, width, height] in CSS
// pixels of the viewport. It runs in the world of watch.js, where the page's scripts have not replaced
// anything it uses.
(async () => {
  const width = innerWidth, height = innerHeight;
  const absolute = (url) => { try { return new URL(url, document.baseURI).href.split("#")[0]; } catch { return ""; } };
  const inBackground = (text) => [...text.matchAll(/url\((?:"([^"]*)"|'([^']*)'|([^)"']*))\)/g)]
    .map((match) => absolute(match[1] ?? match[2] ?? match[3])).filter((url) => url.startsWith("http"));
  const elements = [...document.querySelectorAll("*")].slice(0, 50000);

  // The intersection observer knows what overflow, clips and scroll containers hide.
  const seen = new Map();
  await new Promise((done) => {
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const box = entry.intersectionRect;
        if (box.width * box.height > 0) seen.set(entry.target, box);
      }
      observer.disconnect();
      done();
    });
    elements.forEach((element) => observer.observe(element));
    setTimeout(done, 2000);
  });
  const shown = (element) => seen.has(element)
    && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const clip = (box, bounds) => {
    const x = Math.max(box.left, bounds.left, 0), y = Math.max(box.top, bounds.top, 0);
    return [x, y, Math.min(box.right, bounds.right, width) - x, Math.min(box.bottom, bounds.bottom, height) - y];
  };

  const images = {}, texts = {};
  const add = (table, key, part) => { if (key && part[2] > 0 && part[3] > 0) (table[key] ??= []).push(part); };
  const font = (style) => JSON.stringify([style.fontFamily, style.fontWeight, style.fontStyle]);
  for (const element of elements) {
    if (!shown(element)) continue;
    const box = seen.get(element), part = [box.x, box.y, box.width, box.height];
    const image = element.currentSrc || element.poster || (element.tagName === "INPUT" && element.src)
      || (element.tagName === "image" && element.href?.baseVal)
      || (element.tagName === "OBJECT" && element.data) || (element.tagName === "EMBED" && element.src);
    if (image) add(images, absolute(image), part);
    for (const pseudo of [null, "::before", "::after"]) {
      const style = getComputedStyle(element, pseudo);
      if (pseudo && (style.content === "none" || style.content === "normal" || style.display === "none")) continue;
      for (const property of ["backgroundImage", "borderImageSource", "maskImage", "listStyleImage", "content"]) {
        if (style[property]?.includes("url(")) {
          for (const url of inBackground(style[property])) add(images, url, part);
        }
      }
      if (pseudo && style.content.length > 2) {
        // A letter is taken as a square; lines of the box as full.
        const size = parseFloat(style.fontSize) || 0, wide = Math.min(box.width, size * (style.content.length - 2));
        add(texts, font(style), [box.x, box.y, wide, Math.min(box.height, (size * size * (style.content.length - 2)) / wide)]);
      }
    }
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const style = font(getComputedStyle(element));
      for (const line of range.getClientRects()) add(texts, style, clip(line, box));
    }
  }
  const blocking = {};
  for (const entry of performance.getEntriesByType("resource")) {
    if (entry.renderBlockingStatus === "blocking") blocking[entry.name.split("#")[0]] = true;
  }
  const paints = {};
  for (const entry of performance.getEntriesByType("paint")) paints[entry.name] = entry.startTime;
  return JSON.stringify({ viewport: [width, height], images, texts, blocking, paints, largest: globalThis.__h3sim_largest ?? null });
})()
