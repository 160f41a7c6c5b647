import type { pauseResponse } from "../model/config/pauses.js";
import type { InputOf } from "../model/schema/inferred.js";
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
 * The definition of an application for a front end, as data. To add an application is to add a file beside this one and
 * a line to `table.ts`: constructs make upstreams, routes, settings and expected responses from it, and the host
 * evaluates the resulting document.
 */

/** The public address of the application. Each text may be a placeholder for a value that only Terraform knows. */
export interface PublicPlace {
  /** Scheme of the public URL. */
  readonly scheme: "http" | "https";
  /** The main public name. */
  readonly host: string;
  /** Public port. */
  readonly port: number;
  /** The main name in URLs, with the port unless the port is the scheme's default: `files.example.org:8443`. */
  readonly authority: string;
  /** Scheme and authority: `https://files.example.org`. */
  readonly origin: string;
  /** Origins of all names, the main one first. */
  readonly origins: readonly string[];
  /** The path at which the application begins: empty, or `/wiki` if the application is below this path of a site. */
  readonly path: string;
}

/** A place for data that does not depend on it, such as the names of routes. */
export const ANY_PLACE: PublicPlace = {
  scheme: "https",
  host: "localhost",
  port: 443,
  authority: "localhost",
  origin: "https://localhost",
  origins: ["https://localhost"],
  path: "",
};

/** A server of the application. */
export interface ApplicationPart extends Omit<UpstreamInput, "name"> {
  /** The noun for messages and documents: "file server". */
  readonly title: string;
  /**
   * A request that the server can respond to at any time, as a client sends it; not needed if a route's expected
   * response has the request.
   */
  readonly liveness?: Liveness;
}

/** A request that shows that a server runs. */
export interface Liveness {
  /** Path of the request. */
  readonly path: string;
  /** Status of the expected response. */
  readonly status: number;
}

/** A route of the application's virtual server. */
export interface ApplicationRoute<Part extends string = string> extends Omit<
  RouteInput,
  "name" | "action" | "access"
> {
  /** The action of the route; its upstream is a part of the application. */
  readonly action: ApplicationAction<Part>;
  /**
   * Who may come in, if the application's manual says to close the path. It applies besides the policy of the site, and
   * unless the author gives the route one.
   */
  readonly access?: { readonly allow: readonly string[] };
  /** Whether the route has separate log files in the host's log directory. */
  readonly ownLogs?: boolean;
  /** Expected responses; by default, that of the route's action. `false`: no check. */
  readonly expect?: false | readonly ExpectationInput[];
}

/**
 * An action: a server of the application, files, a fixed response, or a redirect. A redirect uses the public scheme
 * and port by default.
 */
export type ApplicationAction<Part extends string = string> =
  | (Omit<Extract<ActionInput, { readonly type: "proxy" }>, "upstream"> & { readonly upstream: Part })
  | Exclude<ActionInput, { readonly type: "proxy" | "status" }>;

/** A command that an administrator enters once, for a setting that is in no settings file. */
export interface SettingsCommand {
  /** The purpose of the command. */
  readonly purpose: string;
  /** The command line. */
  readonly command: string;
}

/** Facts about the application's clients, for guards and single sign-on. */
export interface ApplicationClients {
  /** Paths that are built into clients. If another route handles such a path, the stack has a warning. */
  readonly builtIn?: readonly string[];
  /**
   * Paths that sync clients request with their own credentials. A login page in front of these paths would break the
   * clients.
   */
  readonly withCredentials: readonly string[];
  /** Requests that log a user in, and the response to a failed login. */
  readonly logIns: readonly LogIn[];
}

/** A request that tries a secret: that logs a user in, opens a shared link, or gives a second factor. */
export interface LogIn {
  /** Path of the request. */
  readonly path: string;
  /**
   * Whether it is only this path, or also each path below it.
   * @default "exact"
   */
  readonly match?: "exact" | "segment";
  /**
   * Method of the request.
   * @default - any method
   */
  readonly method?: "POST" | "GET" | "PROPFIND";
  /**
   * Place of the secret: `Authorization: Basic`, where only requests with this field count and every path should check it;
   * or the body, a form or JSON.
   */
  readonly secret: "authorization" | "body";
  /** Fields of the body or the query that differ from one attempt to the next, such as tokens against forgery. */
  readonly changing?: readonly string[];
  /** Field of the body with the account's name. */
  readonly accountField?: string;
  /** Field of the body with the password. */
  readonly passwordField?: string;
  /** Statuses of the response to a wrong secret. If the login form is shown again with an error, 200. */
  readonly failed: readonly number[];
  /** A form with this field, and none with a password, renews a session, and is no log-in. */
  readonly renewal?: { readonly field: string; readonly value: string };
  /**
   * End of the path that the response to a wrong secret redirects to, if a success has the same status and another path: the
   * status alone tells nothing.
   */
  readonly failedLocation?: string;
}

/** An application. */
export interface ApplicationDefinition<Part extends string = string, RouteName extends string = string> {
  /** Key of the application in the table: `seafile`. */
  readonly name: string;
  /** Name for people: `Seafile 12`. */
  readonly title: string;
  /** Servers of the application; leave out servers that a front end does not use. */
  readonly parts: { readonly [part in Part]?: ApplicationPart };
  /** The route of the page that users see first. */
  readonly main: RouteName;
  /** Routes in the order of the config. The longest path wins, independent of the order. */
  readonly routes: (place: PublicPlace) => { readonly [route in RouteName]?: ApplicationRoute<Part> };
  /** Settings files, and the items that depend on the public URL. */
  readonly settings?: (place: PublicPlace) => readonly SettingsFile[];
  /** Commands for settings that are in no file. */
  readonly commands?: (place: PublicPlace) => readonly SettingsCommand[];
  /** systemd units of the servers on the host, in start order. */
  readonly daemons?: NonNullable<DeploymentInput["services"]["daemons"]>;
  /**
   * Whether users can map a network drive of Windows: there is a route to a WebDAV server, and the program at `/` is another.
   * @default false
   */
  readonly windowsDrives?: boolean;
  /**
   * Whether only requests for the site's own names reach the application, and others get 404. Otherwise the application
   * with a host's names also responds to every other name over https, as the service of docs/service.md does.
   * @default false
   */
  readonly ownNamesOnly?: boolean;
  /**
   * Whether the application can be below a path of another application's site: all routes, settings and expected responses
   * then begin with the `path` of the place.
   * @default false
   */
  readonly belowPath?: boolean;
  /** Directories that the static routes serve. */
  readonly trees?: readonly Tree[];
  /** The application's rows of `portico doctor`: `rows` of the deployment. */
  readonly rows?: readonly DeploymentRow[];
  /** The 503 by which the application's programs recognise a maintenance. */
  readonly pauseResponse?: PauseResponse;
  /** Facts about the clients, for guards and single sign-on. */
  readonly clients: ApplicationClients;
}

/** A response for sync clients: docs/pauses.md has the response of each client that was tried. */
export interface PauseResponse extends InputOf<typeof pauseResponse> {}
