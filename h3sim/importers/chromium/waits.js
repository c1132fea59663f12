// Runs before the page's own scripts, and among them: notes synchronous requests, since what follows
// waits for them.
(() => {
  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, url, later = true, ...rest) {
    if (!later) {
      const address = new URL(url, document.baseURI).href.split("#")[0];
      (top.__h3sim_waited ??= []).push(address);
    }
    return open.call(this, method, url, later, ...rest);
  };
})();
