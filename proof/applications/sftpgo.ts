import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { Application } from "../../src/constructs/index.js";
import { runUnseen } from "../../testkit/unseen.js";
import {
  asked,
  filesByWebdav,
  JSON_TYPE,
  origin,
  PASSWORD,
  RENAMED,
  type RealApplication,
  type Running,
  USER,
} from "./clients.js";

/** SFTPGo: a web interface at `/web/client`, an API, share links, and WebDAV by a server of its own at `/dav`. */

export const SFTPGO = join(ROOT, ".cache/sftpgo");

/** Builds it, unless it is there as the sources want it: a minute on two cores. */
export const buildSftpgo = (): Promise<void> => runUnseen(join(__dirname, "sftpgo/build.sh"), [SFTPGO]);

/** For tests, whose time is too short to build it. */
export function requireSftpgo(): void {
  if (!existsSync(join(SFTPGO, "stamp")))
    throw new Error("SFTPGo is not built: `npx tsx proof/prepare.ts proof/applications/` does that");
}

const ADMIN = "root";

export const sftpgo: RealApplication = {
  title: "SFTPGo",
  application: () =>
    Application.custom({
      name: "sftpgo",
      title: "SFTPGo",
      parts: {
        web: {
          title: "web interface",
          url: "http://127.0.0.1:8080",
          liveness: { path: "/healthz", status: 200 },
        },
        webdav: {
          title: "WebDAV server",
          url: "http://127.0.0.1:10080",
          liveness: { path: "/dav/", status: 401 },
        },
      },
      main: "web",
      routes: () => ({
        web: { path: "/", action: { type: "proxy", upstream: "web", hostHeader: "client" } },
        webdav: { path: "/dav", action: { type: "proxy", upstream: "webdav", hostHeader: "client" } },
      }),
      clients: {
        builtIn: [],
        withCredentials: ["/dav", "/api"],
        logIns: [{ method: "POST", path: "/web/client/login", secret: "body", failed: [200] }],
      },
    }),
  needs: ["sftpgo", "templates", "static"],
  commands: ({ programs, folder }) => [[join(programs, "sftpgo"), "serve", "--config-dir", folder]],
  env: ({ programs, ports, folder }) => ({
    SFTPGO_DATA_PROVIDER__DRIVER: "memory",
    SFTPGO_DATA_PROVIDER__NAME: "",
    SFTPGO_DATA_PROVIDER__CREATE_DEFAULT_ADMIN: "1",
    SFTPGO_DEFAULT_ADMIN_USERNAME: ADMIN,
    SFTPGO_DEFAULT_ADMIN_PASSWORD: PASSWORD,
    SFTPGO_SFTPD__BINDINGS__0__PORT: "0",
    SFTPGO_HTTPD__TEMPLATES_PATH: join(programs, "templates"),
    SFTPGO_HTTPD__STATIC_FILES_PATH: join(programs, "static"),
    SFTPGO_HTTPD__OPENAPI_PATH: join(programs, "openapi"),
    SFTPGO_SMTP__TEMPLATES_PATH: join(programs, "templates"),
    SFTPGO_LOG_FILE_PATH: join(folder, "sftpgo.log"),
    ...behindProxy("HTTPD", ports.web!),
    ...behindProxy("WEBDAVD", ports.webdav!),
    SFTPGO_WEBDAVD__BINDINGS__0__PREFIX: "/dav",
  }),
  use: async (at, bytes) => {
    await addUser(at);
    const files = await filesByWebdav(at, `${origin(at)}/dav/`, "other", bytes);
    return [...files, ...(await share(at, bytes))];
  },
};

/** Who the client is, and that it uses https, is believed from the front end. */
const behindProxy = (server: "HTTPD" | "WEBDAVD", port: number): Readonly<Record<string, string>> => {
  const binding = `SFTPGO_${server}__BINDINGS__0__`;
  return {
    [`${binding}ADDRESS`]: "127.0.0.1",
    [`${binding}PORT`]: String(port),
    [`${binding}PROXY_ALLOWED`]: "127.0.0.1",
    [`${binding}CLIENT_IP_PROXY_HEADER`]: "X-Forwarded-For",
  };
};

async function addUser(at: Running): Promise<void> {
  const headers = { ...(await bearer(at, "/api/v2/token", ADMIN)), ...JSON_TYPE };
  const user = {
    username: USER,
    password: PASSWORD,
    status: 1,
    permissions: { "/": ["*"] },
    home_dir: join(at.folder, "files"),
  };
  const { status, body } = await asked(at, "POST", "/api/v2/users", { headers, body: JSON.stringify(user) });
  if (status !== 201) throw new Error(`a new user gets ${status} ${body}`);
}

/** A link to one file, which is opened without a log-in. */
async function share(at: Running, bytes: number): Promise<string[]> {
  const headers = { ...(await bearer(at, "/api/v2/user/token", USER)), ...JSON_TYPE };
  const wanted = { name: "link", scope: 1, paths: [`/${RENAMED}`] };
  const made = await asked(at, "POST", "/api/v2/user/shares", { headers, body: JSON.stringify(wanted) });
  const id = made.headers["x-object-id"];
  if (made.status !== 201 || id === undefined) throw new Error(`a share gets ${made.status} ${made.body}`);
  const path = `/web/client/pubshares/${String(id)}?compress=false`;
  const { status, headers: fields } = await asked(at, "GET", path, { headers: { Range: "bytes=0-9" } });
  if (fields["content-range"] !== `bytes 0-9/${bytes}`) throw new Error(`a share link gives ${status}`);
  return ["a share link was opened"];
}

async function bearer(at: Running, path: string, user: string): Promise<{ Authorization: string }> {
  const Authorization = `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString("base64")}`;
  const { status, body } = await asked(at, "GET", path, { headers: { Authorization } });
  if (status !== 200) throw new Error(`a log-in gets ${status} ${body}`);
  return { Authorization: `Bearer ${(JSON.parse(body) as { access_token: string }).access_token}` };
}
