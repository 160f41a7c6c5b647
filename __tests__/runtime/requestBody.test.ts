import { coarseNow } from "../../src/runtime/sockets/deadlines.js";
import type { BodySink } from "../../src/runtime/exchange/exchange.js";
import { type BodyOwner, RequestBody } from "../../src/runtime/exchange/requestBody.js";

/** A request body between its protocol and who reads it: lengths, pace, deadlines, and what nobody reads. */

/** A protocol that notes what it is asked for. */
class Owner implements BodyOwner {
  bodyIdleMs = 1_000;
  bodyBytesMax = 0;
  bodyHeldBack = false;
  readonly calls: string[] = [];
  consumed = 0;
  bodyPaused = (): void => void this.calls.push("paused");
  bodyResumed = (): void => void this.calls.push("resumed");
  bodyFailed = (status: number): void => void this.calls.push(`failed ${status}`);
  stopBody = (): void => void this.calls.push("stopped");
  onFault = (error: unknown): void => void this.calls.push(String(error));
  bodyConsumed = (bytes: number): void => {
    // A window that grows by nothing is an error of HTTP/2.
    expect(bytes).toBeGreaterThan(0);
    this.consumed += bytes;
  };
}

/** A reader that takes what it gets, or holds on to it. */
class Sink implements BodySink {
  text = "";
  takes = true;
  ends = 0;
  onData(chunk: Uint8Array): boolean {
    this.text += Buffer.from(chunk).toString("latin1");
    return this.takes;
  }
  onEnd(): void {
    this.ends++;
  }
}

let owner: Owner;
let sink: Sink;
let body: RequestBody;
beforeEach(() => {
  owner = new Owner();
  sink = new Sink();
  body = new RequestBody(owner, -1, false);
});

/** Bytes as they come: in the middle of what was read. */
function send(text: string): boolean {
  const chunk = Buffer.from(`<${text}>`, "latin1");
  const taken = body.data(chunk, 1, 1 + text.length, true);
  chunk.fill("#");
  return taken;
}
const turn = (): Promise<void> => new Promise(setImmediate);
const after = (ms: number): void => body.sweep(coarseNow() + ms);

test("bytes are delivered at once, and consumed when the sink took them", () => {
  body.attach(sink);
  expect([body.attached, owner.calls]).toEqual([true, ["resumed"]]);
  expect([send("ab"), send("c"), body.end()]).toEqual([true, true, true]);
  expect([sink.text, sink.ends, owner.consumed, body.ended]).toEqual(["abc", 1, 3, true]);
  expect(owner.calls).toEqual(["resumed"]);
});

test("bytes that come before the body is read wait, and stay in order", async () => {
  expect(body.attached).toBe(false);
  send("ab");
  send("cd");
  expect([owner.calls, owner.consumed]).toEqual([["paused", "paused"], 0]);
  body.attach(sink);
  // Not inside the call of who reads.
  expect(sink.text).toBe("");
  send("e");
  body.end();
  expect([sink.text, sink.ends]).toEqual(["", 0]);
  await turn();
  expect([sink.text, sink.ends, owner.consumed]).toEqual(["abcde", 1, 5]);
});

test("an end that came before the body is read is delivered later", async () => {
  body.end();
  body.attach(sink);
  expect(sink.ends).toBe(0);
  await turn();
  expect([sink.ends, owner.calls.includes("paused")]).toEqual([1, false]);
});

test("a sink that has not taken a piece gets no more", () => {
  body.attach(sink);
  sink.takes = false;
  send("ab");
  expect([owner.calls.at(-1), owner.consumed]).toEqual(["paused", 0]);
  body.pause();
  expect(owner.calls).toEqual(["resumed", "paused"]);
  send("cd");
  send("ef");
  body.end();
  expect([sink.text, sink.ends]).toEqual(["ab", 0]);
  body.resume();
  // What waited came as one piece, and nothing comes after it but the end.
  expect([sink.text, sink.ends, owner.consumed]).toEqual(["abcdef", 1, 2]);
  body.resume();
  expect([sink.ends, owner.consumed]).toEqual([1, 6]);
});

test("a sink is never called from within its own call", async () => {
  let inside = 0;
  const seen: string[] = [];
  const calling = (what: string, call: () => void): void => {
    seen.push(inside++ === 0 ? what : `${what} inside`);
    call();
    inside--;
  };
  const parts = ["b", "c"];
  const reader: BodySink = {
    onData: (chunk) => {
      calling(Buffer.from(chunk).toString("latin1"), () => {
        body.pause();
        const next = parts.shift();
        if (next === undefined) body.end();
        else send(next);
        body.resume();
      });
      return true;
    },
    onEnd: () => calling("end", () => undefined),
  };
  send("a");
  body.attach(reader);
  await turn();
  expect(seen).toEqual(["a", "b", "c", "end"]);
});

test("a pause after the end says nothing", () => {
  body.attach(sink);
  body.end();
  body.pause();
  expect([sink.ends, owner.calls]).toEqual([1, ["resumed"]]);
});

test("a pause between two pieces stops the second", () => {
  body.attach(sink);
  send("a");
  body.pause();
  send("b");
  expect(sink.text).toBe("a");
  body.resume();
  expect([sink.text, owner.calls]).toEqual(["ab", ["resumed", "paused", "resumed"]]);
});

describe("a declared length", () => {
  beforeEach(() => {
    body = new RequestBody(owner, 5, false);
    body.attach(sink);
  });

  test("is counted down, and ends the body where it is reached", () => {
    expect([body.left, send("abc"), body.left, body.end()]).toEqual([5, true, 2, false]);
    expect([sink.ends, body.ended]).toEqual([0, false]);
    expect([send("de"), body.left, body.end(), sink.text]).toEqual([true, 0, true, "abcde"]);
  });

  test("is never exceeded by a visible byte", () => {
    expect([send("abc"), send("def"), sink.text, owner.consumed]).toEqual([true, false, "abc", 6]);
  });
});

test("a body without a declared length has no known rest, and does not count as short", () => {
  expect([body.left, body.drainable]).toEqual([-1, false]);
  body.end();
  expect(body.drainable).toBe(true);
});

test.each([
  [65_536, true],
  [65_537, false],
])("%i bytes count as few: %j", (declared, few) => {
  body = new RequestBody(owner, declared, false);
  expect(body.drainable).toBe(few);
  send("x");
  expect(body.drainable).toBe(true);
});

test("beyond the route's limit it fails, and none of the piece is delivered", () => {
  owner.bodyBytesMax = 5;
  body.attach(sink);
  send("abcde");
  send("f");
  expect([sink.text, owner.calls.at(-1), owner.consumed]).toEqual(["abcde", "failed 413", 6]);
});

describe("a body that is no longer read", () => {
  test("is dropped with what waited, and consumed", async () => {
    send("abc");
    body.discardRest(2_000);
    expect([owner.consumed, body.attached]).toEqual([3, false]);
    send("de");
    body.discardRest(9_000);
    body.attach(sink);
    await turn();
    expect([owner.consumed, sink.text, owner.calls]).toEqual([5, "", ["paused"]]);
    expect(body.attached).toBe(false);
    after(1_999);
    expect(owner.calls.includes("stopped")).toBe(false);
    after(2_000);
    expect(owner.calls.filter((call) => call === "stopped")).toHaveLength(1);
    after(9_000);
    expect(owner.calls.filter((call) => call === "stopped")).toHaveLength(1);
  });

  test("releases what its reader kept", () => {
    body.attach(sink);
    sink.takes = false;
    send("abc");
    body.discardRest(2_000);
    expect([owner.consumed, sink.ends]).toEqual([3, 0]);
    body.end();
    after(5_000);
    expect([sink.ends, owner.calls.includes("stopped")]).toEqual([0, false]);
  });

  test("is read on for 64 KiB", () => {
    body.discardRest(2_000);
    body.data(Buffer.alloc(65_536), 0, 65_536, false);
    expect(owner.calls).toEqual([]);
    send("x");
    expect([owner.calls, owner.consumed]).toEqual([["stopped"], 65_537]);
  });

  test("may be told before that it will be read to its end, whatever has come by then", () => {
    body = new RequestBody(owner, 100_000, false);
    body.data(Buffer.alloc(40_000), 0, 40_000, false);
    expect(body.drainable).toBe(true);
    body.discardRest(2_000);
    body.data(Buffer.alloc(60_000), 0, 60_000, false);
    expect([body.end(), owner.calls, owner.consumed]).toEqual([true, ["paused"], 100_000]);
  });

  test("keeps its deadline, whatever its reader and its client wait for", () => {
    body.attach(sink);
    sink.takes = false;
    send("abc");
    body.discardRest(2_000);
    body.resume();
    owner.bodyHeldBack = true;
    after(1_999);
    expect(owner.calls).not.toContain("stopped");
    after(2_000);
    expect(owner.calls).toContain("stopped");
  });

  test("and has ended is dropped, however long it was", () => {
    send("x".repeat(70_000));
    body.end();
    body.discardRest(2_000);
    expect([owner.calls, owner.consumed]).toEqual([["paused"], 70_000]);
  });

  test("that has ended has no deadline", () => {
    body.end();
    body.discardRest(2_000);
    after(5_000);
    expect(owner.calls).toEqual([]);
  });
});

test("nothing of a body is delivered once nobody wants it any more", async () => {
  body.attach(sink);
  send("ab");
  body.abandon();
  body.abandon();
  send("cd");
  body.end();
  await turn();
  body.begin();
  after(9_000);
  expect([sink.text, sink.ends, owner.consumed]).toEqual(["ab", 0, 4]);
  expect(owner.calls).toEqual(["resumed"]);
  body.attach(new Sink());
  expect(body.attached).toBe(false);
});

test("a stream that is closed gives back what waits and what is held", () => {
  body.attach(sink);
  sink.takes = false;
  send("abc");
  send("de");
  expect([body.close(), body.close(), owner.consumed]).toEqual([5, 0, 0]);
  after(9_000);
  expect(owner.calls).toEqual(["resumed", "paused"]);
});

describe("the client is timed", () => {
  const failed = (): boolean => owner.calls.includes("failed 408");

  test("from the moment that it is read, and from every piece", () => {
    body.attach(sink);
    after(999);
    expect(failed()).toBe(false);
    send("a");
    after(999);
    expect(failed()).toBe(false);
    after(1_000);
    expect(failed()).toBe(true);
  });

  test("from the moment that its route is known, unless it may be silent", () => {
    after(9_000);
    expect(failed()).toBe(false);
    body.begin();
    after(999);
    owner.bodyHeldBack = true;
    after(1_000);
    expect(failed()).toBe(false);
    owner.bodyHeldBack = false;
    after(1_999);
    expect(failed()).toBe(false);
    after(2_000);
    expect(failed()).toBe(true);
    after(9_000);
    expect(owner.calls).toEqual(["failed 408"]);
  });

  test("but not by what its reader does", () => {
    body.attach(sink);
    body.begin();
    owner.bodyHeldBack = true;
    sink.takes = false;
    send("a");
    after(9_000);
    expect(failed()).toBe(false);
    body.resume();
    after(999);
    expect(failed()).toBe(false);
    after(1_000);
    expect(failed()).toBe(true);
  });

  test("and not after the end", () => {
    body.attach(sink);
    body.end();
    body.begin();
    after(9_000);
    expect(failed()).toBe(false);
  });
});

describe("an exception in its reader is an internal fault", () => {
  test.each(["onData", "onEnd"] as const)("in %s", (step) => {
    jest.spyOn(sink, step).mockImplementation(() => {
      throw new Error("of the reader");
    });
    body.attach(sink);
    expect(send("ab")).toBe(true);
    expect(body.end()).toBe(true);
    expect(owner.calls).toEqual(["resumed", "Error: of the reader"]);
    expect(owner.consumed).toBe(2);
  });

  test("a reader that gives up in the middle of a piece gets no further one", () => {
    const aborting: BodySink = {
      onData: () => {
        body.abandon();
        return false;
      },
      onEnd: () => sink.onEnd(),
    };
    body.attach(aborting);
    send("ab");
    send("cd");
    expect([sink.ends, owner.consumed, owner.calls]).toEqual([0, 4, ["resumed"]]);
  });
});
