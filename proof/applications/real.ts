import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Application } from "../../src/constructs/index.js";
import { runUnseen } from "../kit/unseen.js";
import { eventually } from "../kit/waiting.js";
import { ask, type Seen } from "./ask.js";
import { Place, startApplicationFrontEnd } from "./frontEnd.js";
import { freePort } from "../kit/ports.js";

/** Real applications behind their entries, used by real clients. */

/** Where one runs, and what the deployment tells it. */
export interface Running {
  /** Of the programs that were installed or built. */
  readonly programs: string;
  /** For its data. */
  readonly folder: string;
  /** Port of its web server on loopback. */
  readonly web: number;
  /** Public port: its origin is `https://localhost:PORT`. */
  readonly port: number;
  /** Items of the settings files that the deployment renders. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface RealApplication {
  readonly title: string;
  readonly application: (directory: string) => Application;
  /** Programs in the folder that is given. */
  readonly needs: readonly string[];
  /** Commands with their environment: all but the last one end before the next begins. */
  readonly commands: (at: Running) => readonly (readonly string[])[];
  readonly env?: (at: Running) => Readonly<Record<string, string>>;
  /** Uses it as clients do. @returns what was seen, one line each */
  readonly use: (at: Running, bytes: number) => Promise<readonly string[]>;
}

const HOST = "localhost";
const USER = "admin";
const PASSWORD = "Secret-1-of-this-test";
export const CREDENTIALS = { user: USER, password: PASSWORD };
const origin = ({ port }: Running): string => `https://${HOST}:${port}`;

const scale = (variables: "OC" | "OCIS", program: string, title: string): RealApplication => ({
  title,
  application: (directory) =>
    variables === "OC" ? Application.openCloud({ directory }) : Application.infiniteScale({ directory }),
  needs: [program],
  commands: ({ programs }) => [
    [join(programs, program), "init", "--insecure", "true"],
    [join(programs, program), "server"],
  ],
  // As the vendor's Compose file has it.
  env: (at) => ({
    [`${variables}_URL`]: `https://${at.settings[`${variables}_DOMAIN`]}`,
    PROXY_TLS: "false",
    PROXY_ENABLE_BASIC_AUTH: "true",
    [`${variables}_SHARING_PUBLIC_SHARE_MUST_HAVE_PASSWORD`]: "false",
    PROXY_HTTP_ADDR: `127.0.0.1:${at.web}`,
    IDM_ADMIN_PASSWORD: PASSWORD,
    [`${variables}_INSECURE`]: "true",
    [`${variables}_LOG_LEVEL`]: "error",
    [`${variables}_BASE_DATA_PATH`]: join(at.folder, "data"),
    [`${variables}_CONFIG_DIR`]: join(at.folder, "config"),
    // Where the page of the log-in was not built, its requests are made without one.
    ...(existsSync(join(at.programs, "idp")) ? { IDP_ASSET_PATH: join(at.programs, "idp") } : {}),
  }),
  use: async (at, bytes) => {
    // It answers before all of its services do.
    const drives = "/graph/v1.0/me/drives";
    await eventually(async () => (await asUser(at, "GET", drives)).status === 200, "for its services", {
      everyMs: 200,
    });
    const { value } = JSON.parse((await asUser(at, "GET", drives)).body) as {
      value: { root: { webDavUrl: string } }[];
    };
    const { webDavUrl: url } = value[0]!.root;
    if (!url.startsWith(`${origin(at)}/`)) throw new Error(`its links lead to ${url}`);
    const files = await filesByWebdav(at, url, "owncloud", bytes);
    const shares = "/ocs/v1.php/apps/files_sharing/api/v1/shares?format=json";
    const form = { shareType: "3", path: `/${RENAMED}`, permissions: "1" };
    const shared = await asUser(at, "POST", shares, String(new URLSearchParams(form)), FORM);
    const link = (JSON.parse(shared.body) as { ocs: { data: { url: string; token: string } } }).ocs.data;
    if (!link.url.startsWith(`${origin(at)}/s/`)) throw new Error(`a share link leads to ${link.url}`);
    const info = `/ocs/v1.php/apps/files_sharing/api/v1/tokeninfo/unprotected/${link.token}`;
    const known = await asked(at, "GET", info);
    if (known.status !== 200) throw new Error(`a share link is answered by ${known.status}`);
    const statuses = [await logOn(at, "wrong"), await logOn(at, PASSWORD)];
    if (String(statuses) !== "204,200") throw new Error(`log-ins are answered by ${statuses}`);
    return [
      ...files,
      "a share link is known without a log-in",
      "a log-in with a wrong password is 204, with the right one 200",
    ];
  },
});

/** What its log-in page sends. */
async function logOn(at: Running, password: string): Promise<number> {
  const hello = { scopes: "openid", client_id: "web", redirect_uri: `${origin(at)}/`, flow: "oidc" };
  const body = JSON.stringify({ params: [USER, password, "1"], hello, state: "1" });
  const fields = { "Kopano-Konnect-XSRF": "1", Referer: `${origin(at)}/signin/v1/identifier`, ...JSON_TYPE };
  const { status } = await asked(at, "POST", "/signin/v1/identifier/_/logon", {
    headers: fields,
    body,
  });
  return status;
}

export const REAL = {
  openCloud: scale("OC", "opencloud", "OpenCloud"),
  infiniteScale: scale("OCIS", "ocis", "ownCloud Infinite Scale"),
  vaultwarden: {
    title: "Vaultwarden",
    application: (directory) => Application.vaultwarden({ directory }),
    needs: ["vaultwarden"],
    commands: ({ programs }) => [[join(programs, "vaultwarden")]],
    env: ({ settings, web, folder }) => ({
      ...settings,
      DATA_FOLDER: folder,
      ROCKET_ADDRESS: "127.0.0.1",
      ROCKET_PORT: String(web),
      WEB_VAULT_ENABLED: "false",
    }),
    use: async (at) => {
      const config = (await asked(at, "GET", "/api/config")).body;
      const { environment } = JSON.parse(config) as { environment: { api: string } };
      if (environment.api !== `${origin(at)}/api`) throw new Error(`clients are told of ${environment.api}`);
      const { status } = await asked(at, "WS", "/notifications/anonymous-hub?token=1");
      if (status !== 101) throw new Error(`a WebSocket is answered by ${status}`);
      const form = new URLSearchParams({
        grant_type: "password",
        username: "a@b.example",
        password: "x",
        scope: "api",
      });
      const extra =
        "&client_id=web&deviceType=9&deviceIdentifier=0d6a3b7e-0000-4000-8000-000000000000&deviceName=test";
      const logIn = await asked(at, "POST", "/identity/connect/token", {
        headers: FORM,
        body: `${form}${extra}`,
      });
      if (logIn.status !== 400) throw new Error(`a log-in that fails is answered by ${logIn.status}`);
      return ["clients are told of the public URL", "a WebSocket opens", "a log-in that fails is 400"];
    },
  },
  copyparty: {
    title: "copyparty",
    application: () =>
      Application.custom({
        name: "copyparty",
        title: "copyparty",
        parts: {
          web: {
            title: "copyparty",
            url: "http://127.0.0.1:3923",
            liveness: { path: "/?health", status: 200 },
          },
        },
        main: "web",
        routes: () => ({ web: { path: "/", action: { type: "proxy", upstream: "web" } } }),
      }),
    needs: ["copyparty"],
    commands: ({ programs, folder, web }) => [
      [
        ...[
          join(programs, "copyparty"),
          "-q",
          "-i",
          "127.0.0.1",
          "-p",
          String(web),
          "--no-crt",
          "--hist",
          `${folder}/.hist`,
        ],
        ...["-a", `${USER}:${PASSWORD}`, "-v", `${folder}/files::A,${USER}`, "--shr", "/share"],
        ...["--rproxy", "1", "--xff-src", "127.0.0.1", "--ban-pw", "no"],
      ],
    ],
    env: ({ folder }) => ({ XDG_CONFIG_HOME: folder }),
    use: async (at, bytes) => {
      const files = await filesByWebdav(at, `${origin(at)}/`, "owncloud", bytes);
      const key = { k: "link", vp: [`/${RENAMED}`], perms: ["read"], exp: "60", pw: "" };
      const made = await asked(at, "POST", "/?share", {
        headers: { PW: PASSWORD, ...JSON_TYPE },
        body: JSON.stringify(key),
      });
      const [link = ""] = /https:\S+/.exec(made.body) ?? [];
      if (!link.startsWith(`${origin(at)}/share/link`)) throw new Error(`a share link leads to ${made.body}`);
      sizeOf(await asked(at, "HEAD", `/share/link/${encodeURIComponent(RENAMED)}`), bytes);
      return [...files, "a share link was opened"];
    },
  },
} satisfies Record<string, RealApplication>;

export type RealName = keyof typeof REAL;

const JSON_TYPE = { "Content-Type": "application/json" };
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const RENAMED = "renamed ä 100%.bin";
const AS_USER = {
  Authorization: `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString("base64")}`,
};

/** As a browser does, with the port in `Host`. */
const asked = (at: Running, ...request: Asked): Promise<Seen> =>
  ask(at.port, `${HOST}:${at.port}`, ...request);
type Asked = [method: string, path: string, more?: Parameters<typeof ask>[4]];

const asUser = (at: Running, method: string, path: string, body = "", fields = {}): Promise<Seen> =>
  asked(at, method, path, { headers: { ...AS_USER, ...fields }, body });

function sizeOf({ status, headers }: Seen, bytes: number): void {
  if (Number(headers["content-length"]) !== bytes) throw new Error(`a share link gives ${status}`);
}

/** rclone uploads a file, renames it, and reads it back. */
async function filesByWebdav(at: Running, url: string, vendor: string, bytes: number): Promise<string[]> {
  const file = join(at.folder, "upload");
  await writeRandom(file, bytes);
  const config = join(at.folder, "rclone.conf");
  const pass = execFileSync("rclone", ["obscure", PASSWORD], { encoding: "utf8" }).trim();
  writeFileSync(
    config,
    `[it]\ntype = webdav\nurl = ${url}\nvendor = ${vendor}\nuser = ${USER}\npass = ${pass}\n`,
  );
  const rclone = (...args: readonly string[]): Promise<void> =>
    runUnseen("rclone", ["--config", config, "--no-check-certificate", "--retries", "1", ...args]);
  const start = performance.now();
  await rclone("copyto", file, "it:a folder/big.bin");
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  await rclone("moveto", "it:a folder/big.bin", `it:${RENAMED}`);
  await rclone("copyto", `it:${RENAMED}`, `${file}.back`);
  const [there, back] = await Promise.all([file, `${file}.back`].map(digestOf));
  if (there !== back) throw new Error("what came back is not what went there");
  return [`rclone uploaded ${statSync(file).size} bytes in ${seconds} s, renamed the file, and got it back`];
}

async function writeRandom(file: string, bytes: number): Promise<void> {
  const piece = randomBytes(1_048_576);
  const out = createWriteStream(file);
  for (let left = bytes; left > 0; left -= piece.length)
    if (!out.write(left >= piece.length ? piece : piece.subarray(0, left))) await once(out, "drain");
  out.end();
  await once(out, "finish");
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer);
  return hash.digest("hex");
}

/** Starts one behind its entry, with the settings that the entry renders, and uses it. */
export async function tryReal(
  { application, commands, env, use }: RealApplication,
  programs: string,
  bytes: number,
  more: (at: Running) => Promise<readonly string[]> = async () => [],
): Promise<readonly string[]> {
  const place = await Place.make(HOST);
  const web = await freePort();
  const entry = application(place.folder);
  const frontEnd = await startApplicationFrontEnd(place, entry, { web }, HOST);
  const { files = [] } = frontEnd.stack.activation!.deployment.settings ?? {};
  const settings = Object.fromEntries(
    files.flatMap(({ items }) => [...items].map(({ name, value }) => [name, String(value)] as const)),
  );
  const folder = join(place.folder, "data");
  mkdirSync(join(folder, "files"), { recursive: true });
  const at: Running = { programs, folder, web, port: frontEnd.port, settings };
  let server: ChildProcess | undefined;
  let said = "";
  try {
    const run = [...commands(at)];
    const last = run.pop()!;
    const options = { cwd: folder, env: { ...process.env, ...env?.(at) } };
    for (const [program, ...args] of run) await runUnseen(program!, args, options);
    server = spawn(last[0]!, last.slice(1), { ...options, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [server.stdout!, server.stderr!])
      stream.on("data", (piece: Buffer) => (said = (said + piece.toString()).slice(-4_000)));
    const { path, status } = Object.values(entry.definition.parts)[0]!.liveness!;
    const lives = async (): Promise<boolean> => (await asked(at, "GET", path)).status === status;
    await eventually(lives, `for ${path}`, { everyMs: 200, ms: 120_000, seen: () => said });
    return [`${path} is ${status}`, ...(await use(at, bytes)), ...(await more(at))];
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${said}`, { cause: error });
  } finally {
    server?.kill("SIGKILL");
    await frontEnd.stop();
    place.remove();
  }
}
