import { configNode, nodesAt, type SchemaNode, variants } from "../../src/model/config/schema.js";
import { deploymentSchema } from "../../src/model/index.js";

/** How long texts and lists of the documents may be, and which numbers a deployment may have. */

interface Bounded extends SchemaNode {
  readonly minLength?: number;
  readonly maxItems?: number;
}

/** Every value of a document with its path: `[]` is an item, `{}` what an object with any names has. */
function values(node: SchemaNode, path = ""): [path: string, node: Bounded][] {
  return variants([node]).flatMap((one): [string, Bounded][] => [
    [path, one],
    ...(one.items === undefined ? [] : values(one.items, `${path}[]`)),
    ...(typeof one.additionalProperties === "object" ? values(one.additionalProperties, `${path}{}`) : []),
    ...Object.entries(one.properties ?? {}).flatMap(([name, inner]) =>
      values(inner, path === "" ? name : `${path}.${name}`),
    ),
  ]);
}

const boundsOf = ({ minItems, maxItems, minLength, maxLength }: Bounded): string =>
  minItems === undefined && maxItems === undefined
    ? `${minLength ?? ""}..${maxLength ?? ""} characters`
    : `${minItems ?? ""}..${maxItems ?? ""} items`;

function grouped(node: SchemaNode, said: (node: Bounded) => string): Record<string, string> {
  const found = new Map<string, Set<string>>();
  for (const [path, one] of values(node))
    if (/\d/.test(said(one))) found.set(said(one), (found.get(said(one)) ?? new Set()).add(path));
  return Object.fromEntries([...found].map(([bounds, paths]) => [bounds, [...paths].join(" ")]));
}

const deployment = nodesAt(deploymentSchema, [])[0]!;
const paths = (...all: string[]): string => all.join(" ");

test("texts and lists of a config have these bounds", () => {
  const [server, route, acme] = [
    "virtualServers[]",
    "virtualServers[].routes[]",
    "listeners[].tls.acme.names",
  ];
  const more = "listeners[].tls.certificates[].acme.names";
  expect(grouped(configNode(), boundsOf)).toEqual({
    "..20 items": "certificateAuthorities[].dns.nameServers virtualServers[].logIns[].changing",
    "1..10 items": "virtualServers[].logIns[].failed",
    "1..50 items": "virtualServers[].logIns",
    "1..10000 items": `${server}.clientCertificate.names`,
    "1..16 items": "notifications.targets",
    "1..100 items": paths(acme, more),
    "1.. items": paths(
      ...["accessPolicies{}.allow", "accessPolicies{}.deny"],
      ...["listeners", "listeners[].proxyProtocol.from", "listeners[].tls.policy.curves"],
      ...["upstreams[].servers", "upstreams[].health.expect", "virtualServers"],
      ...[`${server}.serverNames`, `${server}.listeners`, `${server}.errorPages[].statuses`],
      `${route}.action.allow`,
    ),
    "..64 characters": paths(
      ...[`${server}.responseHeaders.remove[]`, `${route}.action.keepFields[]`, `${route}.action.upgrades[]`],
      `${route}.responseHeaders.remove[]`,
    ),
    "..128 characters": "upstreams[].sticky.applicationCookie upstreams[].sticky.cookie",
    "..253 characters": paths(
      ...["certificateAuthorities[].dns.zone", "certificateAuthorities[].dns.alias", `${acme}[]`],
      ...[`${more}[]`, "upstreams[].tls.serverName", `${server}.serverNames[]`],
      ...[`${route}.action.forwarded.host`, `${route}.action.host`],
    ),
    // A name of 253, with scheme, brackets and port.
    "..268 characters": "upstreams[].url upstreams[].servers[].url",
    "..50 items": paths("accessPolicies{}.forwardAuth.copyFields", "accessPolicies{}.forwardAuth.bypass"),
    "..2048 characters": paths(
      ...["accessPolicies{}.forwardAuth.url", "upstreams[].health.path"],
      ...[`${route}.action.rewrite`, `${route}.action.path`],
    ),
    "..4096 characters": paths(
      ...[`${server}.responseHeaders.set{}`, `${server}.pauseResponse.headers{}`],
      `${route}.responseHeaders.set{}`,
    ),
    "1..4096 characters": `${server}.pauseResponse.body`,
    "..65536 characters": `${route}.action.body`,
    "1..32768 characters": `maintenance.page ${server}.errorPages[].html`,
  });
});

test("texts and lists of a deployment have these bounds", () => {
  const [items, causes] = ["settings.files[].items", "expect[].causes"];
  expect(grouped(deployment, boundsOf)).toEqual({
    "1.. items": "files",
    "1..10 items": "settings.files",
    "1..20 items": "expect[].status expect[].location expect[].fields[].includes expect[].members[].values",
    "1..100 items": items,
    "..10 items": `${causes}[].because`,
    "..20 items": paths(
      ...["expect[].members", causes, `${causes}[].evidence.status`, `${causes}[].evidence.statusNot`],
      `${causes}[].settings`,
    ),
    "..50 items": "trees rows expect[].fields",
    "..100 items": `${items}[].value`,
    "..500 items": "expect",
    "..253 characters": "network.dnsRecords[].name replay.host",
    "..2048 characters": paths(
      ...[`${items}[].value`, `${items}[].value[]`, "expect[].request.path", "expect[].location.path"],
    ),
  });
});

test("numbers of a deployment have these bounds", () => {
  const rangeOf = ({ minimum, maximum }: Bounded): string => `${minimum ?? ""}..${maximum ?? ""}`;
  expect(grouped(deployment, rangeOf)).toEqual({
    "-9007199254740991..9007199254740991": paths(
      ...["lengthMax", "minimum", "maximum"].map((name) => `lateValues[].rule.${name}`),
    ),
    "0..9007199254740991": "settings.files[].items[].value replay.changesMax",
    "1..3600": "probe.timeoutSeconds",
    "1..65535": paths(
      ...["database.port", "network.portForwards[].port", "network.portForwards[].toPort"],
      ...["network.exposedPorts[]", "network.loopbackPorts[]"],
    ),
    "100..599": paths(
      ...["expect[].status", "expect[].status[]"],
      ...["expect[].causes[].evidence.status[]", "expect[].causes[].evidence.statusNot[]"],
    ),
    "1024..1099511627776": "replay.logBytesMax",
  });
});
