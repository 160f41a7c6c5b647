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
      "X-Forwarded-For: the chain of the request, followed by the address from which the request came.",
    ),
    proto: flag(true, "X-Forwarded-Proto: `http` or `https`, the scheme of the client's request."),
    host: serverName(
      "X-Forwarded-Host: a server name. Without this field, the header field is not sent.",
      "files.example.org",
    ).optional(),
  })
  .prefault({})
  .describe(
    "Forwarding fields that this proxy sets. Other forwarding fields from clients outside `trustedProxies` " +
      "are dropped.",
  );

export const proxyFields = z
  .strictObject({
    type: z.literal("proxy").describe("Marks this kind of action."),
    upstream: name("The upstream's name.", "web"),
    strip: z
      .enum(["none", "raw", "nginx"])
      .default("none")
      .describe(
        "Whether the route's path is removed from the target. `none`: the target goes upstream byte for byte. " +
          "`raw`: the prefix is removed, and the rest stays byte for byte. `nginx`: the rest is decoded and " +
          "encoded again, as nginx's rewrite does.",
      ),
    rewrite: urlPath(
      "Path that goes upstream in place of the route's path, as it is written here; the rest of the request's " +
        "path follows: with `/ping`, a route for `/thumbnail/ping` sends `/ping`, and a route for `/api` sends " +
        "`/ping/v1` for `/api/v1`. With `strip: none` the rest stays byte for byte, as with `raw`. URLs in " +
        "`Location` and `Refresh` are changed back. Without this field, the path stays, or `strip` removes it.",
      "/ping",
    ).optional(),
    hostHeader: z
      .enum(["client", "upstream"])
      .default("client")
      .describe(
        "`Host` of the upstream request. `client`: as the client sent it, including the port. `upstream`: the " +
          "host and port of the upstream.",
      ),
    forwarded,
    trustedFields: z
      .array(requestFieldName("A field name.", "Remote-User"))
      .default([])
      .meta({
        description:
          "Request header fields that pass only if the request comes from `trustedProxies`. Fields that name a " +
          "user, a client certificate or another URL than the requested URL (`Remote-User`, `X-Forwarded-User`, " +
          "`X-Original-URL`) pass only if they are listed here.",
        examples: [["Remote-User"]],
      }),
    setHeaders: z
      .record(headerName, headerValue)
      .default({})
      .meta({
        description:
          "Further request header fields; each replaces the field that the client sent. An empty value removes the " +
          "field. Fields of framing and connection, `Host` and `Expect` are refused.",
        examples: [{ "X-Site": "files", Cookie: "" }],
      }),
    setHeadersFromCredential: z
      .record(headerName, filePath("A file on the host."))
      .default({})
      .meta({
        description:
          "Further request header fields whose values are secrets, each in a file on the host (one line); only " +
          "root has to be able to read the file. The proxy reads the files at a start and a reload.",
        examples: [{ Authorization: "/etc/portico-secrets/office" }],
      }),
    destination: z
      .enum(["path", "absolute", "unchanged"])
      .default("path")
      .describe(
        "WebDAV `Destination` that points to this proxy (RFC 4918, 10.3). `path`: reduced to its path. " +
          "`absolute`: with the scheme and host that the upstream sees. `unchanged`: left alone; WebDAV servers " +
          "behind a proxy then respond with 502.",
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
