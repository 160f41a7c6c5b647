import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../testkit/waiting.js";
import { testWith } from "../../testkit/testWith.js";
import { secretExchangeScript } from "../../src/render/secretExchange.js";

/** The exchange of a pair's secret on the machine that runs Terraform: by its shell and OpenSSH's client. */
const folder = mkdtempSync(join(tmpdir(), "portico-exchange-"));
const work = join(folder, "work");
const keyFile = join(folder, "key");

/** Takes connections, and never says a word: a login that is under way. */
let server: Server;
const connected: Socket[] = [];

beforeAll(async () => {
  server = createServer((socket) => void connected.push(socket.on("error", () => undefined)));
  await once(server.listen(0, "127.0.0.1"), "listening");
});
beforeEach(() => mkdirSync(work));
afterEach(() => {
  for (const socket of connected.splice(0)) socket.destroy();
  rmSync(work, { recursive: true, force: true });
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const environment = (more: Record<string, string>): NodeJS.ProcessEnv => {
  const host = { HOST: "127.0.0.1", PORT: String((server.address() as AddressInfo).port), USER: "root" };
  const both = ["FIRST", "SECOND"].flatMap((prefix) =>
    Object.entries({ ...host, AGENT: "false", BECOME: "" }).map(([name, value]) => [
      `${prefix}_${name}`,
      value,
    ]),
  );
  const EXCHANGE = secretExchangeScript("/var/lib/portico/shared/ticket-key");
  return { PATH: process.env.PATH, TMPDIR: work, EXCHANGE, ...Object.fromEntries(both), ...more };
};

/** As Terraform starts it. */
const exchange = (more: Record<string, string>): ChildProcess =>
  spawn("dash", ["-c", 'eval "$EXCHANGE"'], { env: environment(more), detached: true, stdio: "ignore" });

const files = (): string[] =>
  readdirSync(work, { recursive: true, encoding: "utf8" })
    .map((name) => join(work, name))
    .filter((path) => statSync(path).isFile());

testWith(
  "dash",
  "ssh",
  "ssh-agent",
)("keys are in no file, while it runs and after any signal", async () => {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", keyFile]);
  // Terraform takes a key that others may read; OpenSSH's client would not.
  execFileSync("chmod", ["0644", keyFile]);
  const key = readFileSync(keyFile, "utf8");
  const parts = key.split("\n").slice(1, -2);
  const given = { FIRST_PRIVATE_KEY: key, SECOND_PRIVATE_KEY_FILE: keyFile };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] as const) {
    const child = exchange(given);
    const ended = once(child, "close");
    await eventually(async () => connected.length > 0, "until it logs in", { everyMs: 20 });
    const names = files().map((path) => readFileSync(path, "utf8"));
    expect(names.some((text) => text.includes("ssh-ed25519"))).toBe(true);
    for (const text of names) for (const part of ["PRIVATE KEY", ...parts]) expect(text).not.toContain(part);
    process.kill(-child.pid!, signal);
    await ended;
    // An agent looks for its parent every ten seconds; nothing but a kill leaves the public keys.
    await eventually(
      async () =>
        readdirSync(work).every((name) => signal === "SIGKILL" && !existsSync(join(work, name, "agent"))),
      `until nothing is left after ${signal}`,
      { everyMs: 50 },
    );
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work);
    connected.splice(0).forEach((socket) => socket.destroy());
  }
});

testWith(
  "dash",
  "ssh",
  "ssh-agent",
)(
  "without a key, the agent of the user is asked where there is one, and unless it is switched off",
  async () => {
    const socket = join(folder, "users-agent");
    for (const [agent, own, asked] of [
      ["", socket, `"${socket}"`],
      ["false", socket, "none"],
      ["", "", "none"],
    ] as const) {
      const child = exchange({ FIRST_AGENT: agent, SECOND_AGENT: agent, ...(own && { SSH_AUTH_SOCK: own }) });
      const ended = once(child, "close");
      await eventually(async () => connected.length > 0, "until it logs in", { everyMs: 20 });
      const [config] = files().filter((path) => path.endsWith("/config"));
      const agents = readFileSync(config!, "utf8").match(/(?<=IdentityAgent ).*/g);
      expect(agents).toEqual([asked, asked]);
      process.kill(-child.pid!, "SIGTERM");
      await ended;
      connected.splice(0).forEach((one) => one.destroy());
    }
  },
);

testWith(
  "dash",
  "ssh",
  "ssh-agent",
)("a key with a passphrase is refused, and nobody is asked for it", () => {
  const locked = join(folder, "locked");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "a passphrase", "-f", locked]);
  const env = environment({ FIRST_PRIVATE_KEY_FILE: locked });
  const { status, stderr } = spawnSync("dash", ["-c", 'eval "$EXCHANGE"'], { env, encoding: "utf8" });
  expect(status).not.toBe(0);
  expect(stderr).toContain(
    "the private key for 127.0.0.1 cannot be used: Terraform needs a private key without a passphrase",
  );
  expect(connected).toEqual([]);
});
