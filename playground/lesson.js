// Five guided steps. Each sets up a state, asks, and says when its goal is reached.

const resultOf = (results, name) => results.find((result) => result.scheme === name);

export const LESSON = [
  {
    title: "One link, two orders",
    set: { schemes: ["rr", "fifo"] },
    text: [
      "Each rectangle is a packet, drawn when its bytes reach the browser; its number and colour say which resource it belongs to. The dashed line marks when everything above the fold is complete.",
      "fifo sends one response after the other: long blocks. rr, round robin, shares the link among all that were asked for: narrow stripes. Both send as many bytes, and the last packet comes at the same time.",
      "Before you look: with which of the two is script 2, which everything waits for, complete first?",
    ],
    goal: "Set the rate so that the last packet comes before 2,600 ms. Does the order change?",
    isReached: (state, results) => results.length > 0 && results.every((result) => result.page_load_ms < 2600),
    answer: "A faster link squeezes the picture and leaves its order alone: order is the scheme's. top.js is complete earlier with fifo; rr lets three images that nobody sees yet come between.",
  },
  {
    title: "What should come first",
    set: { schemes: ["rr", "fifo", "dfifo"] },
    text: [
      "The ByteIndex is the mean time at which a byte is there, counting complete resources only: the area above the curve below. Less is better. For a user what counts is mostly what is seen at once: above the fold (▲).",
      "dfifo is what Chrome did in 2019: by importance of the kind, one after the other. It does not know which images are seen.",
    ],
    goal: "Add a scheme whose ByteIndex above the fold is below 1,200 ms.",
    isReached: (state, results) => results.some((result) => result.byte_index_above_the_fold_ms !== null && result.byte_index_above_the_fold_ms < 1200),
    answer: "bucket and bucket-html do it, and so do zeroweight and atf-first: they know which images are visible. No browser knows that when it sends the request; it can learn it at the first layout, or be told by fetchpriority.",
  },
  {
    title: "The send buffer takes the choice away",
    set: { schemes: ["fifo", "bucket-html"] },
    text: [
      "A server hands bytes to a send buffer before they leave. What is in it cannot be put in another order any more, whatever is asked for later.",
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
      "Every fourth packet comes behind one to three others. TCP gives bytes to the application in one order, so what has arrived must wait: stacks are packets that were delivered together.",
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
      "With loss packets leave as congestion control allows, and are sent again. One seed is one accident: change the seed and see how much moves.",
      "On this page fifo stays ahead. But fifo asks for luck: what is seen must have been asked for early.",
    ],
    goal: "Find a page or a network where rr is ahead of fifo above the fold.",
    isReached: (state, results) => {
      const [rr, fifo] = [resultOf(results, "rr"), resultOf(results, "fifo")].map((result) => result?.byte_index_above_the_fold_ms ?? null);
      return rr !== null && fifo !== null && rr < fifo;
    },
    answer: "http2rulez does it: its large images stand before what is seen, and fifo sends them first. Sharing the link is insurance against a bad order, and costs where the order was good. Now drop in a HAR of a page of your own.",
  },
];
