import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TerraformStack } from "cdktf";
import type { IConstruct } from "constructs";
import { APPLICATIONS } from "../../src/applications/index.js";
import {
  Action,
  Application,
  type ApplicationAction,
  ContainerFrontEnd,
  FrontEnd,
  Mode,
} from "../../src/index.js";
import { type Resolution, resolve } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

/** Front ends of the applications of the table: what their manuals' paths lead to, and what they are told of their URL. */

const HOST = { address: "192.0.2.10", publicName: "files.example.org" };
const ORIGIN = "https://files.example.org";

function frontEndOf(application: Application, mode = Mode.tls()) {
  const stack = newStack();
  const files = new FrontEnd(stack, "files", { host: HOST, mode, application, activation: {} });
  return { stack, files };
}

const ALL = { notification: true, seadoc: true } as const;
const SEAFILE_11 = Application.seafile({ version: "11", components: ALL });
const PREFIXED = Application.seafile({ version: "11", prefix: "/seafile" });
const SEAFILE_13 = Application.seafile({
  version: "13",
  components: { ...ALL, thumbnail: true, office: "onlyOffice" },
});
const NEXTCLOUD = Application.nextcloud({ push: true, office: "collabora" });
const OPEN_CLOUD = Application.openCloud({ directory: "/srv/opencloud" });
const VAULTWARDEN = Application.vaultwarden({ directory: "/srv/vaultwarden" });

const media = "/opt/seafile/seafile-server-latest/seahub/media";

function leadsTo(found: Resolution): string {
  if (found.kind === "proxy") return `${found.upstream} ${found.requestLine.split(" ")[1]}`;
  if (found.kind === "staticFile") return found.file;
  if (found.kind === "status") return "status";
  return found.kind === "redirect" ? found.location : `${found.kind} ${found.status}`;
}

const said = sayings("applications");
const URL_OF_PART = { url: "http://part:80" };

test("every application has a page, and every page a row", () => {
  const read = (page: string) => readFileSync(join(__dirname, "../../docs", page), "utf8");
  const pages = readdirSync(join(__dirname, "../../docs/applications"));
  const methods = Object.getOwnPropertyNames(Application).filter(
    (name) => typeof Reflect.get(Application, name) === "function" && name !== "composed",
  );
  const texts = pages.map((page) => read(`applications/${page}`));
  expect(methods.filter((name) => !texts.some((text) => text.includes(`Application.${name}`)))).toEqual([]);
  const index = read("applications.md");
  expect(pages.filter((page) => !index.includes(`](applications/${page})`))).toEqual([]);
  const README = read("../README.md");
  expect(methods.filter((name) => !README.includes(`\`${name}(`))).toEqual([]);
  const parts = ["## Install", "## The stack", "## Settings", "## Tests", "## Limits"];
  const lack = pages.flatMap((page, i) =>
    parts.filter((part) => !texts[i]!.includes(part)).map((part) => `${page}: ${part}`),
  );
  expect(lack).toEqual(["custom.md: ## Install"]);
});

/** Upstream with the target that it gets, file, or Location. */
const LEADS: readonly (readonly [Application, path: string, leads: string])[] = [
  [SEAFILE_11, "/", "web /"],
  [SEAFILE_11, "/api2/auth-token/", "web /api2/auth-token/"],
  [SEAFILE_11, "/seafhttp/repo/x?y=1", "fileServer /repo/x?y=1"],
  [SEAFILE_11, "/media/img/a.png", `${media}/img/a.png`],
  [SEAFILE_11, "/media/avatars/a.png", "/opt/seafile/seahub-data/avatars/a.png"],
  [SEAFILE_11, "/media/custom/logo.png", "/opt/seafile/seahub-data/custom/logo.png"],
  [SEAFILE_11, "/seafdav", `${ORIGIN}/seafdav/`],
  [SEAFILE_11, "/seafdav/a%20b", "webdav /seafdav/a%20b"],
  [SEAFILE_11, "/:dir_browser/style.css", "webdav /:dir_browser/style.css"],
  [SEAFILE_11, "/notification/ping", "notification /ping"],
  [SEAFILE_11, "/notification", "notification /"],
  [SEAFILE_11, "/sdoc-server/api/v1/docs", "seadoc /api/v1/docs"],
  [SEAFILE_11, "/socket.io/?EIO=4", "seadoc /socket.io/?EIO=4"],
  [PREFIXED, "/seafile/library/", "web /seafile/library/"],
  [PREFIXED, "/seafmedia/css/a.css", `${media}/css/a.css`],
  [PREFIXED, "/seafhttp/protocol-version", "fileServer /protocol-version"],
  [SEAFILE_13, "/seafhttp/protocol-version", "web /seafhttp/protocol-version"],
  [SEAFILE_13, "/seafdav/x", "web /seafdav/x"],
  [SEAFILE_13, "/thumbnail/repo/48/a.png", "thumbnail /thumbnail/repo/48/a.png"],
  [SEAFILE_13, "/thumbnail/ping", "thumbnail /ping"],
  [
    SEAFILE_13,
    "/onlyofficeds/web-apps/apps/api/documents/api.js",
    "office /web-apps/apps/api/documents/api.js",
  ],
  [NEXTCLOUD, "/remote.php/dav/files/a", "web /remote.php/dav/files/a"],
  [NEXTCLOUD, "/.well-known/carddav", `${ORIGIN}/remote.php/dav/`],
  [NEXTCLOUD, "/.well-known/caldav", `${ORIGIN}/remote.php/dav/`],
  [NEXTCLOUD, "/.well-known/webfinger?x", "web /.well-known/webfinger?x"],
  [NEXTCLOUD, "/push/ws", "push /ws"],
  [NEXTCLOUD, "/hosting/discovery", "office /hosting/discovery"],
  [NEXTCLOUD, "/cool/https%3A%2F%2Fa/ws", "office /cool/https%3A%2F%2Fa/ws"],
  [Application.immich(), "/.well-known/immich", "web /.well-known/immich"],
  [OPEN_CLOUD, "/dav/spaces/a", "web /dav/spaces/a"],
  [VAULTWARDEN, "/notifications/hub", "web /notifications/hub"],
  [Application.radicale(), "/.well-known/caldav", "web /.well-known/caldav"],
  [Application.gitea(), "/a%2Fb", "web /a%2Fb"],
  [Application.gitea(), "/v2/", "web /v2/"],
];

test.each(
  LEADS.map(
    ([application, path, leads]) => [application.definition.title, path, leads, application] as const,
  ),
)("%s: %s leads to %s", (_title, path, leads, application) => {
  const { stack } = frontEndOf(application);
  const found = resolve(stack, `${ORIGIN}${path}`);
  expect(leadsTo(found)).toBe(leads);
});

test.each([
  [
    "Seafile 11",
    SEAFILE_11,
    [`SERVICE_URL = '${ORIGIN}'`, `FILE_SERVER_ROOT = '${ORIGIN}/seafhttp'`, "share_name = /seafdav"],
  ],
  [
    "Seafile 11 below a prefix",
    PREFIXED,
    [`SERVICE_URL = '${ORIGIN}/seafile'`, "SITE_ROOT = '/seafile/'", "MEDIA_URL = '/seafmedia/'"],
  ],
  [
    "Seafile 13",
    SEAFILE_13,
    [
      "SEAFILE_SERVER_HOSTNAME=files.example.org",
      "SEAFILE_SERVER_PROTOCOL=https",
      `SEADOC_SERVER_URL=${ORIGIN}/sdoc-server`,
      `NOTIFICATION_SERVER_URL=${ORIGIN}/notification`,
    ],
  ],
  [
    "Nextcloud",
    NEXTCLOUD,
    ["occ config:system:set overwriteprotocol --value=https", `occ notify_push:setup ${ORIGIN}/push`],
  ],
  ["OpenCloud", OPEN_CLOUD, ["OC_DOMAIN=files.example.org"]],
  ["Vaultwarden", VAULTWARDEN, [`DOMAIN=${ORIGIN}`]],
  ["Gitea", Application.gitea(), [`ROOT_URL = ${ORIGIN}/`]],
])("%s is told of its public URL", (_title, application, lines) => {
  const { stack } = frontEndOf(application);
  const files: { content: string }[] = Object.values(synthesize(stack).resource.local_file!);
  const text = files.map(({ content }) => content).join("\n");
  expect(lines.filter((line) => !text.split("\n").includes(line))).toEqual([]);
});

test.each(
  APPLICATIONS.flatMap((definition) =>
    [Mode.plain(), Mode.tls()].map((mode) => [definition.title, mode.scheme, definition, mode] as const),
  ),
)(
  "%s over %s: config and deployment are valid, and its parts are asked",
  (_title, _scheme, definition, mode) => {
    const { stack, files } = frontEndOf(Application.custom(definition), mode);
    synthesize(stack);
    const { expect: rows = [] } = files.activation!.deployment;
    const asked = rows.map(({ request }) => request.path);
    const alive = Object.values(definition.parts).flatMap((part) => part?.liveness?.path ?? []);
    expect(alive.filter((path) => !asked.includes(path))).toEqual([]);
    expect(warningsOf(files)).toEqual([]);
  },
);

test.each([
  ["Seafile 11", SEAFILE_11, true],
  ["Seafile 13 in containers, whose WebDAV daemon is behind the web interface", SEAFILE_13, true],
  [
    "Seafile without WebDAV",
    Application.seafile({ version: "12", components: { webdav: false } }),
    undefined,
  ],
  // Its own web server redirects Windows to its WebDAV path.
  ["Nextcloud", NEXTCLOUD, undefined],
  ["Vaultwarden", VAULTWARDEN, undefined],
])("%s: the front end lets Windows map drives", (_title, application, windowsDrives) => {
  for (const mode of [Mode.plain(), Mode.tls()]) {
    const { stack } = frontEndOf(application, mode);
    const url = `${mode.scheme}://files.example.org/`;
    const asked = { url, method: "OPTIONS", headers: { "User-Agent": "DavClnt" } };
    expect(resolve(stack, asked)).toMatchObject(
      windowsDrives === true ? { windowsDrives } : { upstream: "web" },
    );
  }
});

test("a route of an application of one's own has any action that there is, and no other", () => {
  const withAction = (action: object) => () =>
    Application.custom({
      name: "own",
      title: "Own",
      parts: { web: { title: "web application", url: "http://127.0.0.1:8000" } },
      main: "web",
      routes: () => ({ web: { path: "/", action: action as ApplicationAction<"web"> } }),
    });
  const actions: ApplicationAction<"web">[] = [
    { type: "proxy", upstream: "web" },
    { type: "staticFiles", directory: "/srv" },
    { type: "redirect", host: "example.org" },
    { type: "respond", status: 204 },
  ];
  for (const action of actions) expect(withAction(action)).not.toThrow();
  for (const action of [{ type: "status" }, { type: "" }, {}])
    expect(withAction(action)).toThrow("one of proxy, staticFiles, redirect, respond");
});

/** Warnings of the front end and all its parts. */
const warningsOf = ({ node }: IConstruct): string[] =>
  node
    .findAll()
    .flatMap((one) =>
      one.node.metadata.filter(({ type }) => /warn/.test(type)).map(({ data }) => String(data)),
    );

test.each<[what: string, frontEnd: () => IConstruct, warns: string[]]>([
  [
    "another route below a path that clients have built in",
    () => {
      const files = seafile11();
      files.site.routes.fileServer!.remove();
      return files;
    },
    [
      "Seafile 11 have the path /seafhttp built in, but the route web serves this path",
      "No route uses this upstream",
    ],
  ],
  [
    "a route of the stack at the same path",
    () => {
      const files = seafile11();
      files.site.routes.fileServer!.remove();
      files.site.virtualServer.addRoute("files", {
        path: "/seafhttp",
        action: Action.proxy(files.site.upstreams.fileServer!, { strip: "raw" }),
      });
      return files;
    },
    [],
  ],
  ["the word that gives Seafile's path", () => worded("seaf"), []],
  ["another word of Seafile", () => worded("seafile"), ["/seafhttp built in, but no route serves this path"]],
  ["no word of Seafile", () => worded("sync"), []],
])("%s: warnings", (_what, frontEnd, warns) => {
  const files = frontEnd();
  // Each once, however often the app is synthesized.
  for (let i = 0; i < 2; i++) synthesize(TerraformStack.of(files));
  const seen = warningsOf(files);
  expect(said(seen)).toEqual(warns.map((text) => expect.stringContaining(text)));
});

const seafile11 = () =>
  new FrontEnd(newStack(), "files", { host: HOST, mode: Mode.tls(), application: SEAFILE_11 });

const worded = (pathPrefix: string) =>
  new FrontEnd(newStack(), "files", {
    host: HOST,
    mode: Mode.tls(),
    application: Application.fileSync({ installDirectory: "/srv/sync", pathPrefix }),
  });

test("a public port other than the scheme's is in redirects, settings and what an office server is told", () => {
  const mode = Mode.tls({ publicPort: 8443 });
  const seafile = Application.seafile({ version: "12", components: { office: "onlyOffice", seadoc: true } });
  const { stack } = frontEndOf(seafile, mode);
  const texts: { content: string }[] = Object.values(synthesize(stack).resource.local_file!);
  expect(texts.map(({ content }) => content).join("\n")).toContain(
    "SEAFILE_SERVER_HOSTNAME=files.example.org:8443\n",
  );
  const office = resolve(stack, "https://files.example.org/onlyofficeds/x");
  expect(office).toMatchObject({ headers: { "x-forwarded-host": "files.example.org:8443/onlyofficeds" } });
  const { stack: other } = frontEndOf(NEXTCLOUD, mode);
  expect(leadsTo(resolve(other, "https://files.example.org/.well-known/carddav"))).toBe(
    "https://files.example.org:8443/remote.php/dav/",
  );
});

test("a redirect keeps the scheme of plain mode", () => {
  const { stack } = frontEndOf(SEAFILE_11, Mode.plain());
  expect(leadsTo(resolve(stack, "http://files.example.org/seafdav"))).toBe(
    "http://files.example.org/seafdav/",
  );
});

test("the proxy of containers takes an application as well, with the URLs of its parts", () => {
  const files = new ContainerFrontEnd(newStack(), "files", {
    mode: Mode.tls(),
    serverNames: ["files.example.org"],
    application: SEAFILE_13,
    upstreams: {
      web: { url: "http://seafile:80" },
      notification: { url: "http://notification:8083" },
      seadoc: { url: "http://seadoc:80" },
      thumbnail: { url: "http://thumbnail:80" },
      office: { url: "http://onlyoffice:80" },
    },
  });
  const ask = (path: string) => resolve(files.proxy, `${ORIGIN}${path}`);
  expect(ask("/seafhttp/protocol-version")).toMatchObject({ upstreamUrl: "http://seafile:80" });
  expect(leadsTo(ask("/thumbnail/ping"))).toBe("thumbnail /ping");
});

test.each<[what: string, make: () => unknown, message: string]>([
  [
    "a version that is none",
    () => Application.seafile({ version: "10" as "11" }),
    "Application.seafile.version",
  ],
  ["a prefix in containers", () => Application.seafile({ version: "12", prefix: "/x" }), "seafile.prefix"],
  ["a prefix of two", () => Application.seafile({ version: "11", prefix: "/x/y" }), "seafile.prefix"],
  [
    "a relative directory",
    () => Application.vaultwarden({ directory: "srv" }),
    "Application.vaultwarden.directory",
  ],
  [
    "a thumbnail server of version 12",
    () => Application.seafile({ version: "12", components: { thumbnail: true } }),
    "Application.seafile.components.thumbnail",
  ],
  [
    "a main route that is none",
    () =>
      Application.custom({
        name: "a",
        title: "A",
        parts: {},
        main: "web",
        routes: () => ({}) as { web?: never },
      }),
    "Application.custom.main",
  ],
  [
    "containers that lack a part of the application",
    () =>
      new ContainerFrontEnd(newStack(), "files", {
        mode: Mode.tls(),
        serverNames: ["files.example.org"],
        application: NEXTCLOUD,
        upstreams: { web: URL_OF_PART },
      }),
    "stack/files.upstreams.push: is missing",
  ],
  [
    "an upstream that the application does not have",
    () =>
      new FrontEnd(newStack(), "files", {
        host: HOST,
        mode: Mode.tls(),
        application: NEXTCLOUD,
        upstreams: { fileServer: {} } as object,
      }),
    "stack/files.upstreams.fileServer",
  ],
])("refuses %s", (_what, make, message) => {
  const [first] = said(problemsOf(make));
  expect(`${first!.path}: ${first!.message}`).toContain(message);
});
