import { LOCAL_NETWORKS } from "../model/access/localNetworks.js";
import type { ExpectationInput, SettingsFile } from "../model/index.js";
import type { ApplicationDefinition, ApplicationPart, PublicPlace } from "./definition.js";
import { alive, noResponse, partAt, routeTo, SYNC_MAINTENANCE } from "./pieces.js";

/** Applications that are one server at `/`. */

type OneServer = ApplicationDefinition<"web", "web">;

function oneServer(
  name: string,
  title: string,
  server: Readonly<{ port: number; seconds: number; alive: string; status?: number }>,
  {
    told,
    ...rest
  }: Pick<OneServer, "settings" | "commands" | "clients" | "pauseResponse"> & {
    readonly rows?: OneServer["rows"];
    /** A response that shows the configured public URL. */
    readonly told?: (web: ApplicationPart, place: PublicPlace) => ExpectationInput;
  },
): OneServer {
  const parts = {
    web: partAt(`${title} server`, `http://127.0.0.1:${server.port}`, server.seconds, {
      path: server.alive,
      status: server.status ?? 200,
    }),
  };
  return {
    name,
    title,
    parts,
    main: "web",
    routes: (place) => ({
      web: routeTo<"web">(parts, "web", "/", {
        // Tokens of WebSockets, keys of shared links, signatures of downloads.
        logQuery: "names",
        expect: [...alive(parts.web), ...(told === undefined ? [] : [told(parts.web, place)])],
      }),
    }),
    rows: [{ code: "public-urls", title: "Links point to the public name" }],
    ...rest,
  };
}

/** A variable of the `.env` file beside the vendor's Compose file. */
const envFile = (directory: string, name: string, value: string): SettingsFile => ({
  name: "env",
  path: `${directory}/.env`,
  kind: "env",
  items: [{ name, value, code: "public-urls" }],
});

/** Installation of an application by the vendor's Compose file. */
export interface ComposeOptions {
  /**
   * Directory of the Compose file and `.env` on the host, an absolute path. In containers it has no effect: the front end
   * edits no settings there.
   */
  readonly directory: string;
}

/** Immich's response with its External Domain. Without one, links have the address that the browser has. */
const externalDomain = (web: ApplicationPart, { origin, origins }: PublicPlace): ExpectationInput => ({
  name: "Immich's External Domain",
  path: "/api/server/config",
  status: 200,
  members: [{ name: "externalDomain", values: ["", ...origins.flatMap((one) => [one, `${one}/`])] }],
  causes: [
    ...noResponse(web),
    {
      evidence: { statusNot: [200] },
      message: "Immich does not publish its settings: it is older than 1.118",
    },
    {
      evidence: {},
      code: "public-urls",
      settings: ["externalDomain"],
      message: "links to shared photos point to another External Domain than the public name",
      fix: `Set External Domain to ${origin}: Administration, Settings, Server Settings; or \`server.externalDomain\` of the file that IMMICH_CONFIG_FILE names.`,
    },
  ],
});

/** Immich, by its page "Reverse Proxy": it has to be at `/`. */
export const immich = (): OneServer =>
  oneServer(
    "immich",
    "Immich",
    { port: 2283, seconds: 600, alive: "/api/server/ping" },
    {
      commands: ({ origin }) => [
        { purpose: "Administration, Settings, Server Settings, External Domain:", command: origin },
      ],
      told: externalDomain,
      clients: {
        builtIn: ["/.well-known/immich"],
        withCredentials: ["/api", "/.well-known/immich"],
        logIns: [
          {
            ...{ method: "POST", path: "/api/auth/login", secret: "body" },
            ...{ accountField: "email", passwordField: "password", failed: [401] },
          },
          // The password of a shared link, by `shared-link.controller.ts`: in the body since 2.6, and before in the query, which
          // later versions still read.
          { method: "POST", path: "/api/shared-links/login", secret: "body", failed: [401] },
          { method: "GET", path: "/api/shared-links/me", secret: "body", failed: [401] },
        ],
      },
    },
  );

/**
 * Infinite Scale and its fork, by the vendors' Compose files: these set `PROXY_TLS=false`, with which the server speaks
 * HTTP, and make the public URL of `https://` and the variable.
 */
const scale =
  (name: string, title: string, variable: string) =>
  ({ directory }: ComposeOptions): OneServer =>
    oneServer(
      name,
      title,
      { port: 9200, seconds: 3_600, alive: "/status.php" },
      {
        settings: ({ authority }) => [envFile(directory, variable, authority)],
        pauseResponse: SYNC_MAINTENANCE,
        clients: {
          withCredentials: [
            "/remote.php",
            "/dav",
            "/ocs",
            "/graph",
            "/status.php",
            "/.well-known/openid-configuration",
            "/signin",
          ],
          logIns: [
            {
              ...{ method: "POST", path: "/signin/v1/identifier/_/logon", secret: "body" },
              ...{ changing: ["state", "hello"], failed: [204] },
            },
          ],
        },
      },
    );

export const infiniteScale = scale("infiniteScale", "ownCloud Infinite Scale", "OCIS_DOMAIN");
export const openCloud = scale("openCloud", "OpenCloud", "OC_DOMAIN");

/**
 * Vaultwarden 1.29 and later, where WebSockets use the same port. The wiki, "Proxy examples", lets only local networks see
 * the administration page.
 */
export const vaultwarden = ({ directory }: ComposeOptions): ApplicationDefinition<"web", "web" | "admin"> => {
  const { routes, ...rest } = vaultwardenServer(directory);
  return {
    ...rest,
    routes: (place) => {
      const { web } = routes(place);
      return {
        web,
        admin: { ...web!, path: "/admin", access: { allow: LOCAL_NETWORKS }, expect: false },
      };
    },
  };
};

const vaultwardenServer = (directory: string): OneServer =>
  oneServer(
    "vaultwarden",
    "Vaultwarden",
    { port: 8000, seconds: 600, alive: "/alive" },
    {
      settings: ({ origin }) => [envFile(directory, "DOMAIN", origin)],
      clients: {
        withCredentials: ["/api", "/identity", "/icons", "/notifications", "/events"],
        logIns: [
          {
            ...{ method: "POST", path: "/identity/connect/token", secret: "body" },
            ...{ accountField: "username", passwordField: "password", failed: [400] },
            renewal: { field: "grant_type", value: "refresh_token" },
          },
          { method: "POST", path: "/admin", secret: "body", failed: [401] },
          // The code of a second factor is sent to who has the master password (`two_factor/email.rs`).
          {
            ...{ method: "POST", path: "/api/two-factor/send-email-login", secret: "body" },
            ...{ accountField: "email", passwordField: "masterPasswordHash", failed: [400] },
          },
          // The password of a Send (`sends.rs`) is in requests for `/api/sends/access/ID` and for
          // `/api/sends/ID/access/file/ID`; clients since 2026.6 request a token instead, as above.
          { method: "POST", path: "/api/sends", match: "segment", secret: "body", failed: [400] },
        ],
      },
    },
  );

/** Radicale 3.6.1 or later: earlier versions refuse a `Destination` without the public name. */
export const radicale = (): OneServer =>
  oneServer(
    "radicale",
    "Radicale",
    // The web interface can be switched off, and other pages ask for a password.
    { port: 5232, seconds: 600, alive: "/.well-known/caldav", status: 301 },
    {
      // No setting names the public URL: links are paths.
      rows: [],
      // Seen on Radicale 3.9.0.
      clients: {
        builtIn: ["/.well-known/caldav", "/.well-known/carddav"],
        withCredentials: ["/"],
        logIns: [{ path: "/", match: "segment", secret: "authorization", failed: [401] }],
      },
    },
  );

/** An installation of Gitea. */
export interface GiteaOptions {
  /**
   * Gitea's settings file on the host, an absolute path; in the volume of a container `DATA/gitea/conf/app.ini`. A
   * `ContainerFrontEnd` does not use it.
   * @default "/etc/gitea/app.ini"
   */
  readonly settingsFile?: string;
}

/** Gitea 1.17 and later, by its page "Reverse Proxies"; earlier versions have no `/api/healthz`. */
export const gitea = ({ settingsFile = "/etc/gitea/app.ini" }: GiteaOptions = {}): OneServer =>
  oneServer(
    "gitea",
    "Gitea",
    { port: 3000, seconds: 600, alive: "/api/healthz" },
    {
      settings: ({ origin }) => [
        {
          name: "app",
          path: settingsFile,
          kind: "ini",
          items: [{ section: "server", name: "ROOT_URL", value: `${origin}/`, code: "public-urls" }],
        },
      ],
      clients: {
        // Programs for containers ask for the registry here, whatever the path of the rest.
        builtIn: ["/v2"],
        // Git, for repositories at any path.
        withCredentials: ["/"],
        logIns: [
          {
            ...{ method: "POST", path: "/user/login", secret: "body", changing: ["_csrf"] },
            ...{ accountField: "user_name", passwordField: "password", failed: [200] },
          },
          { method: "POST", path: "/user/two_factor", secret: "body", changing: ["_csrf"], failed: [200] },
          {
            method: "POST",
            path: "/user/two_factor/scratch",
            secret: "body",
            changing: ["_csrf"],
            failed: [200],
          },
          // Git and the API, for repositories at any path.
          { path: "/", match: "segment", secret: "authorization", failed: [401] },
        ],
      },
    },
  );
