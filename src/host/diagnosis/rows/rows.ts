import {
  type EngineRow,
  ipv4Scope,
  ipv6Scope,
  isIpv6,
  type Problem,
  serversOf,
  upstreamAddress,
  canonicalAddress,
  clientPort,
  isLoopback,
  isWildcard,
  type ListenerConfig,
} from "../../../model/index.js";
import { DIRECTORIES, SERVER_NAME, WRONG_NAME, SETTINGS } from "../../../model/host/rows.js";
import { CERTIFICATE_QUESTIONS } from "./certificateRows.js";
import { askDirectories, deploymentQuestions, directories, settingsFaults } from "./deploymentRows.js";
import type { Drift, Evidence, PublicAddress, SeenResponse } from "../evidence.js";
import {
  HEALTH_QUESTION,
  HOST_QUESTIONS,
  MEMORY_QUESTION,
  NODE_FIXES_QUESTION,
  NODE_QUESTION,
  ROTATION_QUESTION,
  judged,
  SERVING_QUESTIONS,
} from "./hostRows.js";
import {
  describe,
  type DiagnosisRow,
  explained,
  failure,
  hasStrangers,
  isStalled,
  notAsked,
  notSeen,
  ok,
  outage,
  OUTAGES,
  responsesOf,
  short,
  type Question,
  unknown,
  type Verdict,
} from "../verdict.js";
import { judgeClientCertificates } from "../clientCertificates.js";
import { judgePauses } from "../pauses.js";
import { judgeUpstreamServers } from "../upstreamServers.js";
import { isOwnErrorPage, isVersioned } from "../expected/expectation.js";
import type { ForeignRule } from "../system/foreignRules.js";
import { loopbackPorts } from "../../../model/host/host.js";
import type { ListeningSocket } from "../../../runtime/sockets/node/listeningSockets.js";

/** Asked only on the host, by root. Rows before it say what already fails from inside. */
const OUTSIDE_QUESTION: Question<EngineRow> = {
  id: "outside",
  title: "Other machines get the responses that the host itself gets",
  ask: askOutside,
};

function askOutside(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { outside, foreignRules = [], rulesUnseen } = evidence;
  const rules = [
    ...foreignRules.map(({ chain, text }) => `rule of another table, ${chain}: ${text}`),
    ...(rulesUnseen === undefined ? [] : [rulesUnseen]),
  ];
  if (outside === undefined) {
    const cause = OUTAGES.find((id) => failed.has(id));
    return cause === undefined
      ? notAsked(["not asked from outside", ...rules].join("; "))
      : explained(cause, ...rules);
  }
  if ("why" in outside) return withoutNetwork(outside.why, foreignRules, rules);
  const seen = outside.asked.flatMap(({ address, failed: rows }) =>
    rows
      .filter(({ id }) => isOnlyOutside(id, evidence, failed))
      .map((row) => `from beside the host, ${address}: ${row.cause ?? row.id}${shown(row.evidence)}`),
  );
  if (seen.length > 0 && failed.has("firewall")) return explained("firewall", ...seen);
  const vrrp = foreignRules.filter(({ text }) => / (?:112|vrrp)\b/.test(text));
  if (seen.length === 0 && vrrp.length === 0)
    return ok(...outside.asked.map(({ address }) => `${address}: as from inside`), ...rules);
  const fixes = (vrrp.length > 0 && seen.length === 0 ? vrrp : foreignRules).map(({ fix }) => fix);
  if (vrrp.length > 0 && seen.length === 0)
    return failure(
      "a rule of another table keeps VRRP from the other host of the pair: both may have the address",
      rules,
      fixes.join("; "),
    );
  // If rules choose between clients, this machine's own network may be among those that are refused.
  if (foreignRules.length > 0 && foreignRules.every(({ isOfSome }) => isOfSome))
    return unknown(
      [...seen, ...rules, "The rules treat clients differently: check from a client"].join("; "),
    );
  const cause =
    foreignRules.length === 0
      ? "other machines do not get the responses that the host itself gets"
      : "rules of another table keep other machines from the front end";
  const fix =
    fixes.join("; ") ||
    "nft list ruleset and ip rule show what treats packets from other machines differently.";
  return failure(cause, [...seen, ...rules], fix);
}

function withoutNetwork(why: string, foreign: readonly ForeignRule[], rules: readonly string[]): Verdict {
  const blocking = foreign.filter(({ isOfSome }) => !isOfSome);
  const said = `not asked from outside: ${why}`;
  if (blocking.length === 0) return notAsked([said, ...rules].join("; "));
  return failure(
    "rules of another table are in the way of the front end's ports",
    [...rules, said],
    blocking.map(({ fix }) => fix).join("; "),
  );
}

const shown = ([first]: readonly string[]): string => (first === undefined ? "" : ` (${first})`);

/** Whether a row that fails from outside is in order from inside. */
function isOnlyOutside(id: string, { responses }: Evidence, failed: ReadonlySet<string>): boolean {
  // The hairpin row asks that network's own router: it says nothing about the host.
  if (failed.has(id) || id === "hairpin") return false;
  const inside = responses.filter(({ row }) => `response: ${row.name}`.startsWith(id));
  return inside.length === 0 || inside.some(({ checked }) => checked.pass);
}

/** Evaluates the evidence. Pure: the same evidence gives the same rows, causes before their symptoms. */
export function diagnose(evidence: Evidence): DiagnosisRow[] {
  const failed = new Set<string>();
  const rows: DiagnosisRow[] = [];
  const node = evidence.missingPieces === undefined ? [] : [NODE_QUESTION];
  const nodeFixes = evidence.node === undefined ? [] : [NODE_FIXES_QUESTION];
  const acme = evidence.certificates === undefined ? [] : CERTIFICATE_QUESTIONS;
  const health = evidence.health === undefined ? [] : [HEALTH_QUESTION];
  const upstreams = evidence.upstreamServers === undefined ? [] : [UPSTREAMS_QUESTION];
  const clients = evidence.clientCertificates === undefined ? [] : [CLIENT_CERTIFICATES_QUESTION];
  const pauses = evidence.pauses === undefined ? [] : [PAUSES_QUESTION];
  const rotation = evidence.rotation === undefined ? [] : [ROTATION_QUESTION];
  const memory = evidence.memoryKills === undefined ? [] : [MEMORY_QUESTION];
  const known = evidence.settings ?? evidence.deployment?.settings;
  const settings = known === undefined ? [] : [SETTINGS_QUESTION];
  const questions: Question[] = [
    ...QUESTIONS,
    ...deploymentQuestions(evidence),
    ...(directories(evidence).length === 0 ? [] : [DIRECTORIES_QUESTION]),
    ...settings,
    HAIRPIN_QUESTION,
    ...rotation,
    ...memory,
    ...health,
    ...upstreams,
    ...pauses,
    ...clients,
    ...acme,
    ...nodeFixes,
    ...node,
    ...evidence.responses.map(responseQuestion),
    ...([evidence.outside, evidence.foreignRules, evidence.rulesUnseen].every((one) => one === undefined)
      ? []
      : [OUTSIDE_QUESTION]),
  ];
  for (const { id, title, site, ask } of questions) {
    const row = { id, title, site, ...ask(evidence, failed) };
    if (row.status === "failed") failed.add(id);
    rows.push(row);
  }
  return rows;
}

/** The rows if no config can be read: all others depend on it. */
export function unreadable(problems: readonly Problem[], drift: Drift | undefined): DiagnosisRow[] {
  const { id, title } = CONFIG_QUESTION;
  const row = {
    id,
    title,
    ...failure("the config cannot be read", problems.map(short), problems[0]!.fix),
  };
  if (drift === undefined) return [row];
  // They only use how the host differs from its deployment.
  const evidence = { drift } as Evidence;
  return [
    ...HOST_QUESTIONS.map(({ ask, ...question }) => ({ ...question, ...ask(evidence, new Set()) })),
    row,
  ];
}

const CONFIG_QUESTION: Question<EngineRow> = {
  id: "config",
  title: "The proxy's config is valid",
  ask: askConfig,
};

const QUESTIONS: readonly Question<EngineRow>[] = [
  ...HOST_QUESTIONS,
  CONFIG_QUESTION,
  { id: "proxy", title: "The proxy is running, and starts at boot", ask: askProxy },
  ...SERVING_QUESTIONS,
  { id: "ports", title: "Exactly the right ports are open", ask: askPorts },
  { id: SERVER_NAME, title: "Requests reach their virtual server and route", ask: askServerName },
];

/** Asked only where routes serve directories that the deployment has no row for. */
const DIRECTORIES_QUESTION: Question<EngineRow> = {
  id: DIRECTORIES,
  title: "Other users can read the files of static routes",
  ask: askDirectories,
};

/** Asked only where something is known of an application's settings. */
const SETTINGS_QUESTION: Question<EngineRow> = {
  id: SETTINGS,
  title: "The application's other settings are as deployed",
  ask: askSettings,
};

/** Asked only where upstreams have several servers, and the proxy could be asked. */
const UPSTREAMS_QUESTION: Question<EngineRow> = {
  id: "upstreams",
  title: "Every server of an upstream with several servers gets requests",
  ask: ({ upstreamServers = [] }) => judgeUpstreamServers(upstreamServers),
};

/** Asked only while requests are refused by command. */
const PAUSES_QUESTION: Question<EngineRow> = {
  id: "pauses",
  title: "No command makes the proxy refuse requests",
  ask: ({ pauses = { maintenance: [] } }) => judgePauses(pauses),
};

const CLIENT_CERTIFICATES_QUESTION: Question<EngineRow> = {
  id: "client-certificates",
  title: "Clients with a valid certificate come in",
  ask: ({ clientCertificates = {} }) => judgeClientCertificates(clientCertificates),
};

const HAIRPIN_QUESTION: Question<EngineRow> = {
  id: "hairpin",
  title: "Clients inside the LAN reach the front end",
  ask: askHairpin,
};

function askConfig(evidence: Evidence): Verdict {
  const { configProblems, configWarnings = [], drift } = evidence;
  if (configProblems === undefined) return notSeen(evidence, "The files that the config names");
  const [first] = configProblems;
  if (first !== undefined) {
    // A directory that was there is to be put back, not to be made.
    const lost = drift?.emptied?.find(({ at }) => first.path.endsWith(`(${at})`));
    const seen = [...configProblems.map(short), ...(lost === undefined ? [] : [`${lost.at}: ${lost.what}`])];
    return failure("the proxy refuses its config", seen, lost?.fix ?? first.fix);
  }
  return ok(...configWarnings.map(short));
}

const RESTART = (unit: string): string => `systemctl restart ${unit}; journalctl -u ${unit}`;

function askProxy(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { units } = evidence;
  if (units?.proxy === undefined) return notSeen(evidence, "The state of the units");
  const { proxy, proxySocket } = units;
  const { strangers = [], silentMaster, silentWorkers = [] } = evidence.processes ?? {};
  const own = proxySocket === undefined ? [proxy] : [proxySocket, proxy];
  const seen = own.map(
    (unit) =>
      `${unit.name}: ${unit.load === "masked" ? "masked, " : ""}${unit.state}, ${unit.enabled ? "enabled" : "not enabled"}`,
  );
  if (strangers.length > 0)
    return judged(evidence, strangers, "another program has a port of the proxy", seen);
  const isUp = own.every((unit) => unit.state === "active" && unit.enabled);
  const hangs = silentMaster !== undefined || silentWorkers.length > 0;
  if (isUp && hangs && failed.has("units") && isStalled(evidence)) return explained("units", ...seen);
  if (isUp && silentMaster !== undefined) {
    const what = `${proxy.name}: its main process ${proxy.mainPid} does not respond: ${silentMaster}`;
    return failure("the main process of the proxy does not respond to commands", [what], RESTART(proxy.name));
  }
  if (isUp && silentWorkers.length > 0) {
    const what = `${proxy.name}: worker ${silentWorkers.join(" and ")} does not respond`;
    const fix = `The main process replaces such a worker after 30 s. If it comes again: ${RESTART(proxy.name)}`;
    return failure("workers of the proxy hang, and their clients wait", [what], fix);
  }
  if (isUp) return ok(...seen);
  const names = own.map((unit) => unit.name).join(" ");
  const masked = own.filter(({ load }) => load === "masked").map(({ name }) => name);
  const unmask = masked.length === 0 ? "" : `systemctl unmask ${masked.join(" ")} && `;
  const fix = `${unmask}systemctl enable --now ${names}; if that fails: journalctl -u ${proxy.name}`;
  return failure("the proxy does not run, or is not enabled", seen, fix);
}

function askServerName(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  if (evidence.place === "folder") return notSeen(evidence, "Which virtual server responds");
  const responses = responsesOf(evidence);
  if (hasStrangers(evidence) && failed.has("proxy")) return explained("proxy");
  const missing = responses.filter(
    ({ checked, response }) =>
      checked.code === SERVER_NAME && response.status === 404 && isOwnErrorPage(response),
  );
  const [first] = missing;
  if (first === undefined) return outage(evidence, failed) ?? ok(...responses.slice(0, 1).map(describe));
  const host = first.row.request.host;
  const byDefault = missing.filter(({ response }) => isVersioned(response.headers["server"]));
  if (byDefault.length > 0) {
    const names = evidence.config.virtualServers
      .flatMap((server) => server.serverNames)
      .filter((n) => n !== "_");
    const known = `server names in the config: ${[...new Set(names)].join(", ") || "none"}`;
    return failure(
      WRONG_NAME,
      [...byDefault.map(describe), known],
      `Set the host's address or name to the one that clients use (${host}), deploy, and reload the proxy.`,
    );
  }
  const { cause, fix = "Deploy again. If that does not help, check which route is missing in the config." } =
    first.checked;
  return failure(cause!, missing.map(describe), fix);
}

function askSettings(evidence: Evidence): Verdict {
  const { settings } = evidence;
  if (settings === undefined) return notSeen(evidence, "The application's settings");
  const [fault] = settingsFaults(evidence, SETTINGS);
  if (fault !== undefined) return failure(fault.cause, fault.evidence, fault.fix);
  const [first] = settings.problems;
  return first === undefined
    ? ok()
    : failure("the application's settings cannot be read", settings.problems.map(short), first.fix);
}

function askHairpin(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { publicAddresses = [] } = evidence;
  if (publicAddresses.length === 0)
    return notAsked("No public address is known: set it with --public-address.");
  const seen = publicAddresses.map(({ address, own, outcome }) =>
    "failure" in outcome
      ? `${address}: ${outcome.failure.message}`
      : `${address}: responds${own ? ", and is the host's own" : ""}`,
  );
  const silent = publicAddresses.filter(({ outcome }) => "failure" in outcome);
  if (silent.length === 0) return ok(...seen);
  if (failed.has("addresses")) return explained("addresses", ...seen);
  // Behind a provider's NAT there is only the host, and clients are outside.
  if (silent.every(({ translatedTo }) => translatedTo !== undefined))
    return notAsked(`${seen.join("; ")}. Check from outside: portico doctor --elsewhere.`);
  const inside = responsesOf(evidence);
  if (inside.length === 0)
    return (
      outage(evidence, failed) ?? unknown("There is no response from the public or the internal address.")
    );
  const here = `from here, by another address: ${describe(inside[0]!)}`;
  const [stray] = silent.filter((one) => leadsElsewhere(evidence, one));
  if (stray !== undefined)
    return failure(
      `${stray.name} resolves to an address that does not belong to the host`,
      [...seen, here],
      `Set the A and AAAA records of ${stray.name} to the host's public addresses only.`,
    );
  const named = silent.find(({ name }) => name !== undefined);
  const record =
    named === undefined ? "" : ` Check that ${named.address}, the address of ${named.name}, is the router's.`;
  return failure(
    "the router lacks NAT loopback (hairpinning)",
    [...seen, here],
    "Turn NAT loopback on in the router, or make the name resolve to the internal address inside the LAN (split DNS). " +
      `If it does not work from outside either, the router lacks the forwards of ports 80 and 443.${record}`,
  );
}

/** Whether the host has another public address of that family: then a name's is not that of a router in front of it. */
function leadsElsewhere(
  { ownAddresses = new Set(), publicAddresses = [] }: Evidence,
  { address, name }: PublicAddress,
): boolean {
  const isPublic = (own: string): boolean => (ipv4Scope(own) ?? ipv6Scope(own)) === "public";
  const known = [
    ...[...ownAddresses].filter(isPublic),
    ...publicAddresses.flatMap((one) => (one.name === undefined ? one.address : [])),
  ];
  return name !== undefined && known.some((one) => isIpv6(one) === isIpv6(address));
}

/** A row of the table of expected responses (service 5.1). */
function responseQuestion(seen: SeenResponse): Question {
  const { row, checked, outcome } = seen;
  return {
    id: `response: ${row.name}`,
    title: `Expected response: ${row.name}`,
    site: row.site,
    ask: (evidence, failed) => {
      if (outcome === undefined)
        return row.notProbed?.isUnclear === true ? unknown(checked.cause!) : notAsked(checked.cause!);
      if (checked.pass) return ok(describe(seen));
      const cause = explanation(seen, evidence, failed);
      if (cause !== undefined) return explained(cause, describe(seen));
      return failure(checked.cause!, [describe(seen)], checked.fix ?? `It should be: ${checked.expected}.`);
    },
  };
}

/** Whether a row is only about the Server field, which the responses of all others have too. */
const isOnServer = ({ expected }: SeenResponse["row"]): boolean =>
  expected.every(({ field }) => field === "Server");

/** Whether nothing listens at any place where the proxy sends a request to, and one of the daemons does not run. */
function isUnserved(
  { upstream }: SeenResponse["row"],
  status: number,
  { sockets, units }: Evidence,
): boolean {
  if (upstream === undefined || (status !== 502 && status !== 503)) return false;
  const isHeard = (url: string): boolean => {
    const address = upstreamAddress(url);
    return "path" in address || sockets?.some(({ port }) => port === address.port) !== false;
  };
  const isStopped = units?.daemons?.some(({ state }) => state === "inactive" || state === "failed");
  return isStopped === true && !serversOf(upstream).some(({ url }) => isHeard(url));
}

/** Which failed row explains a response that is not as expected. */
function explanation(
  { row, outcome, checked }: SeenResponse,
  evidence: Evidence,
  failed: ReadonlySet<string>,
): string | undefined {
  const of = (...ids: string[]): string | undefined => ids.find((id) => failed.has(id));
  const { responses } = evidence;
  if (outcome === undefined || "failure" in outcome)
    return of(...OUTAGES) ?? (isStalled(evidence) ? of("units") : undefined);
  const { response } = outcome;
  if (hasStrangers(evidence)) return of("proxy");
  if (isUnserved(row, response.status, evidence)) return of(checked.code ?? "units", "units");
  if (response.status === 404 && isOwnErrorPage(response)) return of("server-name", "config", "proxy");
  if (row.unversioned && isVersioned(response.headers["server"])) {
    const shown = of(
      ...responses.filter((one) => isOnServer(one.row)).map((one) => `response: ${one.row.name}`),
    );
    if (shown !== undefined) return shown;
  }
  const { code, because } = checked;
  if (code === undefined && because === undefined) return of("config", "proxy");
  return of(...(code === undefined ? [] : [code]), ...(because ?? []));
}

/** Whether the ports of the listeners are open, and those of the daemons are not. */
function askPorts(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { config, deployment, sockets, openPorts } = evidence;
  const portOf = openPorts === undefined ? ({ port }: ListenerConfig): number => port : clientPort;
  const wanted = [...new Set(config.listeners.map(portOf))];
  const upstreams = config.upstreams.flatMap(serversOf).map(({ url }) => url);
  const hidden = (deployment?.network?.loopbackPorts ?? loopbackPorts(upstreams)).filter(
    (port) => !wanted.includes(port),
  );
  if (evidence.unresolved !== undefined) {
    const fix = "Create the DNS record, or set the host's address with --connect.";
    return failure(`${evidence.unresolved} has no address: the name does not resolve here`, [], fix);
  }
  if (openPorts !== undefined) {
    // Another machine does not reach a listener on loopback.
    const reachable = config.listeners.filter(({ address }) => !isLoopback(address));
    const closed = wanted.filter(
      (port) => openPorts.get(port) === false && reachable.some((listener) => portOf(listener) === port),
    );
    const open = hidden.filter((port) => openPorts.get(port) === true);
    const seen = [...openPorts].flatMap(([port, isOpen]) => (isOpen ? [port] : []));
    return judgePorts(closed, open, `open from here: ${seen.join(", ") || "none"}`, failed);
  }
  if (sockets === undefined) return notAsked("The host's ports were not checked.");
  const everywhere = sockets.filter(({ address }) => !isLoopback(address));
  const missing = config.listeners.filter((listener) => !sockets.some((one) => serves(one, listener)));
  const closed = [...new Set(missing.map(({ port }) => port))];
  const open = everywhere.filter(({ port }) => hidden.includes(port)).map(({ port }) => port);
  // Our firewall drops connections from outside, whatever listens.
  const guarded = evidence.units?.firewall?.state === "active";
  const ports = [...new Set(everywhere.map(({ port }) => port))].sort((a, b) => a - b);
  return judgePorts(
    closed,
    guarded ? [] : [...new Set(open)],
    `listening for everyone: ${ports.join(", ")}`,
    failed,
  );
}

/** Whether a socket may belong to a listener: same port, and same address or all addresses. */
function serves(socket: Pick<ListeningSocket, "address" | "port">, listener: ListenerConfig): boolean {
  if (socket.port !== listener.port) return false;
  const [wanted, there] = [listener, socket].map(({ address }) => canonicalAddress(address)) as [
    string,
    string,
  ];
  return wanted === there || [wanted, there].some(isWildcard);
}

function judgePorts(
  closed: readonly number[],
  open: readonly number[],
  seen: string,
  failed: ReadonlySet<string>,
): Verdict {
  const cause = ["config", "proxy"].find((id) => failed.has(id));
  if (closed.length > 0 && cause !== undefined) return explained(cause, seen);
  if (closed.length > 0) {
    const fix =
      "Start the proxy; from outside, check that the firewall and the router let the ports through.";
    return failure(`port ${closed.join(" and ")} cannot be reached`, [seen], fix);
  }
  if (open.length > 0) {
    const fix = "Make the daemon listen on 127.0.0.1 only, or deploy the firewall.";
    return failure(`port ${open.join(" and ")} must be reachable on localhost only`, [seen], fix);
  }
  return ok(seen);
}
