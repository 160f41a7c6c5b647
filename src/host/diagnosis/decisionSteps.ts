import {
  CATCH_ALL,
  type HeaderList,
  isBodyTooLong,
  LogInRules,
  type ProxyConfig,
  type RouteConfig,
  RouteTable,
  type Scheme,
  type VirtualServerConfig,
} from "../../model/index.js";
import { limitText } from "../../model/config/rateChecks.js";
import { type Decision, decide, type RouteMatch, RequestMatcher } from "../../model/decision.js";

/** A rule for a request, and its result. */
export interface DecisionStep {
  readonly rule: string;
  readonly outcome: string;
}

export interface DecidedRequest {
  readonly scheme: Scheme;
  /** The authority as the client wrote it, with its port. */
  readonly authority: string;
  readonly method: string;
  /** Origin-form, one char a byte. */
  readonly target: string;
  /** Name of the listener, if it is known. */
  readonly listener?: string | undefined;
  /** Bytes of its body; -1 if that is not known. */
  readonly bodyBytes: number;
  /** The request's fields, as far as they are known. */
  readonly headers?: HeaderList;
  /** Address of the client, if it is known. */
  readonly client?: string | undefined;
}

/** The rules that a config applies to a request, in their order, by the functions that `resolve` and `replay` use. */
export function decisionSteps(
  config: ProxyConfig,
  request: DecidedRequest,
): { readonly steps: readonly DecisionStep[]; readonly match: RouteMatch | undefined } {
  const matcher = new RequestMatcher(config);
  const listener = matcher.listener(request.scheme, request.authority, request.listener);
  if (listener === undefined)
    return { steps: [step("listener", "no listener accepts this request")], match: undefined };
  const steps = [
    step("listener", `${listener.name} (${listener.protocol}, ${listener.address} port ${listener.port})`),
  ];
  const match = matcher.match(listener, request.authority, request.target);
  if (match === undefined) {
    const server = matcher.defaultServer(listener).name;
    return {
      steps: [...steps, step("host and path", `the host or the path is malformed: 400 from ${server}`)],
      match,
    };
  }
  const { route, server } = match;
  steps.push(step("virtual server", `${server.name}: ${whyServer(match)}`), step("path", match.path));
  steps.push(...certificateSteps(server), ...routeSteps(match));
  if (route !== undefined) {
    steps.push(...accessSteps(match, request));
    const limit = limitText(route);
    if (limit !== undefined) steps.push(step("limit", limit));
    steps.push(...guardSteps(match, request));
    const { requestBodyBytesMax: max } = route;
    if (max > 0)
      steps.push(
        step(
          "body",
          isBodyTooLong(request.bodyBytes, max)
            ? `longer than the ${max} bytes that are allowed`
            : `up to ${max} bytes are allowed`,
        ),
      );
  }
  return { steps: [...steps, step("action", actionText(decide(match, request), route))], match };
}

/** Why a route's action does not matter, for people. */
export const WINDOWS_DRIVES = "200 from the virtual server: Windows may map network drives (`windowsDrives`)";

const step = (rule: string, outcome: string): DecisionStep => ({ rule, outcome });

function whyServer({ server, serverName, listener }: RouteMatch): string {
  if (serverName === "") return `the default server of ${listener.name}, because the client named no host`;
  if (server.serverNames.includes(serverName)) return `its name ${serverName} matches`;
  const wildcard = server.serverNames.find(
    (name) =>
      name.startsWith("*.") &&
      name !== CATCH_ALL &&
      serverName.slice(serverName.indexOf(".")) === name.slice(1),
  );
  if (wildcard !== undefined) return `${wildcard} covers ${serverName}`;
  return `the default server of ${listener.name}, because no virtual server there is named ${serverName}`;
}

/** A log does not show a client's certificate: only the rule is told. */
function certificateSteps({ clientCertificate }: VirtualServerConfig): DecisionStep[] {
  if (clientCertificate === undefined) return [];
  const { ca, required, names } = clientCertificate;
  const whose = names === undefined ? "" : ` of ${names.length} name${names.length === 1 ? "" : "s"}`;
  const needs = required ? "needs a certificate" : "may have a certificate";
  const outcome = `the client ${needs}${whose} that an authority of ${ca} has signed; else 403, or 421 on a connection for another server`;
  return [step("clientCertificate", outcome)];
}

/** The policy of the route, and why it refuses the client. */
function accessSteps({ route, guard, path }: RouteMatch, { client, target }: DecidedRequest): DecisionStep[] {
  if (guard === undefined) return [];
  const own = route!.access ?? "open";
  const asks = guard.asking(target, path).map(({ name, policy: { forwardAuth } }) => {
    const other = name === own ? "" : ", as a server may read the path";
    const how =
      forwardAuth === undefined
        ? "`basic` asks for a user and a password"
        : `\`forwardAuth\` asks the portal at ${forwardAuth.url}`;
    return step("access", `${name}: ${how}${other}`);
  });
  if (client === undefined) return asks.length > 0 ? asks : [step("access", own)];
  const refusal = guard.refusal(client, target, path);
  if (refusal === undefined) return [step("access", `${own}: lets ${client} in`), ...asks];
  const other = refusal.policy === own ? "" : ", as a server may read the path";
  return [step("access", `${refusal.policy}: \`${refusal.by}\` refuses ${client}${other}`)];
}

/** Whether the request tries a secret; the running proxy knows whether it would be refused. */
function guardSteps({ server, path }: RouteMatch, { method, target }: DecidedRequest): DecisionStep[] {
  const { passwordGuard, logIns } = server;
  if (passwordGuard === undefined || logIns === undefined) return [];
  return new LogInRules(logIns).of({ method, target, path }).map(({ secret, path: at }) => {
    const where = secret === "body" ? "the body" : "`Authorization: Basic`, if it has that field";
    const outcome = `${passwordGuard}: a log-in (${at}) with its secret in ${where}; 429 while \`portico bans\` lists the client and the secret is new`;
    return step("passwordGuard", outcome);
  });
}

/** Routes that match, the chosen one first, and how many do not. */
function routeSteps({ server, route, path }: RouteMatch): DecisionStep[] {
  const matching = server.routes.filter(
    (one) => one !== route && new RouteTable([one]).find(path) !== undefined,
  );
  const others = server.routes.length - matching.length - (route === undefined ? 0 : 1);
  const says = ({ name, path: at, match }: RouteConfig, outcome: string): DecisionStep =>
    step(`route ${name}`, `${match} ${at}: ${outcome}`);
  return [
    ...(route === undefined
      ? [step("route", "none matches: 404")]
      : [says(route, "matches, and handles the request")]),
    ...matching.map((one) => says(one, "matches, but is less specific")),
    ...(others === 0 ? [] : [step("other routes", `${others} do${others === 1 ? "es" : ""} not match`)]),
  ];
}

function actionText(decision: Decision, route: RouteConfig | undefined): string {
  switch (decision.kind) {
    case "proxy":
      return `proxied to upstream ${decision.upstream}, as ${decision.target}`;
    case "staticFile":
      return `the file ${decision.file}`;
    case "redirect":
      return `${decision.status} to ${decision.location}`;
    case "respond":
      return decision.windowsDrives ? WINDOWS_DRIVES : `${decision.status}, a fixed response`;
    case "status":
      return `the status page, for ${decision.allow.join(" and ")}; 403 for all others`;
    case "error":
      return `${decision.status} from Portico${route === undefined ? "" : `, by the rules of the action ${route.action.type}`}`;
  }
}
