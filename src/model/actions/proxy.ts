import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import {
  filePath,
  flag,
  headerName,
  headerValue,
  name,
  oddFieldName,
  requestFieldName,
  serverName,
  upgradeName,
  urlPath,
} from "../schema/fields.js";
import { type Problem, problem } from "../text/problem.js";
import { FieldFate, requestFieldFate, usualSpelling } from "./fieldFates.js";
import type { ActionKind } from "./kind.js";

export const forwarded = z
  .strictObject({
    realIp: flag(true, "`X-Real-IP`: the client's address."),
    for: flag(
      true,
      "`X-Forwarded-For`: the addresses in the request, followed by the address of its connection.",
    ),
    proto: flag(true, "`X-Forwarded-Proto`: the client's scheme, `http` or `https`."),
    host: serverName(
      "`X-Forwarded-Host`: a server name. Without this field, `X-Forwarded-Host` is not sent.",
      "files.example.org",
    ).optional(),
  })
  .prefault({})
  .describe(
    "Forwarding fields that this proxy sets. Forwarding fields from clients outside `trustedProxies` are " +
      "always dropped.",
  );

export const proxyFields = z
  .strictObject({
    type: z.literal("proxy").describe("Kind of the action."),
    upstream: name("The upstream's name.", "web"),
    strip: z
      .enum(["none", "raw", "nginx"])
      .default("none")
      .describe(
        "How the route's path is cut from the request target. `none`: the target stays byte for byte. `raw`: the " +
          "path is cut, the rest stays byte for byte. `nginx`: the path is cut, the rest is decoded and encoded " +
          "again, like nginx's rewrite.",
      ),
    rewrite: urlPath(
      "Percent-encoded path that replaces the route's path; the rest of the request's path follows. With " +
        "`/ping`, a route for `/thumbnail/ping` sends `/ping`, and a route for `/api` sends `/ping/v1` for a " +
        "request of `/api/v1`. With `strip: none` the rest stays byte for byte, as with `raw`. URLs in " +
        "`Location` and `Refresh`, and `Path` in `Set-Cookie`, are mapped back. Without this field, `strip` decides.",
      "/ping",
    ).optional(),
    hostHeader: z
      .enum(["client", "upstream"])
      .default("client")
      .describe(
        "`Host` of the upstream request. `client`: as in the client's request, including the port. `upstream`: " +
          "host and port of the upstream.",
      ),
    forwarded,
    trustedFields: z
      .array(requestFieldName("A field name.", "Remote-User"))
      .default([])
      .meta({
        description:
          "Request fields that pass only from `trustedProxies`. Fields that name a user, a client certificate or " +
          "another URL than the requested URL (`Remote-User`, `X-Forwarded-User`, `X-Original-URL`) pass only if " +
          "they are listed here.",
        examples: [["Remote-User"]],
      }),
    keepFields: z
      .array(oddFieldName)
      .default([])
      .meta({
        description:
          "Request fields that pass although their names have other bytes than letters, digits and `-`. All others of " +
          "such names are dropped, because applications may take `Remote_User` for `Remote-User`, and the first of each " +
          "name leaves an info line in the error log. Names that are another spelling of a field that the proxy drops, " +
          "sets or lets pass only from `trustedProxies` are refused.",
        examples: [["api_key"]],
      }),
    setHeaders: z
      .record(headerName, headerValue)
      .default({})
      .meta({
        description:
          "Further request fields; each replaces the client's field, and an empty value removes it. Fields of " +
          "framing and connection, `Host` and `Expect` are refused.",
        examples: [{ "X-Site": "files", Cookie: "" }],
      }),
    setHeadersFromCredential: z
      .record(headerName, filePath("A file on the host."))
      .default({})
      .meta({
        description:
          "Further request fields with secret values, each in a file on the host (one line); only root needs to " +
          "read the file. Files are read at a start and a reload.",
        examples: [{ Authorization: "/etc/portico-secrets/office" }],
      }),
    destination: z
      .enum(["path", "clientPath", "absolute", "unchanged"])
      .default("path")
      .describe(
        "How a WebDAV `Destination` (RFC 4918, 10.3) on this server is changed. `path`: cut to its path, " +
          "as the upstream sees paths. `clientPath`: cut to its path, as the client sees paths: for servers that are " +
          "told the prefix that `strip` or `rewrite` cuts. `absolute`: as `path`, with the scheme and host of the " +
          "upstream request. `unchanged`: not at all; a server that does not know its public scheme and host then " +
          "responds with 502.",
      ),
    slashRedirect: flag(
      true,
      "Whether GET and HEAD of exactly the route's path get 301 to the path with a slash at its end, where `strip` " +
        "or `rewrite` makes the upstream's path the same for both. Without the slash, the relative URLs of a page " +
        "lead out of the route. Routes that match `exact` never redirect.",
    ),
    mapCookies: flag(
      true,
      "Whether `Set-Cookie` of the upstream is mapped to the client's side. `Path`: where `strip` or `rewrite` " +
        "changes the path, the route's path in place of the path that the upstream sees. `Domain`: removed if " +
        "it is the host of the upstream's URL, so that the cookie belongs to the requested host. Cookies whose " +
        "name begins with `__Host-` keep both.",
    ),
    upgrades: z
      .array(upgradeName("Name of a protocol as in `Upgrade`.", "websocket"))
      .default(["websocket"])
      .meta({
        description:
          "Protocols whose upgrade is forwarded; the client and the upstream then exchange bytes until one of them " +
          "ends the connection. All other upgrades are dropped, and the first of each name leaves an info line in the " +
          "error log. With `[]` none is forwarded. An upgrade counts as a request that reads: a route whose upgrades " +
          'write, such as those of a backup, needs `writes: "always"`.',
        examples: [["websocket", "proxmox-backup-protocol-v1"], []],
      }),
  })
  .describe("Forwards requests to an upstream. Bodies stream both ways, without temporary files.");

/** The options of `Action.proxy`. */
export const proxyOptions = proxyFields.omit({ type: true, upstream: true });

type ProxyActionConfig = OutputOf<typeof proxyFields>;

/** The module `forwarding.ts` transforms the request and the response. */
export const proxy: ActionKind<ProxyActionConfig> = {
  upstreams: ["upstream"],
  directories: [],
  redirects: undefined,
  problems: (action, at) => [...setTwice(action, at), ...keptSpellings(action, at)],
};

function setTwice({ setHeaders, setHeadersFromCredential }: ProxyActionConfig, at: string): Problem[] {
  const set = Object.keys(setHeaders).map((name) => name.toLowerCase());
  return Object.keys(setHeadersFromCredential)
    .filter((name) => set.includes(name.toLowerCase()))
    .map((name) =>
      problem(
        "config.duplicate-name",
        `${at}.setHeadersFromCredential.${name}`,
        "is in `setHeaders` as well",
        {
          allowed: "each field once",
          fix: "Set the field in only one of the two.",
        },
      ),
    );
}

/** A kept field that the application may take for one which clients may not send. */
function keptSpellings(action: ProxyActionConfig, at: string): Problem[] {
  const { keepFields, trustedFields, setHeaders, setHeadersFromCredential } = action;
  const own = [trustedFields, Object.keys(setHeaders), Object.keys(setHeadersFromCredential)]
    .flat()
    .map(usualSpelling);
  return keepFields.flatMap((name, i) =>
    requestFieldFate(usualSpelling(name)) === FieldFate.Pass && !own.includes(usualSpelling(name))
      ? []
      : [
          problem("config.bad-header", `${at}.keepFields[${i}]`, "is another spelling of a protected field", {
            received: name,
            allowed: `a field that no application takes for \`${usualSpelling(name)}\``,
            fix: "Rename the field in the client and the application.",
          }),
        ],
  );
}
