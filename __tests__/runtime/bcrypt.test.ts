import { once } from "node:events";
import workerThreads from "node:worker_threads";
import { statusesOver } from "../../testkit/bothProtocols.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ONLY_TIMEOUTS } from "../../testkit/fakeTimers.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { eventually } from "../../testkit/waiting.js";

/** Passwords of bcrypt on the wire, and the thread that verifies them. Hashes are of other programs. */

/** As in the tests of crypt_blowfish, by Solar Designer. */
const LONG = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LINES: readonly (readonly [user: string, password: string, hash: string])[] = [
  ["htpasswd", "wonderland", "$2y$05$oAQYEdyJAZSyCmlTTKI.pulFU5Ktci8I/95ANIJnGKfhSwbjb8fbS"],
  ["htpasswd10", "a:b c", "$2y$10$M41VL7/W7Vq0Mn1/63OOweOBEqNAW.AtCLVOBugTu59qZX/e8lTXu"],
  ["libxcrypt", "wonderland", "$2b$10$abcdefghijklmnopqrstuuwmjOOgyx/jknFqeF8sHrF2cGgSECl/q"],
  ["libxcryptUtf8", "grüße", "$2b$04$abcdefghijklmnopqrstuuukcFUuF1uD2.SsVXl2Kxf7oTFxL3IEq"],
  ["blowfish", "U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"],
  ["blowfish4", "U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK"],
  ["blowfish5", "U*U*U", "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"],
  [
    "long",
    `${LONG}chars after 72 are ignored`,
    "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
  ],
];
const SCRYPT = "$scrypt$ln=10,r=8,p=1$c2FsdCBvZiBzY3J5cHQ$0000000000000000000000000000000000000000000";
/** Each password takes a third of a second; the right one is {@link LONG}. */
const SLOW = "$2y$12$abcdefghijklmnopqrstuuN.DjXlslwlSlODvsnlplXdP0Ooea5WS";

let front: EveryProtocol;
/** Threads that were started, in this process. */
const threads: workerThreads.Worker[] = [];

beforeAll(async () => {
  const { Worker } = workerThreads;
  jest.spyOn(workerThreads, "Worker").mockImplementation((...given) => {
    const thread = new Worker(...given);
    threads.push(thread);
    return thread;
  });
  const users = (file: string) => ({ basic: { usersFile: file } });
  const route = (name: string) =>
    ({ name, path: `/${name}`, access: name, action: { type: "respond", status: 200, body: "in" } }) as const;
  front = await startEveryProtocol({
    routes: [
      route("mixed"),
      route("slow"),
      { name: "open", path: "/", action: { type: "respond", status: 200, body: "open" } },
    ],
    config: {
      trustedProxies: ["127.0.0.1"],
      accessPolicies: { mixed: users("/mixed"), slow: users("/slow") },
    },
    users: {
      "/mixed": [...LINES.map(([user, , hash]) => [user, hash] as const), ["scrypt", SCRYPT]],
      "/slow": [["alice", SLOW]],
    },
  });
});
afterAll(async () => {
  jest.restoreAllMocks();
  await front.close();
});

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

const statuses = (target: string, user: string, password: string): Promise<readonly number[]> =>
  statusesOver(front, target, { authorization: basic(user, password) });

test.each(LINES)("%s comes in with the password, and with no other one", async (user, password) => {
  expect(await statuses("/mixed", user, `${password.slice(0, 70)}!`)).toEqual([401, 401]);
  expect(await statuses("/mixed", user, password.toUpperCase().slice(0, -1))).toEqual([401, 401]);
  expect(await statuses("/mixed", user, password)).toEqual([200, 200]);
});

test("what is behind 72 bytes does not count, as with htpasswd", async () => {
  expect(await statuses("/mixed", "long", LONG)).toEqual([200, 200]);
  expect(await statuses("/mixed", "long", `${LONG}other`)).toEqual([200, 200]);
  expect(await statuses("/mixed", "long", LONG.slice(1))).toEqual([401, 401]);
});

test("who is unknown is verified in the same file, whatever the kinds of its hashes", async () => {
  const unknown = await Promise.all(
    Array.from({ length: 4 }, (_, i) => statuses("/mixed", `mallory${i}`, "wonderland")),
  );
  expect(unknown).toEqual(Array(4).fill([401, 401]));
  expect(await statuses("/mixed", "scrypt", "wonderland")).toEqual([401, 401]);
});

test("one thread verifies them all, and others are served meanwhile", async () => {
  const before = threads.length;
  const session = connectHttp2(front.securePort);
  const order: string[] = [];
  const wrong = Array.from({ length: 4 }, async (_, i) => {
    const { status } = await ask(session, { ":path": "/slow", authorization: basic("alice", `wrong ${i}`) });
    order.push(`verified ${status}`);
  });
  // A fifth one of the same client does not wait for them.
  const fifth = await ask(session, { ":path": "/slow", authorization: basic("alice", "wrong 5") });
  expect(fifth.status).toBe(429);
  for (let i = 0; i < 3; i++) {
    expect(await statusesOver(front, "/open")).toEqual([200, 200]);
    order.push("served");
  }
  await Promise.all(wrong);
  session.destroy();
  expect(order).toEqual([...Array(3).fill("served"), ...Array(4).fill("verified 401")]);
  expect(threads.length - before).toBeLessThanOrEqual(1);
});

test("a password that is no longer right when its verification ends lets in nobody", async () => {
  const session = connectHttp2(front.securePort);
  const asked = ask(session, { ":path": "/slow", authorization: basic("alice", LONG) });
  await ask(session, { ":path": "/open" });
  const libxcrypt = LINES[3]!;
  front.serving.setAccessUsers({ "/slow": [["alice", libxcrypt[2]]] });
  expect((await asked).status).toBe(401);
  expect(await statuses("/slow", "alice", libxcrypt[1])).toEqual([200, 200]);
  front.serving.setAccessUsers({ "/slow": [["alice", SLOW]] });
  session.destroy();
});

test("if the thread ends, nobody comes in whom it was asked about; the next password starts another one", async () => {
  expect(await statuses("/mixed", "htpasswd", "starts one")).toEqual([401, 401]);
  const before = threads.length;
  const session = connectHttp2(front.securePort);
  const guess = (password: string) =>
    ask(session, { ":path": "/slow", authorization: basic("alice", password) });
  const asked = [guess("crash 1"), guess("crash 2"), guess("crash 3")];
  await ask(session, { ":path": "/open" });
  await threads.at(-1)!.terminate();
  // Two were with the thread, and the third one goes to the next.
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([503, 503, 401]);
  expect(await front.errorLog()).toMatch(
    /crit.*access="slow basic": the password cannot be verified: the thread of bcrypt ended/,
  );
  // A failure is not remembered as a wrong password.
  expect((await guess("crash 1")).status).toBe(401);
  session.destroy();
  expect(await statuses("/mixed", "htpasswd", "wonderland")).toEqual([200, 200]);
  expect(threads.length).toBe(before + 1);
});

test("the thread ends when there was no password for a minute", async () => {
  jest.useFakeTimers(ONLY_TIMEOUTS);
  try {
    const status = async (password: string) => (await statuses("/mixed", "htpasswd", password))[0];
    expect(await status("idle 1")).toBe(401);
    const thread = threads.at(-1)!;
    let hasEnded = false;
    const ended = once(thread, "exit").then(() => (hasEnded = true));
    jest.advanceTimersByTime(59_000);
    expect(await status("idle 2")).toBe(401);
    jest.advanceTimersByTime(59_000);
    expect(await status("idle 3")).toBe(401);
    expect(hasEnded).toBe(false);
    jest.advanceTimersByTime(60_000);
    await ended;
    expect(await status("idle 4")).toBe(401);
    expect(threads.at(-1)).not.toBe(thread);
  } finally {
    jest.useRealTimers();
  }
  await eventually(() => front.serving.faults.count === 0);
});
