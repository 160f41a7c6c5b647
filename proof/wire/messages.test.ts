import {
  framingOf,
  type MessageHead,
  MessageReader,
  parseMessage,
  Violation,
  wholeMessages,
} from "../../testkit/messages.js";

/** The reader that proofs judge bytes by: what it reads, byte by byte, and what it refuses. */
describe("the strict reader", () => {
  const read = (text: string): string[] => {
    const said: string[] = [];
    const reader = new MessageReader({
      head: (head: MessageHead) => {
        said.push(head.startLine);
        return framingOf(head) ?? 0;
      },
      body: (bytes) => void said.push(bytes.toString()),
      end: () => void said.push("end"),
    });
    for (const byte of Buffer.from(text)) reader.feed(Buffer.from([byte]));
    return [...said, reader.between ? "between" : "within"];
  };

  test.each([
    ["A\r\n\r\nB\r\n\r\n", "A end B end between"],
    ["A\r\nContent-Length: 2\r\n\r\nxyB", "A x y end within"],
    ["A\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n", "A x y end between"],
    ["A\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n", "A x y within"],
  ])("reads %j", (text, expected) => {
    expect(read(text).join(" ")).toBe(expected);
  });

  test.each([
    "A\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
    "A\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "A\r\nContent-Length: +2\r\n\r\n",
    "A\r\nHost : x\r\n\r\n",
    "A\r\nTransfer-Encoding: chunked\xa0\r\n\r\n",
    "A\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\n",
    "A\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
  ])("refuses %j", (text) => {
    expect(() => read(text)).toThrow(Violation);
  });
});

describe("as it is, a message", () => {
  const CHUNKED = "A\r\nTransfer-Encoding: x, chunked\r\n\r\n";

  test.each<[string, string, string, boolean]>([
    ["A\r\nb\r\nX : y\r\n\r\nB", "", "B", true],
    ["A\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nxyz", "xy", "z", true],
    ["A\r\nContent-Length: 5\r\n\r\nxyz", "xyz", "", false],
    ["A\r\nContent-Length: -1\r\n\r\nxyz", "", "", false],
    [`${CHUNKED}2;a=b\r\nxy\r\n0\r\nT: u\r\n\r\nB`, "xy", "B", true],
    [`${CHUNKED}2\r\nxy__1\r\nz\r\n0\r\n\r\n`, "xyz", "", true],
    [`${CHUNKED}2\r\nxy\r\nno size\r\n0\r\n\r\n`, "xy", "", false],
    [`${CHUNKED}9\r\nxy`, "xy", "", false],
  ])("%j has the body %j, and behind it is %j", (text, body, behind, complete) => {
    const message = parseMessage(Buffer.from(text, "latin1"), 0, { type: "request" })!;
    expect({ ...message, body: message.body.toString() }).toMatchObject({ body, complete, startLine: "A" });
    expect(text.slice(message.end)).toBe(behind);
  });

  test.each<[string, string, boolean, string, boolean]>([
    ["HTTP/1.1 200 OK\r\n\r\nxy", "GET", false, "xy", false],
    ["HTTP/1.1 200 OK\r\n\r\nxy", "GET", true, "xy", true],
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "HEAD", false, "", true],
    ["HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "GET", false, "", true],
    ["HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1", "GET", false, "", true],
  ])("%j to %s, ended: %s", (text, method, ended, body, complete) => {
    const message = parseMessage(Buffer.from(text), 0, { type: "response", method, ended })!;
    expect([message.body.toString(), message.complete]).toEqual([body, complete]);
  });

  test("is counted if it is whole", () => {
    const { messages, rest } = wholeMessages(Buffer.from("A\r\n\r\nB\r\n\r\nC\r\n"), { type: "request" });
    expect([messages.map(({ startLine }) => startLine), rest]).toEqual([["A", "B"], 3]);
  });
});
