import type { ActionInput, UpstreamInput } from "../model/index.js";
import type { ApplicationDefinition } from "./definition.js";

/** Applications of which nothing is known but where they are: one ordinary server, files, or a redirect. */

/** How requests are passed on to a server. */
export type PassedOn = Omit<Extract<ActionInput, { readonly type: "proxy" }>, "type" | "upstream">;
type StaticFiles = Omit<Extract<ActionInput, { readonly type: "staticFiles" }>, "type" | "directory">;
type Redirect = Omit<Extract<ActionInput, { readonly type: "redirect" }>, "type">;

const COMMON = {
  ownNamesOnly: true,
  belowPath: true,
  clients: { withCredentials: [], logIns: [] },
} as const;

/** A single server that gets all requests, with the client's `Host` and address. */
export const ordinaryServer = (
  upstream: Omit<UpstreamInput, "name">,
  options: PassedOn = {},
): ApplicationDefinition<"web", "web"> => ({
  name: "server",
  title: "The application",
  parts: { web: { title: "application", ...upstream } },
  main: "web",
  routes: ({ path }) => ({
    web: {
      path: path || "/",
      action: {
        type: "proxy",
        upstream: "web",
        hostHeader: "client",
        ...options,
        forwarded: { realIp: true, for: true, proto: true, ...options.forwarded },
      },
    },
  }),
  ...COMMON,
});

/** The files of a directory. */
export const servedFiles = (
  directory: string,
  options: StaticFiles = {},
): ApplicationDefinition<never, "files"> => ({
  name: "staticFiles",
  title: "The files",
  parts: {},
  main: "files",
  routes: ({ path }) => ({
    files: { path: path || "/", action: { type: "staticFiles", directory, ...options } },
  }),
  ...COMMON,
});

/** Another site, to which everything is redirected. */
export const redirected = (options: Redirect): ApplicationDefinition<never, "redirect"> => ({
  name: "redirect",
  title: "The redirect",
  parts: {},
  main: "redirect",
  routes: ({ path }) => ({ redirect: { path: path || "/", action: { type: "redirect", ...options } } }),
  ...COMMON,
});
