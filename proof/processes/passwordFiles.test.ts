import { execFileSync, spawnSync } from "node:child_process";
import * as crypto from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { statusesOver } from "../../testkit/bothProtocols.js";
import { issue } from "../../testkit/certificates.js";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { connectTo, exchange } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { testWith } from "../../testkit/testWith.js";
import { eventually } from "../../testkit/waiting.js";

/** Files of users that other programs made, in a real proxy: htpasswd of Apache, and two programs with Argon2. */

let folder: string;
let file: string;

beforeEach(() => {
  folder = openFolder();
  file = join(folder, "users");
});

async function started(text?: string) {
  if (text !== undefined) writeFileSync(file, text, { mode: 0o600 });
  const [plainPort, securePort] = [await freePort(), await freePort()];
  const tls = writeCertificate(folder, await issue({ type: "rsa" }));
  const portico = await Portico.start(
    oneServer({
      logs: { access: "off", error: { path: join(folder, "error.log") } },
      accessPolicies: { site: { basic: { usersFile: file } } },
      listeners: [loopback("http", plainPort), loopback("https", securePort, tls)],
      upstreams: [],
      routes: [
        { name: "all", path: "/", access: "site", action: { type: "respond", status: 200, body: "in" } },
      ],
    }),
  );
  return { portico, plainPort, securePort };
}

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

const request = (password: string): string =>
  `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: ${basic("alice", password)}\r\n\r\n`;

const LONG = "x".repeat(71);

/** Made with the program `argon2` (its reference implementation) and with argon2-cffi 25.1.0, by its defaults and others. */
const ARGON2: readonly (readonly [made: string, password: string, hash: string])[] = [
  [
    "argon2 -id",
    "wonderland",
    "$argon2id$v=19$m=4096,t=1,p=1$c2FsdCBvZiAxIDEyIHh4$9b+2b1Wz4d7ejmP6hg8bjVHo8Jo",
  ],
  [
    "argon2 -id -t 2 -m 14",
    "grüße",
    "$argon2id$v=19$m=16384,t=2,p=1$c2FsdCBvZiAyIDE0IHh4$FSapiiBNI44bYxkGkPyjsoSQYNU",
  ],
  [
    "argon2 -id -t 3 -p 4 -l 32",
    "long-passwords-are-not-cut-as-those-of-bcrypt-are-cut-at-seventy-two-bytes!X",
    "$argon2id$v=19$m=4096,t=3,p=4$c2FsdCBvZiAzIDEyIHh4$+fBplTYNhGtXxUMpEjdmSdwBKN9bNLs7FMAQApKbcjI",
  ],
  [
    "argon2-cffi",
    "a:b c",
    "$argon2id$v=19$m=65536,t=3,p=4$vcSnwv+/n28nK0Bxf08CjA$MYaKaxJC3Jfjj+tnceL2fmeOGt5pQJ+GP/2MkAscZe4",
  ],
  [
    "argon2-cffi, as OWASP recommends",
    "wonderland",
    "$argon2id$v=19$m=19456,t=2,p=1$en2GZb4sP2tGrhS90fmY+w$RJWi6GdGCx/X2bp+Ov+LjY3IdcfobLZqveqBkazVmRQ",
  ],
];

test.each(ARGON2)(
  "a hash of %s lets in who has the password, or is refused at the start",
  async (_, password, hash) => {
    const { portico, ...ports } = await started(`alice:${hash}\n`);
    if (!("argon2" in crypto)) {
      expect(portico.ended).toBe(true);
      expect(portico.errors).toMatch(/has a hash of Argon2 in line 1, which this Node.js cannot verify/);
      expect(portico.errors).toContain("allowed:  scrypt or bcrypt, or Node.js 24.7 or newer");
      return;
    }
    const status = (given: string) => statusesOver(ports, "/", { authorization: basic("alice", given) });
    expect(await status(password)).toEqual([200, 200]);
    expect(await status(password.slice(0, -1))).toEqual([401, 401]);
    expect(await status(`${password}X`)).toEqual([401, 401]);
    await portico.stop();
  },
);

const htpasswd = (...args: readonly string[]) => execFileSync("htpasswd", [...args], { stdio: "pipe" });

testWith("htpasswd")("a file of htpasswd -B lets in whom htpasswd itself takes for right", async () => {
  const users: readonly (readonly [user: string, password: string, ...cost: string[]])[] = [
    ["alice", "wonderland"],
    ["bob", "a:b c", "-C", "10"],
    ["zoë", "grüße", "-C", "4"],
    ["long", `${LONG}ü and more`],
    ["exact", `${LONG}y`, "-C", "11"],
  ];
  writeFileSync(file, "", { mode: 0o600 });
  for (const [user, password, ...cost] of users) htpasswd("-bB", ...cost, file, user, password);
  const { portico, ...ports } = await started();
  for (const [user, password] of users)
    for (const given of [password, password.slice(0, -1), `${password} `, `${LONG}y!`, `${LONG}ü!`]) {
      const isRight = spawnSync("htpasswd", ["-vb", file, user, given]).status === 0;
      const status = isRight ? 200 : 401;
      const fields = { authorization: basic(user, given) };
      expect([user, given, ...(await statusesOver(ports, "/", fields))]).toEqual([
        user,
        given,
        status,
        status,
      ]);
      expect(isRight || given !== password).toBe(true);
    }
  expect(portico.output + portico.errors).not.toMatch(/\$2y|wonderland/);
  await portico.stop();
});

testWith("htpasswd")("kinds that htpasswd also makes are refused at the start, with advice", async () => {
  for (const kind of ["-m", "-s", "-d"]) {
    htpasswd("-cb", kind, file, "alice", "wonderl");
    const { portico } = await started();
    expect([portico.ended, portico.errors]).toEqual([true, expect.stringContaining("portico password NAME")]);
  }
  htpasswd("-cbB", "-C", "13", file, "alice", "wonderland");
  const { portico } = await started();
  expect(portico.errors).toMatch(/costs too much to verify in line 1[^]*bcrypt: a cost of 4 to 12/);
});

testWith("htpasswd")("a password that htpasswd changes is another one within seconds", async () => {
  htpasswd("-cbB", file, "alice", "first");
  const { portico, plainPort } = await started();
  expect((await exchange(plainPort, request("first"))).status).toBe(200);
  htpasswd("-bB", file, "alice", "second");
  await portico.says(/users\) was read again: 1 user/);
  expect((await exchange(plainPort, request("first"))).status).toBe(401);
  expect((await exchange(plainPort, request("second"))).status).toBe(200);
  await portico.stop();
});

testWith("htpasswd")("a reload of the config ends no verification", async () => {
  htpasswd("-cbB", "-C", "12", file, "alice", "first");
  const { portico, plainPort } = await started();
  const [before] = portico.workers();
  const client = await connectTo(plainPort);
  client.send(request("wrong"));
  const right = exchange(plainPort, request("first"));
  portico.signal("SIGHUP");
  await eventually(() => portico.workers().some((pid) => pid !== before));
  expect((await right).status).toBe(200);
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received).toMatch(/^HTTP\/1\.1 401 /);
  expect((await exchange(plainPort, request("first"))).status).toBe(200);
  await portico.stop();
});
