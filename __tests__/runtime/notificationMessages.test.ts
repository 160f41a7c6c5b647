import { messageOf } from "../../src/runtime/notifications/messages.js";
import type { SentNotice } from "../../src/runtime/notifications/notice.js";

/** What each kind of target is told, and how urgent it is. */

const SINCE = Date.UTC(2026, 2, 1, 12, 30);
const told = (state: SentNotice["state"], what = `w-${state}`): SentNotice => ({
  key: "k",
  what,
  fix: "f.",
  since: SINCE,
  state,
});

function sent(type: "webhook" | "ntfy" | "gotify", all: readonly SentNotice[], dropped = 0) {
  const secrets = { url: new URL("https://a.example/base/topic/"), token: "t" };
  const { url, headers, body } = messageOf(type, secrets, { told: all, dropped, at: SINCE });
  const document = JSON.parse(body!) as Record<string, string>;
  return { url: url.href, authorization: headers["authorization"], document };
}

test.each<[SentNotice["state"][], string, string, urgent: boolean]>([
  [["problem"], "1 problem", "w-problem (since 2026-03-01 12:30 UTC)\nFix: f.", true],
  [["event"], "1 event", "w-event (at 2026-03-01 12:30 UTC)\nFix: f.", false],
  [["resolved"], "1 resolved", "Resolved: w-resolved", false],
  [
    ["resolved", "problem", "problem"],
    "2 problems, 1 resolved",
    ["Resolved: w-resolved", ...Array(2).fill("w-problem (since 2026-03-01 12:30 UTC)\nFix: f.")].join(
      "\n\n",
    ),
    true,
  ],
])("%j", (states, title, text, urgent) => {
  const all = states.map((state) => told(state));
  const titled = expect.stringMatching(new RegExp(`^portico on \\S+: ${title}$`));
  const tags = [urgent ? "warning" : "white_check_mark"];
  expect(sent("ntfy", all)).toEqual({
    ...{ url: "https://a.example/base/", authorization: "Bearer t" },
    document: { topic: "topic", title: titled, message: text, priority: urgent ? 4 : 3, tags },
  });
  expect(sent("gotify", all)).toEqual({
    ...{ url: "https://a.example/base/topic/message", authorization: undefined },
    document: { title: titled, message: text, priority: urgent ? 8 : 4 },
  });
  const { text: whole, content, title: shown } = sent("webhook", all).document;
  expect([shown, whole, content]).toEqual([titled, `${shown}\n${text}`, whole]);
});

test("what is too long for a kind is cut between two characters, and ends with an ellipsis", () => {
  for (const pad of ["", "x", "xx"]) {
    const all = Array.from({ length: 20 }, () => told("problem", pad + "€".repeat(590)));
    for (const [text, most] of [
      [sent("ntfy", all).document["message"]!, 4_000],
      [sent("webhook", all).document["content"]!, 1_900],
    ] as const) {
      expect(text).toMatch(/[x€]…$/);
      expect(text).not.toContain("\ufffd");
      expect(most - Buffer.byteLength(text)).toBeGreaterThanOrEqual(0);
      expect(most - Buffer.byteLength(text)).toBeLessThan(3);
    }
  }
});

test("of more than twenty the others are counted, with those that were dropped", () => {
  const all = (count: number) => Array.from({ length: count }, () => told("event"));
  expect(sent("gotify", all(20)).document["message"]).not.toContain("more");
  expect(sent("gotify", all(21)).document["message"]).toMatch(/\n\nand 1 more$/);
  expect(sent("gotify", all(20), 3).document["message"]).toMatch(/\n\nand 3 more$/);
});
