import { ANY_PLACE } from "../../applications/index.js";
import { type Problem, problem } from "../../model/index.js";
import type { Application } from "./application.js";
import { APPLICATION } from "../props/instances.js";
import { any, fields, type PropKind, type PropTable } from "../props/propTable.js";
import type { AnyFrontEndProps } from "./frontEndProps.js";

/** Which props of a front end go with which application. */

type At = (name: string) => string;

/** Props that define an application, or take one as a whole. */
interface WithApplication {
  readonly application?: Application;
  readonly upstreams?: object;
  readonly routeResponseHeaders?: object;
}

/** @internal The names of upstreams and routes are the application's. */
export function propsFor<P extends WithApplication>(
  props: P | null | undefined,
  table: PropTable<P>,
  upstream: PropKind,
): PropTable<P> {
  const application: unknown = props?.application;
  if (!APPLICATION.accepts(application)) return table;
  const { parts, routes } = (application as Application).definition;
  const named = (names: readonly string[], kind: PropKind): PropKind =>
    fields<object>(Object.fromEntries(names.map((name) => [name, kind])));
  return {
    ...table,
    upstreams: { ...named(Object.keys(parts), upstream), required: table.upstreams.required },
    routeResponseHeaders: named(Object.keys(routes(ANY_PLACE)), any),
  };
}

/** @internal Problems of the application's props: missing ones, or those that another application does not take. */
export const applicationProblems = (fit: Partial<AnyFrontEndProps>, at: At): Problem[] =>
  fit.application === undefined ? ownProblems(fit, at) : foreignProblems(fit, at);

type GivenProps = Partial<Pick<AnyFrontEndProps, (typeof OF_DEFAULT)[number] | "activation">>;

const OF_DEFAULT = [
  "installDirectory",
  "mediaDirectory",
  "avatarDirectory",
  "pathPrefix",
  "routePaths",
  "webdavDestination",
  "settings",
  "daemons",
] as const;

/** @internal Props of the default application beside another one, which has its own. */
export function foreignProblems(props: GivenProps, at: At): Problem[] {
  const { activation: { units, settings } = {} } = props;
  const given = [
    ...OF_DEFAULT.map((name): [string, unknown] => [name, props[name]]),
    ["activation.units", units] as const,
    ["activation.settings.files", settings?.files] as const,
  ].filter(([, value]) => value !== undefined);
  return given.map(([name]) => {
    const fix = "Remove the prop: the options of `application` take its place.";
    const message = "is a prop of the default application, but `application` is set";
    return problem("config.unknown-field", at(name), message, { allowed: "props of every application", fix });
  });
}

/** Problems of the default application's props. */
function ownProblems(props: Partial<AnyFrontEndProps>, at: At): Problem[] {
  const { files } = props.activation?.settings ?? { files: {} };
  const noFile = props.activation?.settings !== undefined && Object.keys(files ?? {}).length === 0;
  const fix = "List the settings files of the application, or remove `settings`.";
  const more = { allowed: "an object with networkDaemon, webApplication, fileServer", fix };
  return [
    ...installProblems(props, at),
    ...(noFile ? [problem("config.missing-field", at("activation.settings.files"), "is missing", more)] : []),
  ];
}

function installProblems(props: Partial<AnyFrontEndProps>, at: At): Problem[] {
  if (props.installDirectory !== undefined || props.mediaDirectory !== undefined) return [];
  const fix =
    "Set `installDirectory` to the directory of the application, or `mediaDirectory` to the directory of its media.";
  const more = { allowed: "an absolute path on the host", fix };
  return [problem("config.missing-field", at("installDirectory"), "is missing", more)];
}
