import type { ProxyConfigInput } from "../../src/model/index.js";
import { parseConfig } from "../../src/model/index.js";
import { APPLICATIONS } from "../../src/applications/index.js";
import { Application, FrontEnd, Mode, type PasswordGuardOption } from "../../src/index.js";
import { newStack } from "../../testkit/stacks.js";

const HOST = { address: "192.0.2.10", publicName: "files.example.org" };

function frontEnd(own?: PasswordGuardOption, ofSite?: PasswordGuardOption) {
  const mode = Mode.tls();
  const front = new FrontEnd(newStack(), "front", { host: HOST, mode, ...(own && { passwordGuard: own }) });
  const site = front.addSite("vault", {
    serverNames: ["vault.example.org"],
    application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
    ...(ofSite && { passwordGuard: ofSite }),
  });
  front.addSite("plain", {
    serverNames: ["plain.example.org"],
    application: Application.server("http://127.0.0.1:9000"),
  });
  return { front, site };
}

const guardsOf = ({ passwordGuards, virtualServers }: ProxyConfigInput) => [
  passwordGuards,
  virtualServers.flatMap(({ name, passwordGuard, logIns }) =>
    passwordGuard === undefined ? [] : [[name, passwordGuard, logIns?.length]],
  ),
];

test("the nearest guard applies, to sites whose application has log-ins", () => {
  expect(guardsOf(frontEnd().front.proxy.config)).toEqual([undefined, []]);
  expect(guardsOf(frontEnd({}).front.proxy.config)).toEqual([
    { "front end": {} },
    [["vault", "front end", 4]],
  ]);
  expect(guardsOf(frontEnd({}, { slowAfter: 3 }).front.proxy.config)).toEqual([
    { vault: { slowAfter: 3 } },
    [["vault", "vault", 4]],
  ]);
  expect(guardsOf(frontEnd({}, "off").front.proxy.config)).toEqual([undefined, []]);
});

test("a guard of a site without log-ins is refused, and so is one with an unknown limit", () => {
  const { front } = frontEnd();
  const add = (passwordGuard: object) =>
    front.addSite("more", {
      serverNames: ["more.example.org"],
      application: Application.server("http://127.0.0.1:9001"),
      passwordGuard,
    });
  expect(() => add({})).toThrow("config.guard-without-log-in");
  expect(() => frontEnd({ tries: 3 } as object)).toThrow("config.unknown-field");
  expect(() => frontEnd({ wrongSecretsMax: 0 })).toThrow("config.out-of-range");
});

test("every application's log-ins are ones that the config has", () => {
  for (const definition of APPLICATIONS) {
    const application = Application.custom(definition);
    const mode = Mode.tls();
    const front = new FrontEnd(newStack(), "front", { host: HOST, mode, application, passwordGuard: {} });
    const parsed = parseConfig(front.proxy.config);
    expect([definition.name, parsed.ok ? [] : parsed.problems]).toEqual([definition.name, []]);
    for (const { secret, path, failedLocation = path } of definition.clients.logIns) {
      expect(["authorization", "body"]).toContain(secret);
      expect(path === "/" || path.endsWith(failedLocation)).toBe(true);
    }
  }
});
