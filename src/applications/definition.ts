import type {
  ActionInput,
  DeploymentInput,
  DeploymentRow,
  ExpectationInput,
  RouteInput,
  SettingsFile,
  Tree,
  UpstreamInput,
} from "../model/index.js";

/**
 * What a front end has to know of an application, as data. To add an application is to add a file beside this one and a
 * line to `table.ts`: constructs make upstreams, routes, settings and expected responses of it, and the host evaluates the
 * document that comes of them.
 */

/** Where clients find the application. Each text may stand for a value that only Terraform knows. */
export interface PublicPlace {
  /** Scheme that clients use. */
  readonly scheme: "http" | "https";
  /** The main name that clients ask for. */
  readonly host: string;
  /** Port that clients use. */
  readonly port: number;
  /** The main name as URLs have it, with the port unless it is the scheme's own: `files.example.org:8443`. */
  readonly authority: string;
  /** Scheme and authority: `https://files.example.org`. */
  readonly origin: string;
  /** Origins of all names, the main one first. */
  readonly origins: readonly string[];
}

/** For what does not depend on the place, such as the names of routes. */
export const ANY_PLACE: PublicPlace = {
  scheme: "https",
  host: "localhost",
  port: 443,
  authority: "localhost",
  origin: "https://localhost",
  origins: ["https://localhost"],
};

/** A server of the application. */
export interface ApplicationPart extends Omit<UpstreamInput, "name"> {
  /** The noun of messages and documents: "file server". */
  readonly title: string;
  /** A request that it answers at any time, as it comes from a client; none where a route's expected response says it. */
  readonly liveness?: Liveness;
}

/** A request that shows that a part runs. */
export interface Liveness {
  /** Path that clients ask for. */
  readonly path: string;
  /** Status of a good response. */
  readonly status: number;
}

/** A route of the application's virtual server. */
export interface ApplicationRoute<Part extends string = string> extends Omit<RouteInput, "name" | "action"> {
  /** What answers. */
  readonly action: ApplicationAction<Part>;
  /** Whether it has log files of its own, in the log directory of the host. */
  readonly ownLogs?: boolean;
  /** Expected responses; without them, what its action promises. `false` expects nothing. */
  readonly expect?: false | readonly ExpectationInput[];
}

/** What answers: a part, files, a fixed response, or a redirect, which leads to the public scheme and port by default. */
export type ApplicationAction<Part extends string = string> =
  | (Omit<Extract<ActionInput, { readonly type: "proxy" }>, "upstream"> & { readonly upstream: Part })
  | Exclude<ActionInput, { readonly type: "proxy" | "status" }>;

/** A line that an administrator enters once, since no settings file holds it. */
export interface SettingsCommand {
  /** What it does, in words. */
  readonly says: string;
  /** The line. */
  readonly command: string;
}

/** What guards and single sign-on have to know of an application. */
export interface ApplicationClients {
  /** Paths that clients have built in: a stack in which another route answers one of them is warned. */
  readonly builtIn?: readonly string[];
  /** Paths that sync clients ask for with credentials of their own, which a log-in page in front of them would break. */
  readonly withCredentials: readonly string[];
  /** Requests that log a user in, and the response to one that failed. */
  readonly logIns: readonly LogIn[];
  /** Cookies that hold a session. */
  readonly sessionCookies: readonly string[];
}

/** A request that logs a user in. */
export interface LogIn {
  /** Its method. */
  readonly method: "POST" | "GET" | "PROPFIND";
  /** Its path, as clients ask for it. */
  readonly path: string;
  /** Statuses of a log-in that failed. Of a form that comes again with an error, 200. */
  readonly failed: readonly number[];
}

/** An application. */
export interface ApplicationDefinition<Part extends string = string, RouteName extends string = string> {
  /** Its key in the table: `seafile`. */
  readonly name: string;
  /** What people call it: `Seafile 12`. */
  readonly title: string;
  /** Its servers; those that a front end does not use are left out. */
  readonly parts: { readonly [part in Part]?: ApplicationPart };
  /** The route that leads to what users see first. */
  readonly main: RouteName;
  /** Its routes, in the order of the config. The longest path wins, whatever the order. */
  readonly routes: (place: PublicPlace) => { readonly [route in RouteName]?: ApplicationRoute<Part> };
  /** Its settings files, and what they have to say of the public URL. */
  readonly settings?: (place: PublicPlace) => readonly SettingsFile[];
  /** What it is told by a command instead. */
  readonly commands?: (place: PublicPlace) => readonly SettingsCommand[];
  /** systemd units of its parts on the host, in the order in which they start. */
  readonly daemons?: NonNullable<DeploymentInput["services"]["daemons"]>;
  /** Directories that its static routes serve. */
  readonly trees?: readonly Tree[];
  /** Rows of `portico doctor` about it, in the order of the report. */
  readonly rows?: readonly DeploymentRow[];
  /** What guards and single sign-on have to know. */
  readonly clients: ApplicationClients;
}
