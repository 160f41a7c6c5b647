import { type DeploymentInput, parseDeployment, parseDeploymentText } from "../../src/model/index.js";
import { applicationSettingsValues } from "../../src/render/index.js";

/** The deployment document: what it may say, and that every problem is told at once. */
const HASH = "a".repeat(64);
const valid: DeploymentInput = {
  version: 1,
  config: "/etc/portico/portico.json",
  files: [
    { path: "/etc/portico/portico.json", mode: "0644", sha256: HASH, role: "config" },
    { path: "/etc/portico/tls/privkey.pem", mode: "0600", sha256: HASH, role: "tls" },
  ],
  services: { proxy: { service: "portico.service", socket: "portico.socket" } },
};

const values = applicationSettingsValues({
  origins: [{ scheme: "https", host: "2001:db8::1", port: 8443 }],
  pathPrefix: "sync",
  enableSettingsViaWeb: false,
  fileServerHost: "127.0.0.1",
  fileServerPort: "8082",
});

test("defaults are filled in, and it is frozen", () => {
  const parsed = parseDeployment({
    ...valid,
    settings: { values, files: { networkDaemon: "/a", webApplication: "/b", fileServer: "/c" } },
    media: { directory: "/opt/sync/media" },
    database: { host: "127.0.0.1", port: 3306, name: "sync", user: "reader" },
    network: { exposedPorts: [80] },
  });
  expect(parsed).toMatchObject({
    ok: true,
    value: {
      settings: { apply: false },
      media: { fix: false },
      network: { portForwards: [], dnsRecords: [], exposedPorts: [80], loopbackPorts: [] },
      probe: { enabled: true, timeoutSeconds: 60 },
    },
  });
  expect(parsed.ok && Object.isFrozen(parsed.value.files[0])).toBe(true);
});

test.each<[string, object, [string, string][]]>([
  ["another version", { version: 2 }, [["version", "config.unsupported-version"]]],
  [
    "a password",
    { database: { host: "h", port: 1, name: "n", user: "u", password: "p" } },
    [["database.password", "config.unknown-field"]],
  ],
  [
    "every field at once",
    {
      config: "portico.json",
      files: [{ path: "/a/../b", mode: "0777", sha256: "abc", role: "exe" }],
      services: { proxy: { service: "portico", socket: "portico.service" }, webApplication: "a b.service" },
      probe: { timeoutSeconds: 0 },
    },
    [
      ["config", "config.bad-file-path"],
      ["files[0].path", "config.bad-file-path"],
      ["files[0].mode", "config.not-one-of"],
      ["files[0].sha256", "config.bad-text"],
      ["files[0].role", "config.not-one-of"],
      ["services.proxy.service", "config.bad-name"],
      ["services.proxy.socket", "config.bad-name"],
      ["services.webApplication", "config.bad-name"],
      ["probe.timeoutSeconds", "config.out-of-range"],
    ],
  ],
  ["no files", { files: [] }, [["files", "config.out-of-range"]]],
  ["a file twice", { files: [valid.files[0], valid.files[0]] }, [["files[1].path", "config.duplicate-name"]]],
  ["files out of order", { files: [...valid.files].reverse() }, [["files[1].path", "config.duplicate-name"]]],
  [
    "a config that is not a config",
    { config: "/etc/portico/tls/privkey.pem" },
    [["config", "config.unknown-reference"]],
  ],
  [
    "files of activation itself",
    {
      files: [
        { ...valid.files[0], path: "/etc/portico/deployment.json", role: "other" },
        valid.files[0],
        { ...valid.files[0], path: "/var/lib/portico/deployment/x", role: "other" },
        { ...valid.files[0], path: "/x/", role: "other" },
      ],
    },
    [
      ["files[0].path", "config.bad-file-path"],
      ["files[2].path", "config.bad-file-path"],
      ["files[3].path", "config.bad-file-path"],
    ],
  ],
  [
    "a file that is deployed and edited",
    {
      settings: {
        values,
        files: { networkDaemon: "/a", webApplication: "/etc/portico/portico.json", fileServer: "/c" },
        apply: true,
      },
    },
    [["settings.files.webApplication", "config.duplicate-name"]],
  ],
])("%s", (_what, change, expected) => {
  const parsed = parseDeployment({ ...valid, ...change });
  expect(parsed.ok ? [] : parsed.problems.map(({ path, code }) => [path, code])).toEqual(expected);
});

const settings = (port: unknown) => ({
  values: { ...values, fileServerPort: port },
  files: { networkDaemon: "/a", webApplication: "/b", fileServer: "/c" },
});

/** A field, how it is given, and values on both sides of its rule. */
test.each<[string, (value: string) => object, string[], string[]]>([
  [
    "files[0].sha256",
    (sha256) => ({ files: [{ ...valid.files[0], sha256 }, valid.files[1]] }),
    ["0123456789abcdef".repeat(4)],
    ["", "a".repeat(63), "a".repeat(65), "A".repeat(64), `${HASH}\n`, ` ${HASH}`, "g".repeat(64)],
  ],
  [
    "services.proxy.service",
    (service) => ({ services: { proxy: { service, socket: "portico.socket" } } }),
    ["a.service", "a@b:c_d-e.f\\x2d.service", `${"a".repeat(240)}.service`],
    ["", ".service", "a", "a.socket", "a.services", "a.service\n", " a.service", "a b.service", "/a.service"],
  ],
  [
    "services.proxy.socket",
    (socket) => ({ services: { proxy: { service: "portico.service", socket } } }),
    ["a.socket"],
    ["a.service", "a.sockets", "a.socket ", `${"a".repeat(241)}.socket`],
  ],
  [
    "settings.values.fileServerPort",
    (port) => ({ settings: settings(port) }),
    ["1", "8082", "65535"],
    ["", "0", "08082", "80825x", "x8082", " 8082", "8082\n", "123456", "-1"],
  ],
])("%s takes what it says, and nothing that comes close", (path, change, taken, refused) => {
  const pathsOf = (value: string): string[] => {
    const parsed = parseDeployment({ ...valid, ...change(value) });
    return parsed.ok ? [] : parsed.problems.map((p) => p.path);
  };
  for (const value of taken) expect([value, pathsOf(value)]).toEqual([value, []]);
  for (const value of refused) expect([value, pathsOf(value)]).toEqual([value, [path]]);
});

test("JSON errors name their place; a misspelt field is corrected", () => {
  expect(parseDeploymentText('{"version": 1,')).toMatchObject({
    ok: false,
    problems: [{ code: "config.not-json" }],
  });
  const parsed = parseDeployment({ ...valid, service: {} });
  expect(parsed).toMatchObject({
    ok: false,
    problems: [{ path: "service", fix: "Did you mean `services`?" }],
  });
});
