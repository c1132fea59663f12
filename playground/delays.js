// What delayed a resource: whose packets arrived while it, or what led to its request, was loaded.

const rowsOf = new WeakMap();

// The row of a resource, by its index in the page.
export function rowOf(result, resource) {
  if (!rowsOf.has(result)) rowsOf.set(result, new Map(result.numbers.map((number, index) => [number, result.resources[index]])));
  return rowsOf.get(result).get(resource);
}

// The resource and those that led to its request, each with the time in which others delayed it:
// from its request to its end, or to the next request if that came first.
function chainOf(result, resource) {
  const indices = new Map(result.resources.map((row, index) => [row.id, result.numbers[index]]));
  const chain = [];
  for (let [next, end] = [resource, Infinity]; next !== undefined && !chain.some((link) => link.resource === next);) {
    const row = rowOf(result, next);
    if (row === undefined) break;
    chain.push({ resource: next, row, from: row.requested_ms, to: Math.min(row.finished_ms, end), delay_ms: 0 });
    [next, end] = [indices.get(row.requested_by), row.requested_ms];
  }
  return chain;
}

// *chain* begins with the resource itself; *others* are [resource, ms], the longest delay first.
export function delaysOf(result, resource) {
  const chain = chainOf(result, resource);
  const spent = new Map();
  for (const [other, start, stop, , height] of result.boxes) {
    for (const link of chain) {
      // Packets that were delivered together share their time.
      const ms = other === link.resource ? 0 : (Math.min(stop, link.to) - Math.max(start, link.from)) / height;
      if (ms <= 0) continue;
      link.delay_ms += ms;
      spent.set(other, (spent.get(other) ?? 0) + ms);
    }
  }
  return { chain, others: [...spent].sort(([, one], [, other]) => other - one) };
}

// The resource that was complete last, of those above the fold where there are any.
export function lastOf(result) {
  const seen = result.resources.filter((row) => row.above_the_fold);
  const rows = seen.length > 0 ? seen : result.resources;
  const last = rows.reduce((latest, row) => (row.finished_ms > latest.finished_ms ? row : latest), rows[0]);
  return last === undefined ? null : result.numbers[result.resources.indexOf(last)];
}
