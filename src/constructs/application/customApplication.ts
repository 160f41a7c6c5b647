import {
  ANY_PLACE,
  type ApplicationClients,
  type ApplicationDefinition,
  type ApplicationPart,
  type ApplicationRoute,
  type Liveness,
  type LogIn,
} from "../../applications/index.js";
import { route } from "../../model/config/config.js";
import { type Problem, problem, type RouteInput, type SettingsFile } from "../../model/index.js";
import { PAUSE_RESPONSE } from "../proxy/errorPage.js";
import { fieldsOf } from "../props/fieldTable.js";
import {
  any,
  choice,
  fields,
  flag,
  functionOf,
  listOf,
  number,
  type PropKind,
  type PropTable,
  record,
  recordOf,
  required,
  text,
  without,
} from "../props/propTable.js";
import { UPSTREAM_PROPS } from "../proxy/upstream.js";

/** An application of your own: an `ApplicationDefinition` with optional `clients`. */
export type CustomApplication<Part extends string = string, RouteName extends string = string> = Omit<
  ApplicationDefinition<Part, RouteName>,
  "clients"
> &
  Partial<Pick<ApplicationDefinition, "clients">>;

const ACTIONS = ["proxy", "staticFiles", "redirect", "respond"];
const ACTION: PropKind = {
  allowed: `an object with \`type\`: one of ${ACTIONS.join(", ")}`,
  accepts: (value) => record.accepts(value) && ACTIONS.includes((value as { type?: string }).type!),
};

// The model checks the other fields.
const ROUTE = fields<ApplicationRoute>({
  ...without<RouteInput, "name">(fieldsOf(route), "name"),
  path: required(text),
  action: required(ACTION),
  ownLogs: flag,
  expect: any,
});

const PART = fields<ApplicationPart>({
  ...without(UPSTREAM_PROPS, "name"),
  title: required(text),
  liveness: fields<Liveness>({ path: required(text), status: required(number) }),
});

const SETTINGS_FILE = fields<Omit<SettingsFile, "site">>({
  kind: required(choice("ini", "python", "env")),
  ...{ name: required(text), path: required(text), items: required(listOf(record)) },
});

const ofPlace = (kind: PropKind): PropKind => functionOf("(place) => …", kind, ANY_PLACE);

/** @internal Functions are called once, to check their results. */
export const CUSTOM_APPLICATION: PropTable<CustomApplication> = {
  name: required(text),
  title: required(text),
  parts: required(recordOf(PART)),
  main: required(text),
  routes: required(ofPlace(recordOf(ROUTE))),
  // The model checks the other fields.
  settings: ofPlace(listOf(SETTINGS_FILE)),
  commands: ofPlace(listOf(fields({ purpose: required(text), command: required(text) }))),
  daemons: listOf(record),
  windowsDrives: flag,
  ownNamesOnly: flag,
  belowPath: flag,
  trees: listOf(record),
  rows: listOf(record),
  pauseResponse: PAUSE_RESPONSE,
  clients: fields<ApplicationClients>({
    builtIn: listOf(text),
    withCredentials: required(listOf(text)),
    logIns: required(
      listOf(
        fields<LogIn>({
          path: required(text),
          match: choice("exact", "segment"),
          method: choice("POST", "GET", "PROPFIND"),
          secret: required(choice("authorization", "body")),
          changing: listOf(text),
          accountField: text,
          passwordField: text,
          failed: required(listOf(number)),
          failedLocation: text,
          renewal: fields({ field: required(text), value: required(text) }),
        }),
      ),
    ),
  }),
};

/** @internal Names of routes and parts that are none. */
export function referenceProblems({ main, routes, parts = {} }: Partial<CustomApplication>): Problem[] {
  if (routes === undefined) return [];
  const made = Object.entries(routes(ANY_PLACE)) as [string, ApplicationRoute][];
  const unknown = (path: string, received: string, names: readonly string[], what: string): Problem[] => {
    if (names.includes(received)) return [];
    const more = { received, ...(names.length === 0 ? {} : { allowed: names.join(", ") }) };
    return [problem("config.unknown-reference", `Application.custom.${path}`, `is not ${what}`, more)];
  };
  const names = made.map(([name]) => name);
  return [
    ...(main === undefined ? [] : unknown("main", main, names, "the name of a route")),
    ...made.flatMap(([name, { action }]) =>
      action.type === "proxy"
        ? unknown(`routes.${name}.action.upstream`, action.upstream, Object.keys(parts), "the name of a part")
        : [],
    ),
  ];
}
