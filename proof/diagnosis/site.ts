import {
  type ExpectedProbe,
  expectedResponses,
  type ExpectedResponsesOptions,
  mainName,
} from "../../src/host/diagnosis/expected/expectedResponses.js";
import type { Evidence, SeenResponse } from "../../src/host/diagnosis/evidence.js";
import type { ReceivedResponse } from "../../src/host/diagnosis/expected/expectation.js";
import { judge } from "../../src/host/diagnosis/expected/liveCheck.js";
import type { ProbeOutcome } from "../../src/host/diagnosis/expected/probe.js";
import { parseConfig, type ProxyConfig, type ProxyConfigInput } from "../../src/model/index.js";
import { deploymentOf } from "../../testkit/deployment.js";
import { siteConfig, siteExpect } from "../../testkit/siteConfig.js";
import { wantedFiles } from "../applicationSettings/oracle.js";

/** A file-sync front end as a diagnosis sees it, in good order. */

export const ADDRESS = "198.41.0.4";

export function configOf(input: ProxyConfigInput): ProxyConfig {
  const config = parseConfig(input);
  if (!config.ok) throw new Error(JSON.stringify(config.problems));
  return config.value;
}

export const response = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  more: Partial<ReceivedResponse> = {},
): ProbeOutcome => ({
  response: { protocol: "HTTP/1.1", status, headers: { server: "portico", ...headers }, ...more },
});

export const failure = (code: string): ProbeOutcome => ({ failure: { code, message: `failed: ${code}` } });

/** An error page of the proxy, by the application's server or by the default one. */
export const errorPage = (status: number, server = "portico"): ProbeOutcome =>
  response(status, { server }, { body: `<hr><center>${server}</center>` });

/** The rows of a file-sync front end, as its deployment lists them. */
export function siteRows(config: ProxyConfig, options: ExpectedResponsesOptions = {}): ExpectedProbe[] {
  const mode = config.listeners.some(({ protocol }) => protocol === "https") ? "tls" : "plain";
  const host = mainName(config);
  const expect = siteExpect({ mode, host });
  const known = expect.filter(({ request }) =>
    config.virtualServers.some(({ name }) => name === request.server),
  );
  return expectedResponses(config, { expect: known, ...options });
}

const SUBJECTS = {
  default: /^default/,
  media: /^media/,
  redirect: /^redirect|^\/ over/,
  web: /^application/,
  fileServer: /^file server/,
  webdav: /^WebDAV/,
  certificate: /^certificate/,
};
export type Subject = keyof typeof SUBJECTS;

/** What a row is about. */
export const subjectOf = ({ name }: ExpectedProbe): Subject =>
  (Object.keys(SUBJECTS) as Subject[]).find((subject) => SUBJECTS[subject].test(name))!;

/** What each request should get. */
export function asExpected(row: ExpectedProbe): ProbeOutcome {
  const { request } = row;
  const subject = subjectOf(row);
  const { scheme, host, path } = request;
  const html = { "content-type": "text/html; charset=utf-8" };
  switch (subject) {
    case "default":
      return response(200, { ...html, server: "portico/0.1.0" });
    case "media":
      return response(200, {
        "content-type": "image/png",
        "content-length": "1",
        "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        etag: '"1"',
        "accept-ranges": "bytes",
      });
    case "redirect":
      return response(301, { ...html, location: `https://${host}${path}` });
    case "web":
      return response(
        302,
        {
          ...html,
          location: `${scheme}://${host}${path}accounts/login/?next=${path}`,
          vary: "Accept-Language, Cookie",
          "content-language": "en",
        },
        { protocol: scheme === "https" ? "HTTP/2" : "HTTP/1.1" },
      );
    default:
      return response(200);
  }
}

/** The rows of a config with what came; what a row is about may get another response than it should. */
export function responsesOf(
  config: ProxyConfig,
  others: Partial<Record<Subject | "all", ProbeOutcome>> = {},
  options: ExpectedResponsesOptions = { imagePath: "a.png" },
): SeenResponse[] {
  return siteRows(config, options).map((row) => {
    const outcome =
      row.notProbed === undefined ? (others[subjectOf(row)] ?? others.all ?? asExpected(row)) : undefined;
    return { row, outcome, checked: judge(row, outcome) };
  });
}

const unit = (name: string, command = ""): NonNullable<NonNullable<Evidence["units"]>["proxy"]> => ({
  name,
  load: "loaded",
  mainPid: 1,
  state: "active",
  enabled: true,
  command,
});

export const UNITS = {
  proxy: unit("portico.service"),
  proxySocket: unit("portico.socket"),
  daemons: [unit("web.service", "/opt/sync/web.sh start")],
};

const CONFIG = configOf(siteConfig({ mode: "plain", host: ADDRESS }));

export const HEALTHY: Evidence = {
  place: "host",
  config: CONFIG,
  configProblems: [],
  configWarnings: [],
  deployment: deploymentOf({ network: { addresses: [ADDRESS] }, settings: { files: wantedFiles() } }),
  responses: responsesOf(CONFIG),
  units: UNITS,
  sockets: [{ address: "0.0.0.0", port: 80 }],
  settings: { deviations: [], problems: [], database: "The database stores no other values." },
  trees: { looked: 3, violations: [], unseen: [] } as unknown as NonNullable<Evidence["trees"]>,
  publicAddresses: [{ address: ADDRESS, own: true, outcome: response(200) }],
  drift: { store: [], files: [], units: [], firewall: [], running: [] },
  logs: [],
  ownAddresses: new Set([ADDRESS, "127.0.0.1", "::1", "fe80::1"]),
  space: [],
};
