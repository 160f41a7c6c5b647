import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import {
  filePath,
  flag,
  headerName,
  headerValue,
  name,
  requestFieldName,
  serverName,
  urlPath,
} from "../fields.js";
import { problem } from "../problem.js";
import type { ActionKind } from "./kind.js";

export const forwarded = z
  .strictObject({
    realIp: flag(true, "X-Real-IP: the client's address."),
    for: flag(
      true,
      "X-Forwarded-For: the chain that came with the request, and the address that the request came from.",
    ),
    proto: flag(true, "X-Forwarded-Proto: `http` or `https`, as the client used."),
    host: serverName(
      "X-Forwarded-Host: a server name. Without it, the field is not sent.",
      "files.example.org",
    ).optional(),
  })
  .prefault({})
  .describe(
    "Forwarding fields that this proxy sets. Those from clients outside `trustedProxies` are always dropped.",
  );

export const proxyFields = z
  .strictObject({
    type: z.literal("proxy").describe("Marks this kind of action."),
    upstream: name("The upstream's name.", "web"),
    strip: z
      .enum(["none", "raw", "nginx"])
      .default("none")
      .describe(
        "Whether the route's path is cut from the target: `none`: the target goes upstream byte for byte; `raw`: " +
          "the prefix is cut and the rest stays byte for byte; `nginx`: the rest is decoded and encoded again, as " +
          "nginx's rewrite does.",
      ),
    rewrite: urlPath(
      "Path that goes upstream in place of the route's path, as it is sent; what follows the route's path follows it: with " +
        "`/ping`, a route for `/thumbnail/ping` asks for `/ping`, and one for `/api` asks for `/ping/v1` where a client asks for " +
        "`/api/v1`. With `strip: none` the rest stays byte for byte, as with `raw`. URLs in `Location` and `Refresh` are changed " +
        "back. Without it, the path stays, or is cut by `strip`.",
      "/ping",
    ).optional(),
    hostHeader: z
      .enum(["client", "upstream"])
      .default("client")
      .describe(
        "`Host` sent upstream: `client`: as the client sent it, including the port; `upstream`: the upstream's own " +
          "host and port.",
      ),
    forwarded,
    trustedFields: z
      .array(requestFieldName("A field name.", "Remote-User"))
      .default([])
      .meta({
        description:
          "Fields that pass if they come from `trustedProxies`, and from no one else. Those that name a user, a " +
          "client's certificate or another URL than the one that was asked for (`Remote-User`, `X-Forwarded-User`, " +
          "`X-Original-URL`) pass only if they are here.",
        examples: [["Remote-User"]],
      }),
    setHeaders: z
      .record(headerName, headerValue)
      .default({})
      .meta({
        description:
          "Further request fields; each replaces the client's. An empty value removes the field. Those of framing and connection, `Host` and `Expect` are refused.",
        examples: [{ "X-Site": "files", Cookie: "" }],
      }),
    setHeadersFromCredential: z
      .record(headerName, filePath("A file on the host."))
      .default({})
      .meta({
        description:
          "Further request fields whose values are secrets, each in a file on the host (one line); only root has to read it. " +
          "They are read at a start and a reload.",
        examples: [{ Authorization: "/etc/portico-secrets/office" }],
      }),
    destination: z
      .enum(["path", "absolute", "unchanged"])
      .default("path")
      .describe(
        "WebDAV `Destination` that points here (RFC 4918, 10.3): `path`: cut to its path; `absolute`: with the scheme and host that the upstream sees; `unchanged`: left alone, which WebDAV servers behind a proxy answer with 502.",
      ),
    webSocket: flag(true, "Whether `Upgrade: websocket` is forwarded; every other upgrade is dropped."),
  })
  .describe("Forwards requests to an upstream. Bodies stream both ways, without temporary files.");

/** What `Action.proxy` takes beside the upstream. */
export const proxyOptions = proxyFields.omit({ type: true, upstream: true });

type ProxyActionConfig = OutputOf<typeof proxyFields>;

/** What it makes of a request is in `forwarding.ts`. */
export const proxy: ActionKind<ProxyActionConfig> = {
  upstreams: ["upstream"],
  directories: [],
  redirects: undefined,
  problems: ({ setHeaders, setHeadersFromCredential }, at) => {
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
  },
};
