import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Application } from "../../src/constructs/index.js";
import { runUnseen } from "../../testkit/unseen.js";
import { eventually } from "../../testkit/waiting.js";
import {
  asked,
  asUser,
  filesByWebdav,
  FORM,
  HOST,
  JSON_TYPE,
  origin,
  PASSWORD,
  type RealApplication,
  RENAMED,
  type Running,
  sizeOf,
  USER,
} from "./clients.js";
import { Place, startApplicationFrontEnd } from "./frontEnd.js";
import { freePorts } from "../../testkit/ports.js";
import { radicale } from "./radicale.js";
import { sftpgo } from "./sftpgo.js";

/** Real applications behind their entries, used by real clients. */

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
    // It responds before all of its services do.
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
    if (known.status !== 200) throw new Error(`a share link gets ${known.status}`);
    const statuses = [await logOn(at, "wrong"), await logOn(at, PASSWORD)];
    if (String(statuses) !== "204,200") throw new Error(`log-ins get ${statuses}`);
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
      if (status !== 101) throw new Error(`a WebSocket gets ${status}`);
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
      if (logIn.status !== 400) throw new Error(`a log-in that fails gets ${logIn.status}`);
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
  sftpgo,
  radicale,
} satisfies Record<string, RealApplication>;

export type RealName = keyof typeof REAL;

/** Starts one behind its entry, with the settings that the entry renders, and uses it. */
export async function tryReal(
  { application, commands, env, use }: RealApplication,
  programs: string,
  bytes: number,
  more: (at: Running) => Promise<readonly string[]> = async () => [],
): Promise<readonly string[]> {
  const place = await Place.make(HOST);
  const entry = application(place.folder);
  const parts = Object.keys(entry.definition.parts);
  const free = await freePorts(parts.length);
  const ports = Object.fromEntries(parts.map((part, i) => [part, free[i]!]));
  const frontEnd = await startApplicationFrontEnd(place, entry, ports, HOST);
  const { files = [] } = frontEnd.stack.activation!.deployment.settings ?? {};
  const settings = Object.fromEntries(
    files.flatMap(({ items }) => [...items].map(({ name, value }) => [name, String(value)] as const)),
  );
  const folder = join(place.folder, "data");
  mkdirSync(join(folder, "files"), { recursive: true });
  const at: Running = { programs, folder, web: ports.web!, ports, port: frontEnd.port, settings };
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
    const lives = async (): Promise<boolean> => {
      if (server!.exitCode !== null) throw new Error(`it ended with ${server!.exitCode}`);
      return (await asked(at, "GET", path)).status === status;
    };
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
