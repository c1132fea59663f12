// Five guided steps. Each sets up a state, asks, and says when its goal is reached.

const resultOf = (results, name) => results.find((result) => result.scheme === name);

export const LESSON = [
  {
    title: "One link, two orders",
    set: { schemes: ["rr", "fifo"] },
    text: [
      "Each rectangle is a packet, drawn when its bytes reach the browser; its number and colour say which resource it belongs to. The dashed line marks when everything above the fold is complete.",
      "fifo sends one response after the other: long blocks. rr, round robin, shares the link among all requested resources: narrow stripes. Both send the same bytes, and the last packet arrives at the same time.",
      "Before you look: with which of the two is script 2, which everything waits for, complete first?",
    ],
    goal: "Set the rate so that the last packet comes before 2,600 ms. Does the order change?",
    isReached: (state, results) => results.length > 0 && results.every((result) => result.page_load_ms < 2600),
    answer: "A faster link shortens everything and changes no order: the scheme decides the order. top.js is complete earlier with fifo; with rr, three images that nobody sees yet take turns with it.",
  },
  {
    title: "What should come first",
    set: { schemes: ["rr", "fifo", "dfifo"] },
    text: [
      "The ByteIndex is the mean completion time of resources, weighted by their bytes: the area above the curve below. Less is better. What matters most to a user is visible at once: above the fold (▲).",
      "dfifo is what Chrome did in 2019: the most important kind of resource first, one after the other. It does not know which images are visible.",
    ],
    goal: "Add a scheme whose ByteIndex above the fold is below 1,200 ms.",
    isReached: (state, results) => results.some((result) => result.byte_index_above_the_fold_ms !== null && result.byte_index_above_the_fold_ms < 1200),
    answer: "bucket and bucket-html do, and so do zeroweight and atf-first: they know which images are visible. No browser knows that when it sends the request; it learns it at the first layout, or from fetchpriority.",
  },
  {
    title: "The send buffer takes the choice away",
    set: { schemes: ["fifo", "bucket-html"] },
    text: [
      "A server writes bytes to a send buffer before they leave. What is in it can no longer be reordered, whatever is requested later.",
      "bucket-html wins clearly without a buffer. How large a buffer does it take until most of that is gone?",
    ],
    goal: "Raise the send buffer until bucket-html is above 2,000 ms above the fold.",
    isReached: (state, results) => (resultOf(results, "bucket-html")?.byte_index_above_the_fold_ms ?? 0) > 2000,
    answer: "At 280 kB, the buffer of an operating system, it is gone; with 1,000 kB, more than the page, every scheme is fifo. Servers that prioritize well keep unsent bytes few (TCP_NOTSENT_LOWAT).",
  },
  {
    title: "Head-of-line blocking",
    set: { schemes: ["rr", "fifo"], transport: "tcp", reorder: "4:1-3" },
    text: [
      "Every fourth packet arrives behind one to three others. TCP delivers bytes to the application in one order, so what has arrived must wait: stacks are packets that were delivered together.",
      "QUIC keeps an order for each stream only. The table counts the bytes that had to wait, here and in the other order.",
    ],
    goal: "Get the HOL-blocked bytes of one scheme below 20,000.",
    isReached: (state, results) => results.some((result) => result.blocked_bytes < 20000),
    answer: "With QUIC, rr has hardly a byte blocked: the packets behind a late one belong to other streams. fifo has one stream at a time and gains nothing from QUIC. And yet fifo has the lower ByteIndex: fewer blocked bytes are not by themselves a faster page.",
  },
  {
    title: "When round robin wins",
    set: { schemes: ["rr", "fifo"], rate: 2, rtt: 100, loss: 2 },
    text: [
      "With loss, congestion control decides when packets leave, and lost ones are retransmitted. One seed is one random outcome: change the seed and see how much moves.",
      "On this page fifo stays ahead. But fifo depends on a lucky order: what is visible must have been requested early.",
    ],
    goal: "Find a page or a network where rr is ahead of fifo above the fold.",
    isReached: (state, results) => {
      const [rr, fifo] = [resultOf(results, "rr"), resultOf(results, "fifo")].map((result) => result?.byte_index_above_the_fold_ms ?? null);
      return rr !== null && fifo !== null && rr < fifo;
    },
    answer: "http2rulez is one: its large images are requested before what is visible, and fifo sends them first. Sharing the link insures against a bad order, and costs where the order was good. Now drop in a HAR of a page of your own.",
  },
];
