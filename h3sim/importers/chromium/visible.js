// What stands above the fold, measured in the loaded page: for each image the visible area of its
// boxes, for each text its font and the visible area of its lines. Areas are in CSS pixels. It runs in
// the world of watch.js, where the page's scripts have not replaced anything it uses.
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
    const w = Math.min(box.right, bounds.right, width) - Math.max(box.left, bounds.left, 0);
    const h = Math.min(box.bottom, bounds.bottom, height) - Math.max(box.top, bounds.top, 0);
    return w > 0 && h > 0 ? w * h : 0;
  };

  const images = {}, texts = {};
  const add = (table, key, area) => { if (key && area > 0) table[key] = (table[key] ?? 0) + area; };
  const font = (style) => JSON.stringify([style.fontFamily, style.fontWeight, style.fontStyle]);
  for (const element of elements) {
    if (!shown(element)) continue;
    const box = seen.get(element), area = box.width * box.height;
    const image = element.currentSrc || element.poster || (element.tagName === "INPUT" && element.src)
      || (element.tagName === "image" && element.href?.baseVal)
      || (element.tagName === "OBJECT" && element.data) || (element.tagName === "EMBED" && element.src);
    if (image) add(images, absolute(image), area);
    for (const pseudo of [null, "::before", "::after"]) {
      const style = getComputedStyle(element, pseudo);
      if (pseudo && (style.content === "none" || style.content === "normal" || style.display === "none")) continue;
      for (const property of ["backgroundImage", "borderImageSource", "maskImage", "listStyleImage", "content"]) {
        if (style[property]?.includes("url(")) {
          for (const url of inBackground(style[property])) add(images, url, area);
        }
      }
      if (pseudo && style.content.length > 2) {
        const size = parseFloat(style.fontSize) || 0;
        add(texts, font(style), Math.min(area, size * size * (style.content.length - 2)));
      }
    }
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      let visible = 0;
      for (const line of range.getClientRects()) visible += clip(line, box);
      add(texts, font(getComputedStyle(element)), visible);
    }
  }
  const blocking = {};
  for (const entry of performance.getEntriesByType("resource")) {
    if (entry.renderBlockingStatus === "blocking") blocking[entry.name.split("#")[0]] = true;
  }
  const paints = {};
  for (const entry of performance.getEntriesByType("paint")) paints[entry.name] = entry.startTime;
  return JSON.stringify({ pixels: width * height, images, texts, blocking, paints, largest: globalThis.__h3sim_largest ?? null });
})()
